"""Tracebacks as they are without the magic: the capture's own frames are taken out."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["plain_tracebacks", "without_own_frames"]

_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep


@contextmanager
def plain_tracebacks(shell: Any, cell: str) -> Iterator[None]:
    """Make a shell show its tracebacks without frames of this package's making.

    `cell` is the file name of the cell's code. Its first line is the magic's own: what is called
    there is what the runner has put there.

    The shell shows an exception as soon as it is raised, before any event says that the cell has
    ended; so its method is replaced, on this one shell and for this one cell.
    """
    show = shell.showtraceback

    @functools.wraps(show)
    def showtraceback(exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        without_own_frames(exc_tuple[1] if exc_tuple else sys.exc_info()[1], cell)
        show(exc_tuple, *args, **kwargs)

    before = vars(shell).get("showtraceback")
    shell.showtraceback = showtraceback
    try:
        yield
    finally:
        del shell.showtraceback
        if before is not None:
            shell.showtraceback = before


def without_own_frames(error: BaseException | None, cell: str = "") -> None:
    """Unlink this package's frames from an exception's traceback, and from those it came from."""
    seen: set[int] = set()
    pending = [error]
    while pending:
        exception = pending.pop()
        if exception is None or id(exception) in seen:
            continue
        seen.add(id(exception))
        exception.__traceback__ = _filtered(exception.__traceback__, cell)
        pending += [exception.__cause__, exception.__context__]


def _filtered(trace: TracebackType | None, cell: str) -> TracebackType | None:
    while trace is not None and _is_own(trace, cell):
        trace = trace.tb_next
    kept = trace
    while kept is not None:
        following = kept.tb_next
        while following is not None and _is_own(following, cell):
            following = following.tb_next
        kept.tb_next = following
        kept = following
    return trace


def _is_own(trace: TracebackType, cell: str) -> bool:
    code = trace.tb_frame.f_code
    if code.co_filename == cell and code.co_name == "<module>":
        return trace.tb_lineno == 1
    return code.co_filename.startswith(_PACKAGE)
