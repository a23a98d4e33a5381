"""Recompiles: one finding per thing that changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dynamo_nb.findings.recompile_advice import (
    BACKEND,
    INVALIDATED,
    dynamic_advice,
    recompile_advice,
)
from dynamo_nb.findings.size_conditions import condition
from dynamo_nb.findings.sources import (
    assigned_only_in_init,
    def_line,
    enclosing_function,
    mutation_line,
    parse,
    reading_line,
)
from dynamo_nb.findings.wording import cell_lines, chain, function, names
from dynamo_nb.record.causes import (
    RecompileCause,
    hit_recompile_limit,
    own_compiles,
    recompile_causes,
)
from dynamo_nb.record.types import CELL, CellRecord, Compile, Finding, Ref, StackFrame

__all__ = ["became_dynamic", "recompile", "recompile_limit", "self_invalidating_guard"]


def recompile(record: CellRecord) -> Iterator[Finding]:
    """A call found no entry that fits, because of this, and compiled again.

    Not reported for what a call passes and the new entry has a symbol for: more values of it fit
    from then on. A closure's, a module's or an object's value is a constant in the code's eyes, so
    that it changed is worth knowing even then.
    """
    for causes in _together(record):
        first = causes[0]
        if first.specialization is not None and first.specialization.frame is not None:
            continue  # said by `specialized-dim`, which knows the line
        if first.symbol is None or not _is_passed(first):
            is_news = first.symbol is None and first.first.kind != BACKEND
            severity = "warning" if is_news else "info"
            message = _recompile_message(record, causes)
            advice = _advice(record, first) if first.symbol is None else dynamic_advice(first)
            found = condition(record, first)
            line = found.line if found else _reading_line(record, first)
            yield _finding(causes, "recompile", severity, message, advice, line)


def became_dynamic(record: CellRecord) -> Iterator[Finding]:
    """What a call passes changed, and the new entry has a symbol for it.

    Of other values `recompile` tells, and that they became dynamic.
    """
    for causes in _together(record):
        first = causes[0]
        if first.symbol is not None and _is_passed(first):
            message = (
                f"{names([cause.name for cause in causes])} changed ({chain(first.values)}) and "
                f"became dynamic: the new entry of `{_function(first)}` fits other values too."
            )
            yield _finding(causes, "became-dynamic", "info", message, dynamic_advice(first))


def self_invalidating_guard(record: CellRecord) -> Iterator[Finding]:
    """The function changes what it is guarded on, so that its next call can't reuse the entry."""
    for cause in recompile_causes(record):
        line = _mutation_line(record, cause) if cause.symbol is None else None
        if line is not None:
            message = (
                f"`{_function(cause)}` changes `{cause.name}`, on which its own entries are "
                "guarded: the next call finds that none fits."
            )
            changed = _changing(cause.name)
            advice = (
                f"Return the value and change `{changed}` outside of the "
                "compiled function, or keep it in a tensor."
            )
            yield _finding([cause], "self-invalidating-guard", "warning", message, advice, line)


def recompile_limit(record: CellRecord) -> Iterator[Finding]:
    """Dynamo gave a code object up, because it has too many entries."""
    refused: dict[tuple[str, str, int], list[Compile]] = {}
    for compiled in own_compiles(record):
        if hit_recompile_limit(compiled):
            key = compiled.name, compiled.file, compiled.first_line
            refused.setdefault(key, []).append(compiled)
    for compiles in refused.values():
        yield _limit_finding(record, compiles)


def _limit_finding(record: CellRecord, compiles: list[Compile]) -> Finding:
    first = compiles[0]
    start = def_line(record, first)
    frames = [reason.frame for reason in first.recompile_reasons]
    causes = [frame.line for frame in frames if frame is not None and frame.file == CELL]
    return Finding(
        code="recompile-limit",
        severity="warning",
        message=(
            f"`{function(first.name)}` reached torch's recompile limit: from then on, calls that "
            "fit none of its entries run eagerly."
        ),
        advice=(
            "Remove the cause of the recompiles. If all of these entries are needed, raise "
            "torch._dynamo.config.recompile_limit."
        ),
        line=start or first.call_line,
        lines=cell_lines(start, *(c.call_line for c in compiles), *causes),
        count=len(compiles),
        refs=[Ref(c.key, "compile", "") for c in compiles],
    )


def _together(record: CellRecord) -> list[list[RecompileCause]]:
    """Return the causes, those together that led to the very same recompiles in the same way.

    A batch that grows changes a dozen tensors at once; that is one thing to know.
    """
    groups: dict[tuple[object, ...], list[RecompileCause]] = {}
    for cause in recompile_causes(record):
        compiles = tuple(change.compiled.key for change in cause.changes)
        specialized = cause.specialization.frame if cause.specialization else None
        key: tuple[object, ...] = (
            compiles,
            cause.line,
            tuple(cause.values),
            cause.symbol is None,
            specialized,
        )
        if cause.first.kind == BACKEND:  # what follows a graph break is compiled again, too
            key = (BACKEND, _function(cause), *cause.call_lines)
        groups.setdefault(key, []).append(cause)
    return list(groups.values())


