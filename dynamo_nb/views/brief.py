"""A record and a compile on one line each: what Python shows of them as values."""

from __future__ import annotations

from dynamo_nb.record.types import CellRecord, Compile
from dynamo_nb.views.model import Report, base_name
from dynamo_nb.views.phrases import compile_summary, headline
from dynamo_nb.views.plain import clean, one_line, plural

__all__ = ["compile_line", "to_line"]


def to_line(record: CellRecord) -> str:
    """Return what a record holds: `<CellRecord of cell [3]: calls, 2 graphs, 1 finding>`."""
    named = f" {record.name!r}" if record.name else ""
    where = f" of cell [{record.cell}]" if record.cell else ""
    found = plural(len(record.findings), "finding") if record.findings else "no findings"
    text = f"<CellRecord{named}{where}: mode {record.mode}, {headline(Report(record))}, {found}>"
    return clean(text)


def compile_line(entry: Compile) -> str:
    """Return what one compile made: `<Compile 0/0 of f: graph of 2 ops from line 3; 9 guards>`."""
    text = f"<Compile {entry.key} of {base_name(entry)}: {compile_summary(entry)}>"
    return clean(one_line(text))
