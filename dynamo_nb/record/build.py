"""From events to the record: one parser per event name, in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dynamo_nb.events import Event
from dynamo_nb.record.calls import CallBook
from dynamo_nb.record.draft import Draft
from dynamo_nb.record.errors import RecordError
from dynamo_nb.record.frames import FrameBook, brief_reason
from dynamo_nb.record.graphs import finish_graphs, finish_kernels
from dynamo_nb.record.ignored import is_ignored
from dynamo_nb.record.links import links_of
from dynamo_nb.record.naming import readable
from dynamo_nb.record.places import Places, innermost
from dynamo_nb.record.run import Run
from dynamo_nb.record.types import (
    Bytecode,
    CellRecord,
    Compile,
    CompileError,
    GraphBreak,
    Guard,
    GuardTree,
    Instruction,
    OutputCode,
    RecompileReason,
    ShapeGuard,
    Specialization,
    StackFrame,
    StageTime,
    Symbol,
)

__all__ = ["build_record"]


def build_record(events: Iterable[Event], run: Run, *, strict: bool = False) -> CellRecord:
    """Return the record of a run.

    Parameters
    ----------
    strict
        Raise `RecordError` for events that nothing here understands, instead of counting them
        under `unparsed`.
    """
    builder = _Builder(run)
    for event in events:
        builder.take(event)
    record = builder.finish()
    if strict and record.unparsed:
        msg = f"events that are not understood: {', '.join(sorted(record.unparsed))}"
        raise RecordError(msg)
    return record


class _Builder:
    """Holds the drafts of one run while events are taken in."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.places = Places(run)
        self.drafts: dict[tuple[int, str], Draft] = {}
        self.calls = CallBook(self.places)
        self.frames = FrameBook(self.places)
        self.unparsed: Counter[str] = Counter()
        self.strings: dict[int, str] = {}
        self.pending_stacks: list[Callable[[], None]] = []
        self.earlier = {(c.generation, c.compile_id): c for c in run.earlier}

    def take(self, event: Event) -> None:
        """Take in one event."""
        parse = _PARSERS.get(event.name)
        if parse is not None:
            parse(self, event)
        elif not is_ignored(event.name):
            self.unparsed[event.name] += 1

    def draft(self, event: Event) -> Draft:
        """Return the draft of the compile that an event belongs to."""
        key = (event.generation, event.compile_id)
        if key not in self.drafts:
            self.drafts[key] = self._late(event)
        return self.drafts[key]

    def _late(self, event: Event) -> Draft:
        """Begin a draft for a compile that started before this run, as a lazy backward's did."""
        draft = Draft(event.compile_id, event.generation)
        known = self.earlier.get((event.generation, event.compile_id))
        if known is not None:
            for name in ("name", "file", "first_line", "resume_of", "cell"):
                setattr(draft, name, getattr(known, name))
        return draft

    def finish(self) -> CellRecord:
        """Return the record of what was taken in."""
        for resolve in self.pending_stacks:
            resolve()
        for draft in self.drafts.values():
            finish_graphs(draft, self.places)
            finish_kernels(draft)
            _place_shape_guards(draft)
        compiles = [*self._finished(), *self._reused()]
        calls = self.calls.finish(
            {(c.generation, c.compile_id): c for c in compiles}, self.frames
        )
        record = CellRecord(
            name=self.run.name,
            cell=self.run.cell.number,
            source=self.run.cell.source,
            mode=self.run.mode,
            mode_reason=self.run.mode_reason,
            options=self.run.options,
            device=self.run.device,
            versions=self.run.versions,
            compiles=compiles,
            frames=self.frames.finish(),
            calls=calls,
            compiled_objects=self.run.compiled_objects,
            notes=self.run.notes,
            error=self.run.error,
            unparsed=dict(sorted(self.unparsed.items())),
            metrics={"seconds": self.run.seconds},
        )
        links, files = links_of(record)
        return msgspec.structs.replace(record, links=links, files=self.places.texts(files))

    def _finished(self) -> list[Compile]:
        """Return this run's compiles; an id that comes twice gets an alias the second time."""
        seen: Counter[str] = Counter()
        compiles = []
        for draft in self.drafts.values():
            seen[draft.compile_id] += 1
            number = seen[draft.compile_id]
            compiles.append(draft.finish(f"{draft.compile_id}@{number}" if number > 1 else ""))
        return compiles

    def _reused(self) -> list[Compile]:
        """Return the compiles of earlier cells whose entries this run hit, marked as such."""
        own = set(self.drafts)
        return [
            _as_earlier(self.earlier[key])
            for key in self.calls.entries_hit()
            if key in self.earlier and key not in own
        ]


