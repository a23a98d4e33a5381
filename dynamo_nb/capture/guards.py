"""Guards: what each entry assumes, which line made it so, and which of them failed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any

from dynamo_nb.capture.ambient import global_state
from dynamo_nb.capture.costs import guard_costs
from dynamo_nb.capture.failing import failing_guards
from dynamo_nb.capture.identities import without_addresses
from dynamo_nb.capture.memory import MEMORY, Entry, Seen, names, seen
from dynamo_nb.capture.plain import places_of_stack
from dynamo_nb.capture.recorder import Hooked, Recorder
from dynamo_nb.capture.stacks import without_own_place

__all__ = ["entry_failures", "guard_tree", "install_guards", "install_recompiles", "invalidation"]

#: Seconds of one sample of a guard check while a cell compiles.
_COST_SAMPLE = 2e-5


def install_guards(hooked: Hooked) -> None:
    """Use the module global that torch calls with each new guard manager.

    `torch/_dynamo/guards.py: guard_manager_testing_hook_fn(wrapper, f_locals, builder)` (2.13).
    The trace's own `dynamo_guards` event is never written.
    """
    from torch._dynamo import guards

    recorder = hooked.recorder
    previous = guards.guard_manager_testing_hook_fn

    def on_guards(wrapper: Any, f_locals: dict[str, Any], builder: Any) -> None:
        output_graph = builder.check_fn_manager.output_graph
        made = sorted(output_graph.guards, key=lambda guard: guard.sort_key())
        values = _guarded_values(builder, made)
        shape_env = output_graph.shape_env
        measured: dict[str, Any] = {}
        with recorder.apart(hooked.hook):  # what is left of the guards is worth showing without
            costs = guard_costs(wrapper.root, f_locals, _budget(recorder), sample=_COST_SAMPLE)
            measured = {"check_seconds": costs.seconds, "costs": costs.parts}
        recorder.emit(
            "guards",
            {
                "guards": [_guard_data(guard, values) for guard in made],
                "guard_tree": guard_tree(wrapper, values),
                "shape_guards": [{"expr": str(guard.expr)} for guard in shape_env.guards],
                "symbols": _symbols(shape_env),
                **measured,
            },
        )
        compile_id = recorder.events[-1].compile_id
        MEMORY.keep(wrapper, Entry(compile_id, recorder.generation, values, global_state()))

    def hook(wrapper: Any, f_locals: dict[str, Any], builder: Any) -> None:
        if previous is not None:
            previous(wrapper, f_locals, builder)
        with recorder.apart(hooked.hook):
            on_guards(wrapper, f_locals, builder)

    hooked.replace(guards, "guard_manager_testing_hook_fn", hook)


def _budget(recorder: Recorder) -> float:
    """Return how many seconds may go into costs: a hundredth of what the compile took so far."""
    begun = next((e.time for e in reversed(recorder.events) if e.name == "compile_start"), 0.0)
    return min(max((perf_counter() - begun) / 100, 1e-3), 2e-2) if begun else 1e-3


def _guarded_values(builder: Any, guards: list[Any]) -> dict[str, Seen]:
    """Return what guards saw, by source; those that can't be evaluated (temporaries) are absent."""
    values: dict[str, Seen] = {}
    for guard in guards:
        if guard.name and guard.name not in values:
            with suppress(Exception):
                values[guard.name] = seen(builder.get(guard))
    return values


def _guard_data(guard: Any, values: dict[str, Seen]) -> dict[str, Any]:
    value = values.get(guard.name)
    return {
        "kind": guard.create_fn_name(),
        "source": without_addresses(guard.name),
        "origin": without_addresses(guard.source.name) if guard.source else "",
        "code": [without_addresses(str(code), names(values)) for code in guard.code_list or ()],
        "user_stack": places_of_stack(guard.user_stack),
        "value": value.text if value is not None else "",
    }


def guard_tree(wrapper: Any, values: dict[str, Seen] | None = None) -> dict[str, Any]:
    """Return the guard manager tree in the shape of the record's `GuardTree`.

    `values` is what the guards saw at compile time, for the names of objects.
    """
    name_of = names(values or {})
    root = _tree_node(wrapper.root, "", name_of)
    for guard in wrapper.root.get_epilogue_lambda_guards():
        root["leaf_guards"].append(_leaf(guard, name_of))
    return root


def _leaf(guard: Any, name_of: Callable[[str], str]) -> dict[str, Any]:
    parts = (without_own_place(str(part)) for part in guard.verbose_code_parts())
    code = [without_addresses(part, name_of) for part in parts]
    return {"kind": type(guard).__name__, "code": code}


