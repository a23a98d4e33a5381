"""What a call gives and leaves behind, taken apart into named leaves."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

__all__ = ["Leaf", "leaves_of"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)


class Leaf(NamedTuple):
    """A value that can be compared: `kind` says what it is to the call (`argument`, `buffer`)."""

    kind: str
    value: Any


def leaves_of(
    roots: list[tuple[str, str, Any]], made_from: dict[int, torch.Tensor]
) -> dict[str, Leaf]:
    """Return the leaves below `(name, kind, object)` roots by their names, each tensor once.

    `made_from` has the leaves of autograd's graph for tensors that are none; gradients come under
    the name of the tensor that was passed.
    """
    walk = _Walk(made_from)
    for name, kind, item in roots:
        for leaf_name, leaf in walk.walk(name, kind, item):
            walk.found.setdefault(leaf_name, leaf)
    return walk.found


class _Walk:
    def __init__(self, made_from: dict[int, torch.Tensor]) -> None:
        self.found: dict[str, Leaf] = {}
        self._made_from = made_from
        self._seen: dict[tuple[bool, int], Any] = {}

    def walk(self, name: str, kind: str, item: Any) -> Iterator[tuple[str, Leaf]]:
        if isinstance(item, _PLAIN):
            yield name, Leaf(kind, item)
            return
        key = kind == "output", id(item)  # what is returned may be an argument, too
        if key in self._seen:
            return
        self._seen[key] = item
        if isinstance(item, torch.Tensor):
            yield name, Leaf(kind, item)
            yield from self._gradient(name, item)
        elif isinstance(item, torch.nn.Module):
            yield from self._module(name, item)
        elif not isinstance(item, type | types.FunctionType | types.ModuleType):
            for part, value in _parts(item):
                yield from self.walk(f"{name}{part}", kind, value)
            yield f"type({name})", Leaf(kind, type(item).__name__)

    def _gradient(self, name: str, item: torch.Tensor) -> Iterator[tuple[str, Leaf]]:
        leaf = self._made_from.get(id(item), item)
        if leaf.is_leaf and leaf.grad is not None:
            yield f"{name}.grad", Leaf("gradient", leaf.grad)

    def _module(self, name: str, module: torch.nn.Module) -> Iterator[tuple[str, Leaf]]:
        for key, value in vars(module).items():
            if key in ("_parameters", "_buffers", "_modules"):
                kind = {"_parameters": "parameter", "_buffers": "buffer"}.get(key, "attribute")
                for child, held in value.items():
                    yield from self.walk(f"{name}.{child}", kind, held)
            elif not key.startswith("_"):
                yield from self.walk(f"{name}.{key}", "attribute", value)


def _parts(item: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(item, Mapping):
        for key, value in item.items():
            yield f"[{key!r}]" if isinstance(key, str | int) else f"[{type(key).__name__}]", value
    elif isinstance(item, list | tuple):
        fields = getattr(item, "_fields", ())
        for index, value in enumerate(item):
            yield f".{fields[index]}" if index < len(fields) else f"[{index}]", value
    elif isinstance(item, set | frozenset):
        yield " (its length)", len(item)
    elif isinstance(item, types.MethodType):
        yield ".__self__", item.__self__
    else:
        for key, value in getattr(item, "__dict__", {}).items():
            yield f".{key}", value
