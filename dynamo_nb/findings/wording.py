"""How findings say things: names, places, values, and torch's hints without the boilerplate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dynamo_nb.record import naming
from dynamo_nb.record.places import is_standard_library
from dynamo_nb.record.types import CELL, StackFrame

__all__ = [
    "advice_from",
    "cell_lines",
    "chain",
    "first_sentence",
    "function",
    "is_cell",
    "is_standard_library",
    "names",
    "part",
    "place",
    "stable",
]

#: Hints that torch adds to whole families of graph breaks. They name nothing that one could do
#: to this line, so they are given only where there is no other.
_GENERAL_HINTS = (
    "file an issue",
    "report an issue",
    "possible to write Dynamo tracing rules",
    "may result in an error when running in eager",
    "may have been caused by an earlier graph break",
    "may be difficult to debug",
    "This graph break is fundamental",
    "likely to be a Dynamo bug",
)

_RESUME = re.compile(r"\btorch_dynamo_resume_in_(.+)_at_\d+$")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_INSTALLED = re.compile(r"[^\s`'\"(]*[/\\](?:site|dist)-packages[/\\]")

#: Values shown of a long chain: so many from its head, and the last.
_CHAIN_HEAD = 4


def function(name: str) -> str:
    """Return a function's own name; a resume function bears that of the one it resumes."""
    return _RESUME.sub(r"\1", name)


def is_cell(file: str) -> bool:
    """Tell whether a file is a cell of the notebook."""
    return file.startswith("<cell")


def place(frame: StackFrame | None) -> str:
    """Return a place as text: `line 5` in the cell, `model.py:40` elsewhere."""
    return naming.place(frame) if frame is not None else "an unknown place"


def part(source: str, frame: StackFrame) -> str:
    """Return a place; of a cell's line that has both branches, which part of it is meant."""
    lines = source.splitlines() if frame.file == CELL else []
    text = lines[frame.line - 1] if 0 < frame.line <= len(lines) else ""
    meant = text[frame.column : frame.end_column] if frame.end_line == frame.line else ""
    has_both = " if " in text and " else " in text
    return f"`{meant}` in {place(frame)}" if meant and has_both else place(frame)


def cell_lines(*lines: int | None) -> list[int]:
    """Return the cell lines that a finding names, each once, in order."""
    return sorted({line for line in lines if line is not None})


def chain(values: Sequence[str]) -> str:
    """Return values in order, the middle of a long chain left out: `0 -> 1 -> … -> 7`."""
    if len(values) > _CHAIN_HEAD + 2:
        values = [*values[:_CHAIN_HEAD], "…", values[-1]]
    return " -> ".join(values)


def names(items: Sequence[str]) -> str:
    """Return names in backquotes: `a`, `b` and `c`."""
    quoted = [f"`{item}`" for item in items]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def stable(text: str) -> str:
    """Return torch's text on one line, without what differs from run to run and place to place."""
    return _INSTALLED.sub("", _ADDRESS.sub("", " ".join(text.split())))


def first_sentence(text: str) -> str:
    """Return the first sentence of torch's explanation, without its full stop."""
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z])", stable(text), maxsplit=1)[0]
    return sentence.rstrip(". ")


def advice_from(hints: Iterable[str], otherwise: str = "") -> str:
    """Return torch's own hints, those that apply to any code at all only where nothing else is."""
    hints = [stable(hint) for hint in hints]
    specific = [hint for hint in hints if not any(mark in hint for mark in _GENERAL_HINTS)]
    return " ".join(specific) or otherwise or " ".join(hints)
