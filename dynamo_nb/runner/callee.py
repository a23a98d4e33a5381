"""Which callables `calls` mode compiles: modules, and functions that the user wrote."""

from __future__ import annotations

import functools
import inspect
import sys
import sysconfig
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["code_of", "is_compilable", "is_users_code", "left_alone", "through"]

#: Function kinds whose call only makes an object that runs later, outside the compiled call.
LATER = {
    inspect.CO_GENERATOR: "a generator function",
    inspect.CO_COROUTINE: "a coroutine function",
    inspect.CO_ASYNC_GENERATOR: "an asynchronous generator function",
}

#: Packages that may be installed from a checkout, outside site-packages, and are never the user's.
NOT_USERS = ("torch", "IPython", "ipykernel", "dynamo_nb")


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(str(Path(paths[key]).resolve()) + "/" for key in ("stdlib", "platstdlib"))


def _package_folders() -> tuple[str, ...]:
    files = (getattr(sys.modules.get(name), "__file__", None) for name in NOT_USERS)
    return tuple(str(Path(file).parent) + "/" for file in files if file)


@functools.lru_cache(maxsize=1024)
def is_users_file(file: str) -> bool:
    """Say whether a code object's file is the user's: a cell, a script, a module of the project."""
    if file.startswith("<"):
        return file.startswith(("<ipython-input", "<timed ", "<stdin>", "<doctest"))
    path = Path(file)
    if {"site-packages", "dist-packages"} & set(path.parts):
        return False
    if not path.is_absolute():
        return True  # a script; the working directory that it was found in may be gone
    return not str(path.resolve()).startswith((*_library_folders(), *_package_folders()))


def is_users_code(function: object) -> bool:
    """Say whether the user wrote this function, or the one that it decorates."""
    while isinstance(function, types.FunctionType):
        if is_users_file(function.__code__.co_filename):
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def _is_users_function(function: object) -> bool:
    return (
        isinstance(function, types.FunctionType)
        and is_users_code(function)
        and isinstance(inspect.unwrap(function), types.FunctionType)
    )


def _function(function: Any) -> bool:
    return _is_users_function(function) and not _later(inspect.unwrap(function))


def _later(function: Any) -> str:
    """Return which kind of function that runs later this is; nothing for one that runs now."""
    flags = function.__code__.co_flags
    return next((kind for flag, kind in LATER.items() if flags & flag), "")


#: Why a function under `torch.compiler.disable` is left alone.
DISABLED = "Dynamo is disabled for it (torch.compiler.disable)"


def left_alone(callee: Any) -> tuple[types.CodeType, str] | None:
    """Return the code of a function of the user's that is not compiled when called, and why.

    It runs later (a function that merely wraps such a one, a context manager's, is none), or Dynamo
    is told to leave it alone.
    """
    from dynamo_nb.capture import compiler

    while type(callee) is functools.partial:
        callee = callee.func
    function: Any = getattr(callee, "__func__", callee)
    if not _is_users_function(function) or compiler.is_compiled(function):
        return None
    why = DISABLED if compiler.is_disabled(function) else ""
    if not why and (kind := _later(function)):
        why = f"it is {kind}, whose call only makes what runs later"
    return (inspect.unwrap(function).__code__, why) if why else None


def _target(callee: Any) -> Any:
    """Return what torch.compile takes in place of `callee`, or None where it is left alone."""
    from dynamo_nb.capture import compiler

    if isinstance(callee, type) or compiler.is_compiled(callee) or compiler.is_disabled(callee):
        return None
    if compiler.is_module(callee):
        return callee
    if isinstance(callee, types.FunctionType):
        return callee if _function(callee) else None
    if isinstance(callee, types.MethodType):
        return callee if _function(callee.__func__) else None
    call = inspect.getattr_static(type(callee), "__call__", None)
    return types.MethodType(call, callee) if _function(call) else None


def code_of(target: Any) -> types.CodeType | None:
    """Return the code that runs when `target` is called compiled, None for a library's module."""
    function: Any = target
    if isinstance(target, types.MethodType):
        function = target.__func__
    elif not isinstance(target, types.FunctionType):
        function = getattr(type(target), "forward", None)
    return getattr(function, "__code__", None) if is_users_code(function) else None


def is_compilable(callee: Any) -> bool:
    """Say whether `calls` mode makes calls of `callee` through torch.compile."""
    while type(callee) is functools.partial:
        callee = callee.func
    return _target(callee) is not None


def through(callee: Any, compiled: Callable[[Any], Any]) -> Any:
    """Return `callee` as `compiled` makes it, or `callee` itself where it is left alone.

    A partial is taken apart, because torch.compile would look at `partial.__call__`.
    """
    if type(callee) is functools.partial:
        inside = through(callee.func, compiled)
        if inside is callee.func:
            return callee
        return functools.partial(inside, *callee.args, **callee.keywords)
    target = _target(callee)
    return callee if target is None else compiled(target)