def _tree_node(manager: Any, accessor: str, name_of: Callable[[str], str]) -> dict[str, Any]:
    from torch._C._dynamo.guards import DictGuardManager

    children = []
    if isinstance(manager, DictGuardManager):
        for index, pair in sorted(manager.get_key_value_managers().items()):
            children += [
                _tree_node(child, f"{role}[{index}]", name_of)
                for role, child in zip(("key", "value"), pair, strict=True)
                if child is not None
            ]
    for child_accessor, child in zip(
        manager.get_accessors(), manager.get_child_managers(), strict=True
    ):
        accessor_text = without_addresses(child_accessor.repr())
        children.append(_tree_node(child, accessor_text, name_of))
    return {
        "source": without_addresses(manager.get_source()),
        "manager": type(manager).__name__,
        "accessor": accessor,
        "value_type": str(manager.get_type_of_guarded_value()),
        "leaf_guards": [_leaf(guard, name_of) for guard in manager.get_leaf_guards()],
        "children": children,
    }


def _symbols(shape_env: Any) -> list[dict[str, Any]]:
    """Return symbolic sizes and scalars; the value table was renamed in 2.12."""
    renamed = hasattr(shape_env, "backed_var_to_val")
    hints = shape_env.backed_var_to_val if renamed else shape_env.var_to_val
    return [
        {
            "name": str(symbol),
            "sources": [without_addresses(source.name) for source in sources],
            "hint": str(hints[symbol]) if symbol in hints else "",
            "range": str(shape_env.var_to_range.get(symbol, "")),
        }
        for symbol, sources in shape_env.var_to_sources.items()
    ]


def install_recompiles(hooked: Hooked) -> None:
    """Look at every live entry when torch asks why none of them fits.

    `get_and_maybe_log_recompilation_reasons`, by the name under which `convert_frame` calls it
    (`torch/_dynamo/guards.py`, 2.13; 2.11 and 2.12 pass the head of a linked list).
    """
    from torch._dynamo import convert_frame

    recorder = hooked.recorder

    def before(
        entries: Any, frame: Any, backend: Any, skip_logging: bool = False, **_: Any
    ) -> None:
        if skip_logging:
            return
        known = _listed(entries)
        tried = [entry for entry in known if not _is_of_another(entry, backend)]
        found = [entry_failures(entry, frame.f_locals) for entry in tried]
        if not tried:  # Dynamo passes over the entries of other backends
            found = [_other_backend(entry, backend) for entry in known[:1]]
        recorder.emit("recompile", {"entries": found})

    hooked.around(convert_frame, "get_and_maybe_log_recompilation_reasons", before=before)


def _listed(entries: Any) -> list[Any]:
    if isinstance(entries, list):
        return entries
    found = []
    while entries is not None:
        found.append(entries)
        entries = entries.next
    return found


def _is_of_another(entry: Any, backend: Any) -> bool:
    """Say whether an entry in use was made by another backend than the one that is asked for."""
    made_by = getattr(entry, "backend", None)  # torch clears that of an invalid entry
    if made_by is None or invalidation(entry.guard_manager):
        return False
    return made_by is not backend and bool(made_by != backend)


def _other_backend(entry: Any, backend: Any) -> dict[str, Any]:
    """Return why an entry of another backend is not tried, in the shape of `entry_failures`."""
    known = MEMORY.entry(entry.guard_manager)
    was, now = _backend_name(entry.backend), _backend_name(backend)
    failed = {
        "source": "",
        "name": "the backend",
        "kind": "BACKEND_MATCH",
        "guard": "",
        "was": was,
        "now": f"another {now}" if was == now else now,
        "text": "the entry is of another backend",
    }
    return {
        "entry": str(entry.compile_id),
        "generation": known.generation if known is not None else -1,
        "invalidated": "",
        "failed": [failed],
    }


def _backend_name(backend: Any) -> str:
    name = getattr(backend, "compiler_name", "") or getattr(backend, "__name__", "")
    return str(name or type(backend).__name__)


def entry_failures(entry: Any, f_locals: dict[str, Any]) -> dict[str, Any]:
    """Return why a cache entry does not fit the locals of a frame: every guard that fails."""
    manager = entry.guard_manager
    known = MEMORY.entry(manager)
    data = {
        "entry": str(entry.compile_id),
        "generation": known.generation if known is not None else -1,
        "invalidated": "",
        "failed": [],
    }
    data["invalidated"] = invalidation(manager)
    if not data["invalidated"]:
        data["failed"] = failing_guards(manager, f_locals, known)
    return data


def invalidation(manager: Any) -> str:
    """Return why torch has given up an entry, empty for one that is in use.

    Its guard manager is then an empty one, a `DeletedGuardManagerWrapper` (2.13).
    """
    if getattr(manager, "root", None) is None or getattr(manager, "global_scope", None) is None:
        reason = str(getattr(manager, "invalidation_reason", "")) or "invalidated"
        return without_addresses(reason)
    return ""
