"""Guards: what each entry assumes, which line made it so, and which of them failed."""

from __future__ import annotations

from typing import Any

from dynamo_nb.capture.failing import failing_guards
from dynamo_nb.capture.memory import MEMORY, Entry, Seen, global_state, seen
from dynamo_nb.capture.plain import places_of_stack
from dynamo_nb.capture.recorder import Hooked

__all__ = ["install_guards", "install_recompiles"]


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
        values: dict[str, Seen] = {}
        listed = []
        for guard in sorted(output_graph.guards, key=lambda guard: guard.sort_key()):
            if guard.name and guard.name not in values:
                item = _guarded_value(builder, guard)
                if item is not None:
                    values[guard.name] = item
            listed.append(_guard_data(guard, values.get(guard.name)))
        shape_env = output_graph.shape_env
        recorder.emit(
            "guards",
            {
                "guards": listed,
                "guard_tree": guard_tree(wrapper),
                "shape_guards": [{"expr": str(guard.expr)} for guard in shape_env.guards],
                "symbols": _symbols(shape_env),
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


def _guarded_value(builder: Any, guard: Any) -> Seen | None:
    """Return what a guard saw; sources that can't be evaluated (temporaries) give None."""
    try:
        return seen(builder.get(guard))
    except Exception:
        return None


def _guard_data(guard: Any, value: Seen | None) -> dict[str, Any]:
    return {
        "kind": guard.create_fn_name(),
        "source": guard.name,
        "origin": guard.source.name if guard.source else "",
        "code": [str(code) for code in guard.code_list or ()],
        "user_stack": places_of_stack(guard.user_stack),
        "value": value.text if value is not None else "",
    }


def guard_tree(wrapper: Any) -> dict[str, Any]:
    """Return the guard manager tree in the shape of the record's `GuardTree`."""
    root = _tree_node(wrapper.root, "")
    for guard in wrapper.root.get_epilogue_lambda_guards():
        root["leaf_guards"].append(_leaf(guard))
    return root


def _leaf(guard: Any) -> dict[str, Any]:
    return {"kind": type(guard).__name__, "code": [str(c) for c in guard.verbose_code_parts()]}


def _tree_node(manager: Any, accessor: str) -> dict[str, Any]:
    from torch._C._dynamo.guards import DictGuardManager

    children = []
    if isinstance(manager, DictGuardManager):
        for index, pair in sorted(manager.get_key_value_managers().items()):
            children += [
                _tree_node(child, f"{role}[{index}]")
                for role, child in zip(("key", "value"), pair, strict=True)
                if child is not None
            ]
    for child_accessor, child in zip(
        manager.get_accessors(), manager.get_child_managers(), strict=True
    ):
        children.append(_tree_node(child, child_accessor.repr()))
    return {
        "source": manager.get_source(),
        "manager": type(manager).__name__,
        "accessor": accessor,
        "value_type": str(manager.get_type_of_guarded_value()),
        "leaf_guards": [_leaf(guard) for guard in manager.get_leaf_guards()],
        "children": children,
    }


def _symbols(shape_env: Any) -> list[dict[str, Any]]:
    """Return symbolic sizes and scalars; the value table was renamed in 2.12."""
    renamed = hasattr(shape_env, "backed_var_to_val")
    hints = shape_env.backed_var_to_val if renamed else shape_env.var_to_val
    return [
        {
            "name": str(symbol),
            "sources": [source.name for source in sources],
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
        entries: Any, frame: Any, _backend: Any, skip_logging: bool = False, **_: Any
    ) -> None:
        if skip_logging:
            return
        found = [_entry_failures(entry, frame.f_locals) for entry in _listed(entries)]
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


def _entry_failures(entry: Any, f_locals: dict[str, Any]) -> dict[str, Any]:
    manager = entry.guard_manager
    known = MEMORY.entry(manager)
    data = {
        "entry": str(entry.compile_id),
        "generation": known.generation if known is not None else -1,
        "invalidated": "",
        "failed": [],
    }
    if getattr(manager, "root", None) is None or getattr(manager, "global_scope", None) is None:
        data["invalidated"] = str(getattr(manager, "invalidation_reason", "")) or "invalidated"
    else:
        data["failed"] = failing_guards(manager, f_locals, known)
    return data
