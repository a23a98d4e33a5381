"""How findings say things: names, places, values, and torch's hints without the boilerplate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dynamo_nb.record.types import CELL, Compile, StackFrame

__all__ = [
    "advice_from",
    "cell_lines",
    "chain",
    "def_line",
    "first_sentence",
    "function",
    "is_user_file",
    "place",
]

#: Hints that torch adds to whole families of graph breaks. They name nothing that one could do
#: to this line, so they are given only where there is no other.
_GENERAL_HINTS = (
    "Please report an issue",
    "Please file an issue",
    "It may be possible to write Dynamo tracing rules",
    "Your code may result in an error when running in eager",
    "This graph break may have been caused by an earlier graph break",
    "This graph break may be difficult to debug",
    "This graph break is fundamental",
    "This is likely to be a Dynamo bug",
)

_RESUME = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")

#: Values shown of a long chain: so many from its head, and the last.
_CHAIN_HEAD = 4


def function(name: str) -> str:
    """Return a function's own name; a resume function bears that of the one it resumes."""
    match = _RESUME.match(name)
    return match.group(1) if match else name


def is_user_file(file: str) -> bool:
    """Tell whether a file is the user's: a cell, or neither an installed package nor Python's."""
    if file.startswith("<cell"):
        return True
    parts = file.replace("\\", "/").split("/")
    installed = {"site-packages", "dist-packages", "torch"}
    return not (
        file.startswith("<") or installed & set(parts) or re.search(r"/python3\.\d+/", file)
    )


def place(frame: StackFrame | None) -> str:
    """Return a place as text: `line 5` in the cell, `model.py:40` elsewhere."""
    if frame is None:
        return "an unknown place"
    return f"line {frame.line}" if frame.file == CELL else f"{frame.file}:{frame.line}"


def cell_lines(*lines: int | None) -> list[int]:
    """Return the cell lines that a finding names, each once, in order."""
    return sorted({line for line in lines if line is not None})


def chain(values: Sequence[str]) -> str:
    """Return values in order, the middle of a long chain left out: `0 -> 1 -> … -> 7`."""
    if len(values) > _CHAIN_HEAD + 2:
        values = [*values[:_CHAIN_HEAD], "…", values[-1]]
    return " -> ".join(values)


def first_sentence(text: str) -> str:
    """Return the first sentence of torch's explanation, on one line."""
    line = " ".join(text.split())
    return re.split(r"(?<=[.!?]) (?=[A-Z])", line, maxsplit=1)[0]


def advice_from(hints: Iterable[str], otherwise: str = "") -> str:
    """Return torch's own hints, those that apply to any code at all only where nothing else is."""
    hints = [" ".join(hint.split()) for hint in hints]
    specific = [hint for hint in hints if not hint.startswith(_GENERAL_HINTS)]
    return " ".join(specific) or otherwise or " ".join(hints)


def def_line(compiled: Compile) -> int | None:
    """Return the cell's line where the compiled function begins, None when it lies elsewhere."""
    return compiled.first_line if compiled.file == CELL else None
