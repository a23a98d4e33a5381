"""From events to the record: one parser per event name, in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from dynamo_nb.events import Event, is_ignored
from dynamo_nb.record.cache import cache_states
from dynamo_nb.record.calls import CallBook
from dynamo_nb.record.causes import nearest_first
from dynamo_nb.record.checks import located
from dynamo_nb.record.draft import Draft
from dynamo_nb.record.errors import RecordError
from dynamo_nb.record.frames import FrameBook
from dynamo_nb.record.graphs import finish_graphs, finish_kernels
from dynamo_nb.record.guards import shape_reader
from dynamo_nb.record.kept import with_kept_named
from dynamo_nb.record.links import links_of
from dynamo_nb.record.measured import finish_measured
from dynamo_nb.record.naming import cell_file, of_cell
from dynamo_nb.record.parsers import PARSERS
from dynamo_nb.record.places import Places, innermost
from dynamo_nb.record.run import Called, Run
from dynamo_nb.record.schedule import finish_schedule
from dynamo_nb.record.steps import finish_steps
from dynamo_nb.record.target_texts import target_notes
from dynamo_nb.record.targets import finish_targets
from dynamo_nb.record.timings import RawTiming, placed
from dynamo_nb.record.types import (
    CELL,
    CellError,
    CellRecord,
    Check,
    Compile,
    Machine,
    ShapeGuard,
)
from dynamo_nb.record.unreached import first_unreached

__all__ = ["Builder", "build_record"]


def build_record(events: Iterable[Event], run: Run, *, strict: bool = False) -> CellRecord:
    """Return the record of a run.

    With `strict`, events that nothing here understands raise `RecordError` instead of being
    counted under `unparsed`.
    """
    builder = Builder(run)
    for event in events:
        builder.take(event)
    record = builder.finish()
    if strict and record.unparsed:
        msg = f"events that are not understood: {', '.join(sorted(record.unparsed))}"
        raise RecordError(msg)
    return record


class Builder:
    """Holds the drafts of one run while events are taken in; the parsers fill them."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.places = Places(run)
        self.drafts: dict[tuple[int, str], Draft] = {}
        self.calls = CallBook(self.places)
        self.frames = FrameBook(self.places)
        self.checks: list[Check] = []
        self.timings: list[RawTiming] = []
        self.machines: list[Machine] = []
        self.unparsed: Counter[str] = Counter()
        self.strings: dict[int, str] = {}
        self.caches: list[dict[str, Any]] = []
        self.pending_stacks: list[Callable[[], None]] = []
        self.earlier = {(c.generation, c.compile_id): c for c in run.earlier}

    def take(self, event: Event) -> None:
        """Take in one event."""
        parse = PARSERS.get(event.name)
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

    def knows(self, event: Event) -> bool:
        """Tell whether an event belongs to a compile of this run or of an earlier one."""
        key = (event.generation, event.compile_id)
        return key in self.drafts or key in self.earlier

    def _late(self, event: Event) -> Draft:
        """Go on with a compile of an earlier cell, as a lazy backward's does."""
        draft = Draft(event.compile_id, event.generation)
        known = self.earlier.get((event.generation, event.compile_id))
        if known is not None:
            draft.take_up(_as_earlier(known))
        return draft

    def finish(self) -> CellRecord:
        """Return the record of what was taken in."""
        for resolve in self.pending_stacks:
            resolve()
        for draft in self.drafts.values():
            finish_graphs(draft, self.places)
            finish_kernels(draft, self.places)
            finish_schedule(draft)
            finish_measured(draft)
            finish_steps(draft, self.places)
            self.checks += finish_targets(draft, self.places)
            _place_shape_guards(draft)
        for draft in self.drafts.values():
            self._place_shape_reasons(draft)
        compiles = [*self._finished(), *self._reused()]
        self.calls.called(self._telling(compiles))
        known = {(c.generation, c.compile_id): c for c in compiles}
        calls = self.calls.finish(
            known, self.frames, partial(first_unreached, [*self.run.earlier, *compiles])
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
            cache=cache_states(self.caches, {**self.earlier, **known}, calls, self.places),
            compiled_objects=self.run.compiled_objects,
            notes=[*self.run.notes, *target_notes(self.run.options, compiles)],
            error=_located(self.run.error, compiles),
            unparsed=dict(sorted(self.unparsed.items())),
            metrics={"seconds": self.run.seconds},
        )
        links, files = links_of(record)
        return msgspec.structs.replace(
            record,
            compiles=with_kept_named(compiles, record.source),
            links=links,
            files=self.places.texts(files),
            checks=located(self.checks, record),
            timings=[placed(timing, record) for timing in self.timings],
            machines=self.machines,
        )

    def _telling(self, compiles: Iterable[Compile]) -> list[Called]:
        """Return the runner's calls; what it handed on tells why nothing was compiled, or nothing.

        A count of 0 is that of a function which the cell only passed to another.
        """
        compiled = any(compile_.status == "ok" for compile_ in compiles)
        return [call for call in self.run.called if call.count or not compiled]

    def _place_shape_reasons(self, draft: Draft) -> None:
        """Give recompiles for a size the line by which the entry assumed something of it."""
        for index, reason in enumerate(draft.recompile_reasons):
            key = (draft.generation, reason.entry)
            entry = self.drafts.get(key) or self.earlier.get(key)
            if reason.kind == "SHAPE_ENV" and reason.frame is None and entry is not None:
                frame = shape_reader(entry.symbols, entry.shape_guards, reason.source)
                frame = of_cell(frame, entry.cell) if entry.cell is not None else frame
                draft.recompile_reasons[index] = msgspec.structs.replace(reason, frame=frame)

    def _finished(self) -> list[Compile]:
        """Return this run's compiles; an id that comes twice gets an alias the second time."""
        seen: Counter[str] = Counter()
        compiles = []
        for draft in self.drafts.values():
            seen[draft.compile_id] += 1
            number = seen[draft.compile_id]
            compiled = draft.finish(f"{draft.compile_id}@{number}" if number > 1 else "")
            reasons = nearest_first(compiled)
            compiles.append(msgspec.structs.replace(compiled, recompile_reasons=reasons))
        return compiles

    def _reused(self) -> list[Compile]:
        """Return the compiles of earlier cells whose entries this run hit, marked as such."""
        own = set(self.drafts)
        return [
            _as_earlier(self.earlier[key])
            for key in self.calls.entries_hit()
            if key in self.earlier and key not in own
        ]