def _as_earlier(compile_: Compile) -> Compile:
    """Return a compile with the places of its own cell named by that cell's number."""
    text = msgspec.json.encode(compile_).decode()
    text = text.replace('"file":"<cell>"', f'"file":"<cell {compile_.cell}>"')
    return msgspec.json.decode(text, type=Compile)


def _place_shape_guards(draft: Draft) -> None:
    draft.shape_guards = [
        ShapeGuard(expr=guard.expr, user_stack=stack, frame=innermost(stack))
        for guard in draft.shape_guards
        for stack in [draft.shape_guard_stacks.get(guard.expr, [])]
    ]
    draft.symbols = [
        msgspec.structs.replace(symbol, frame=draft.symbol_frames.get(symbol.name))
        for symbol in draft.symbols
    ]


# --- parsers, one per event -------------------------------------------------------------------


def _compile_start(builder: _Builder, event: Event) -> None:
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


def _compile_end(builder: _Builder, event: Event) -> None:
    draft = builder.draft(event)
    draft.status, draft.reason = event.data["status"], brief_reason(event.data["reason"])
    error = event.data.get("error")
    if error is not None:
        stack = builder.places.frames(error["user_stack"])
        frame = innermost(stack) or builder.places.frame(error["frame"])
        draft.error = CompileError(**{**error, "frame": frame, "user_stack": stack})
    draft.open_stages.clear()


def _frame(builder: _Builder, event: Event) -> None:
    data = event.data
    builder.frames.add(data)
    if data["outcome"] != "skipped":
        return
    code = (data["name"], builder.places.label(data["file"]), data["first_line"])
    failed = [d for d in builder.drafts.values() if d.code == code and d.status == "failed"]
    if failed:  # Dynamo suppressed the error: the frame runs eagerly
        failed[-1].status, failed[-1].reason = "skipped", brief_reason(data["reason"])


def _lookup(builder: _Builder, event: Event) -> None:
    builder.calls.looked_up(event.compile_id, event.data)


def _unseen_entry(builder: _Builder, event: Event) -> None:
    """An entry of the cache that was compiled out of sight: its guards are all there is."""
    data = event.data
    draft = builder.draft(event)
    draft.name, draft.first_line = data["name"], data["first_line"]
    draft.file, draft.seen = builder.places.label(data["file"]), "guards"
    draft.guard_tree = msgspec.convert(data["guard_tree"], GuardTree)


def _guards(builder: _Builder, event: Event) -> None:
    draft, data = builder.draft(event), event.data
    draft.guards = [_guard(builder, guard) for guard in data["guards"]]
    draft.guard_tree = msgspec.convert(data["guard_tree"], GuardTree)
    draft.shape_guards = [ShapeGuard(expr=guard["expr"]) for guard in data["shape_guards"]]
    draft.symbols = [Symbol(**symbol) for symbol in data["symbols"]]


def _guard(builder: _Builder, data: dict[str, Any]) -> Guard:
    stack = builder.places.frames(data["user_stack"])
    return Guard(**{**data, "user_stack": stack, "frame": innermost(stack)})


def _graph_break(builder: _Builder, event: Event) -> None:
    stack = builder.places.frames(event.data["user_stack"])
    frame = builder.places.frame(event.data["frame"])
    fields = {**event.data, "user_stack": stack, "frame": frame}
    builder.draft(event).graph_breaks.append(GraphBreak(**fields, attempt=event.attempt))


def _recompile(builder: _Builder, event: Event) -> None:
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
        for failed in entry["failed"]:
            reader = _reader(builder, event.generation, entry["entry"], failed["source"])
            name = readable(failed["name"] or failed["source"])
            fields = {**failed, "name": name, "entry": entry["entry"], "frame": reader}
            draft.recompile_reasons.append(RecompileReason(**fields, call_line=draft.call_line))


