"""The graphs of a cell, taken the moment Dynamo hands them to a backend, for `--target`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from torch import fx

from dynamo_nb.capture import graph_inputs, graph_text, portable, user_kernels
from dynamo_nb.capture.recorder import Hook, Hooked

__all__ = ["TakenGraph", "TargetGraphs"]


class TakenGraph(Struct, kw_only=True):
    """A graph ready to travel; `problem` says why it can't, and `node` at which."""

    compile_id: str
    generation: int
    graph: bytes = b""
    inputs: bytes | None = None
    unchecked: str = ""
    sources: dict[str, str] = {}
    problem: str = ""
    node: str = ""
    ambient: dict[str, Any] = {}
    settings: dict[str, Any] = {}


class TargetGraphs:
    """Takes each graph while its hook is installed, and hands it on at once."""

    def __init__(self, on_graph: Callable[[TakenGraph], None], *, with_inputs: bool) -> None:
        self._with_inputs = with_inputs
        self.hook = Hook("target-graphs", "kernels for the targets", self._install)
        self._on_graph = on_graph

    def _install(self, hooked: Hooked) -> None:
        """Watch `OutputGraph.call_user_compiler` (`torch/_dynamo/output_graph.py`, 2.13)."""
        from torch._dynamo.output_graph import OutputGraph

        def before(output_graph: Any, module: fx.GraphModule, inputs: Any, *_: Any) -> None:
            compile_id, generation = str(output_graph.dynamo_compile_id), hooked.recorder.generation
            taken = TakenGraph(compile_id=compile_id, generation=generation)
            try:
                taken.graph = graph_text.pack(module)
                taken.sources = graph_inputs.sources(module)
                taken.ambient = portable.ambient()
                taken.settings = _options(output_graph.compiler_fn)
            except graph_inputs.UntakableError as exc:
                taken.problem, taken.node = str(exc), exc.node
            if self._with_inputs:
                _take_inputs(taken, inputs, module)
            self._on_graph(taken)
            if user_kernels.are_in(module) and not user_kernels.can_run():
                output_graph.compiler_fn = _as_it_is

        user_kernels.install_recognition(hooked)
        hooked.around(OutputGraph, "call_user_compiler", before=before)


def _take_inputs(taken: TakenGraph, inputs: Any, module: fx.GraphModule) -> None:
    try:
        taken.inputs = graph_inputs.pack_inputs(inputs, module)
    except Exception as exc:
        taken.unchecked = str(exc)


def _as_it_is(module: fx.GraphModule, _: Any) -> Callable[..., Any]:
    """Compile nothing: what runs a user's kernel without a GPU fails as it does in eager mode."""
    return module.forward


def _options(backend: Any) -> dict[str, Any]:
    """Return what torch.compile's `mode` and `options` set of Inductor: nothing elsewhere."""
    from torch._dynamo.eval_frame import innermost_backend

    options = getattr(innermost_backend(backend), "config", None)
    return dict(options) if isinstance(options, dict) else {}
