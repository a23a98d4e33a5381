"""The difference of two records: one function for each kind of thing, listed in `diff`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator

from dynamo_nb.record.break_places import BreakPlace, break_places
from dynamo_nb.record.causes import (
    RecompileCause,
    own_compiles,
    recompile_causes,
)
from dynamo_nb.record.counts import counts
from dynamo_nb.record.diff_graphs import graph_changes, kernel_changes, kernel_groups
from dynamo_nb.record.diff_links import counterparts
from dynamo_nb.record.diff_targets import target_changes, target_pairs
from dynamo_nb.record.difference import (
    BreakChange,
    FindingChange,
    GuardChange,
    LineChange,
    RecompileChange,
    RecordDiff,
    Side,
    TimeChange,
)
from dynamo_nb.record.matching import Match, paired, steady
from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import (
    CELL,
    CellRecord,
    Compile,
    Finding,
    Guard,
    Ref,
    StackFrame,
)

__all__ = ["diff"]

#: A place within a message: the same thing has another one in another cell.
_PLACE = re.compile(r" ?\(?\bline \d+(?: of cell \[\d+\])?\)?")


def diff(a: CellRecord, b: CellRecord) -> RecordDiff:
    """Return what is different in the record `b`, compared to `a`."""
    match = Match(a, b)
    kernels = kernel_groups(a, b, match)
    targets = target_pairs(a, b, match)
    return RecordDiff(
        before=side(a),
        after=side(b),
        source=list(_source(match)),
        findings=list(_findings(a, b, match)),
        breaks=list(_breaks(a, b, match)),
        recompiles=list(_recompiles(a, b)),
        graphs=graph_changes(match),
        guards=list(_guards(a, b)),
        kernels=kernel_changes(a, b, match, kernels),
        targets=target_changes(targets),
        times=_times(a, b),
        counterparts=counterparts(match, kernels, targets),
    )


def side(record: CellRecord) -> Side:
    """Return one of two records in short."""
    return Side(
        name=record.name,
        cell=record.cell,
        mode=record.mode,
        torch=record.versions.torch,
        device=record.device,
        options=record.options,
        counts=counts(record),
        error=record.error.type if record.error else "",
    )


def _source(match: Match) -> Iterator[LineChange]:
    lines = match.lines
    for tag, i, i_end, j, j_end in lines.blocks:
        if tag == "equal":
            for old, new in zip(range(i, i_end), range(j, j_end), strict=True):
                text = lines.after[new]
                yield LineChange(change="same", text=text, before=old + 1, after=new + 1)
            continue
        for old in range(i, i_end):
            yield LineChange(change="removed", text=lines.before[old], before=old + 1)
        for new in range(j, j_end):
            yield LineChange(change="added", text=lines.after[new], after=new + 1)


# ------------------------------------------------------------------ findings, breaks, recompiles


def _findings(a: CellRecord, b: CellRecord, match: Match) -> Iterator[FindingChange]:
    def at_line(finding: Finding, is_before: bool) -> Hashable:
        line = match.lines.now(finding.line) if is_before else finding.line
        return finding.code, line, finding.frame and finding.frame.file

    def alike(finding: Finding, _: bool) -> Hashable:
        return finding.code, _PLACE.sub("", finding.message)

    _, gone, new = paired(a.findings, b.findings, (at_line, alike))
    for change, findings in (("gone", gone), ("new", new)):
        for finding in findings:
            yield FindingChange(
                change=change,
                code=finding.code,
                severity=finding.severity,
                message=finding.message,
                line=finding.line,
            )


def _breaks(a: CellRecord, b: CellRecord, match: Match) -> Iterator[BreakChange]:
    def at_place(place: BreakPlace, is_before: bool) -> Hashable:
        return place.first.kind, match.place(place.frame, is_before)

    def alike(place: BreakPlace, _: bool) -> Hashable:
        """Say what broke; the same thing on a line that can't be found again is the same."""
        return place.first.kind, place.first.context, _function_of(place)

    _, gone, new = paired(break_places(a), break_places(b), (at_place, alike))
    for change, places in (("gone", gone), ("new", new)):
        for place in places:
            yield BreakChange(
                change=change,
                kind=place.first.kind,
                function=_function_of(place),
                line=place.line,
                place=_place(place.frame),
                count=place.count,
                **_at(change, [Ref(c.key, "break", str(index)) for c, index in place.breaks]),
            )