def _reader(builder: _Builder, generation: int, entry: str, source: str) -> StackFrame | None:
    """Return the line that made an entry guard on a source: the one that reads it."""
    key = (generation, entry)
    compiled = builder.drafts.get(key) or builder.earlier.get(key)
    if compiled is None or not source:
        return None
    frames = [g.frame for g in compiled.guards if g.source == source and g.frame is not None]
    return frames[-1] if frames else None


def _bytecode(builder: _Builder, event: Event) -> None:
    builder.draft(event).bytecode = Bytecode(
        **{
            side: [
                Instruction(**{**item, "frame": builder.places.frame(item["frame"])})
                for item in event.data[side]
            ]
            for side in ("before", "after")
        }
    )


def _graph(builder: _Builder, event: Event) -> None:
    builder.draft(event).raw_graphs.append(event.data)


def _kernel(builder: _Builder, event: Event) -> None:
    data = event.data
    builder.draft(event).kernel_code[data["direction"], data["name"]] = data["code"]


def _kernel_nodes(builder: _Builder, event: Event) -> None:
    draft, data = builder.draft(event), event.data
    key = (data["direction"], data["name"])
    nodes = draft.kernel_nodes.setdefault(key, [])
    nodes += [node for node in data["nodes"] if node not in nodes]
    draft.kernel_calls[key] = draft.kernel_calls.get(key, 0) + 1
    if data["is_extern"]:
        draft.extern_kernels.add(key)


def _output_code(builder: _Builder, event: Event) -> None:
    draft = builder.draft(event)
    direction = event.data.get("direction", "")
    name = f"post_grad.{direction}" if direction else "post_grad"
    draft.output_code.append(OutputCode(graph=name, code=event.payload or ""))


def _metrics(builder: _Builder, event: Event) -> None:
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


def _chromium(builder: _Builder, event: Event) -> None:
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


def _symbol(builder: _Builder, event: Event) -> None:
    draft, data = builder.draft(event), event.data

    def resolve() -> None:
        frames = _interned_frames(builder, data.get("user_stack"))
        draft.symbol_frames[str(data["symbol"])] = innermost(frames)

    builder.pending_stacks.append(resolve)


def _shape_guard(builder: _Builder, event: Event) -> None:
    draft, data = builder.draft(event), event.data

    def resolve() -> None:
        frames = _interned_frames(builder, data.get("user_stack"))
        draft.shape_guard_stacks.setdefault(str(data["expr"]), frames)

    builder.pending_stacks.append(resolve)


def _specialization(builder: _Builder, event: Event) -> None:
    draft, data = builder.draft(event), event.data

    def resolve() -> None:
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


def _interned_frames(builder: _Builder, stack: Any) -> list[StackFrame]:
    """Read a stack of the trace, in which files are numbers of torch's table of strings."""
    places = [
        (builder.strings.get(f["filename"], "?"), f["line"], f["name"], None, None, None)
        for f in stack or ()
    ]
    return builder.places.frames(places)


def _string(builder: _Builder, event: Event) -> None:
    text, number = event.data
    builder.strings[number] = text


def _cache(builder: _Builder, event: Event) -> None:
    name = event.name.removeprefix("artifact:")
    cache = builder.draft(event).cache
    cache[name] = cache.get(name, 0) + 1


_PARSERS: dict[str, Callable[[_Builder, Event], None]] = {
    "compile_start": _compile_start,
    "compile_end": _compile_end,
    "frame": _frame,
    "lookup": _lookup,
    "unseen_entry": _unseen_entry,
    "guards": _guards,
    "graph_break": _graph_break,
    "recompile": _recompile,
    "bytecode": _bytecode,
    "graph": _graph,
    "kernel": _kernel,
    "kernel_nodes": _kernel_nodes,
    "inductor_output_code": _output_code,
    "compilation_metrics": _metrics,
    "bwd_compilation_metrics": _metrics,
    "chromium_event": _chromium,
    "create_symbol": _symbol,
    "guard_added_fast": _shape_guard,
    "symbolic_shape_specialization": _specialization,
    "str": _string,
    **{
        f"artifact:{cache}_cache_{outcome}": _cache
        for cache in ("fx_graph", "aotautograd")
        for outcome in ("hit", "miss", "bypass")
    },
}
