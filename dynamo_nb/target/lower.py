"""One graph through AOTAutograd and Inductor for the absent GPU. In the worker only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import sympy
import torch
from torch import fx
from torch._dynamo.source import ConstantSource, LocalSource
from torch._inductor.compile_fx import compile_fx
from torch._inductor.graph import GraphLowering
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from dynamo_nb.capture import arrived_operators, hooks
from dynamo_nb.capture.graph_aliases import Base, part_of
from dynamo_nb.capture.graph_inputs import Input
from dynamo_nb.capture.graph_module import graph_module
from dynamo_nb.capture.graph_text import Taken
from dynamo_nb.capture.recorder import Hook, Hooked, Recorder
from dynamo_nb.events import Event
from dynamo_nb.record.types import Note
from dynamo_nb.target import pretence, trouble

__all__ = ["NAMES", "Lowered", "lower"]

NAMES = (
    "torch._inductor.compile_fx:compile_fx",
    "torch._inductor.graph:GraphLowering.compile_to_module",
    "torch._inductor.graph:GraphLowering.save_output_code",
    "torch.fx.experimental.symbolic_shapes:DimDynamic",
    "torch.fx.experimental.symbolic_shapes:ShapeEnv.create_symbol",
    "torch.fx.experimental.symbolic_shapes:ShapeEnv.create_symintnode",
    "torch._subclasses.fake_tensor:FakeTensorMode",
)

DEVICE = "cuda:0"

#: Rows of the capture's table that tell what becomes of a graph after Dynamo.
_HOOKS = (
    "aot-graphs",
    "replacements",
    "post-grad-graph",
    "kernel-code",
    "kernel-nodes",
    "schedule",
)


class Lowered:
    """What came of one graph: the capture's events, and the output code of each direction."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.notes: list[Note] = []
        self.output_code: dict[str, str] = {}
        self.compiled: Any = None
        self.module: fx.GraphModule | None = None
        self.untrained: dict[str, str] = {}


def lower(taken: Taken, settings: dict[str, Any], more: Sequence[Hook] = ()) -> Lowered:
    """Compile a graph for the absent GPU, watched by `more` hooks besides the capture's own.

    Where an operator's formula for autograd can't be had, forward is compiled alone.
    """
    untrained = arrived_operators.untrained(taken.outcomes) if taken.grad else {}
    try:
        return _lowered(taken, settings, more, untrained)
    except Exception as exc:
        trained = {call.name for call in taken.outcomes if call.is_trained}
        if untrained or not (trained and taken.grad):
            raise
        return _lowered(taken, settings, more, dict.fromkeys(trained, trouble.of_a_graph(exc)))


def _lowered(
    taken: Taken, settings: dict[str, Any], more: Sequence[Hook], untrained: dict[str, str]
) -> Lowered:
    lowered = Lowered()
    lowered.untrained = untrained
    module = graph_module(taken.graph, DEVICE)
    shape_env = ShapeEnv()
    sizes = _Sizes(taken, shape_env)
    inputs = _inputs(taken, module, sizes, shape_env)
    recorder = Recorder()
    with ExitStack() as stack:
        stack.enter_context(_watched(recorder, lowered, more))
        stack.enter_context(pretence.absent(settings))
        stack.enter_context(arrived_operators.outcomes(taken.outcomes, sizes.symbols))
        stack.enter_context(torch.set_grad_enabled(taken.grad and not lowered.untrained))
        if taken.autocast is not None:
            stack.enter_context(torch.autocast("cuda", dtype=taken.autocast))
        recorder.emit("graph", _dynamo_graph(module))
        lowered.compiled = compile_fx(module, inputs)
    lowered.events, lowered.notes = recorder.events, recorder.notes
    return lowered


def _dynamo_graph(module: fx.GraphModule) -> dict[str, Any]:
    """Return what the capture tells of a Dynamo graph, without the nodes: the notebook has them."""
    return {"stage": "dynamo", "direction": "", "graph_id": id(module.graph), "nodes": []}