def _at(change: str, refs: list[Ref]) -> dict[str, list[Ref]]:
    """Return the addresses of what only one of the records has."""
    return {"refs_before" if change == "gone" else "refs_after": refs}


def _function_of(place: BreakPlace) -> str:
    return place.frame.name if place.frame and place.frame.name else _name(place.breaks[0][0])


def _place(frame: StackFrame | None) -> str:
    return f"{frame.file}:{frame.line}" if frame and frame.file != CELL else ""


def _recompiles(a: CellRecord, b: CellRecord) -> Iterator[RecompileChange]:
    def key(cause: RecompileCause, _: bool) -> Hashable:
        return cause.name, _name(cause.changes[0].compiled)

    def one(
        change: str, shown: RecompileCause, old: RecompileCause | None, now: RecompileCause | None
    ) -> RecompileChange:
        return RecompileChange(
            change=change,
            name=shown.name,
            function=_name(shown.changes[0].compiled),
            values=shown.values,
            line=shown.line,
            before=len(old.changes) if old else 0,
            after=len(now.changes) if now else 0,
            refs_before=_recompile_refs(old),
            refs_after=_recompile_refs(now),
        )

    pairs, gone, new = paired(recompile_causes(a), recompile_causes(b), (key,))
    for old, now in pairs:
        before, after = len(old.changes), len(now.changes)
        if before != after:
            yield one("fewer" if after < before else "more", now, old, now)
    yield from (one("gone", cause, cause, None) for cause in gone)
    yield from (one("new", cause, None, cause) for cause in new)


def _recompile_refs(cause: RecompileCause | None) -> list[Ref]:
    changes = cause.changes if cause else ()
    return [Ref(change.compiled.key, "recompile", str(change.index)) for change in changes]


# ------------------------------------------------------------------ guards and times


def _guards(a: CellRecord, b: CellRecord) -> Iterator[GuardChange]:
    """Yield the guards by function, kind and source: what one function assumes, in all entries."""
    before, after = _guards_by_source(a), _guards_by_source(b)
    for key in dict.fromkeys([*before, *after]):
        function, kind, source = key
        old, new = before.get(key, {}), after.get(key, {})
        was, now = _codes(old), _codes(new)
        if old and new and set(was) == set(now):
            continue
        frame = next((g.frame for g in [*new.values(), *old.values()] if g.frame), None)
        yield GuardChange(
            change="changed" if old and new else "added" if new else "removed",
            kind=kind,
            source=source,
            function=function,
            line=frame.line if frame and frame.file == CELL else None,
            before=[code for code in was if code not in now],
            after=[code for code in now if code not in was],
            refs_before=list(old),
            refs_after=list(new),
        )


def _guards_by_source(record: CellRecord) -> dict[tuple[str, str, str], dict[Ref, Guard]]:
    found: dict[tuple[str, str, str], dict[Ref, Guard]] = {}
    for entry in own_compiles(record):
        for index, guard in enumerate(entry.guards):
            key = (_name(entry), guard.kind, readable(steady(guard.source)))
            found.setdefault(key, {})[Ref(entry.key, "guard", str(index))] = guard
    return found


def _codes(guards: dict[Ref, Guard]) -> list[str]:
    codes = (steady(code) for guard in guards.values() for code in guard.code)
    return list(dict.fromkeys(codes))


def _times(a: CellRecord, b: CellRecord) -> list[TimeChange]:
    before, after = _seconds(a), _seconds(b)
    return [
        TimeChange(stage=name, before=before.get(name, 0.0), after=after.get(name, 0.0))
        for name in list(dict.fromkeys([*before, *after]))
    ]


def _seconds(record: CellRecord) -> dict[str, float]:
    """Return the time of each stage over all compiles, and that of the whole cell as `cell`."""
    seconds: dict[str, float] = defaultdict(float)
    seconds["cell"] += record.metrics.get("seconds", 0.0)
    for entry in own_compiles(record):
        for stage in entry.stages:
            seconds[stage.name] += stage.seconds
    return seconds


def _name(entry: Compile) -> str:
    return entry.resume_of or entry.name
