"""CUDA graphs: which graphs were to be recorded and are not, and why."""

from __future__ import annotations

from typing import Any

from dynamo_nb.capture.plain import parse_stack_trace
from dynamo_nb.capture.recorder import Hooked

__all__ = ["install_cudagraphs"]

_PREFIX = "skipping cudagraphs due to "


def install_cudagraphs(hooked: Hooked) -> None:
    """Watch the compiled graph as it is made: it holds why no CUDA graph will be recorded.

    `CompiledFxGraph.__init__` (`torch/_inductor/output_code.py`, 2.13) is where all reasons that
    are known while compiling come together; torch logs them for GPUs only.
    """
    from torch._inductor import config
    from torch._inductor.output_code import CompiledFxGraph

    recorder = hooked.recorder

    def after(_: Any, compiled: Any, *__: Any, **___: Any) -> None:
        if not config.triton.cudagraphs:
            return
        info = compiled.cudagraph_info
        general = info.cudagraph_fail_reasons if info is not None else ()
        exact = compiled.disabled_cudagraphs_reason
        for reason in [exact] if exact else general:
            recorder.emit("cudagraph_skipped", {"direction": recorder.graph, **_told(reason)})

    hooked.around(CompiledFxGraph, "__init__", after=after)


def _told(reason: str) -> dict[str, Any]:
    """Return torch's sentence without its preface, and the user's stack that it found."""
    while reason.startswith(_PREFIX):
        reason = reason.removeprefix(_PREFIX)
    sentence = reason.partition("Found from")[0].strip().rstrip(".")
    if sentence == "multiple devices:":  # of those that count there is none
        sentence = "nothing in it runs on a GPU"
    return {"reason": sentence, "user_stack": parse_stack_trace(reason)}
