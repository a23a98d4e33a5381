"""Parsers: what each event means for the record, one function an event, in one table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from dynamo_nb.events import Event
from dynamo_nb.record.checks import check_of
from dynamo_nb.record.draft import Draft
from dynamo_nb.record.frames import brief_reason
from dynamo_nb.record.guards import reader
from dynamo_nb.record.kernel_parsers import KERNEL_PARSERS
from dynamo_nb.record.naming import of_cell, readable
from dynamo_nb.record.places import Places, innermost
from dynamo_nb.record.types import (
    Bytecode,
    CompileError,
    GraphBreak,
    GraphPass,
    Guard,
    GuardCost,
    GuardTree,
    Instruction,
    PassRow,
    RecompileReason,
    ShapeGuard,
    Specialization,
    StackFrame,
    StageTime,
    Symbol,
)

if TYPE_CHECKING:
    from dynamo_nb.record.build import Builder

__all__ = ["PARSERS"]

#: A guard's source that is one of a dict's keys.
_KEY = re.compile(r"list\(dict\.keys\((.+?)\)\)\[\d+\]")


def _compile_start(builder: Builder, event: Event) -> None:
    data, places = event.data, builder.places
    draft = builder.drafts[event.generation, event.compile_id] = Draft(
        event.compile_id, event.generation
    )
    draft.name, draft.first_line = data["name"], data["first_line"]
    draft.file = places.label(data["file"])
    draft.resume_of = data["resume_of"]
    draft.user_stack = places.frames(data["user_stack"])
    draft.call_line = places.call_line(data["user_stack"], data["resume_of"])
    builder.calls.compiled(draft)


def _compile_end(builder: Builder, event: Event) -> None:
    draft = builder.draft(event)
    draft.status, draft.reason = event.data["status"], brief_reason(event.data["reason"])
    error = event.data.get("error")
    if error is not None:
        stack = builder.places.frames(error["user_stack"])
        frame = innermost(stack) or builder.places.frame(error["frame"])
        draft.error = CompileError(**{**error, "frame": frame, "user_stack": stack})
    draft.open_stages.clear()


#: Where the function lies through which torch compiles its own modules (2.13).
_WRAPPER_FILE = "torch/_dynamo/external_utils.py"


def _frame(builder: Builder, event: Event) -> None:
    data = event.data
    builder.frames.add(data)
    if data["outcome"] != "skipped":
        return
    builder.calls.refused(data)
    code = (data["name"], builder.places.label(data["file"]), data["first_line"])
    failed = [d for d in builder.drafts.values() if d.status == "failed" and _is_of(d, code)]
    if failed:  # Dynamo suppressed the error: the frame runs eagerly
        failed[-1].status, failed[-1].reason = "skipped", brief_reason(data["reason"])


def _is_of(draft: Draft, code: tuple[str, str, int]) -> bool:
    """Tell whether a draft compiles a code object; torch's wrapper of a module has its name."""
    is_wrapper = draft.file.endswith(_WRAPPER_FILE)
    return draft.code[1:] == code[1:] and (is_wrapper or draft.name == code[0])


def _lookup(builder: Builder, event: Event) -> None:
    builder.calls.looked_up(event.compile_id, event.data)


def _left_alone(builder: Builder, event: Event) -> None:
    builder.calls.left_alone(event.data)


def _unseen_entry(builder: Builder, event: Event) -> None:
    """An entry of the cache that was compiled out of sight: its guards are all there is."""
    data = event.data
    draft = builder.draft(event)
    draft.name, draft.first_line = data["name"], data["first_line"]
    draft.file, draft.seen = builder.places.label(data["file"]), "guards"
    draft.guard_tree = msgspec.convert(data["guard_tree"], GuardTree)


def _guards(builder: Builder, event: Event) -> None:
    draft, data = builder.draft(event), event.data
    draft.guard_tree = msgspec.convert(data["guard_tree"], GuardTree)
    checks = _checks(draft.guard_tree)
    draft.guards = [_guard(builder, guard, checks) for guard in data["guards"]]
    draft.shape_guards = [ShapeGuard(expr=guard["expr"]) for guard in data["shape_guards"]]
    draft.symbols = [Symbol(**symbol) for symbol in data["symbols"]]
    draft.guard_costs = [
        GuardCost(source=source, microseconds=seconds * 1e6, managers=managers)
        for source, seconds, managers in data.get("costs", ())
    ]
    if "check_seconds" in data:
        draft.metrics["guard_check_us"] = data["check_seconds"] * 1e6


