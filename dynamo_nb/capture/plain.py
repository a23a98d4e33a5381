"""Torch objects as plain data: what leaves the capture holds no tensor, module or frame.

A source place is a tuple `(file, line, name, end_line, column, end_column)` with CPython's own
column numbers, which count UTF-8 bytes; the record builder turns them into characters.
"""

from __future__ import annotations

import enum
import traceback
import types
from collections.abc import Iterable
from typing import Any

import torch
from torch import fx

__all__ = [
    "Place",
    "brief",
    "node_target",
    "parse_stack_trace",
    "place_of_instruction",
    "place_of_positions",
    "place_of_summary",
    "places_of_stack",
    "tensor_value",
    "value",
]

Place = tuple[str, int, str, int | None, int | None, int | None]

#: Longest text that `brief` gives for a value, in characters.
BRIEF_LIMIT = 80

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def place_of_summary(summary: traceback.FrameSummary) -> Place:
    """Return the place of one `traceback.FrameSummary`."""
    return (
        summary.filename,
        summary.lineno or 0,
        summary.name,
        getattr(summary, "end_lineno", None),
        getattr(summary, "colno", None),
        getattr(summary, "end_colno", None),
    )


def places_of_stack(stack: Iterable[traceback.FrameSummary] | None) -> list[Place]:
    """Return the places of a stack, outermost first as the stack itself."""
    return [place_of_summary(summary) for summary in stack or ()]


def place_of_instruction(tx: Any) -> Place:
    """Return where an `InstructionTranslatorBase` stands: its instruction's own columns."""
    code = tx.f_code
    line = tx.lineno or code.co_firstlineno
    place = place_of_positions(code, tx.current_instruction.positions)
    return place or (code.co_filename, line, code.co_name, None, None, None)


def place_of_positions(code: types.CodeType, positions: Any) -> Place | None:
    """Return the place of an instruction by its `positions`; None where Python kept none."""
    if positions is None or positions.lineno is None:
        return None
    return (
        code.co_filename,
        positions.lineno,
        code.co_name,
        positions.end_lineno,
        positions.col_offset,
        positions.end_col_offset,
    )


def parse_stack_trace(text: str | None) -> list[Place]:
    """Return the places in `node.meta['stack_trace']`, which is `StackSummary.format()` text.

    Torch parses the same text itself (`torch/fx/graph.py: _parse_stack_trace`, 2.13). It has no
    columns; nodes that Dynamo made carry better places, see `capture.graphs`.
    """
    places: list[Place] = []
    for line in (text or "").splitlines():
        head, separator, tail = line.strip().partition('", line ')
        number, _, name = tail.partition(", in ")
        if separator and head.startswith('File "') and number.rstrip(",").isdigit():
            places.append((head[6:], int(number.rstrip(",")), name, None, None, None))
    return places


def _size(size: Any) -> int | str:
    return size if type(size) is int else str(size)


def tensor_value(tensor: torch.Tensor) -> dict[str, Any]:
    """Return a tensor's properties, in the shape of the record's `TensorValue`."""
    try:
        stride = [_size(s) for s in tensor.stride()] if tensor.layout == torch.strided else None
    except RuntimeError:  # opaque and nested tensors have no strides
        stride = None
    return {
        "shape": [_size(s) for s in tensor.shape],
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": str(tensor.device),
        "stride": stride,
        "requires_grad": bool(tensor.requires_grad),
    }


def value(item: Any) -> Any:
    """Return what a node holds: a tensor's properties, a flat list of them, or short text."""
    if isinstance(item, torch.Tensor):
        return tensor_value(item)
    if isinstance(item, list | tuple):
        return list(_flat(item))
    if item is None:
        return None
    if isinstance(item, _SCALARS + _SYMBOLIC):
        return str(item)
    return type(item).__name__


def _flat(items: Iterable[Any]) -> Iterable[Any]:
    for item in items:
        if isinstance(item, list | tuple):
            yield from _flat(item)
        else:
            yield value(item)


def brief(item: Any) -> str:
    """Return a short, deterministic text for a guarded value; never a tensor's contents."""
    if isinstance(item, torch.Tensor):
        properties = tensor_value(item)
        shape = ", ".join(map(str, properties["shape"]))
        grad = ", requires_grad" if properties["requires_grad"] else ""
        return f"{properties['dtype']}[{shape}] on {properties['device']}{grad}"
    if isinstance(item, enum.Enum):
        return f"{type(item).__name__}.{item.name}"
    if isinstance(item, _SCALARS + _SYMBOLIC + (torch.dtype, torch.device)):
        text = repr(item)
        return text if len(text) <= BRIEF_LIMIT else text[:BRIEF_LIMIT] + "…"
    if isinstance(item, list | tuple | dict | set | frozenset):
        return f"{type(item).__name__} of length {len(item)}"
    if isinstance(item, type | types.FunctionType | types.BuiltinFunctionType | types.ModuleType):
        return f"{type(item).__name__} {item.__name__}"
    if isinstance(item, types.CodeType):
        return f"code {item.co_name}"
    if isinstance(item, types.MethodType):
        return f"method {getattr(item, '__qualname__', type(item).__name__)}"
    return f"{type(item).__name__} object"


def node_target(target: Any) -> str:
    """Return a node's target as FX itself writes it: `torch.abs`, `aten.mm.default`."""
    if isinstance(target, str | torch._ops.OpOverload):
        return str(target)
    try:
        return fx.node._get_qualified_name(target)
    except (RuntimeError, AttributeError):  # a callable that has no import path
        return str(getattr(target, "__name__", type(target).__name__))
