"""Guards of a record, chosen by what they guard and by the line that made them."""

from __future__ import annotations

import re

from dynamo_nb.record.naming import guarded_through, readable
from dynamo_nb.record.types import CELL, CellRecord, Guard, ShapeGuard, StackFrame, Symbol

__all__ = ["guards", "reader", "shape_reader"]

_NAMES = re.compile(r"[A-Za-z_]\w*")

#: What may follow a source in the name of something that is reached through it.
_ONWARDS = (".", "[", "(")


def guards(
    record: CellRecord, source: str | None = None, line: int | None = None
) -> list[tuple[str, Guard]]:
    """Return the guards of all compiles with their compile's key; see `CellRecord.guards`."""
    return [
        (compiled.key, guard)
        for compiled in record.compiles
        for guard in compiled.guards
        if (source is None or _is_on(guard, source)) and (line is None or _is_from(guard, line))
    ]


def reader(made: list[Guard], source: str) -> StackFrame | None:
    """Return the line that made an entry guard on a source: the one that reads it."""
    wanted = (source, guarded_through(source))
    frames = [guard.frame for guard in made if guard.source in wanted and guard.frame is not None]
    return frames[-1] if frames and source else None


def shape_reader(
    symbols: list[Symbol], conditions: list[ShapeGuard], source: str
) -> StackFrame | None:
    """Return the line that made an entry assume something of a size: the first to ask."""
    names = {symbol.name for symbol in symbols if source in symbol.sources}
    frames = [c.frame for c in conditions if names & set(_NAMES.findall(c.expr)) and c.frame]
    return frames[0] if frames else None


def _is_on(guard: Guard, source: str) -> bool:
    names = {name for name in (guard.source, guard.origin) if name}
    return any(
        name == source or name.startswith(tuple(source + mark for mark in _ONWARDS))
        for name in names | {readable(name) for name in names}
    )


def _is_from(guard: Guard, line: int) -> bool:
    frames = guard.user_stack or ([guard.frame] if guard.frame else [])
    return any(frame.file == CELL and frame.line == line for frame in frames)
