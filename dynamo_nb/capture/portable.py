"""A notebook's values on their way to another process, and what torch was set to.

Functions and classes of the notebook travel by value (cloudpickle). What was compiled travels as
what it was made of and is compiled anew on arrival, where the caches are empty.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import torch
import torch._dynamo
import torch._inductor.config
from torch._dynamo.eval_frame import OptimizedModule, innermost_backend

from dynamo_nb.capture.compiler import is_compiled

__all__ = ["Ambient", "ambient", "apply", "dumps", "pack", "unpack"]

#: The name under which the notebook's own namespace travels: each function's globals are there.
_NAMESPACE = "namespace"

Ambient = dict[str, Any]


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, namespace: dict[str, Any] | None = None) -> None:
        super().__init__(file)
        self._globals: dict[str, Any] = {"__name__": "__main__"}
        if namespace is not None:
            self.globals_ref[id(namespace)] = self._globals

    def persistent_id(self, obj: Any) -> str | None:
        return _NAMESPACE if obj is self._globals else None

    def reducer_override(self, obj: Any) -> Any:
        if obj is torch.ops:  # a module by its type, but of a class of its own
            return getattr, (torch, "ops")
        if isinstance(obj, torch.nn.Module) and obj.__dict__.get("_compiled_call_impl") is not None:
            return _reduced_in_place(obj)
        if isinstance(obj, OptimizedModule):
            return _compiled, (obj._orig_mod, _arguments(obj.dynamo_ctx))
        if callable(obj) and not isinstance(obj, type) and is_compiled(obj):
            context = _context(obj)
            if context is not None:
                return _compiled, (obj._torchdynamo_orig_callable, _arguments(context))
        return super().reducer_override(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, namespace: dict[str, Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._namespace = namespace

    def persistent_load(self, pid: Any) -> dict[str, Any]:
        return self._namespace


def pack(values: dict[str, Any], namespace: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
    """Return values of the notebook as bytes, and why those can't travel that are left out.

    What is the same object for several values stays one object.
    """
    problems: dict[str, str] = {}
    try:
        return _packed(values, namespace), problems
    except Exception:
        pass  # one of them can't: find out which
    for name, value in values.items():
        try:
            _packed({name: value}, namespace)
        except Exception as exc:
            problems[name] = f"{type(value).__name__}: {exc}".splitlines()[0]
    kept = {name: value for name, value in values.items() if name not in problems}
    return _packed(kept, namespace), problems


def _packed(values: dict[str, Any], namespace: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    _Pickler(file, namespace).dump(values)
    return file.getvalue()


def dumps(value: Any) -> bytes:
    """Return a value as bytes that `pickle.loads` takes; functions of the notebook go by value."""
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


def unpack(data: bytes, namespace: dict[str, Any]) -> dict[str, Any]:
    """Return the values that `pack` packed; their functions have `namespace` as globals."""
    values: dict[str, Any] = _Unpickler(data, namespace).load()
    return values


# ------------------------------------------------------------------ compiled objects


def _context(compiled: Any) -> Any:
    """Return what torch.compile was told, which only a closure of its wrapper knows (2.11-2.13)."""
    get_config = getattr(compiled, "get_compiler_config", None)
    for cell in getattr(get_config, "__closure__", None) or ():
        if isinstance(cell.cell_contents, torch._dynamo.eval_frame._TorchDynamoContext):
            return cell.cell_contents
    return None


def _arguments(context: Any) -> dict[str, Any]:
    return {
        "backend": innermost_backend(context.callback),
        "dynamic": context._dynamic,
        "fullgraph": bool(getattr(context, "fullgraph", False)),
    }


def _compiled(target: Any, arguments: dict[str, Any]) -> Any:
    return torch.compile(target, **arguments)


def _reduced_in_place(module: torch.nn.Module) -> Any:
    """Return how to make a module again on which `compile()` was called."""
    make, given, state, *rest = module.__reduce_ex__(4)
    context = _context(module._compiled_call_impl)
    arguments = _arguments(context) if context is not None else {}
    items = [*rest, None, None][:2]
    return make, given, (state, arguments), *items, _set_compiled


def _set_compiled(module: torch.nn.Module, state: tuple[Any, dict[str, Any]]) -> None:
    module.__setstate__(state[0])
    module.compile(**state[1])


# ------------------------------------------------------------------ what torch was set to

_CONFIGS: dict[str, Any] = {
    "dynamo": lambda: torch._dynamo.config,
    "inductor": lambda: torch._inductor.config,
}

#: Global state that is neither configuration nor held by a value: how to read and to set it.
_STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "grad": (torch.is_grad_enabled, torch.set_grad_enabled),
    "matmul": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "threads": (torch.get_num_threads, torch.set_num_threads),
    "deterministic": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
}


def ambient() -> Ambient:
    """Return torch's configuration and global state as they are now; what can't travel is left."""
    found: Ambient = {name: read() for name, (read, _) in _STATE.items()}
    for name, config in _CONFIGS.items():
        values = config().get_config_copy()
        found[name] = {key: value for key, value in values.items() if _travels(value)}
    return found


def _travels(value: Any) -> bool:
    try:
        dumps(value)
    except Exception:
        return False
    return True


def apply(wanted: Ambient) -> None:
    """Set torch to what it was when `ambient` was called; only what differs is touched."""
    for name, (read, write) in _STATE.items():
        if name in wanted and wanted[name] != read():
            write(wanted[name])
    for name, config in _CONFIGS.items():
        now = config().get_config_copy()
        for key, value in wanted.get(name, {}).items():
            if key in now and now[key] != value:
                _assign(config(), key, value)


def _assign(config: Any, key: str, value: Any) -> None:
    try:
        setattr(config, key, value)
    except Exception:
        return  # a setting that can only be read
