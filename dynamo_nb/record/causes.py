"""Distinct causes: the places where graphs broke, and what led to each recompile.

Torch reports every occurrence; a person asks for causes. Both the summary and the findings start
from the groups made here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import (
    CELL,
    CellRecord,
    Compile,
    GraphBreak,
    RecompileReason,
    Specialization,
    StackFrame,
    Symbol,
)

__all__ = [
    "LIMIT_KINDS",
    "BreakPlace",
    "Change",
    "RecompileCause",
    "break_places",
    "cell_frame",
    "hit_recompile_limit",
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

#: Files whose breaks are nobody's to mend: Python code that Dynamo traces in place of what is
#: written in C, and a notebook's `display`, which runs behind a break of its caller.
_NOT_MENDED = ("torch/_dynamo/polyfills/", "IPython/", "ipykernel/")

#: Guards on what the call passes or runs under, not on a value that some line reads.
_CALL_KINDS = ("TENSOR_MATCH", "GLOBAL_STATE", "SHAPE_ENV", "DEFAULT_DEVICE", "TORCH_FUNCTION")


# ------------------------------------------------------------------ places


def cell_frame(frames: Iterable[StackFrame | None]) -> StackFrame | None:
    """Return the innermost frame that lies in the cell itself; `frames` are outermost first."""
    inside = [frame for frame in frames if frame is not None and frame.file == CELL]
    return inside[-1] if inside else None


def own_compiles(record: CellRecord) -> list[Compile]:
    """Return the compiles that this cell made, without the entries it only found."""
    return [compiled for compiled in record.compiles if compiled.cell is None]


class BreakPlace(Struct, frozen=True, kw_only=True):
    """One place where graphs broke. `breaks` are `(compile, index of the break)`, in time's order.

    `frame` is the exact place, `line` the cell's line that leads there (None outside the cell).
    """

    frame: StackFrame | None
    line: int | None
    count: int
    breaks: list[tuple[Compile, int]]

    @property
    def first(self) -> GraphBreak:
        """The break that was seen first, which has the whole stack."""
        compiled, index = self.breaks[0]
        return compiled.graph_breaks[index]


def _exact(graph_break: GraphBreak) -> StackFrame | None:
    return graph_break.user_stack[-1] if graph_break.user_stack else graph_break.frame


def _break_line(graph_break: GraphBreak) -> int | None:
    frame = cell_frame([graph_break.frame, *graph_break.user_stack])
    return frame.line if frame else None


def break_places(record: CellRecord) -> list[BreakPlace]:
    """Return the distinct places of graph breaks, in the order in which they were met.

    A break inside an inlined callee comes twice: Dynamo first gives up inlining, then compiles the
    callee as a frame of its own, which breaks at the same place. So occurrences are counted per
    depth of the stack, and the largest count is the place's. A compile that came to nothing has no
    graph that could break: its breaks tell why it was given up, see the finding `not-compiled`.
    """
    found: dict[tuple[str, int], list[tuple[Compile, int]]] = {}
    for compiled in own_compiles(record):
        if compiled.status != "ok" or compiled.file.startswith(_NOT_MENDED):
            continue
        for index, graph_break in enumerate(compiled.graph_breaks):
            frame = _exact(graph_break)
            place = (frame.file, frame.line) if frame else (compiled.file, compiled.first_line)
            found.setdefault(place, []).append((compiled, index))
    return [_break_place(breaks) for breaks in found.values()]


def _break_place(breaks: list[tuple[Compile, int]]) -> BreakPlace:
    items = [compiled.graph_breaks[index] for compiled, index in breaks]
    depths = Counter(len(item.user_stack) for item in items)
    lines = [line for line in map(_break_line, items) if line is not None]
    return BreakPlace(
        frame=_exact(items[0]),
        line=lines[0] if lines else None,
        count=max(depths.values()),
        breaks=breaks,
    )


# ------------------------------------------------------------------ recompiles


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
        for change in self.changes:
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
    causes = [_cause(changes) for changes in groups.values()]
    return sorted(causes, key=lambda cause: -len(cause.changes))


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


def _reasons_that_matter(compiled: Compile) -> list[int]:
    """Return the indices of the reasons against the entry most like this call.

    Torch names the failing guards of every earlier entry. The entry for which the fewest things
    changed is the one that nearly fitted; among equals the newest, so that values read in order.
    """
    against: dict[str, dict[str, int]] = {}
    for index, reason in enumerate(compiled.recompile_reasons):
        against.setdefault(reason.entry, {}).setdefault(_name(compiled, reason), index)
    if not against:
        return []
    nearest = min(against, key=lambda entry: (len(against[entry]), -_number(entry)))
    return list(against[nearest].values())


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

    A shape guard that failed is about a symbol that the earlier entry had already.
    """
    if reason.kind == "SHAPE_ENV":
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
