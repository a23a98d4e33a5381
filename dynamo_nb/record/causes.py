"""Distinct causes: what led to each recompile.

Torch reports every occurrence; a person asks for causes. Both the summary and the findings start
from the groups made here, and from `break_places`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import (
    CELL,
    CellRecord,
    Compile,
    RecompileReason,
    Specialization,
    StackFrame,
    Symbol,
)

__all__ = [
    "LIMIT_KINDS",
    "Change",
    "RecompileCause",
    "cell_frame",
    "hit_recompile_limit",
    "nearest_first",
    "own_compiles",
    "recompile_causes",
    "recompiles",
]

#: What torch calls the end of a compile that was one too many, as `gb_type` or exception.
LIMIT_KINDS = (
    "Dynamo recompile limit exceeded",
    "FailOnRecompileLimitHit",
    "RecompileLimitExceeded",
)

#: A symbol's range as torch writes it: `VR[2, int_oo]`.
_RANGE = re.compile(r"VR\[([^,]+), ([^,]+)\]")

#: Guards on what the call passes or runs under, not on a value that some line reads.
_CALL_KINDS = ("TENSOR_MATCH", "GLOBAL_STATE", "SHAPE_ENV", "DEFAULT_DEVICE", "TORCH_FUNCTION")


def cell_frame(frames: Iterable[StackFrame | None]) -> StackFrame | None:
    """Return the innermost frame that lies in the cell itself; `frames` are outermost first."""
    inside = [frame for frame in frames if frame is not None and frame.file == CELL]
    return inside[-1] if inside else None


def own_compiles(record: CellRecord) -> list[Compile]:
    """Return the compiles that this cell made, without the entries it only found."""
    return [compiled for compiled in record.compiles if compiled.cell is None]


def hit_recompile_limit(compiled: Compile) -> bool:
    """Tell whether this compile was refused because the code object has too many entries."""
    error = compiled.error
    texts = (
        (compiled.reason, error.type, error.kind, error.message) if error else (compiled.reason,)
    )
    return compiled.status != "ok" and any(
        kind in text for kind in LIMIT_KINDS for text in texts if text
    )


def recompiles(record: CellRecord) -> list[Compile]:
    """Return the compiles of a code object beyond its first.

    A compile id counts a code object's compiles after the slash. One that the recompile limit
    refused is none.
    """
    return [
        compiled
        for compiled in own_compiles(record)
        if not compiled.compile_id.endswith("/0") and not hit_recompile_limit(compiled)
    ]


class Change(Struct, frozen=True, kw_only=True):
    """One recompile for one cause: which compile, and the index of its reason."""

    compiled: Compile
    index: int

    @property
    def reason(self) -> RecompileReason:
        """The reason itself."""
        return self.compiled.recompile_reasons[self.index]


class RecompileCause(Struct, frozen=True, kw_only=True):
    """One thing that changed, and all the recompiles that it led to, in time's order.

    `name` is what changed as a person would write it (`x.dtype`, `len(history)`). `symbol` is what
    stands for it in the new entry, when it became dynamic; `specialization` tells that it was to
    become so, and that a line made it a constant again, when it is a size.
    """

    name: str
    changes: list[Change]
    symbol: Symbol | None = None
    specialization: Specialization | None = None

    @property
    def first(self) -> RecompileReason:
        """The reason of the first recompile."""
        return self.changes[0].reason

    @property
    def frame(self) -> StackFrame | None:
        """The line that reads what changed; None where the call itself decides."""
        return None if self.first.kind.startswith(_CALL_KINDS) else self.first.frame

    @property
    def call_lines(self) -> list[int]:
        """The cell's lines that made the calls."""
        return sorted({c.reason.call_line for c in self.changes if c.reason.call_line is not None})

    @property
    def line(self) -> int | None:
        """Where to look first in the cell."""
        frame = self.frame
        if frame is not None and frame.file == CELL:
            return frame.line
        return self.first.call_line

    @property
    def values(self) -> list[str]:
        """The values in order, one more than there are recompiles when each follows the last."""
        values = [self.first.was]
        first = _code_object(self.changes[0].compiled)
        for change in self.changes:
            if _code_object(change.compiled) != first:
                continue  # a resume function, compiled again for the same values
            if change.reason.was != values[-1] and change.reason.was not in values:
                values.append(change.reason.was)
            values.append(change.reason.now)
        return [value for value in values if value]


