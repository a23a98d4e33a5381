"""The distinct places where graphs broke."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from dynamo_nb.record.causes import cell_frame, own_compiles
from dynamo_nb.record.types import CellRecord, Compile, GraphBreak, StackFrame

__all__ = ["BreakPlace", "break_places"]

#: Files whose breaks are nobody's to mend: Python code that Dynamo traces in place of what is
#: written in C, and a notebook's `display`, which runs behind a break of its caller.
_NOT_MENDED = ("torch/_dynamo/polyfills/", "IPython/", "ipykernel/")


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
