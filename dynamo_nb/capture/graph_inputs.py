"""The inputs of a Dynamo graph on its way to another process: what they are, and their values.

A symbolic number is asked for its hint alone. `int` of one, or a comparison, would be a guard of
the user's code.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import torch
from msgspec import Struct
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, is_fake

__all__ = [
    "Input",
    "Symbol",
    "UntakableError",
    "input_of",
    "pack_inputs",
    "sources",
]

#: Kinds of tensors that are nothing but their sizes, strides and dtype.
_PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor)

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)

#: Elements of all inputs up to which they are interpreted: it takes a second for some 100000.
_ELEMENTS = 1 << 20


class UntakableError(ValueError):
    """Why a graph can't be taken to another process; names the node."""


class Input(Struct, kw_only=True):
    """What a placeholder stands for: a tensor, or a symbolic number `expr`.

    Sizes and strides are integers or sympy expressions.
    """

    name: str
    expr: Any = None
    size: Any = ()
    stride: Any = ()
    dtype: Any = None
    requires_grad: bool = False
    is_parameter: bool = False
    static_type: str = ""


class Symbol(Struct, kw_only=True):
    """A symbol of the inputs' sizes: its value in this call, and the source that names it."""

    symbol: Any
    hint: int
    source: str


def input_of(node: fx.Node, symbols: dict[str, Symbol]) -> Input:
    """Return what a placeholder stands for; symbols that are met are added to `symbols`."""
    value = node.meta.get("example_value")
    if isinstance(value, torch.SymInt):
        return Input(name=node.name, expr=_expression(value, symbols, node))
    if not isinstance(value, torch.Tensor):
        raise UntakableError(f"input `{node.name}` is a {type(value).__name__}")
    if value.layout != torch.strided or type(value) not in _PLAIN:
        kind = type(value).__name__ if type(value) not in _PLAIN else f"{value.layout} tensor"
        raise UntakableError(f"input `{node.name}` is a {kind}")
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
    )


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
        raise UntakableError(f"input `{node.name}` has a size without a value ({symbol})")
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


def pack_inputs(inputs: Sequence[Any]) -> bytes:
    """Return the values of a graph's inputs, leaves of autograd's graph each, on the CPU.

    Raises
    ------
    UntakableError
        When they are too many for an interpreter, or have no values.
    """
    tensors = [item for item in inputs if isinstance(item, torch.Tensor)]
    if any(is_fake(item) for item in tensors):
        raise UntakableError("its inputs are fake tensors, which have no values")
    elements = sum(item.numel() for item in tensors)
    if elements > _ELEMENTS:
        raise UntakableError(f"its inputs have {elements} elements, more than {_ELEMENTS}")
    return pickle.dumps([_leaf(item) for item in inputs])


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