@contextmanager
def _watched(recorder: Recorder, lowered: Lowered, more: Sequence[Hook]) -> Iterator[None]:
    original = GraphLowering.compile_to_module

    def compile_to_module(self: Any) -> Any:
        saved: list[str] = []
        before, GraphLowering.save_output_code = GraphLowering.save_output_code, saved.append
        try:
            return original(self)
        finally:
            GraphLowering.save_output_code = before
            lowered.output_code[recorder.graph] = "".join(saved)

    with ExitStack() as stack:
        wanted = [hook for hook in hooks.HOOKS if hook.name in _HOOKS]
        for hook in (*wanted, *more):
            hooked = Hooked(hook, recorder)
            stack.callback(hooked.undo.close)
            hook.install(hooked)
        GraphLowering.compile_to_module = compile_to_module
        stack.callback(setattr, GraphLowering, "compile_to_module", original)
        yield


# ------------------------------------------------------------------ inputs


def _inputs(taken: Taken, module: fx.GraphModule, sizes: _Sizes, shape_env: ShapeEnv) -> list[Any]:
    """Return fake inputs on the absent device, symbolic where the graph's are."""
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=shape_env)
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    bases = [(_base(base, sizes, mode), base.are_views) for base in taken.bases]
    made = []
    for node, given in zip(placeholders, taken.inputs, strict=True):
        value = sizes(given.expr) if given.dtype is None else _tensor(given, sizes, mode, bases)
        node.meta["example_value"] = value
        node._dynamo_source = LocalSource(node.name)
        made.append(value)
    return made


def _base(base: Base, sizes: _Sizes, mode: FakeTensorMode) -> torch.Tensor:
    """Return what inputs that share memory are parts of."""
    size, stride = [sizes(s) for s in base.size], [sizes(s) for s in base.stride]
    with mode:
        return torch.empty_strided(size, stride, dtype=base.dtype, device=DEVICE)


def _tensor(
    given: Input, sizes: _Sizes, mode: FakeTensorMode, bases: list[tuple[torch.Tensor, bool]]
) -> torch.Tensor:
    size, stride = [sizes(s) for s in given.size], [sizes(s) for s in given.stride]
    with mode:
        device = "cpu" if given.is_number else DEVICE
        if given.part is None:
            tensor = torch.empty_strided(size, stride, dtype=given.dtype, device=device)
        else:
            tensor = part_of(*bases[given.part.base], given.part, sizes)
    if given.is_parameter:
        tensor = torch.nn.Parameter(tensor, requires_grad=given.requires_grad)
    elif given.requires_grad:
        tensor.requires_grad_()
    if given.static_type:
        tensor._dynamo_static_input_type = given.static_type
    return tensor


class _Sizes:
    """Turns the notebook's symbolic sizes into sizes of the worker's own shape environment."""

    def __init__(self, taken: Taken, shape_env: ShapeEnv) -> None:
        self._shape_env = shape_env
        self._symbols: dict[sympy.Symbol, sympy.Expr] = {}
        self._hints: dict[sympy.Symbol, int] = {}
        for item in taken.symbols:
            source = ConstantSource(item.source or str(item.symbol))
            symbol = shape_env.create_symbol(item.hint, source, DimDynamic.DYNAMIC)
            self._symbols[item.symbol] = symbol
            self._hints[item.symbol] = item.hint

    @property
    def symbols(self) -> dict[sympy.Symbol, Any]:
        """What each of the notebook's symbols stands for."""
        return {symbol: self(symbol) for symbol in self._symbols}

    def __call__(self, size: Any) -> Any:
        if isinstance(size, int):
            return size
        expr = size.xreplace(self._symbols)
        hint = int(size.xreplace(self._hints))
        return self._shape_env.create_symintnode(expr, hint=hint)
