"""Names of decorated functions: a decorator's `wrapper` by what it wraps."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Iterator
from inspect import getattr_static
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any
from weakref import ReferenceType, ref

__all__ = ["known_name", "learn_name"]

#: By id, because equal code objects may wrap different things.
_NAMES: dict[int, tuple[ReferenceType[CodeType], str]] = {}


def learn_name(code: CodeType, closure: tuple[CellType, ...] | None) -> None:
    """Find out what a library's `wrapper` wraps now: all that a decorator wraps share its code.

    A function counts as wrapped when its own name leads to the wrapper, or the same name in a class
    that inherits it. What the notebook's decorators make keeps the name that its code has: that is
    in sight.
    """
    key = id(code)
    if not closure or "<locals>" not in getattr(code, "co_qualname", "<locals>"):
        return
    if not _is_library(code.co_filename):
        return
    names = (_name_of(value, code, closure) for value in _functions(closure))
    name = next(filter(None, names), "")
    if name:
        _NAMES[key] = ref(code, lambda _: _NAMES.pop(key, None)), name
    else:
        _NAMES.pop(key, None)  # what was learned is the name of something else


def known_name(code: CodeType) -> str:
    """Return the name of what code wraps, as far as it was learned; else nothing."""
    known, name = _NAMES.get(id(code), (None, ""))
    return name if known is not None and known() is code else ""


@functools.lru_cache(maxsize=1024)
def _is_library(file: str) -> bool:
    return Path(file).is_file()


def _functions(closure: tuple[CellType, ...]) -> Iterator[FunctionType]:
    for cell in closure:
        try:
            value = cell.cell_contents
        except ValueError:  # not set yet
            continue
        if isinstance(value, FunctionType):
            yield value


def _name_of(function: FunctionType, code: CodeType, closure: tuple[CellType, ...]) -> str:
    """Return the name under which a function is wrapped by this code; nothing where it is not."""
    owner: Any = sys.modules.get(function.__module__ or "")
    *path, name = function.__qualname__.split(".")
    for part in path:
        owner = getattr_static(owner, part, None)
    if _is_behind(getattr_static(owner, name, None), code, closure):
        return function.__qualname__.rsplit("<locals>.", 1)[-1]
    for heir in _heirs(owner):
        if _is_behind(vars(heir).get(name), code, closure):
            return f"{heir.__qualname__}.{name}".rsplit("<locals>.", 1)[-1]
    return ""


def _is_behind(target: Any, code: CodeType, closure: tuple[CellType, ...]) -> bool:
    """Say whether what a name stands for is a wrapper, or wraps it: its code with its closure."""
    for _ in range(20):
        if getattr(target, "__code__", None) is code and _is_same(target.__closure__, closure):
            return True
        target = getattr(target, "__wrapped__", None)
    return False


def _is_same(one: tuple[CellType, ...] | None, other: tuple[CellType, ...]) -> bool:
    return len(one or ()) == len(other) and all(map(operator.is_, one or (), other))


def _heirs(owner: Any) -> Iterator[type]:
    """Yield the classes that inherit from one, its own children first."""
    heirs: list[type] = type.__subclasses__(owner) if isinstance(owner, type) else []
    yield from heirs
    for heir in heirs:
        yield from _heirs(heir)
