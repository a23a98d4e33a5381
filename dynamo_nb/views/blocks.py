"""The blocks that HTML is made of: sections that hold tables, code and further sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeVar

from msgspec import Struct

from dynamo_nb.views.limits import Limits
from dynamo_nb.views.source import Listing

__all__ = ["Code", "Figure", "Line", "Point", "Row", "Section", "Table", "code", "table"]

T = TypeVar("T")

_NARROW = 44  # characters up to which a table cell stays on one line


class Row(Struct, frozen=True):
    """A row of a table, with the classes of the source lines it belongs to."""

    cells: list[str]
    marks: str = ""


class Table(Struct, frozen=True):
    """A table; `wide` says which columns wrap, `left_out` counts the rows cut by the limits."""

    kind: ClassVar[str] = "table"

    columns: list[str]
    wide: list[bool]
    rows: list[Row]
    left_out: int = 0


class Line(Struct, frozen=True):
    """A line of code, with the classes of the source lines it belongs to."""

    text: str
    marks: str = ""


class Code(Struct, frozen=True):
    """A block of code; `left_out` counts the lines that the limits cut off."""

    kind: ClassVar[str] = "code"

    lines: list[Line]
    left_out: int = 0


class Point(Struct, frozen=True):
    """A thing in a figure: where it is, what it is, the classes of its source lines."""

    x: float
    y: float
    text: str
    marks: str = ""


class Figure(Struct, frozen=True, kw_only=True):
    """A plot: lines as `(x, y)` pairs, points with their texts, words at places of their own."""

    kind: ClassVar[str] = "figure"

    title: str
    width: int
    height: int
    lines: list[list[tuple[float, float]]] = []
    points: list[Point] = []
    words: list[Point] = []


class Section(Struct, frozen=True, kw_only=True):
    """A folded part of the report. Where the space ends, those of the highest `rank` go first.

    `marks` are the lines that the section as a whole belongs to.
    """

    title: str
    summary: str = ""
    blocks: Sequence[Table | Code | Listing | Figure] = ()
    rank: int = 0
    marks: str = ""
    is_open: bool = False


def table(
    columns: str,
    things: Sequence[T],
    row: Callable[[T], tuple[Iterable[object], str]],
    limits: Limits,
) -> Table:
    """Return a table of things; `row` gives the cells of one, and its marks.

    Columns that are empty in every row are dropped.
    """
    names = columns.split("|")
    rows = []
    for thing in things[: limits.rows]:
        cells, marks = row(thing)
        rows.append(Row([limits.line(str(cell)) for cell in cells], marks))
    kept = [index for index in range(len(names)) if any(row.cells[index] for row in rows)]
    return Table(
        columns=[names[index] for index in kept],
        wide=[any(len(row.cells[index]) > _NARROW for row in rows) for index in kept],
        rows=[Row([row.cells[index] for index in kept], row.marks) for row in rows],
        left_out=max(len(things) - limits.rows, 0),
    )


def code(text: str, limits: Limits, marks: dict[int, str] | None = None) -> Code:
    """Return a block of code; `marks` are the classes of its lines, by number."""
    marks = marks or {}
    lines = limits.block(text.rstrip("\n"))
    return Code(
        lines=[
            Line(line, marks.get(number, "")) for number, line in enumerate(lines[: limits.code], 1)
        ],
        left_out=max(len(lines) - limits.code, 0),
    )
