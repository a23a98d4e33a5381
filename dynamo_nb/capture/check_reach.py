"""What a call uses besides its arguments: globals, closures, defaults, class attributes.

Functions stay what they are, so that their code and its cache entries stay theirs. What their names
stand for is swapped while they are run again, and put back afterwards.
"""

from __future__ import annotations

import dis
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from torch._dynamo.eval_frame import innermost_fn

from dynamo_nb.capture.stacks import is_internal

__all__ = ["ABSENT", "Place", "places_of", "swapped"]

ABSENT = object()
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "STORE_NAME", "DELETE_GLOBAL")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR")


class Place(NamedTuple):
    """A binding: `owner` is a namespace, a cell, a function or a class; `key` a name in it.

    `name` is what a person calls it.
    """

    kind: str
    owner: Any
    key: str
    name: str

    @property
    def identity(self) -> tuple[str, int, str]:
        """What tells the binding from others."""
        return self.kind, id(self.owner), self.key

    def get(self) -> Any:
        """Return what is bound, `ABSENT` where nothing is."""
        if self.kind == "global":
            return self.owner.get(self.key, ABSENT)
        if self.kind == "class attribute":
            return vars(self.owner).get(self.key, ABSENT)
        try:
            return getattr(self.owner, self.key, ABSENT)
        except ValueError:  # an empty cell
            return ABSENT

    def set(self, value: Any) -> None:
        """Bind `value`, or nothing where it is `ABSENT`."""
        if self.get() is value:
            return
        if self.kind == "global" and value is ABSENT:
            del self.owner[self.key]
        elif self.kind == "global":
            self.owner[self.key] = value
        elif value is ABSENT:
            delattr(self.owner, self.key)
        else:
            setattr(self.owner, self.key, value)


def places_of(item: Any) -> Iterator[Place | Any]:
    """Yield the bindings that a function or class uses, and further functions to look at."""
    if isinstance(item, type):
        yield from _class_places(item)
        return
    original = innermost_fn(item)
    if original is not item:
        yield getattr(original, "__func__", original)
    if not isinstance(item, types.FunctionType) or is_library(item.__code__.co_filename):
        wrapped = getattr(item, "__wrapped__", None)
        if wrapped is not None:
            yield wrapped
        return
    code = item.__code__
    for name, cell in zip(code.co_freevars, item.__closure__ or (), strict=True):
        if name != "__class__":
            yield Place("closure variable", cell, "cell_contents", name)
    for key in ("__defaults__", "__kwdefaults__"):
        if getattr(item, key):
            yield Place("default", item, key, f"defaults of {item.__name__}")
    for key in vars(item):
        if not key.startswith("_"):  # those are Python's and torch's own
            yield _attribute(item, key)
    yield from _named(code, item.__globals__)


def _class_places(kind: type) -> Iterator[Place | Any]:
    """Yield a user's class's methods, and its attributes that are plain state."""
    if is_library(getattr(sys.modules.get(kind.__module__), "__file__", None) or ""):
        return
    for base in kind.__mro__[1:]:
        if base is not object:
            yield base
    for name, value in vars(kind).items():
        function = getattr(value, "__func__", value)
        function = value.fget if isinstance(value, property) else function
        if isinstance(function, types.FunctionType):
            yield function
        elif not name.startswith("__") and not hasattr(type(value), "__get__"):
            yield Place("class attribute", kind, name, f"{kind.__name__}.{name}")


def _attribute(function: types.FunctionType, key: str) -> Place:
    return Place("function attribute", function, key, f"{function.__name__}.{key}")


def _named(code: types.CodeType, namespace: dict[str, Any]) -> Iterator[Place]:
    """Yield the global names that code uses, and attributes of the user's modules and functions."""
    owner: Any = None
    for operation, name in _steps(code):
        if operation in _GLOBALS:
            owner = namespace.get(name)
            if not isinstance(owner, types.ModuleType):
                yield Place("global", namespace, name, name)
            elif is_library(getattr(owner, "__file__", None) or "<frozen"):
                owner = None
            continue
        if isinstance(owner, types.ModuleType) and name in vars(owner):
            yield Place("global", vars(owner), name, name)
        elif isinstance(owner, types.FunctionType) and not name.startswith("_"):
            yield _attribute(owner, name)
        owner = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _named(constant, namespace)


@lru_cache(maxsize=256)
def _steps(code: types.CodeType) -> tuple[tuple[str, str], ...]:
    """Return the instructions of code that use a global or an attribute, and its name."""
    return tuple(
        (step.opname, step.argval)
        for step in dis.get_instructions(code)
        if step.opname in (*_GLOBALS, *_ATTRIBUTES)
    )


@lru_cache(maxsize=1024)
def is_library(file: str) -> bool:
    """Tell whether a file is torch's, the standard library's or an installed package's."""
    if is_internal(file):
        return True
    if file.startswith("<") or not file:
        return False
    folders = (sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib"))
    installed = {"site-packages", "dist-packages"} & set(Path(file).parts)
    return bool(installed) or file.startswith(tuple(f"{folder}/" for folder in folders))


@contextmanager
def swapped(values: Iterable[tuple[Place, Any]]) -> Iterator[None]:
    """Bind values to places, and put back what was there before, whatever was bound meanwhile."""
    before: list[tuple[Place, Any]] = []
    try:
        for place, value in values:
            before.append((place, place.get()))
            place.set(value)
        yield
    finally:
        for place, value in reversed(before):
            place.set(value)
