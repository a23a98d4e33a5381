"""CUDA graphs: which graphs were to be recorded and are not, and why; what became of the others."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

from dynamo_nb.capture.plain import parse_stack_trace
from dynamo_nb.capture.recorder import Hooked

__all__ = ["install_cudagraphs", "install_recordings"]

_INPUT = re.compile(r"input name: (\S+?)\. ")
_PREFIXES = ("skipping cudagraphs due to ", "skipping cudagraph due to ")


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


def install_recordings(hooked: Hooked) -> None:
    """Count how often a graph is warmed up, recorded and replayed, and why it is recorded again.

    `CUDAGraphTreeManager` has a method for each (`torch/_inductor/cudagraph_trees.py`, 2.13). A
    call goes through `_run`, which asks the recordings that there are whether they still fit; `run`
    itself is bound for good when a graph is made, so a later capture would not be called there.
    """
    from torch._inductor import cudagraph_trees
    from torch._inductor.cudagraph_trees import CUDAGraphNode, CUDAGraphTreeManager

    seen = _Recordings(hooked)
    hooked.around(cudagraph_trees, "cudagraphify", before=seen.sized)
    hooked.around(CUDAGraphTreeManager, "_run", before=seen.begun)
    hooked.around(CUDAGraphNode, "check_invariants", after=seen.asked)
    hooked.around(CUDAGraphTreeManager, "run_eager", after=seen.warmed_up)
    hooked.around(CUDAGraphTreeManager, "record_function", after=seen.recorded)
    hooked.around(CUDAGraphTreeManager, "execute_node", after=seen.replayed)
    hooked.around(cudagraph_trees, "log_cudagraph_skip_and_bump_counter", before=seen.skipped)
    hooked.undo.callback(seen.tell)


class _Recordings:
    """What became of each CUDA graph, by compile id and direction; methods are what hooks call."""

    def __init__(self, hooked: Hooked) -> None:
        self._hooked = hooked
        self._uses: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._reasons: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        #: Of the recordings that the call under way asked.
        self._refusals: list[str] = []
        #: Sizes that each function was recorded for.
        self._met: dict[tuple[str, str, int], set[tuple[int, ...]]] = {}
        self._under_way = ("", "")

    def begun(self, manager: Any, _: Any, function_id: Any) -> None:
        """Begin a call."""
        self._refusals.clear()
        self._under_way = _key(manager, function_id)

    def sized(
        self,
        model: Any,
        inputs: list[Any],
        *_: Any,
        is_backward: bool,
        is_inference: bool,
        **more: Any,
    ) -> None:
        """Take in the sizes that a function is made for: others than before are a reason."""
        sizes = tuple(item for item in inputs if isinstance(item, int))
        mode = "backward" if is_backward else "inference" if is_inference else "forward"
        own = str(more.get("compile_id") or ""), mode
        known = self._met.setdefault((*own, id(model)), set())
        if known and sizes not in known:
            self._reasons[own][f"another size: {', '.join(map(str, sizes))}"] = None
        known.add(sizes)

    def asked(self, answer: tuple[Any, Any], *_: Any) -> None:
        """Take in whether a recording fits the call."""
        from torch._inductor.cudagraph_trees import CheckInvariantStatus

        status, reason = answer
        if status != CheckInvariantStatus.SUCCESS:
            self._refusals.append(_refusal(str(reason())))

    def warmed_up(self, _: Any, manager: Any, __: Any, function_id: Any) -> None:
        """Count a warm-up."""
        self._uses[_key(manager, function_id)]["warm_ups"] += 1

    def recorded(self, _: Any, manager: Any, __: Any, function_id: Any) -> None:
        """Count a recording, with why those that there are did not fit."""
        own = _key(manager, function_id)
        self._uses[own]["recordings"] += 1
        self._reasons[own].update(dict.fromkeys(self._refusals))

    def replayed(self, *_: Any) -> None:
        """Count a replay."""
        self._uses[self._under_way]["replays"] += 1

    def skipped(self, reason: str) -> None:
        """Tell at once that a graph is given up."""
        compile_id, mode = self._under_way
        data = {"direction": mode, **_told(reason)}
        self._hooked.recorder.emit("cudagraph_skipped", data, compile_id=compile_id)

    def tell(self) -> None:
        """Tell all that was counted."""
        for (compile_id, mode), counts in self._uses.items():
            reasons = list(self._reasons[compile_id, mode])
            told = {"direction": mode, **counts, "reasons": reasons}
            self._hooked.recorder.emit("cudagraph", told, compile_id=compile_id)


def _key(manager: Any, function_id: Any) -> tuple[str, str]:
    compile_id = manager.id_to_compile_id[function_id]
    return str(compile_id or ""), manager.id_to_mode[function_id].name.lower()


def _refusal(reason: str) -> str:
    """Return why a recording does not fit, without addresses and stacks: they say nothing here."""
    sentence, _, inputs = reason.partition(".\n")
    names = _INPUT.findall(inputs)
    return f"{sentence} ({', '.join(names)})" if names else sentence.strip()


def _told(reason: str) -> dict[str, Any]:
    """Return torch's sentence without its preface, and the user's stack that it found."""
    while begin := next(filter(reason.startswith, _PREFIXES), ""):
        reason = reason.removeprefix(begin)
    sentence = reason.partition("Found from")[0].strip().rstrip(".")
    if sentence == "multiple devices:":  # of those that count there is none
        sentence = "nothing in it runs on a GPU"
    return {"reason": sentence, "user_stack": parse_stack_trace(reason)}
