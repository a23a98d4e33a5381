"""The inputs of a Dynamo graph on its way to another process: what they are, and their values.

A symbolic number is asked for its hint alone. `int` of one, or a comparison, would be a guard of
the user's code.
"""

from __future__ import annotations

import operator
import pickle
from collections.abc import Sequence
from typing import Any

import torch
from msgspec import Struct
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, is_fake

from dynamo_nb.capture.graph_aliases import Base, Part, overlap_apart, part_of, shared

__all__ = [
    "Input",
    "Symbol",
    "UntakableError",
    "attribute",
    "held",
    "input_of",
    "pack_inputs",
    "place_in_bases",
    "sources",
    "unpack_inputs",
]

#: Kinds of tensors that are nothing but their sizes, strides and dtype.
_PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor)

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)

_IN_PLACE = (operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow)

#: Elements of all inputs up to which they are interpreted: it takes a second for some 100000.
_ELEMENTS = 1 << 20


class UntakableError(ValueError):
    """Why a graph can't be taken to another process; `node` is the one that hinders."""

    def __init__(self, said: str, node: str = "") -> None:
        super().__init__(said)
        self.node = node


class Input(Struct, kw_only=True):
    """What a placeholder stands for: a tensor, or a symbolic number `expr`.

    Sizes and strides are integers or sympy expressions. `is_number` tells of a number of Python,
    which Dynamo passes as a tensor: that is on the CPU whatever the device. One that shares memory
    with another one is a `part` of a base.
    """

    name: str
    expr: Any = None
    size: Any = ()
    stride: Any = ()
    dtype: Any = None
    requires_grad: bool = False
    is_parameter: bool = False
    static_type: str = ""
    is_number: bool = False
    part: Part | None = None


class Values(Struct):
    """The inputs' values: those that share memory are a `Part` of one of the bases."""

    items: list[Any]
    bases: list[tuple[torch.Tensor, bool]]


class Symbol(Struct, kw_only=True):
    """A symbol of the inputs' sizes: its value in this call, and the source that names it."""

    symbol: Any
    hint: int
    source: str


def input_of(node: fx.Node, symbols: dict[str, Symbol]) -> Input:
    """Return what a placeholder stands for, or the node of a tensor that is held.

    Symbols that are met are added to `symbols`.
    """
    value = node.meta.get("example_value")
    if isinstance(value, torch.SymInt):
        return Input(name=node.name, expr=_expression(value, symbols, node))
    if not isinstance(value, torch.Tensor):
        raise UntakableError(f"input `{node.name}` is a {type(value).__name__}", node.name)
    if value.layout != torch.strided or type(value) not in _PLAIN:
        kind = type(value).__name__ if type(value) not in _PLAIN else f"{value.layout} tensor"
        raise UntakableError(f"input `{node.name}` is a {kind}", node.name)
    marks = node.meta.get("tensor_dict") or {}
    static = marks.get("_dynamo_static_input_type") or ""
    return Input(
        name=node.name,
        size=[_expression(size, symbols, node) for size in value.size()],
        stride=[_expression(stride, symbols, node) for stride in value.stride()],
        dtype=value.dtype,
        requires_grad=bool(value.requires_grad),
        is_parameter=isinstance(value, torch.nn.Parameter),
        static_type=str(static),
        is_number=value.dim() == 0 and _is_wrapped(node),
    )


def place_in_bases(
    nodes: Sequence[fx.Node], inputs: Sequence[Input], symbols: dict[str, Symbol]
) -> list[Base]:
    """Return what inputs that share memory are parts of, and set where each lies in it."""
    bases: list[Base] = []
    for group in shared([node.meta.get("example_value") for node in nodes]):
        node = nodes[next(iter(group.tensors))]

        def expression(size: Any, node: fx.Node = node) -> Any:
            return _expression(size, symbols, node)

        for place in group.tensors:
            inputs[place].part = group.part(place, len(bases), expression)
        bases.append(group.described(expression))
    return bases


def _is_wrapped(node: fx.Node) -> bool:
    return bool(getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False))


def held(module: fx.GraphModule) -> list[fx.Node]:
    """Return the nodes of tensors that a graph holds, one a tensor: they travel as inputs.

    A compiled optimizer holds its parameters and its state. A number that is only read is none of
    them: torch leaves it on the CPU, also beside a GPU.
    """
    found: dict[str, fx.Node] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr" and str(node.target) not in found:
            value = attribute(module, node)
            if isinstance(value, torch.Tensor) and (value.dim() or _is_written(node)):
                found[str(node.target)] = node
    return list(found.values())


