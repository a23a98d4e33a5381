"""Watching torch.compile without a notebook: `with dynamo_nb.capture() as capture: ...`."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from dynamo_nb import progress
from dynamo_nb.record.run import Run, SourceCell
from dynamo_nb.record.types import CellRecord
from dynamo_nb.runner.raised import error_of
from dynamo_nb.session import Session

__all__ = ["ScriptCapture"]


class ScriptCapture:
    """Watches what its block compiles; `record` says what happened once the block is left.

    The block's source file takes the place of the cell, and nothing in it is rewritten.
    """

    def __init__(self, name: str, session: Session) -> None:
        self.record: CellRecord | None = None
        self._session = session
        self._stack = ExitStack()
        self._capture: Any = None
        self._run = Run(
            cell=SourceCell(file="", source=""),
            name=name,
            mode="as-is",
            mode_reason="a script: what the block compiles itself is watched",
        )

    def __enter__(self) -> ScriptCapture:
        from dynamo_nb.capture import Capture, compiler

        file = sys._getframe(1).f_code.co_filename
        self._run.cell = SourceCell(file=file, source=_text(file))
        self._run.versions = compiler.versions()
        self._run.device = compiler.default_device()
        shown = self._stack.enter_context(progress.shown(None))
        self._capture = self._stack.enter_context(Capture(on_progress=shown))
        self._run.started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._run.seconds = time.perf_counter() - self._run.started
        self._stack.close()
        self._run.notes = list(self._capture.notes)
        self._run.error = error_of(exc, self._run.cell.file)
        self.record = self._session.build(self._capture.events, self._run)


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError:
        return ""
