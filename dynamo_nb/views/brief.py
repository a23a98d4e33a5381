"""A record on one line, and how a notebook shows it where it is a cell's value."""

from __future__ import annotations

from dynamo_nb.record.types import CellRecord
from dynamo_nb.views.model import Report
from dynamo_nb.views.phrases import headline
from dynamo_nb.views.plain import clean, plural

__all__ = ["to_line"]


def to_line(record: CellRecord) -> str:
    """Return what a record holds: `<CellRecord of cell [3]: calls, 2 graphs, 1 finding>`."""
    named = f" {record.name!r}" if record.name else ""
    where = f" of cell [{record.cell}]" if record.cell else ""
    found = plural(len(record.findings), "finding") if record.findings else "no findings"
    text = f"<CellRecord{named}{where}: mode {record.mode}, {headline(Report(record))}, {found}>"
    return clean(text)
