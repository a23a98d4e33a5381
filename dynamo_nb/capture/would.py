"""Which cache entry a call would hit, found without making the call or compiling anything."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch._dynamo import cache_size, external_utils
from torch._dynamo.eval_frame import OptimizedModule, innermost_backend, innermost_fn

from dynamo_nb.capture.costs import guard_costs
from dynamo_nb.capture.guards import entry_failures, invalidation
from dynamo_nb.capture.memory import MEMORY
from dynamo_nb.capture.stacks import code_name

__all__ = ["Frame", "entries_of", "frame_of", "measured", "would"]

_UNKNOWN = object()

#: Seconds to spend on the parts of one entry's guards, besides those at the top.
_COSTS_BUDGET = 0.3

#: Stance of `torch.compiler.set_stance` → what a call does that fits no entry.
_MISSES = {
    "eager_on_recompile": ("eager", "the stance is 'eager_on_recompile': it would run eagerly"),
    "fail_on_recompile": ("error", "the stance is 'fail_on_recompile': the call would raise"),
}


class Frame(NamedTuple):
    """The frame that a call would begin: its function, its locals, the backend it asks for."""

    name: str
    function: types.FunctionType
    f_locals: dict[str, Any]
    backend: Any = _UNKNOWN
    region: int = -1
    notes: tuple[str, ...] = ()


def would(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what `f(*args, **kwargs)` would do, in the shape of the record's `Would`.

    Raises
    ------
    ValueError
        When `f` has no cache to look into: it was never compiled, or is no Python function.
    TypeError
        When `f` does not take these arguments.
    """
    if _is_disabled(f):
        return _answer(_name(f), "eager", reason="Dynamo is disabled for it: it runs eagerly")
    frame = frame_of(f, args, kwargs)
    entries = entries_of(frame)
    if not entries:
        raise ValueError(_no_entries(frame))
    stance = torch._dynamo.eval_frame._stance.stance
    if stance == "force_eager":
        return _answer(frame.name, "eager", reason="the stance is 'force_eager'")
    checks = _checks(frame, entries)
    notes = [*frame.notes, *_notes(frame)]
    if checks[-1]["fits"]:
        return _answer(frame.name, "hit", checks, notes, entry=checks[-1]["entry"])
    outcome, reason = _MISSES.get(stance) or _miss(frame, entries)
    return _answer(frame.name, outcome, checks, notes, reason=reason)