def recompile_causes(record: CellRecord) -> list[RecompileCause]:
    """Return what changed and so led to recompiles, the most frequent first."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for compiled in recompiles(record):
        for index in _reasons_that_matter(compiled):
            reason = compiled.recompile_reasons[index]
            key = (_code_object(compiled), _name(compiled, reason), *_outcome(compiled, reason))
            groups.setdefault(key, []).append(Change(compiled=compiled, index=index))
    causes = _with_resumed(record, [_cause(changes) for changes in groups.values()])
    return sorted(causes, key=lambda cause: -len(cause.changes))


def _with_resumed(record: CellRecord, causes: list[RecompileCause]) -> list[RecompileCause]:
    """Return the causes, those of a function and of its resume functions as one.

    What follows a graph break is compiled again for the same change of the same value.
    """
    merged: dict[tuple[object, ...], RecompileCause] = {}
    for cause in causes:
        specialized = cause.specialization.frame if cause.specialization else None
        key = (
            _started_as(record, cause.changes[0].compiled),
            cause.name,
            tuple(cause.values),
            cause.symbol is None,
            specialized,
        )
        known = merged.get(key)
        changes = [*known.changes, *cause.changes] if known else cause.changes
        merged[key] = replace(known or cause, changes=changes)
    return list(merged.values())


def _started_as(record: CellRecord, compiled: Compile) -> str:
    """Return the code object that a resume function continues, its own for any other."""
    same = (compiled.resume_of, compiled.file, compiled.generation)
    begun = (
        _code_object(entry)
        for entry in own_compiles(record)
        if compiled.resume_of and (entry.name, entry.file, entry.generation) == same
    )
    return next(begun, _code_object(compiled))


def _cause(changes: list[Change]) -> RecompileCause:
    first = changes[0]
    symbol = _new_symbol(first.compiled, first.reason)
    specialization = _specialization(first.compiled, symbol)
    return RecompileCause(
        name=_name(first.compiled, first.reason),
        changes=changes,
        symbol=None if specialization else symbol,
        specialization=specialization if specialization and _is_size(specialization) else None,
    )


def _outcome(compiled: Compile, reason: RecompileReason) -> tuple[str, ...]:
    """Return what tells causes of one name apart: the new entry's symbol, and what became of it."""
    symbol = _new_symbol(compiled, reason)
    specialization = _specialization(compiled, symbol)
    if specialization is None:
        return symbol.name if symbol else "", ""
    frame = specialization.frame if _is_size(specialization) else None
    return "", f"{frame.file}:{frame.line}" if frame else ""


def _specialization(compiled: Compile, symbol: Symbol | None) -> Specialization | None:
    """Return the specialization of a symbol in its entry, None when it stayed dynamic."""
    found = (item for item in compiled.specializations if symbol and item.symbol == symbol.name)
    return next(found, None) if symbol is not None and not _is_open(symbol) else None


def _is_open(symbol: Symbol) -> bool:
    """Tell whether a symbol's range has more than one value in the finished entry."""
    bounds = _RANGE.fullmatch(symbol.range)
    return bounds is not None and bounds[1] != bounds[2]


def _is_size(specialization: Specialization) -> bool:
    return any(".size()[" in source for source in specialization.sources)


def _code_object(compiled: Compile) -> str:
    return f"{compiled.generation}:{compiled.compile_id.partition('/')[0]}"


def _number(entry: str) -> int:
    tail = entry.partition("@")[0].rpartition("/")[2]
    return int(tail) if tail.isdigit() else -1


def nearest_first(compiled: Compile) -> list[RecompileReason]:
    """Return the reasons, those against the entry most like the call first.

    Torch names the failing guards of every earlier entry. The entry for which the fewest things
    changed is the one that nearly fitted; among equals the newest, so that values read in order.
    Where a type changed, all that is guarded below it could not be compared: that counts most.
    """
    against: dict[str, set[str]] = {}
    for reason in compiled.recompile_reasons:
        against.setdefault(reason.entry, set()).add(_name(compiled, reason))

    def distance(reason: RecompileReason) -> tuple[int, int, int]:
        names = against[reason.entry]
        return sum(map(_is_type, names)), len(names), -_number(reason.entry)

    return sorted(compiled.recompile_reasons, key=distance)


def _reasons_that_matter(compiled: Compile) -> list[int]:
    """Return the indices of the reasons against the entry that nearly fitted, one for a name."""
    found: dict[str, int] = {}
    nearest = [reason.entry for reason in nearest_first(compiled)][:1]
    for index, reason in enumerate(compiled.recompile_reasons):
        if reason.entry in nearest:
            found.setdefault(_name(compiled, reason), index)
    return list(found.values())


def _is_type(name: str) -> bool:
    return name.startswith("type(")


def _name(compiled: Compile, reason: RecompileReason) -> str:
    """Return what changed, for a person.

    In the wrapper through which torch compiles its own modules, the model is `fn`.
    """
    name = reason.name or readable(reason.source) or reason.guard or reason.text
    if compiled.file.endswith("external_utils.py") and reason.source.startswith("L['fn']"):
        return re.sub(r"\bfn\b", compiled.name, name, count=1)
    return name


def _new_symbol(compiled: Compile, reason: RecompileReason) -> Symbol | None:
    """Return the symbol that the new entry has for what was a constant to the earlier one.

    A shape guard that failed is about a symbol that the earlier entry had already; that an integer
    was passed in place of a tensor is no other value of it.
    """
    if reason.kind == "SHAPE_ENV" or _is_type(reason.name):
        return None
    return next(
        (
            symbol
            for symbol in compiled.symbols
            for source in symbol.sources
            if source == reason.source or readable(source) == reason.name
        ),
        None,
    )
