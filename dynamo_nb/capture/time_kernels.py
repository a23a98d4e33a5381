"""What runs within a call, by torch's profiler: how many operators, and the time of each kernel."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.autograd import profiler, profiler_legacy
from torch.autograd.profiler import record_function

from dynamo_nb.capture.operators import LAUNCH_NOTHING

__all__ = ["kernel_times", "launches"]

#: Globals of generated code by which it calls what it did not generate.
_NAMESPACES = ("aten", "extern_kernels", "torch")
#: Operators whose overload for tensors is made of several others, though another one is not.
_MOSTLY_COMPOSITE = ("isfinite", "linalg_pinv", "repeat_interleave")
#: Before the names of what the profiler is told of generated code.
_OURS = "dynamo_nb:"
#: Seconds for which kernels are profiled, and how many calls at most.
_SECONDS = 0.3
_CALLS = 20


def launches(work: Callable[[], None], device: str) -> int | None:
    """Return how many kernels one call launches: generated ones, extern calls, and operators.

    On a GPU its kernels are counted. On the CPU an operator is one, and one that is no more than a
    name for others is those; views and allocations do not count. None where the profiler fails, or
    may not look at the GPU.
    """
    try:
        with _named_kernels(), _profiler() as profiled:
            work()
        events = profiled.function_events
    except Exception:
        return None
    if device == "cuda":
        return len(_on_gpu(events)) or None
    return sum(_work_in(event) for event in _on_cpu(events) if event.cpu_parent is None)


def kernel_times(work: Callable[[], None], device: str) -> list[dict[str, Any]]:
    """Return the kernels of a compiled call: `code`, the name, calls and seconds in one call.

    `code` is the text of the output code that they are in; empty where it can't be told.
    """
    try:
        runs, began = 0, time.perf_counter()
        with _named_kernels() as modules, _profiler() as profiled:
            while runs < _CALLS and (runs == 0 or time.perf_counter() - began < _SECONDS):
                work()
                runs += 1
        events = profiled.function_events
    except Exception:
        return []
    if device == "cuda":
        return _added((("", e.name, e.time_range.elapsed_us()) for e in _on_gpu(events)), runs)
    named = (event for event in _on_cpu(events) if event.name.startswith(_OURS))
    ours = [event for event in named if _work_in(event)]
    return _added((_told(event, modules) for event in ours), runs)


def _told(event: Any, modules: list[ModuleType]) -> tuple[str, str, float]:
    number, _, name = event.name.removeprefix(_OURS).partition(":")
    return _code(modules[int(number)].__file__ or ""), name, event.cpu_time_total


def _added(rows: Iterable[tuple[str, str, float]], runs: int) -> list[dict[str, Any]]:
    """Return rows of `(code, name, microseconds)` by kernel, for one of the runs.

    A kernel's runs count by their median: the profiler is slow at first.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for code, name, microseconds in rows:
        found.setdefault((code, name), []).append(microseconds)
    return [
        {
            "code": code,
            "name": name,
            "calls": len(all_) / runs,
            "seconds": statistics.median(all_) / 1e6 * len(all_) / runs,
        }
        for (code, name), all_ in found.items()
    ]


def _profiler() -> Any:
    """Return torch's profiler: without a GPU the older one, since Kineto writes to the terminal.

    Kineto has to be asked for: without it the kernels of a GPU are no events of their own.
    """
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return profiler.profile(use_device="cuda", use_kineto=True)
    return profiler_legacy.profile()


def _on_cpu(events: Iterable[Any]) -> list[Any]:
    cpu = torch.autograd.DeviceType.CPU
    return [event for event in events if event.device_type == cpu]


def _on_gpu(events: Iterable[Any]) -> list[Any]:
    """Return the kernels, copies and fills among events; what is annotated spans such."""
    cuda = torch.autograd.DeviceType.CUDA
    on_gpu = [event for event in events if event.device_type == cuda]
    return [e for e in on_gpu if not (e.is_user_annotation or e.name.startswith(_OURS))]