def _finding(
    causes: list[RecompileCause],
    code: str,
    severity: str,
    message: str,
    advice: str,
    line: int | None = None,
) -> Finding:
    first = causes[0]
    return Finding(
        code=code,
        severity=severity,
        message=message,
        advice=advice,
        line=line or first.line,
        lines=cell_lines(line, *(c.line for c in causes), *first.call_lines),
        count=1 if first.first.kind == BACKEND else len(first.changes),
        frame=first.frame if line is None or _is_at(first.frame, line) else _at(line),
        refs=[
            Ref(change.compiled.key, "recompile", str(change.index))
            for cause in causes
            for change in cause.changes
        ],
    )


def _is_at(frame: StackFrame | None, line: int) -> bool:
    return frame is not None and (frame.file, frame.line) == (CELL, line)


def _at(line: int) -> StackFrame:
    return StackFrame(file=CELL, line=line)


def _function(cause: RecompileCause) -> str:
    return function(cause.changes[0].compiled.name)


def _is_passed(cause: RecompileCause) -> bool:
    """Tell whether the call passes what changed: an argument, an item or a size of one."""
    return _ARGUMENT.fullmatch(cause.first.source) is not None


def _mutation_line(record: CellRecord, cause: RecompileCause) -> int | None:
    """Return the cell's line on which the function that reads a value changes it."""
    tree = parse(record, CELL) if cause.frame and cause.frame.file == CELL else None
    reader = enclosing_function(tree, cause.frame.line) if tree and cause.frame else None
    return mutation_line(reader, _changing(cause.name)) if reader else None


def _changing(name: str) -> str:
    """Return the expression that code changes when what bears this name changes."""
    asked = next((found for pattern in _ASKED if (found := pattern.match(name))), None)
    if asked is None:
        return name.partition(" (")[0]
    return ".".join(part for part in (asked["owner"], asked.groupdict().get("item")) if part)


def _reading_line(record: CellRecord, cause: RecompileCause) -> int | None:
    """Return the cell's line that reads a value, where the known one only asks if it is None."""
    tree = parse(record, CELL) if cause.frame and cause.frame.file == CELL else None
    reader = enclosing_function(tree, cause.frame.line) if tree and cause.frame else None
    if reader is None or cause.frame is None or "None" in cause.values:
        return None
    return reading_line(reader, cause.name, cause.frame.line)


def _differs_between_objects(record: CellRecord, cause: RecompileCause) -> bool:
    """Tell whether an attribute is each object's own and for good: set in `__init__` alone."""
    owner, _, attribute = cause.name.partition(".")
    if owner != "self" or not attribute.isidentifier() or cause.frame is None:
        return False
    tree = parse(record, cause.frame.file)
    return tree is not None and assigned_only_in_init(tree, cause.frame.line, attribute)


def _calls(record: CellRecord, cause: RecompileCause) -> int:
    """Return how often the cell's lines that led to the recompiles called the function."""
    name = cause.changes[0].compiled.name
    rows = [call for call in record.calls if call.line in cause.call_lines and call.name == name]
    return sum(len(row.compiles) + sum(row.hits.values()) for row in rows) + sum(
        max(0, row.eager - sum(key in _skipped(record) for key in row.compiles)) for row in rows
    )


def _skipped(record: CellRecord) -> set[str]:
    return {compiled.key for compiled in record.compiles if compiled.status == "skipped"}


def _recompile_message(record: CellRecord, causes: list[RecompileCause]) -> str:
    first = causes[0]
    what = names([cause.name for cause in causes])
    values = f" ({chain(first.values)})" if first.values else ""
    start = f"`{_function(first)}` was compiled again because {what}"
    if first.first.kind == INVALIDATED:
        return (
            f"`{_function(first)}` was compiled again because an object that an entry is guarded "
            f"on is gone ({first.first.text})."
        )
    if first.first.kind == BACKEND:
        return (
            f"`{_function(first)}` was compiled again for another backend "
            f"({chain(first.values)}): each backend has entries of its own."
        )
    if _differs_between_objects(record, first):
        return (
            f"{start} differs between the objects that share its code{values}, "
            f"in {_calls(record, first)} calls."
        )
    ending = "; it became dynamic: the new entry fits other values too" if first.symbol else ""
    found = condition(record, first)
    return f"{start} changed{values}{f': {found.text}' if found else ending}."


def _advice(record: CellRecord, cause: RecompileCause) -> str:
    found = condition(record, cause)
    advice = found.advice if found else recompile_advice(cause)
    if _differs_between_objects(record, cause):
        advice += (
            " Or give each object entries of its own with "
            "torch.compile(..., isolate_recompiles=True)."
        )
    return advice


#: Sources that start from a local variable and go through items, sizes and strides alone.
#: A NumPy array is wrapped in a tensor.
_ARGUMENT = re.compile(
    r"(?:___from_numpy\()?L\['\w+'\](?:\[[^\]]+\])*\)?(?:\.(?:size|stride)\(\)\[\d+\])?"
)

#: Names of what is asked of a value: its length, an attribute or a key that it may have.
_ASKED = (
    re.compile(r"len\((?P<owner>.+?)(?: \(.+\))?\)$"),
    re.compile(r"hasattr\((?P<owner>.+), '(?P<item>\w+)'\)$"),
    re.compile(r".+ in (?P<owner>[\w.\[\]']+)$"),
)
