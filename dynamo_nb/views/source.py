"""The source with its gutter: for each line its graphs, guards, marks, and what it became."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import ClassVar

from msgspec import Struct
from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES, Token

from dynamo_nb.record.types import CELL, Compile, Kernel, Node, RecompileReason, StackFrame
from dynamo_nb.views.limits import Limits
from dynamo_nb.views.marks import Marks
from dynamo_nb.views.model import (
    Report,
    call_nodes,
    final_breaks,
    kernel_nodes,
    main_reason,
    reason_name,
    stage,
)
from dynamo_nb.views.phrases import calls_text, named_call
from dynamo_nb.views.plain import clip, some

__all__ = ["GUTTER", "HUES", "LEGEND", "Listing", "Piece", "SourceLine", "listing"]

#: What the letters of the gutter mean.
LEGEND = {"B": "graph break", "R": "recompile", "E": "compile error"}

#: How many colours tell compiles apart.
HUES = 8

_NOTE = 90
_NAMES = 2  # compile ids in the gutter before the rest is counted
_AROUND = 2  # lines shown around those that something belongs to, in files other than the cell


class Piece(Struct, frozen=True):
    """A piece of a source line: its text, the class of its token, whether it is underlined."""

    text: str
    token: str = ""
    marked: bool = False


class SourceLine(Struct, frozen=True, kw_only=True):
    """One line of the source with its gutter. `hue` numbers the colour of its graphs."""

    number: int
    pieces: list[Piece]
    letters: str = ""
    graphs: str = ""
    guards: str = ""
    hue: int | None = None
    note: str = ""
    marks: str = ""


class Listing(Struct, frozen=True, kw_only=True):
    """Lines of a source; the widths are those of the gutter's columns, 0 for an empty one."""

    kind: ClassVar[str] = "listing"

    lines: list[SourceLine]
    widths: dict[str, int]
    left_out: int = 0

    @property
    def letters(self) -> dict[str, str]:
        """The letters that the gutter uses, and what they mean."""
        used = {letter for line in self.lines for letter in line.letters}
        return {letter: meaning for letter, meaning in LEGEND.items() if letter in used}


class _Facts:
    """What the record says about the lines of one file."""

    def __init__(self, report: Report, file: str) -> None:
        self.file = file
        self.graphs: dict[int, dict[str, int]] = defaultdict(dict)
        self.guards: dict[int, int] = defaultdict(int)
        self.letters: dict[int, set[str]] = defaultdict(set)
        self.spans: dict[int, list[StackFrame]] = defaultdict(list)
        self.ops: dict[int, dict[str, None]] = defaultdict(dict)
        self.kernels: dict[int, dict[str, None]] = defaultdict(dict)
        self.events: dict[int, dict[str, None]] = defaultdict(dict)
        self.changes: dict[int, dict[str, list[str]]] = defaultdict(dict)
        self.calls: dict[int, dict[str, None]] = defaultdict(dict)
        for index, entry in enumerate(report.record.compiles):
            self._add(index, entry)
        for call in report.record.calls if file == CELL else ():
            for text in calls_text(call):
                self.calls[call.line][named_call(call, text)] = None

    def _add(self, index: int, entry: Compile) -> None:
        for graph in stage(entry, "dynamo"):
            for node, line in self._placed(call_nodes(graph)):
                self.graphs[line][entry.key] = index
                self.ops[line][op_name(node.target)] = None
        for name, kernel in _shown_kernels(entry):
            for _, line in self._placed(kernel_nodes(entry, kernel)):
                self.kernels[line][name] = None
            for written in kernel.definitions:
                if written.file == self.file:
                    self.kernels[written.line][name] = None
        for guard in entry.guards:
            if guard.frame and guard.frame.file == self.file:
                self.guards[guard.frame.line] += 1
        for item in final_breaks(entry):
            self._event("B", item.frame, f"graph break: {item.kind}")
        reason = main_reason(entry)
        if reason:
            self._change(reason)
        if entry.error:
            self._event("E", entry.error.frame, entry.error.kind or entry.error.type)

    def _change(self, reason: RecompileReason) -> None:
        """Note a recompile where the value is read; without such a place, at its call."""
        frame = reason.frame
        if frame is None and reason.call_line:
            frame = StackFrame(file=CELL, line=reason.call_line)
        if frame is not None and frame.file == self.file:
            values = self.changes[frame.line].setdefault(reason_name(reason), [])
            values += [reason.now or "?"] if values else [reason.was or "?", reason.now or "?"]
            self._event("R", frame)

    def _event(self, letter: str, frame: StackFrame | None, text: str = "") -> None:
        if frame is not None and frame.file == self.file:
            self.letters[frame.line].add(letter)
            if text:
                self.events[frame.line][text] = None
            self.spans[frame.line].append(frame)

    def _placed(self, nodes: Iterable[Node]) -> Iterable[tuple[Node, int]]:
        """Yield nodes with the innermost of their lines in this file, and others they stand for."""
        for node in nodes:
            for frame in node.also:
                if frame.file == self.file:
                    yield node, frame.line
            for frame in reversed(node.frames):
                if frame.file == self.file:
                    yield node, frame.line
                    break

    def note(self, line: int, limits: Limits) -> str:
        """Return what a line became, in a few words: events first, then ops and kernels."""
        changes = [f"{source}: {_chain(values)}" for source, values in self.changes[line].items()]
        events = [*self.events[line], *changes]
        if events:
            return clip(limits.line(some(events, 2)), _NOTE)
        if self.calls[line] and not self.ops[line]:
            return clip(limits.line(some(self.calls[line], 2)), _NOTE)
        ops = some(self.ops[line], 5)
        kernels = some(self.kernels[line], 2)
        return clip(limits.line(" -> ".join(part for part in (ops, kernels) if part)), _NOTE)


