"""Triton kernels that the user wrote: which lines of their code are lines of the user's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from dynamo_nb.record.places import Places
from dynamo_nb.record.types import Definition, Kernel, StackFrame

__all__ = ["defined_lines", "definitions"]


def definitions(raw: Iterable[dict[str, Any]], code: str, places: Places) -> list[Definition]:
    """Return where the functions in a kernel's code were written, those that are found in it."""
    lines = code.splitlines()
    return [
        Definition(
            name=function["name"],
            file=places.label(function["file"]),
            line=function["line"],
            code_line=start,
            count=_same(lines[start - 1 :], function["source"].splitlines()),
        )
        for function in raw
        if (start := _start(lines, function["name"]))
    ]


def defined_lines(kernel: Kernel) -> Iterator[tuple[int, StackFrame]]:
    """Yield lines of a kernel's code with the place where the user wrote each."""
    for item in kernel.definitions:
        for at in range(item.count):
            yield item.code_line + at, StackFrame(file=item.file, line=item.line + at)


def _start(lines: list[str], name: str) -> int:
    """Return the line in which a function begins; 0 where it is under another name."""
    found = (at for at, line in enumerate(lines, 1) if line.startswith(f"def {name}("))
    return next(found, 0)


def _same(lines: list[str], source: list[str]) -> int:
    """Return how many lines are those of the source: Inductor may go on with an epilogue.

    Backslashes are doubled in code that is quoted.
    """
    pairs = zip(lines, source, strict=False)
    return sum(1 for _ in takewhile(lambda pair: _bare(pair[0]) == _bare(pair[1]), pairs))


def _bare(line: str) -> str:
    return line.replace("\\", "").rstrip()
