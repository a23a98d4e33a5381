"""Triton kernels that the user wrote, on their way to another process.

A graph refers to them by numbers in a table of torch's, which is another one there. They travel as
source, with what their global names stand for, and are made anew on arrival.
"""

from __future__ import annotations

import linecache
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
    "install_recognition",
    "travelling",
]

#: Arguments by which a node of a user's kernel names it, and constants that can't be in a graph.
_KERNEL, _CONSTANTS = "kernel_idx", "constant_args_idx"


class UserKernel(Struct, kw_only=True):
    """A function under `@triton.jit`; `tuning` is what `@triton.autotune` above it was given."""

    name: str
    source: str
    file: str
    first_line: int
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
    code = kernel.fn.__code__
    return UserKernel(
        name=kernel.fn.__name__,
        source=kernel.src,
        file=code.co_filename,
        first_line=code.co_firstlineno,
        names=dict(_names(kernel.fn)),
        options={"do_not_specialize": list(kernel.do_not_specialize or ())},
    )


def _names(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a kernel's global and closure names stand for."""
    from triton.runtime.jit import JITFunction

    closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    scope = {**function.__globals__, **{name: cell.cell_contents for name, cell in closure}}
    for name in (*function.__code__.co_names, *function.__code__.co_freevars):
        if name not in scope or name == function.__name__:
            continue
        value = scope[name]
        if isinstance(value, types.ModuleType):
            yield name, _Module(value.__name__)
        elif isinstance(value, JITFunction):
            yield name, _described(value)
        else:
            yield name, value


# ------------------------------------------------------------------ there

_MADE: dict[tuple[str, str], Any] = {}


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
        _MADE[key] = _make(kernel, len(_MADE))
    return _MADE[key]


def _make(kernel: UserKernel, number: int) -> Any:
    import importlib

    import triton

    file = f"<user kernel {number}>"
    names = {
        name: importlib.import_module(value.name)
        if isinstance(value, _Module)
        else _made(value)
        if isinstance(value, UserKernel)
        else value
        for name, value in kernel.names.items()
    }
    scope: dict[str, Any] = {"__name__": f"user_kernel_{number}", **names}
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