def attribute(module: fx.GraphModule, node: fx.Node) -> Any:
    """Return what a `get_attr` node reads."""
    value: Any = module
    for name in str(node.target).split("."):
        value = getattr(value, name)
    return value


def _is_written(node: fx.Node) -> bool:
    """Tell whether a node's tensor is changed in place: by a method or function named so."""
    return any(_is_in_place(user.target) and _is_first(node, user) for user in node.users)


def _is_in_place(target: Any) -> bool:
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    name = name.partition(".")[0]
    return target in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))


def _is_first(node: fx.Node, user: fx.Node) -> bool:
    first = user.args[0] if user.args else None
    return first is node or (isinstance(first, list | tuple) and node in first)


def _expression(size: Any, symbols: dict[str, Symbol], node: fx.Node) -> Any:
    """Return an integer, or the expression of a symbolic one whose symbols are then known."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    inner = size.node
    for symbol in inner.expr.free_symbols:
        if str(symbol) not in symbols:
            symbols[str(symbol)] = _symbol(symbol, inner.shape_env, node)
    return inner.expr


def _symbol(symbol: Any, shape_env: Any, node: fx.Node) -> Symbol:
    is_renamed = hasattr(shape_env, "backed_var_to_val")  # from torch 2.13 on
    hints = shape_env.backed_var_to_val if is_renamed else shape_env.var_to_val
    if symbol not in hints:
        said = f"input `{node.name}` has a size without a value ({symbol})"
        raise UntakableError(said, node.name)
    sources = shape_env.var_to_sources.get(symbol) or ()
    name = sources[0].name if sources else ""
    return Symbol(
        symbol=symbol,
        hint=int(hints[symbol]),
        source=name() if callable(name) else name,
    )


def _source(node: fx.Node) -> str:
    found = node.meta.get("grapharg")
    name = getattr(getattr(found, "source", None), "name", "")
    return str(name() if callable(name) else name)


def sources(module: fx.GraphModule) -> dict[str, str]:
    """Return where Dynamo found each input of a graph, by its node's name."""
    return {node.name: _source(node) for node in module.graph.nodes if node.op == "placeholder"}


# ------------------------------------------------------------------ values


def pack_inputs(inputs: Sequence[Any], module: fx.GraphModule) -> bytes:
    """Return the values of a graph's inputs, leaves of autograd's graph each, on the CPU.

    Those of the tensors that it holds follow.

    Raises
    ------
    UntakableError
        When they are too many for an interpreter, or have no values.
    """
    inputs = [*inputs, *(attribute(module, node) for node in held(module))]
    tensors = [item for item in inputs if isinstance(item, torch.Tensor)]
    if any(is_fake(item) for item in tensors):
        raise UntakableError("its inputs are fake tensors, which have no values")
    groups = shared(inputs)
    bases = [(group.flat(), group.base is not None) for group in groups]
    elements = sum(item.numel() for item in [*tensors, *(flat for flat, _ in bases)])
    if elements > _ELEMENTS:
        raise UntakableError(f"its inputs have {elements} elements, more than {_ELEMENTS}")
    if overlap_apart(tensors):
        raise UntakableError("its inputs overlap, and autograd or a dtype keeps them apart")
    parts = {
        place: group.part(place, number, int)
        for number, group in enumerate(groups)
        for place in group.tensors
    }
    items = [parts.get(place) or _leaf(item) for place, item in enumerate(inputs)]
    return pickle.dumps(Values(items, bases))


def unpack_inputs(data: bytes, *, widen: bool = False) -> list[Any]:
    """Return what `pack_inputs` packed, as tensors of their own; in float64 with `widen`."""
    values: Values = pickle.loads(data)
    bases = [(_wide(flat) if widen else flat, are_views) for flat, are_views in values.bases]
    return [
        part_of(*bases[item.base], item, int)
        if isinstance(item, Part)
        else (_wide(item) if widen else item)
        for item in values.items
    ]


def _wide(item: Any) -> Any:
    if not isinstance(item, torch.Tensor) or not item.is_floating_point():
        return item
    return item.detach().double().requires_grad_(item.requires_grad)


def _leaf(item: Any) -> Any:
    if isinstance(item, _SYMBOLIC):
        return _seen(item)
    if not isinstance(item, torch.Tensor):
        return item
    copied = torch.empty_strided(item.size(), item.stride(), dtype=item.dtype)
    return copied.copy_(item.detach()).requires_grad_(item.requires_grad)


def _seen(number: Any) -> int | float | bool:
    """Return the value of a symbolic number in this call."""
    value = number.node.hint
    if value is None or isinstance(value, _SYMBOLIC):
        raise UntakableError(f"one of its inputs is a number without a value ({number})")
    return value if isinstance(value, bool | float) else int(value)
