"""The CSS classes that tie things to source lines.

Whatever belongs to a line carries the line's class; a rule per line then marks all of them when
one is pointed at. Class names are made of numbers only, never of text from the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from dynamo_nb.record.definitions import defined_lines
from dynamo_nb.record.types import CELL, CellRecord, Compile, Kernel, Node, StackFrame
from dynamo_nb.views.model import cell_lines, kernel_nodes

__all__ = ["Marks", "frames_of"]

_OUTER = 6  # frames of a deep stack that are marked, the innermost first


class Marks:
    """The classes of the source lines that something belongs to, at most `limit` of them."""

    def __init__(self, record: CellRecord, limit: int) -> None:
        numbers = {file: index for index, file in enumerate(record.files, 1)}
        self._classes: dict[tuple[str, int], str] = {}
        placed = [frame for entry in record.compiles for frame in frames_of(entry)]
        placed += [
            StackFrame(file=CELL, line=line)
            for finding in record.findings
            for line in ([finding.line] if finding.line else []) + finding.lines
        ]
        placed += [StackFrame(file=CELL, line=call.line) for call in record.calls]
        self.lines: dict[str, set[int]] = {}
        for frame in sorted(placed, key=lambda frame: frame.file != CELL):
            if frame.file != CELL and frame.file not in numbers:
                continue
            self.lines.setdefault(frame.file, set()).add(frame.line)
            if len(self._classes) < limit:
                prefix = "l" if frame.file == CELL else f"f{numbers[frame.file]}l"
                self._classes.setdefault((frame.file, frame.line), f"{prefix}{frame.line}")

    def of(self, *frames: StackFrame | None) -> str:
        """Return the classes of the lines of these frames, separated by blanks."""
        found = (self._classes.get((frame.file, frame.line)) for frame in reversed(frames) if frame)
        classes = dict.fromkeys(name for name in found if name)
        return " ".join(list(classes)[:_OUTER])

    def of_node(self, node: Node, entry: Compile) -> str:
        """Return the classes of a node: of the call's line too where no frame is in the cell."""
        frames = [*node.also, *node.frames]
        if entry.call_line and all(frame.file != CELL for frame in frames):
            frames = [StackFrame(file=CELL, line=entry.call_line), *frames[1 - _OUTER :]]
        return self.of(*frames)

    def of_kernels(self, entry: Compile, *kernels: Kernel) -> str:
        """Return the classes of the cell's lines that kernels come from, else of the call's."""
        lines = {line for kernel in kernels for line in cell_lines(kernel_nodes(entry, kernel))}
        written = (self.of(frame) for kernel in kernels for _, frame in defined_lines(kernel))
        return " ".join(
            dict.fromkeys(
                filter(None, [self.of_lines(sorted(lines) or [entry.call_line]), *written])
            )
        )

    def of_lines(self, lines: Sequence[int] | Sequence[int | None]) -> str:
        """Return the classes of lines of the cell."""
        return self.of(*(StackFrame(file=CELL, line=line) for line in lines if line))

    @property
    def classes(self) -> list[str]:
        """All classes, for the rules."""
        return list(self._classes.values())


class _Placed(Protocol):
    """What belongs to a place in source code."""

    @property
    def frame(self) -> StackFrame | None: ...


def frames_of(entry: Compile) -> Iterable[StackFrame]:
    """Yield every place in source code that something of a compile belongs to."""
    for graph in entry.graphs:
        for node in graph.nodes:
            yield from node.frames[-_OUTER:]
    targets = (kernel for target in entry.targets for kernel in target.kernels)
    for kernel in (*entry.kernels, *targets):
        yield from (frame for _, frame in defined_lines(kernel))
    kinds: tuple[Sequence[_Placed], ...] = (
        entry.guards,
        entry.shape_guards,
        entry.symbols,
        entry.graph_breaks,
        entry.recompile_reasons,
        entry.passes,
        *(item.rows for item in entry.passes),
    )
    for things in kinds:
        yield from (thing.frame for thing in things if thing.frame)
    if entry.call_line and entry.cell is None:
        yield StackFrame(file=CELL, line=entry.call_line)
    if entry.error and entry.error.frame:
        yield entry.error.frame
