"""Names of decorated functions: a decorator's `wrapper` by what it wraps."""

from __future__ import annotations

import functools
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

    A function counts as wrapped when its own name leads to the wrapper. What the notebook's
    decorators make keeps the name that its code has: that is in sight.
    """
    key = id(code)
    if not closure or "<locals>" not in getattr(code, "co_qualname", "<locals>"):
        return
    if not _is_library(code.co_filename):
        return
    found = (value for value in _functions(closure) if code in _behind(value))
    wrapped = next(found, None)
    if wrapped is not None:
        name = wrapped.__qualname__.rsplit("<locals>.", 1)[-1]
        _NAMES[key] = ref(code, lambda _: _NAMES.pop(key, None)), name


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


def _behind(function: FunctionType) -> list[CodeType]:
    """Return the code of what a function's own name stands for, and of all that it wraps."""
    target: Any = sys.modules.get(function.__module__ or "")
    for part in function.__qualname__.split("."):
        target = getattr_static(target, part, None)
    found: list[CodeType] = []
    while target is not None and len(found) < 20:
        code = getattr(target, "__code__", None)
        found += [code] if isinstance(code, CodeType) else []
        target = getattr(target, "__wrapped__", None)
    return found
