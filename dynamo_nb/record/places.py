"""Places: from CPython's file names and byte columns to the record's `StackFrame`s."""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dynamo_nb.record.naming import cell_file
from dynamo_nb.record.run import Run
from dynamo_nb.record.types import CELL, StackFrame

__all__ = ["Places", "innermost", "is_standard_library"]

_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
_RESUME = "torch_dynamo_resume_in_"
#: Files longer than this, in characters, are named but their text is not kept.
_FILE_LIMIT = 300_000
_TOTAL_LIMIT = 3_000_000


def innermost(frames: Sequence[StackFrame]) -> StackFrame | None:
    """Return the frame to show: the innermost one in the cell, else the innermost of all."""
    in_cell = [frame for frame in frames if frame.file == CELL]
    return in_cell[-1] if in_cell else frames[-1] if frames else None


def is_standard_library(file: str) -> bool:
    """Tell whether a file is Python's own; the record names those from the library's root."""
    return file.startswith("<frozen") or (
        re.split(r"[/\\.]", file, maxsplit=1)[0] in sys.stdlib_module_names
    )


class Places:
    """Maps places of one run; the same place gives the same `StackFrame` object."""

    def __init__(self, run: Run) -> None:
        self._labels = {run.cell.file: CELL}
        self._lines = {run.cell.file: run.cell.source.splitlines()}
        for cell in run.others:
            if cell.file != run.cell.file:
                self._labels[cell.file] = cell_file(cell.number)
                self._lines[cell.file] = cell.source.splitlines()
        self._body_line = run.body_line
        self._frames: dict[tuple[Any, ...], StackFrame] = {}

    def frame(self, place: Sequence[Any] | None) -> StackFrame | None:
        """Return the `StackFrame` of a place tuple, None for None."""
        if place is None:
            return None
        key = tuple(place)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = self._make(*key)
        return found

    def frames(self, places: Iterable[Sequence[Any]] | None) -> list[StackFrame]:
        """Return the `StackFrame`s of a stack."""
        return [frame for place in places or () if (frame := self.frame(place)) is not None]

    def label(self, file: str) -> str:
        """Return the name under which a file appears in the record."""
        if file not in self._labels:
            self._labels[file] = _short_name(file)
        return self._labels[file]

    def call_line(self, places: Iterable[Sequence[Any]], resume_of: str = "") -> int | None:
        """Return the cell's line that made a call: the innermost one that is not a resumed frame.

        While a resume function runs, the function it continues is still on the stack; that one was
        called from further out. The call of a cell's whole body has the body's first line.
        """
        frames = [frame for frame in self.frames(places) if frame.file == CELL]
        if resume_of:
            while len(frames) > 1 and _is_resumed(frames[-1].name, resume_of):
                frames.pop()
        line = frames[-1].line if frames else None
        return self._body_line or line if line == 1 else line

    def texts(self, labels: Iterable[str]) -> dict[str, str]:
        """Return the texts of the files with these labels, the cell itself apart."""
        files = {label: file for file, label in self._labels.items() if label != CELL}
        texts: dict[str, str] = {}
        total = 0
        for label in dict.fromkeys(labels):
            text = "\n".join(self._source(files[label])) if label in files else ""
            total += len(text)
            if text and len(text) <= _FILE_LIMIT and total <= _TOTAL_LIMIT:
                texts[label] = text
        return texts

    def _source(self, file: str) -> list[str]:
        if file not in self._lines:
            self._lines[file] = [line.rstrip("\n") for line in linecache.getlines(file)]
        return self._lines[file]

    def _make(
        self,
        file: str,
        line: int,
        name: str,
        end_line: int | None,
        column: int | None,
        end_column: int | None,
    ) -> StackFrame:
        return StackFrame(
            file=self.label(file),
            line=line,
            name=name,
            end_line=end_line,
            column=self._characters(file, line, column),
            end_column=self._characters(file, end_line or line, end_column),
        )

    def _characters(self, file: str, line: int, column: int | None) -> int | None:
        """Turn a column in UTF-8 bytes into one in characters."""
        if column is None:
            return None
        lines = self._source(file)
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        if text.isascii():
            return column
        return len(text.encode()[:column].decode(errors="ignore"))


def _is_resumed(name: str, resume_of: str) -> bool:
    return name.startswith(_RESUME) or name == resume_of.rsplit(".", 1)[-1]


def _short_name(file: str) -> str:
    """Shorten a path to what means the same on every machine, as far as that can be told."""
    if file.startswith("<"):
        return file.split(".", 1)[0]  # <eval_with_key>.7
    tail = _PACKAGES.sub("", file)
    if tail != file:
        return tail.replace(os.sep, "/")
    for base in (sysconfig.get_paths()["stdlib"], *_folders()):
        if file.startswith(base + os.sep):
            return file.removeprefix(base + os.sep).replace(os.sep, "/")
    return file


def _folders() -> Iterator[str]:
    """Yield the working directory and the home folder; a cell may have deleted the one it is in."""
    for folder in (Path.cwd, Path.home):
        with suppress(OSError, RuntimeError):
            yield str(folder())
