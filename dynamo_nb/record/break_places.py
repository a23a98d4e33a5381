"""The distinct places where graphs broke."""

from __future__ import annotations

from collections import Counter
from itertools import starmap

from msgspec import Struct

from dynamo_nb.record.causes import cell_frame, own_compiles
from dynamo_nb.record.places import is_standard_library
from dynamo_nb.record.types import CELL, CellRecord, Compile, GraphBreak, StackFrame

__all__ = ["BreakPlace", "break_places"]

#: Files whose breaks are nobody's to mend: Python code that Dynamo traces in place of what is
#: written in C, and a notebook's `display`, which runs behind a break of its caller.
_POLYFILLS = "torch/_dynamo/polyfills/"
_NOT_MENDED = (_POLYFILLS, "IPython/", "ipykernel/")


class BreakPlace(Struct, frozen=True, kw_only=True):
    """One place where graphs broke. `breaks` are `(compile, index of the break)`, in time's order.

    `frame` is the exact place, `line` the cell's line that leads there (None outside the cell).
    Inside Python's own library there is nothing to mend: there `frame` is the place that calls it,
    and `inside` has the exact ones.
    """

    frame: StackFrame | None
    line: int | None
    count: int
    breaks: list[tuple[Compile, int]]
    inside: list[StackFrame] = []

    @property
    def first(self) -> GraphBreak:
        """The break that was seen first, which has the whole stack."""
        compiled, index = self.breaks[0]
        return compiled.graph_breaks[index]


def _exact(graph_break: GraphBreak) -> StackFrame | None:
    return graph_break.user_stack[-1] if graph_break.user_stack else graph_break.frame


def _calling(compiled: Compile, graph_break: GraphBreak) -> StackFrame | None:
    """Return the innermost place that is somebody's to mend, the exact one where there is none."""
    call = [StackFrame(file=CELL, line=compiled.call_line)] if compiled.call_line else []
    exact = _exact(graph_break)
    stack = [*call, *compiled.user_stack, *graph_break.user_stack, *([exact] if exact else [])]
    return next((frame for frame in reversed(stack) if not _is_inside(frame)), exact)


def _is_inside(frame: StackFrame) -> bool:
    """Tell whether a place is inside what Python brings, or what Dynamo traces in place of that."""
    return is_standard_library(frame.file) or frame.file.startswith(_POLYFILLS)


def _break_line(compiled: Compile, graph_break: GraphBreak) -> int | None:
    stack = [graph_break.frame, *graph_break.user_stack]
    exact = _exact(graph_break)
    is_library = exact is not None and _is_inside(exact)
    frame = cell_frame([*([_calling(compiled, graph_break)] if is_library else []), *stack])
    return frame.line if frame else None


def break_places(record: CellRecord) -> list[BreakPlace]:
    """Return the distinct places of graph breaks, in the order in which they were met.

    A break inside an inlined callee comes twice: Dynamo first gives up inlining, then compiles the
    callee as a frame of its own, which breaks at the same place. So occurrences are counted per
    depth of the stack, and the largest count is the place's. A compile that came to nothing has no
    graph that could break: its breaks tell why it was given up, see the finding `not-compiled`.
    """
    found: dict[tuple[str, int], list[tuple[Compile, int]]] = {}
    called_from: dict[StackFrame, tuple[str, int]] = {}
    for compiled in own_compiles(record):
        if compiled.status != "ok" or compiled.file.startswith(_NOT_MENDED):
            continue
        for index, graph_break in enumerate(compiled.graph_breaks):
            frame = _calling(compiled, graph_break)
            place = (frame.file, frame.line) if frame else (compiled.file, compiled.first_line)
            exact = _exact(graph_break)
            if exact is not None and frame is exact:  # nothing tells who called it, but for before
                place = called_from.get(exact, place)
            elif exact is not None:
                called_from[exact] = place
            found.setdefault(place, []).append((compiled, index))
    return [_break_place(breaks) for breaks in found.values()]


def _break_place(breaks: list[tuple[Compile, int]]) -> BreakPlace:
    items = [(compiled, compiled.graph_breaks[index]) for compiled, index in breaks]
    exact = [_exact(item) for _, item in items]
    depths = Counter(
        (frame and (frame.file, frame.line), len(item.user_stack))
        for frame, (_, item) in zip(exact, items, strict=True)
    )
    lines = [line for line in starmap(_break_line, items) if line is not None]
    inside = {(f.file, f.line): f for f in exact if f is not None and _is_inside(f)}
    return BreakPlace(
        frame=_calling(*items[0]),
        line=lines[0] if lines else None,
        count=max(depths.values()),
        breaks=breaks,
        inside=list(inside.values()),
    )