def _located(error: CellError | None, compiles: Iterable[Compile]) -> CellError | None:
    """Return the cell's error; one of Dynamo's with the cell's line that could not be compiled."""
    if error is None:
        return None
    for cause in filter(None, (compiled.error for compiled in compiles)):
        head = cause.message.partition("\n")[0]  # torch adds to the rest
        if cause.type == error.type and error.message.startswith(head):
            inside = [f for f in (*cause.user_stack, cause.frame) if f and f.file == CELL]
            if inside:
                return msgspec.structs.replace(error, line=inside[-1].line)
    return error


def _as_earlier(compile_: Compile) -> Compile:
    """Return a compile with the places of its own cell named by that cell's number.

    The lines of its calls are no lines of this cell, and are left out.
    """
    text = msgspec.json.encode(compile_).decode()
    text = text.replace('"file":"<cell>"', f'"file":"{cell_file(compile_.cell)}"')
    renamed = msgspec.json.decode(text, type=Compile)
    reasons = [msgspec.structs.replace(r, call_line=None) for r in renamed.recompile_reasons]
    return msgspec.structs.replace(renamed, call_line=None, recompile_reasons=reasons)


def _place_shape_guards(draft: Draft) -> None:
    draft.shape_guards = [
        ShapeGuard(expr=guard.expr, user_stack=stack, frame=innermost(stack))
        for guard in draft.shape_guards
        for stack in [draft.shape_guard_stacks.get(guard.expr, guard.user_stack)]
    ]
    draft.symbols = [
        msgspec.structs.replace(symbol, frame=draft.symbol_frames.get(symbol.name, symbol.frame))
        for symbol in draft.symbols
    ]
