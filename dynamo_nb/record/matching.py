"""What in one record corresponds to what in another: source lines, compiles, graphs, nodes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

from dynamo_nb.record.causes import cell_frame, own_compiles
from dynamo_nb.record.types import CELL, CellRecord, Compile, Graph, Node, StackFrame

__all__ = ["Lines", "Match", "NodeAt", "NodePair", "paired", "steady"]

T = TypeVar("T")

#: How alike two texts must be for one to count as the other, edited.
_ALIKE = 0.6

#: What a guard holds that is another in each process, or that only numbers things.
_VARYING = re.compile(r"\b\d{6,}\b|0x[0-9a-f]+|(?<=__builtins_dict___)\d+|(?<=___stack)\d+")

_RESUME_LINE = re.compile(r"^torch_dynamo_resume_in_.+_at_(\d+)$")


class Lines:
    """The lines of one cell's source that stand for lines of another's."""

    def __init__(self, before: str, after: str) -> None:
        self.before = before.splitlines()
        self.after = after.splitlines()

    @cached_property
    def blocks(self) -> Sequence[tuple[str, int, int, int, int]]:
        """The edits that lead from the one to the other, as `difflib` has them."""
        matcher = difflib.SequenceMatcher(None, self.before, self.after, autojunk=False)
        return matcher.get_opcodes()

    @cached_property
    def _numbers(self) -> dict[int, int]:
        numbers: dict[int, int] = {}
        for tag, i, i_end, j, j_end in self.blocks:
            if tag == "equal":
                numbers.update(zip(range(i + 1, i_end + 1), range(j + 1, j_end + 1), strict=True))
            elif tag == "replace":
                numbers.update(self._edited(range(i, i_end), range(j, j_end)))
        return numbers

    def _edited(self, old: range, new: range) -> Iterable[tuple[int, int]]:
        """Yield the numbers of lines that were edited: alike, and in the same order."""
        start = new.start
        for i in old:
            for j in range(start, new.stop):
                ratio = difflib.SequenceMatcher(None, self.before[i], self.after[j]).ratio()
                if ratio >= _ALIKE:
                    yield i + 1, j + 1
                    start = j + 1
                    break

    @property
    def pairs(self) -> Iterable[tuple[int, int]]:
        """The numbers of the lines that correspond."""
        return self._numbers.items()

    def now(self, line: int | None) -> int | None:
        """Return the number that a line of the first source has in the second, if it has one."""
        return self._numbers.get(line) if line is not None else None


def steady(text: str) -> str:
    """Return a guard's source or code without what is another in each process."""
    return _VARYING.sub("…", text)


def paired(
    before: Sequence[T], after: Sequence[T], keys: Sequence[Callable[[T, bool], Hashable]]
) -> tuple[list[tuple[T, T]], list[T], list[T]]:
    """Return the pairs of things with equal keys, and what is left over on both sides.

    Several keys are tried one after the other, the strictest first. Things with the same key are
    paired in order. A key is told on which side the thing is: True for the first.
    """
    pairs: list[tuple[int, int]] = []
    old, new = list(range(len(before))), list(range(len(after)))
    for key in keys:
        waiting: dict[Hashable, list[int]] = {}
        for j in new:
            waiting.setdefault(key(after[j], False), []).append(j)
        for queue in waiting.values():
            queue.reverse()
        queues = ((i, waiting.get(key(before[i], True))) for i in old)
        met = [(i, queue.pop()) for i, queue in queues if queue]
        pairs += met
        gone, come = {i for i, _ in met}, {j for _, j in met}
        old, new = [i for i in old if i not in gone], [j for j in new if j not in come]
    pairs.sort(key=lambda pair: pair[1])
    return (
        [(before[i], after[j]) for i, j in pairs],
        [before[i] for i in old],
        [after[j] for j in new],
    )


class NodeAt(Struct, frozen=True):
    """A node with the compile and the graph that it is in."""

    compiled: Compile
    graph: Graph
    node: Node

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all other nodes of its record."""
        return self.compiled.key, self.graph.name, self.node.name

    @property
    def text(self) -> str:
        """The node as a person would name it: `0/1 dynamo/add`."""
        return f"{self.compiled.key} {self.graph.name}/{self.node.name}"

    @property
    def line(self) -> int | None:
        """The cell's line that it comes from."""
        frame = cell_frame(self.node.frames)
        return frame.line if frame else None


class NodePair(Struct, frozen=True):
    """Two nodes that correspond; `moved` when their graphs do not."""

    before: NodeAt
    after: NodeAt
    moved: bool = False