def _checks(tree: GuardTree) -> dict[tuple[str, str], list[str]]:
    """Return the conditions of a guard tree by source and kind, without torch's comments."""
    found: dict[tuple[str, str], list[str]] = {}
    pending = [tree]
    while pending:
        place = pending.pop()
        pending += place.children
        for leaf in place.leaf_guards:
            conditions = found.setdefault((place.source, leaf.kind), [])
            conditions += [code.split("  # ")[0].strip() for code in leaf.code]
    return found


def _guard(
    builder: Builder, data: dict[str, Any], checks: dict[tuple[str, str], list[str]]
) -> Guard:
    """Return a guard; a tensor's condition is only made when the tree is, and taken from there."""
    stack = builder.places.frames(data["user_stack"])
    code = list(dict.fromkeys([*checks.get((data["source"], data["kind"]), ()), *data["code"]]))
    return Guard(**{**data, "code": code, "user_stack": stack, "frame": innermost(stack)})


def _graph_break(builder: Builder, event: Event) -> None:
    stack = builder.places.frames(event.data["user_stack"])
    frame = builder.places.frame(event.data["frame"])
    fields = {**event.data, "user_stack": stack, "frame": frame}
    builder.draft(event).graph_breaks.append(GraphBreak(**fields, attempt=event.attempt))


def _recompile(builder: Builder, event: Event) -> None:
    draft = builder.draft(event)
    for entry in event.data["entries"]:
        if entry["invalidated"]:
            reason = RecompileReason(
                entry=entry["entry"],
                kind="INVALIDATED",
                call_line=draft.call_line,
                text=entry["invalidated"],
                name="invalidated entry",
            )
            draft.recompile_reasons.append(reason)
        for failed in _with_keys_together(entry["failed"]):
            reader = _reader(builder, event.generation, entry["entry"], failed["source"])
            name = readable(failed["name"] or failed["source"])
            fields = {**failed, "name": name, "entry": entry["entry"], "frame": reader}
            draft.recompile_reasons.append(RecompileReason(**fields, call_line=draft.call_line))