def measured(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the guards of the entry cost that `f(*args, **kwargs)` hits.

    The call is made, once: what else it does is not multiplied. The answer has the shape of the
    record's `GuardCosts`.

    Raises
    ------
    ValueError
        When no entry fits: then there is nothing to measure.
    """
    frame = frame_of(f, args, kwargs)
    entries = {str(entry.compile_id): entry for entry in entries_of(frame)}
    answer = would(f, args, kwargs)
    if answer["outcome"] != "hit":
        msg = f"{frame.name} fits no entry with these arguments: call it once, then measure."
        raise ValueError(msg)
    root = entries[answer["entry"]].guard_manager.root
    seconds, parts = guard_costs(root, frame.f_locals, _COSTS_BUDGET)
    start = perf_counter()
    f(*args, **kwargs)
    call_seconds = perf_counter() - start
    return {
        "callee": frame.name,
        "entry": answer["entry"],
        "microseconds": seconds * 1e6,
        "call_microseconds": call_seconds * 1e6,
        "parts": [(source, cost * 1e6, managers) for source, cost, managers in parts],
    }


def _answer(
    callee: str,
    outcome: str,
    entries: list[dict[str, Any]] | None = None,
    notes: list[str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    return {
        "callee": callee,
        "outcome": outcome,
        "entries": entries or [],
        "notes": notes or [],
        **more,
    }


# ------------------------------------------------------------------ the frame of a call


def frame_of(
    f: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], backend: Any = _UNKNOWN
) -> Frame:
    """Return the frame in which Dynamo would look for entries when `f` is called."""
    if isinstance(f, functools.partial):
        return frame_of(f.func, (*f.args, *args), {**f.keywords, **kwargs}, backend)
    if isinstance(f, OptimizedModule):
        return frame_of(f.__dict__.get("_forward", f.forward), args, kwargs, backend)
    if isinstance(f, torch.nn.Module):
        return _module_frame(f, args, kwargs, backend)
    if isinstance(f, types.MethodType):
        return _method_frame(f, args, kwargs, backend)
    if isinstance(f, types.FunctionType):
        inner = innermost_fn(f)
        if inner is not f:
            found = frame_of(inner, args, kwargs, _backend(f))
            return found._replace(region=getattr(f, "_isolate_recompiles_id", -1))
        return _function_frame(f, args, kwargs, backend)
    call = inspect.getattr_static(type(f), "__call__", None)
    if isinstance(call, types.FunctionType):
        return frame_of(types.MethodType(call, f), args, kwargs, backend)
    raise ValueError(f"{_name(f)} is no Python function, method or module: Dynamo has no frame.")


def _module_frame(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], backend: Any
) -> Frame:
    """Return the frame of a module's `forward`: its hooks run outside, and before it."""
    in_place = module.__dict__.get("_compiled_call_impl")
    if in_place is not None:
        backend = _backend(in_place)
    elif backend is _UNKNOWN and torch._dynamo.trace_rules.check(module.forward):
        return _wrapped_frame(module, args, kwargs)
    found = frame_of(module.forward, args, kwargs, backend)
    if not module._forward_pre_hooks and not torch.nn.modules.module._global_forward_pre_hooks:
        return found
    note = "a forward pre-hook runs before it and may change the arguments: that is not followed"
    return found._replace(notes=(*found.notes, note))


def _wrapped_frame(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Frame:
    """Return the frame around a module of torch's own, which torch.compile puts there."""
    inner = external_utils.wrap_inline(module)
    return frame_of(inner, args, kwargs)


def _method_frame(
    method: types.MethodType, args: tuple[Any, ...], kwargs: Mapping[str, Any], backend: Any
) -> Frame:
    owner, function = method.__self__, method.__func__
    if function.__module__ == torch.nn.Module.__module__ and isinstance(owner, torch.nn.Module):
        return _module_frame(owner, args, kwargs, backend)  # its `__call__` leads to `forward`
    return frame_of(function, (owner, *args), kwargs, backend)


def _function_frame(
    function: types.FunctionType, args: tuple[Any, ...], kwargs: Mapping[str, Any], backend: Any
) -> Frame:
    code = function.__code__
    bare = types.FunctionType(code, {}, code.co_name, function.__defaults__, function.__closure__)
    bare.__kwdefaults__ = function.__kwdefaults__
    bound = inspect.signature(bare).bind(*args, **kwargs)  # of the code, whatever it is dressed as
    bound.apply_defaults()
    f_locals = {**bound.arguments, **_closure(function)}
    name = code_name(code)
    if code.co_filename == external_utils.__file__ and "fn" in f_locals:
        name = _name(f_locals["fn"])
    return Frame(name, function, f_locals, backend)


def _closure(function: types.FunctionType) -> dict[str, Any]:
    """Return the closure's variables by name; one without a value yet is left out."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def _backend(wrapper: Any) -> Any:
    """Return the backend of what `torch.compile` returned (`compile_wrapper`'s context, 2.13)."""
    override = torch._dynamo.eval_frame._stance.backend
    if override is not None:
        return torch._dynamo.backends.registry.lookup_backend(override)
    context = _closure(wrapper).get("self") if isinstance(wrapper, types.FunctionType) else None
    callback = getattr(context, "callback", None)
    return innermost_backend(callback) if callable(callback) else _UNKNOWN


def _is_disabled(f: Any) -> bool:
    function = getattr(f, "__func__", f)
    return isinstance(function, types.FunctionType) and bool(
        function.__dict__.get("_torchdynamo_disable")
    )


def _name(f: Any) -> str:
    owner = getattr(f, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        return type(owner).__name__
    short = getattr(f, "__name__", "")
    if isinstance(f, types.BuiltinFunctionType) and getattr(torch, short, None) is f:
        return f"torch.{short}"  # its own name is that of a class in C++
    return str(getattr(f, "__qualname__", type(f).__name__))


# ------------------------------------------------------------------ the look-up


def entries_of(frame: Frame) -> list[Any]:
    """Return the entries that a look-up tries, in its order; none where Dynamo has none.

    Those of another backend are passed over. An uncompiled function names no backend: then that
    of its newest entry is meant, as a `%%dynamo` cell last compiled it.
    """
    from torch._C._dynamo.eval_frame import _get_cache_entries_for_region

    code = frame.function.__code__
    entries = list(_get_cache_entries_for_region(code, frame.region))
    if frame.region != -1:
        entries += _get_cache_entries_for_region(code, -1)
    alive = [entry for entry in entries if entry.backend is not None]  # torch clears an invalid one
    if not alive:
        return entries
    backend = frame.backend
    if backend is _UNKNOWN:
        backend = max(alive, key=lambda entry: entry.compile_id.frame_compile_id or 0).backend
    meant = (None, backend)
    found = [entry for entry in entries if entry.backend in meant]
    return found if any(entry.backend is not None for entry in found) else []


def _no_entries(frame: Frame) -> str:
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    others = _debug_get_cache_entry_list(frame.function.__code__)
    if others:
        return (
            f"{frame.name} was compiled, but not with this backend: none of its "
            f"{len(others)} entries is looked at for this call."
        )
    return (
        f"{frame.name} was never compiled, or Dynamo gave it up: it has no cache entry that these "
        "arguments could hit. Call it once through torch.compile or in a %%dynamo cell."
    )


def _checks(frame: Frame, entries: list[Any]) -> list[dict[str, Any]]:
    """Return how each entry stands to the frame's locals, up to the first that fits."""
    checks = []
    for entry in entries:
        known = MEMORY.entry(entry.guard_manager)
        check: dict[str, Any] = {
            "entry": str(entry.compile_id),
            "generation": known.generation if known is not None else MEMORY.generation,
            "fits": False,
            "invalidated": "",
            "failed": [],
        }
        checks.append(check)
        is_alive = not invalidation(entry.guard_manager)
        if is_alive and entry.guard_manager.root.check(frame.f_locals):
            check["fits"] = True
            break
        found = entry_failures(entry, frame.f_locals)
        check.update(invalidated=found["invalidated"], failed=found["failed"])
    return checks


def _miss(frame: Frame, entries: list[Any]) -> tuple[str, str]:
    """Return what Dynamo does when no entry fits: compile anew, unless a limit is reached."""
    from torch._C._dynamo.eval_frame import _get_total_cache_entry_count

    code = frame.function.__code__
    stand_in: Any = types.SimpleNamespace(f_locals=frame.f_locals, f_code=code)
    size = cache_size.compute_cache_size(stand_in, entries, _get_total_cache_entry_count(code))
    exceeds, limit = cache_size.exceeds_recompile_limit(size, entries[0].compile_id)
    if not exceeds:
        return "compile", "it would be compiled again"
    value = getattr(torch._dynamo.config, limit)
    return "eager", f"{limit} ({value}) is reached: it would run eagerly"


def _notes(frame: Frame) -> list[str]:
    """Return what the answer leaves open: what follows a graph break has entries of its own."""
    from torch._dynamo.resume_execution import ContinueExecutionCache

    if frame.function.__code__ not in ContinueExecutionCache.cache:
        return []
    return [
        "the answer is about the part before its graph break: which entries the rest hits depends "
        "on values that only running it gives"
    ]