class Match:
    """All that corresponds in two records."""

    def __init__(self, before: CellRecord, after: CellRecord) -> None:
        self.lines = Lines(before.source, after.source)
        self.compiles, self.compiles_gone, self.compiles_new = paired(
            own_compiles(before),
            own_compiles(after),
            (self._compile_key, lambda entry, _: (_function(entry), bool(entry.resume_of))),
        )
        self.graphs: list[tuple[tuple[Compile, Graph], tuple[Compile, Graph]]] = []
        self.graphs_gone = [(entry, g) for entry in self.compiles_gone for g in entry.graphs]
        self.graphs_new = [(entry, g) for entry in self.compiles_new for g in entry.graphs]
        for old, new in self.compiles:
            pairs, gone, come = paired(old.graphs, new.graphs, (lambda g, _: g.name,))
            self.graphs += [((old, g), (new, h)) for g, h in pairs]
            self.graphs_gone += [(old, g) for g in gone]
            self.graphs_new += [(new, h) for h in come]
        self.nodes: list[NodePair] = []
        self.nodes_gone: list[NodeAt] = []
        self.nodes_new: list[NodeAt] = []
        self._match_nodes()

    def place(self, frame: StackFrame | None, is_before: bool) -> tuple[str, int | None]:
        """Return a place in terms of the second record's lines; unknown lines are None."""
        if frame is None:
            return "", None
        moves = is_before and frame.file == CELL
        return frame.file, self.lines.now(frame.line) if moves else frame.line

    def _compile_key(self, entry: Compile, is_before: bool) -> Hashable:
        resumed = _RESUME_LINE.match(entry.name)
        line = int(resumed[1]) if resumed else 0
        if resumed and entry.file == CELL and is_before:
            line = self.lines.now(line) or -1
        return _function(entry), line, entry.compile_id.rpartition("/")[2]

    def _match_nodes(self) -> None:
        keys = (self._exact, self._at_line, self._in_module, _of_target)
        for (old, g), (new, h) in self.graphs:
            pairs, gone, come = paired(_nodes(old, g), _nodes(new, h), keys)
            self.nodes += [NodePair(i, j) for i, j in pairs]
            self.nodes_gone += gone
            self.nodes_new += come
        self.nodes_gone += [node for entry, g in self.graphs_gone for node in _nodes(entry, g)]
        self.nodes_new += [node for entry, h in self.graphs_new for node in _nodes(entry, h)]
        self._match_moved()

    def _match_moved(self) -> None:
        """Pair nodes that are in another graph now: a graph break came or went between them."""
        moves: tuple[Callable[[NodeAt, bool], Hashable], ...] = (
            lambda at, is_before: (at.graph.stage, self._exact(at, is_before)),
            lambda at, is_before: (at.graph.stage, self._at_line(at, is_before)),
        )
        old = [at for at in self.nodes_gone if at.line]
        new = [at for at in self.nodes_new if at.line]
        pairs, _, _ = paired(old, new, moves)
        pairs = [(i, j) for i, j in pairs if i.node.op not in _EDGES and j.node.op not in _EDGES]
        self.nodes += [NodePair(i, j, moved=True) for i, j in pairs]
        gone, come = {i.key for i, _ in pairs}, {j.key for _, j in pairs}
        self.nodes_gone = [at for at in self.nodes_gone if at.key not in gone]
        self.nodes_new = [at for at in self.nodes_new if at.key not in come]

    def _exact(self, at: NodeAt, is_before: bool) -> Hashable:
        return self._at_line(at, is_before), repr(at.node.value)

    def _at_line(self, at: NodeAt, is_before: bool) -> Hashable:
        frame = cell_frame(at.node.frames) or next(iter(at.node.frames[-1:]), None)
        return self._in_module(at, is_before), self.place(frame, is_before)

    def _in_module(self, at: NodeAt, is_before: bool) -> Hashable:
        path = at.node.module_stack[-1][0] if at.node.module_stack else ""
        return _of_target(at, is_before), path


#: What a graph begins and ends with: it is each graph's own.
_EDGES = ("placeholder", "output")


def _of_target(at: NodeAt, _: bool) -> Hashable:
    return at.node.op, at.node.target


def _nodes(entry: Compile, graph: Graph) -> list[NodeAt]:
    return [NodeAt(entry, graph, node) for node in graph.nodes]


def _function(entry: Compile) -> tuple[str, str]:
    return entry.resume_of or entry.name, entry.file