def _with_keys_together(failures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the failing guards, those on the keys of one dict as one.

    Keys are guarded one by one and in order. Where they differ, the values behind them are compared
    with those of other keys: that says nothing more.
    """
    keys: dict[str, list[dict[str, Any]]] = {}
    for failed in failures:
        match = _KEY.fullmatch(failed["source"])
        if match:
            keys.setdefault(match[1], []).append(failed)
    kept = []
    for failed in failures:
        match = _KEY.fullmatch(failed["source"])
        owner = match[1] if match else next((o for o in keys if _is_in(failed["source"], o)), "")
        if not owner:
            kept.append(failed)
        elif keys[owner][0] is failed:
            was, now = (", ".join(key[side] for key in keys[owner]) for side in ("was", "now"))
            kept.append({**failed, "name": f"list({owner})", "was": was, "now": now})
    return kept


def _is_in(source: str, owner: str) -> bool:
    return source.startswith((f"{owner}[", f"list(dict.keys({owner}))"))


def _reader(builder: Builder, generation: int, entry: str, source: str) -> StackFrame | None:
    """Return the line that made an entry guard on a source."""
    key = (generation, entry)
    compiled = builder.drafts.get(key) or builder.earlier.get(key)
    if compiled is None:
        return None
    frame = reader(compiled.guards, source)
    return frame if compiled.cell is None else of_cell(frame, compiled.cell)


def _bytecode(builder: Builder, event: Event) -> None:
    builder.draft(event).bytecode = Bytecode(
        **{
            side: [
                Instruction(**{**item, "frame": builder.places.frame(item["frame"])})
                for item in event.data[side]
            ]
            for side in ("before", "after")
        }
    )


def _graph(builder: Builder, event: Event) -> None:
    builder.draft(event).raw_graphs.append(event.data)


def _pass(builder: Builder, event: Event) -> None:
    data = event.data
    rows = [PassRow(**_framed(row, builder.places)) for row in data["rows"]]
    fields = {**_framed(data, builder.places), "rows": rows}
    builder.draft(event).passes.append(GraphPass(**fields))


def _framed(data: dict[str, Any], places: Places) -> dict[str, Any]:
    """Return the fields with the innermost frame in place of the source places."""
    fields = {key: value for key, value in data.items() if key != "places"}
    return {**fields, "frame": innermost(places.frames(data["places"]))}


def _steps(builder: Builder, event: Event) -> None:
    builder.draft(event).raw_steps = event.data


def _metrics(builder: Builder, event: Event) -> None:
    draft = builder.draft(event)
    scalars = {
        key: item if isinstance(item, bool | int | float) else str(item)
        for key, item in event.data.items()
        if isinstance(item, bool | int | float) or (isinstance(item, str) and 0 < len(item) < 200)
    }
    if event.name == "compilation_metrics":
        draft.metrics.update(scalars)
        draft.restart_reasons = [str(r) for r in event.data.get("restart_reasons") or ()]
    else:
        draft.metrics.setdefault("backward", {}).update(scalars)


def _chromium(builder: Builder, event: Event) -> None:
    """Pair begin and end of a stage; times are those at which the events passed by."""
    data = event.data
    if not event.compile_id or data.get("ph") not in ("B", "E"):
        return
    draft, name = builder.draft(event), str(data.get("name", ""))
    if data["ph"] == "B":
        draft.open_stages.append((name, event.time))
        return
    for index in range(len(draft.open_stages) - 1, -1, -1):
        opened, begun = draft.open_stages[index]
        if opened == name:
            del draft.open_stages[index:]
            start = begun - builder.run.started
            draft.stages.append(StageTime(name=name, start=start, seconds=event.time - begun))
            return


def _symbol(builder: Builder, event: Event) -> None:
    draft, data = builder.draft(event), event.data

    def resolve() -> None:
        frames = _interned_frames(builder, data.get("user_stack"))
        draft.symbol_frames[str(data["symbol"])] = innermost(frames)

    builder.pending_stacks.append(resolve)


def _shape_guard(builder: Builder, event: Event) -> None:
    draft, data = builder.draft(event), event.data

    def resolve() -> None:
        frames = _interned_frames(builder, data.get("user_stack"))
        draft.shape_guard_stacks.setdefault(str(data["expr"]), frames)

    builder.pending_stacks.append(resolve)


def _specialization(builder: Builder, event: Event) -> None:
    draft, data = builder.draft(event), event.data

    def resolve() -> None:
        if event.attempt < len(draft.restart_reasons):
            return  # the attempt that counts may have kept it dynamic
        draft.specializations.append(
            Specialization(
                symbol=data["symbol"],
                sources=[str(source) for source in data["sources"]],
                value=data["value"],
                reason=data["reason"],
                frame=innermost(_interned_frames(builder, data.get("user_stack"))),
            )
        )

    builder.pending_stacks.append(resolve)


def _interned_frames(builder: Builder, stack: Any) -> list[StackFrame]:
    """Read a stack of the trace, in which files are numbers of torch's table of strings."""
    places = [
        (builder.strings.get(f["filename"], "?"), f["line"], f["name"], None, None, None)
        for f in stack or ()
    ]
    return builder.places.frames(places)


def _string(builder: Builder, event: Event) -> None:
    text, number = event.data
    builder.strings[number] = text


def _cache_state(builder: Builder, event: Event) -> None:
    builder.caches.append(event.data)


def _cache(builder: Builder, event: Event) -> None:
    name = event.name.removeprefix("artifact:")
    cache = builder.draft(event).cache
    cache[name] = cache.get(name, 0) + 1


def _check(builder: Builder, event: Event) -> None:
    builder.checks.append(check_of(builder.places, event.data))


PARSERS: dict[str, Callable[[Builder, Event], None]] = {
    **KERNEL_PARSERS,
    "compile_start": _compile_start,
    "compile_end": _compile_end,
    "frame": _frame,
    "lookup": _lookup,
    "left_alone": _left_alone,
    "unseen_entry": _unseen_entry,
    "check": _check,
    "guards": _guards,
    "graph_break": _graph_break,
    "recompile": _recompile,
    "bytecode": _bytecode,
    "graph": _graph,
    "pass": _pass,
    "steps": _steps,
    "compilation_metrics": _metrics,
    "bwd_compilation_metrics": _metrics,
    "chromium_event": _chromium,
    "create_symbol": _symbol,
    "guard_added_fast": _shape_guard,
    "symbolic_shape_specialization": _specialization,
    "str": _string,
    "cache": _cache_state,
    **{
        f"artifact:{cache}_cache_{outcome}": _cache
        for cache in ("fx_graph", "aotautograd")
        for outcome in ("hit", "miss", "bypass")
    },
}
