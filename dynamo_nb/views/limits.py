"""How much a view shows, and in which form: the cell's output is bounded, the page has it all."""

from __future__ import annotations

from msgspec import Struct

from dynamo_nb.views.plain import clean, clip, one_line, scrub

__all__ = ["CELL_OUTPUT", "PAGE", "Limits"]


class Limits(Struct, frozen=True, kw_only=True):
    """The bounds of one kind of output.

    `size` is its whole size in bytes, `rows` those of one table, `text` the characters of one
    table cell, `code` the lines of one block of code,
    `excerpt` those of a file other than the cell. `exact` outputs have times, addresses and
    paths; others leave out what differs between two runs of the same cell.
    """

    size: int
    rows: int
    text: int
    width: int
    code: int
    excerpt: int
    findings: int
    compiles: int
    files: int
    rules: int
    exact: bool = False

    def line(self, text: str) -> str:
        """Return text for a table cell: on one line, cleaned and clipped."""
        return clip(self._tidy(one_line(text)), self.text)

    def block(self, text: str) -> list[str]:
        """Return the cleaned and clipped lines of a block of code, tabs expanded."""
        return [clip(line, self.width) for line in self._tidy(text).expandtabs(4).split("\n")]

    def code_text(self, text: str) -> str:
        """Return a piece of code as it is shown."""
        return clean(text.replace("\t", "    "))

    def _tidy(self, text: str) -> str:
        return clean(text) if self.exact else scrub(clean(text))


CELL_OUTPUT = Limits(
    size=180_000,
    rows=50,
    text=240,
    width=240,
    code=160,
    excerpt=60,
    findings=30,
    compiles=40,
    files=6,
    rules=300,
)

PAGE = Limits(
    size=6_000_000,
    rows=2000,
    text=4000,
    width=4000,
    code=20_000,
    excerpt=4000,
    findings=2000,
    compiles=1000,
    files=60,
    rules=2000,
    exact=True,
)