def _shown_kernels(entry: Compile) -> list[tuple[str, Kernel]]:
    """Return the kernels that lines name: where this machine has none, those of a target."""
    if entry.kernels or not entry.targets:
        return [(kernel.name, kernel) for kernel in entry.kernels]
    target = entry.targets[0]
    return [(f"{target.spec} {kernel.name}", kernel) for kernel in target.kernels]


def _chain(values: list[str]) -> str:
    """Return values in order, shortened when there are many."""
    shown = [*values[:3], "…", values[-1]] if len(values) > 5 else values
    return " -> ".join(shown)


def op_name(target: str) -> str:
    """Return the short name of a node's target: `add` of `aten.add.Tensor`."""
    parts = target.split(".")
    if parts[0] in ("aten", "prims") and len(parts) > 1:
        return parts[1]
    return parts[-1]


def listing(report: Report, file: str, marks: Marks, limits: Limits) -> Listing:
    """Return the cell's lines, or of another file those around what belongs to it."""
    text = report.record.source if file == CELL else report.record.files.get(file, "")
    source = text.removesuffix("\n").split("\n")
    wanted = (
        list(range(1, len(source) + 1))
        if file == CELL
        else _windows(marks.lines.get(file, ()), len(source))
    )
    shown = wanted[: limits.code if file == CELL else limits.excerpt]
    facts = _Facts(report, file)
    tokens = _tokens([source[number - 1] for number in shown])
    lines = [
        _line(facts, number, pieces, marks, limits)
        for number, pieces in zip(shown, tokens, strict=True)
    ]
    return Listing(
        lines=lines,
        widths=_widths(lines),
        left_out=len(wanted) - len(shown),
    )


def _line(
    facts: _Facts, number: int, tokens: list[Piece], marks: Marks, limits: Limits
) -> SourceLine:
    graphs = facts.graphs.get(number, {})
    names = list(graphs)[:_NAMES]
    more = f" +{len(graphs) - len(names)}" if len(graphs) > len(names) else ""
    return SourceLine(
        number=number,
        pieces=_shown(_underline(tokens, facts.spans.get(number, [])), limits),
        letters="".join(letter for letter in LEGEND if letter in facts.letters.get(number, ())),
        graphs=clip(limits.line(" ".join(names)), 16) + more,
        guards=str(facts.guards.get(number, "")),
        hue=next(iter(graphs.values())) % HUES if graphs else None,
        note=facts.note(number, limits),
        marks=marks.of(StackFrame(file=facts.file, line=number)),
    )


#: The columns of the gutter, with the words above them.
GUTTER = {"letters": "", "graphs": "graph", "guards": "guards", "number": "line"}


def _widths(lines: list[SourceLine]) -> dict[str, int]:
    """Return how wide each column of the gutter is: 0 where no line has anything in it."""
    widths = {}
    for column, head in GUTTER.items():
        longest = max((len(str(getattr(line, column))) for line in lines), default=0)
        widths[column] = max(longest, len(head)) if longest else 0
    return widths


def _windows(lines: Iterable[int], length: int) -> list[int]:
    shown = {near for line in lines for near in range(line - _AROUND, line + _AROUND + 1)}
    return sorted(number for number in shown if 0 < number <= length)


def _tokens(source: list[str]) -> list[list[Piece]]:
    """Split lines into their tokens; together the pieces of a line are its text."""
    if not source:
        return []
    lines: list[list[Piece]] = [[]]
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    for _, token, value in lexer.get_tokens_unprocessed("\n".join(source)):
        name = _token_class(token)
        for index, part in enumerate(value.split("\n")):
            if index:
                lines.append([])
            if part:
                lines[-1].append(Piece(part, name))
    return lines


#: The kinds of tokens that are coloured, with our class for each.
_TOKEN_CLASSES = {
    Token.Keyword: "k",
    Token.Operator.Word: "k",
    Token.Literal.String: "s",
    Token.Literal.Number: "d",
    Token.Comment: "c",
    Token.Name.Function: "f",
    Token.Name.Class: "f",
    Token.Name.Decorator: "f",
}


def _token_class(token: object) -> str:
    while token in STANDARD_TYPES and token is not Token:
        if token in _TOKEN_CLASSES:
            return _TOKEN_CLASSES[token]
        token = token.parent  # type: ignore[attr-defined]
    return ""


def _underline(pieces: list[Piece], spans: list[StackFrame]) -> list[Piece]:
    """Cut tokens where a span begins or ends, mark those inside, join what then looks alike."""
    length = sum(len(piece.text) for piece in pieces)
    ranges = [
        (span.column, span.end_column if span.end_line in (None, span.line) else length)
        for span in spans
        if span.column is not None
    ]
    edges = sorted({edge for pair in ranges for edge in pair if edge is not None})
    cut: list[Piece] = []
    start = 0
    for piece in pieces:
        end = start + len(piece.text)
        stops = [start, *(edge for edge in edges if start < edge < end), end]
        for a, b in pairwise(stops):
            inside = any(first <= a and (last or length) >= b for first, last in ranges)
            part = Piece(piece.text[a - start : b - start], piece.token, inside)
            if cut and (cut[-1].token, cut[-1].marked) == (part.token, part.marked):
                cut[-1] = Piece(cut[-1].text + part.text, part.token, inside)
            else:
                cut.append(part)
        start = end
    return cut


def _shown(pieces: list[Piece], limits: Limits) -> list[Piece]:
    """Clean the pieces and clip the line to its width."""
    shown: list[Piece] = []
    left = limits.width
    for piece in pieces:
        text = limits.code_text(piece.text)
        shown.append(Piece(clip(text, left), piece.token, piece.marked))
        left -= len(text)
        if left <= 0:
            break
    return shown