# ------------------------------------------------------------------ operators


def _work_in(event: Any) -> int:
    """Return how many kernels an event of the profiler stands for.

    An operator with a kernel is one, whatever operators it is made of on the CPU.
    """
    if event.name.startswith(_OURS):
        return int(not _is_view(event.name.removeprefix(_OURS).partition(":")[2]))
    return 1 if _has_kernel(event.name) else sum(map(_work_in, event.cpu_children))


@functools.cache
def _has_kernel(name: str) -> bool:
    """Tell whether an operator does work of its own: composite ones and views do not.

    An event does not tell the overload: where some are composite, those are names of one operator.
    """
    namespace, _, operator = name.partition("::")
    if not operator or operator.startswith(LAUNCH_NOTHING) or operator in _MOSTLY_COMPOSITE:
        return False
    if namespace != "aten":  # an operator of the user's
        return bool(torch._C._jit_get_schemas_for_operator(name))
    packet = getattr(torch.ops.aten, operator, None)
    overloads = [getattr(packet, each) for each in packet.overloads()] if packet else []
    if any(each.is_view or torch.Tag.inplace_view in each.tags for each in overloads):
        return False
    return not all(_is_composite(each) for each in overloads if not _is_variant(each))


def _is_variant(overload: Any) -> bool:
    """Tell whether an overload is another one with a place for its result, or with named dims."""
    name = overload._overloadname.lower()
    return name.endswith("out") or "names" in name or "dimname" in name


def _is_composite(overload: Any) -> bool:
    key = "CompositeImplicitAutograd"
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key)
    except RuntimeError:  # some overloads are Python's alone
        return False


def _is_view(path: str) -> bool:
    """Tell whether a call of generated code only looks at memory: `torch.ops.aten.view.default`."""
    found: Any = torch.ops
    for name in path.removeprefix("torch.ops.").split("."):
        found = getattr(found, name, None) if path.startswith("torch.ops.") else None
    return bool(getattr(found, "is_view", False))


# ------------------------------------------------------------------ generated code


@contextmanager
def _named_kernels() -> Iterator[list[ModuleType]]:
    """Have generated modules tell the profiler the name of each kernel that they call.

    Their code looks kernels, `extern_kernels` and `torch` up among its globals at each call
    (`torch/_inductor/codecache.py: PyCodeCache.modules`, 2.13).
    """
    from torch._inductor.codecache import PyCodeCache

    modules = list({id(module): module for module in PyCodeCache.modules}.values())
    before = [dict(vars(module)) for module in modules]
    try:
        for number, module in enumerate(modules):
            vars(module).update(_watched(module, f"{_OURS}{number}:"))
        yield modules
    finally:
        for module, names in zip(modules, before, strict=True):
            vars(module).update(names)


def _watched(module: ModuleType, prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        if name in _NAMESPACES:
            found[name] = _Path(value, name, prefix, is_inside=name != "torch")
        elif name.startswith("cpp_") and callable(value):
            found[name] = _told_by_profiler(value, prefix + name)
    return found


class _Path:
    """Stands for a namespace: what is called through it is told to the profiler by its path."""

    def __init__(self, real: Any, path: str, prefix: str, *, is_inside: bool) -> None:
        self.__dict__.update(_real=real, _path=path, _prefix=prefix, _is_inside=is_inside)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if not (self._is_inside or name == "ops"):
            return value
        return _Path(value, f"{self._path}.{name}", self._prefix, is_inside=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with record_function(self._prefix + self._path):
            return self._real(*args, **kwargs)


def _told_by_profiler(kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
    def told(*args: Any, **kwargs: Any) -> Any:
        with record_function(name):
            return kernel(*args, **kwargs)

    return told


@functools.lru_cache(maxsize=64)
def _code(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError:
        return ""
