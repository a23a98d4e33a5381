"""Triton kernels that the user wrote, on their way to another process.

A graph refers to them by numbers in a table of torch's, which is another one there. They travel as
source, with what their global names stand for, and are made anew on arrival.
"""

from __future__ import annotations

import inspect
import itertools
import linecache
import re
import types
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table
from torch.fx import GraphModule, Node
from torch.utils import _triton

from dynamo_nb.capture.recorder import Hooked

__all__ = [
    "Constants",
    "UserKernel",
    "are_in",
    "arrived",
    "can_run",
    "functions_of",
    "install_recognition",
    "reduced",
    "travelling",
]

#: Arguments by which a node of a user's kernel names it, and constants that can't be in a graph.
_KERNEL, _CONSTANTS = "kernel_idx", "constant_args_idx"


class UserKernel(Struct, kw_only=True):
    """A function under `@triton.jit`; `tuning` is what `@triton.autotune` above it was given.

    `line` is the one of `file` that its `def` is in, where its `source` begins.
    """

    name: str
    source: str
    file: str
    line: int
    names: dict[str, Any]
    options: dict[str, Any]
    tuning: dict[str, Any] | None = None


class Constants(Struct):
    """Arguments of a launch that are no part of the graph."""

    values: dict[str, Any]


class _Module(Struct):
    """Stands for a module among a kernel's names."""

    name: str


def travelling(node: Node) -> dict[str, Any]:
    """Return a node's keyword arguments, with a user's kernel itself in place of its number."""
    kwargs = dict(node.kwargs)
    if _KERNEL in kwargs and _CONSTANTS in kwargs:
        kwargs[_KERNEL] = _described(kernel_side_table.get_kernel(kwargs[_KERNEL]))
        kwargs[_CONSTANTS] = Constants(kernel_side_table.get_constant_args(kwargs[_CONSTANTS]))
    return kwargs


def reduced(value: Any) -> tuple[Any, ...] | None:
    """Return how a kernel is pickled that a function refers to; None for anything else."""
    is_kernel = type(value).__module__ in ("triton.runtime.jit", "triton.runtime.autotuner")
    return (_made, (_described(value),)) if is_kernel and callable(value) else None


def are_in(module: GraphModule) -> bool:
    """Tell whether a graph launches a user's kernel."""
    return any(_KERNEL in node.kwargs for node in module.graph.nodes)


def can_run() -> bool:
    """Tell whether a GPU is here to run one."""
    found: bool = _triton.has_triton()
    return found


def _described(kernel: Any) -> UserKernel:
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    if isinstance(kernel, Autotuner):
        inner = _described(kernel.fn)
        inner.tuning = {"configs": kernel.configs, "key": list(kernel.keys)}
        return inner
    if not isinstance(kernel, JITFunction):
        raise ValueError(f"a {type(kernel).__name__} of triton, which can't be taken there")
    file, line = _place(kernel)
    return UserKernel(
        name=kernel.fn.__name__,
        source=kernel.src,
        file=file,
        line=line,
        names=dict(_names(kernel.fn)),
        options={"do_not_specialize": list(kernel.do_not_specialize or ())},
    )


def _names(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a kernel's global and closure names stand for."""
    from triton.runtime.jit import JITFunction

    for name, value in _scope(function):
        if isinstance(value, types.ModuleType):
            yield name, _Module(value.__name__)
        elif isinstance(value, JITFunction):
            yield name, _described(value)
        else:
            yield name, value


def _scope(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield a kernel's global and closure names with their values, its own name apart."""
    closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    scope = {**function.__globals__, **{name: cell.cell_contents for name, cell in closure}}
    for name in (*function.__code__.co_names, *function.__code__.co_freevars):
        if name in scope and name != function.__name__:
            yield name, scope[name]


# ------------------------------------------------------------------ where they were written

#: Where the sources of kernels that were made anew here were written, by their files here.
_WRITTEN: dict[str, tuple[str, int]] = {}

_DEF = re.compile(r"\s*def\s")


def functions_of(kernel: Any) -> list[dict[str, Any]]:
    """Return the user's functions that a kernel consists of: itself, and those that it calls."""
    from triton.runtime.jit import JITFunction

    found: dict[str, dict[str, Any]] = {}
    todo = [kernel]
    for one in todo:
        name = one.fn.__name__
        if name not in found and not one.fn.__module__.startswith("triton."):
            file, line = _place(one)
            found[name] = {"name": name, "file": file, "line": line, "source": one.src}
            todo += [value for _, value in _scope(one.fn) if isinstance(value, JITFunction)]
    return list(found.values())


def _place(kernel: Any) -> tuple[str, int]:
    """Return the file that a function was written in, and the line of its `def`."""
    code = kernel.fn.__code__
    if code.co_filename in _WRITTEN:
        return _WRITTEN[code.co_filename]
    lines, first = inspect.getsourcelines(kernel.fn)
    decorators = next((at for at, line in enumerate(lines) if _DEF.match(line)), 0)
    return code.co_filename, first + decorators


# ------------------------------------------------------------------ there

#: Kernels that were made, each with the file that it is in here.
_MADE: dict[tuple[str, str], tuple[Any, str]] = {}
_NUMBERS = itertools.count()


def arrived(value: Any) -> Any:
    """Return the number, in this process's table, of what came in place of one."""
    if isinstance(value, UserKernel):
        return kernel_side_table.add_kernel(_made(value))
    if isinstance(value, Constants):
        return kernel_side_table.add_constant_args(value.values)
    return value


def _made(kernel: UserKernel) -> Any:
    key = kernel.name, repr((kernel.source, kernel.names, kernel.options, kernel.tuning))
    if key not in _MADE:
        file = f"<user kernel {next(_NUMBERS)}>"
        _MADE[key] = _make(kernel, file), file
    made, file = _MADE[key]
    _WRITTEN[file] = kernel.file, kernel.line
    return made


def _make(kernel: UserKernel, file: str) -> Any:
    import importlib

    import triton

    names = {
        name: importlib.import_module(value.name)
        if isinstance(value, _Module)
        else _made(value)
        if isinstance(value, UserKernel)
        else value
        for name, value in kernel.names.items()
    }
    scope: dict[str, Any] = {"__name__": file, **names}
    source = kernel.source
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), scope)
    made = triton.jit(**kernel.options)(scope[kernel.name])
    if kernel.tuning is not None:
        made = triton.autotune(**kernel.tuning)(made)
    return made


# ------------------------------------------------------------------ in the notebook's process


def install_recognition(hooked: Hooked) -> None:
    """Have Dynamo know a user's Triton kernel where there is no GPU to run it.

    `VariableBuilder._wrap` (`torch/_dynamo/variables/builder.py`, 2.13) asks `has_triton()` each
    time, which is false without a device: it is true for such a kernel alone, and then again false.
    """
    from torch._dynamo.variables.builder import VariableBuilder

    try:
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction
    except ImportError:
        return
    original = VariableBuilder._wrap

    def wrap(self: Any, value: Any) -> Any:
        if not isinstance(value, JITFunction | Autotuner) or _triton.has_triton():
            return original(self, value)
        asked, _triton.has_triton = _triton.has_triton, lambda *_: True
        try:
            return original(self, value)
        finally:
            _triton.has_triton = asked

    hooked.replace(VariableBuilder, "_wrap", wrap)
