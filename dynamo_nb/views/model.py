"""What every view asks of a record: its functions, their lines, the places of its findings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from dynamo_nb.record.counts import counts
from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import (
    CELL,
    CellRecord,
    Compile,
    Finding,
    Frame,
    Graph,
    GraphBreak,
    Guard,
    Kernel,
    Node,
    RecompileReason,
    Ref,
    StackFrame,
)

__all__ = [
    "Function",
    "Report",
    "base_name",
    "call_nodes",
    "cell_line",
    "cell_lines",
    "direction_of",
    "final_breaks",
    "kernel_nodes",
    "main_reason",
    "reason_name",
    "resume_line",
    "stage",
]

_CALLS = frozenset({"call_function", "call_method", "call_module"})


class Function:
    """A compiled function of the user: all compiles of its frame and of its resume functions."""

    def __init__(self, first: Compile) -> None:
        self.name = base_name(first)
        self.file = first.file
        self.first_line = first.first_line
        self.compiles: list[Compile] = [first]

    @property
    def is_own(self) -> bool:
        """Whether this cell compiled any of it, rather than found it in the cache or gave it up."""
        return any(
            entry.cell is None and entry.seen == "whole" and entry.status == "ok"
            for entry in self.compiles
        )


class Report:
    """A record, with the questions that views ask of it answered once."""

    def __init__(self, record: CellRecord) -> None:
        self.record = record

    @cached_property
    def functions(self) -> list[Function]:
        """The compiled functions in the order of their first entry."""
        found: dict[tuple[str, str, int], Function] = {}
        compiles = self.record.compiles
        for entry in sorted(compiles, key=lambda entry: bool(entry.resume_of)):
            key = _resumed(entry, list(found)) or (entry.file, entry.name, entry.first_line)
            if key in found:
                found[key].compiles.append(entry)
            else:
                found[key] = Function(entry)
        for function in found.values():
            function.compiles.sort(key=compiles.index)
        return list(found.values())

    @cached_property
    def compiles(self) -> dict[str, Compile]:
        """The compiles by their key."""
        return {entry.key: entry for entry in self.record.compiles}

    @cached_property
    def own(self) -> list[Compile]:
        """The compiles that this cell made, without those it found in the cache."""
        return [entry for entry in self.record.compiles if entry.cell is None]

    @cached_property
    def counts(self) -> dict[str, int]:
        """What happened in this cell, in numbers, by noun."""
        return counts(self.record)

    @cached_property
    def uncompiled_frames(self) -> list[Frame]:
        """The cell's own frames that Dynamo did not compile, without those that a compile shows."""
        shown = {
            (entry.file, entry.name, entry.first_line)
            for entry in self.record.compiles
            if entry.status != "ok"
        }
        return [
            frame
            for frame in self.record.frames
            if frame.file == CELL
            and frame.outcome != "compiled"
            and frame.name != "<module>"
            and (frame.file, frame.name, frame.first_line) not in shown
        ]

    @cached_property
    def _named_lines(self) -> set[int]:
        findings = self.record.findings
        lines = {line for finding in findings for line in finding.lines}
        return lines | {finding.line for finding in findings if finding.line}

    def is_named(self, frame: StackFrame) -> bool:
        """Return whether a finding names this place of the cell."""
        return frame.file == CELL and frame.line in self._named_lines

    def place_of(self, finding: Finding) -> StackFrame | None:
        """Return the most exact place of a finding: one with columns, where its refs have one."""
        for ref in finding.refs:
            frame = self._frame_of(ref)
            if frame is not None and (
                finding.line is None or (frame.file, frame.line) == (CELL, finding.line)
            ):
                return frame
        if finding.frame is not None:
            return finding.frame
        return None if finding.line is None else StackFrame(file=CELL, line=finding.line)

    def _frame_of(self, ref: Ref) -> StackFrame | None:
        entry = self.compiles.get(ref.compile)
        if entry is None:
            return None
        if ref.artifact == "compile":
            return entry.error.frame if entry.error else None
        placed: dict[str, Sequence[GraphBreak | RecompileReason | Guard]] = {
            "break": entry.graph_breaks,
            "recompile": entry.recompile_reasons,
            "guard": entry.guards,
        }
        things = placed.get(ref.artifact, ())
        index = int(ref.key) if ref.key.isdecimal() else len(things)
        return things[index].frame if index < len(things) else None


def _resumed(entry: Compile, known: list[tuple[str, str, int]]) -> tuple[str, str, int] | None:
    """Return which of the known functions (file, name, first line) a resume function belongs to."""
    ending = f".{entry.resume_of}"
    return next(
        (
            key
            for key in reversed(known)
            if entry.resume_of and key[0] == entry.file and f".{key[1]}".endswith(ending)
        ),
        None,
    )


def base_name(entry: Compile) -> str:
    """Return the user's name of a function, also for torch's `torch_dynamo_resume_in_…`."""
    return entry.resume_of or entry.name or "?"


def stage(entry: Compile, *stages: str) -> list[Graph]:
    """Return a compile's graphs of those stages."""
    return [graph for graph in entry.graphs if graph.stage in stages]


def final_breaks(entry: Compile) -> list[GraphBreak]:
    """Return a compile's graph breaks, once each: a restarted attempt meets the same one again."""
    seen: dict[tuple[object, ...], GraphBreak] = {}
    for item in entry.graph_breaks:
        seen.setdefault((item.kind, item.reason, item.frame), item)
    return list(seen.values())


def repeatable(record: CellRecord) -> CellRecord:
    """Return a record without the findings that rest on measured times."""
    kept = [finding for finding in record.findings if not finding.measured]
    return replace(record, findings=kept)


def main_reason(entry: Compile) -> RecompileReason | None:
    """Return the reason that matters most: one against the entry that nearly fitted."""
    return entry.recompile_reasons[0] if entry.recompile_reasons else None


def reason_name(reason: RecompileReason) -> str:
    """Return what changed, as a person would write it: `x.dtype`, `len(history)`."""
    return reason.name or readable(reason.source) or reason.guard or reason.text


def call_nodes(graph: Graph) -> list[Node]:
    """Return the nodes that do something, without inputs, attributes and the output."""
    return [node for node in graph.nodes if node.op in _CALLS]


def cell_line(frames: list[StackFrame]) -> int | None:
    """Return the innermost line of the cell among frames that are listed outermost first."""
    return next((frame.line for frame in reversed(frames) if frame.file == CELL), None)


def cell_lines(nodes: list[Node]) -> set[int]:
    """Return the lines of the cell that nodes come from."""
    found = (cell_line(node.frames) for node in nodes)
    also = (frame.line for node in nodes for frame in node.also if frame.file == CELL)
    return {line for line in found if line is not None}.union(also)


def direction_of(graph: str) -> str:
    """Return the direction that a post-grad graph's name ends in; it may have none."""
    return graph.partition(".")[2]


def kernel_nodes(entry: Compile, kernel: Kernel) -> list[Node]:
    """Return the post-grad nodes that were fused into a kernel."""
    graph = entry.graph(kernel.graph)
    wanted = set(kernel.nodes)
    return [node for node in graph.nodes if node.name in wanted] if graph else []


def resume_line(entry: Compile) -> int | None:
    """Return the line at which a resume function goes on (torch writes it into the name)."""
    tail = entry.name.rsplit("_at_", 1)[-1].split("_")[0]
    return int(tail) if entry.resume_of and tail.isdigit() else None
