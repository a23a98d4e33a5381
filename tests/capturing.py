"""Run source text as a cell under the capture, without IPython."""

from __future__ import annotations

import contextlib
import io
import linecache
from typing import Any

from dynamo_nb.capture import Capture
from dynamo_nb.events import Event
from dynamo_nb.record.build import build_record
from dynamo_nb.record.run import Run, SourceCell
from dynamo_nb.record.types import CellRecord

FILE = "ipykernel_1/cell.py"


class Captured:
    """What one run gave: its record, its namespace, the exception it raised."""

    def __init__(
        self,
        source: str,
        *,
        namespace: dict[str, Any] | None = None,
        fresh: bool = True,
        **run: Any,
    ) -> None:
        import torch

        if fresh:
            torch._dynamo.reset()
        linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
        self.namespace: dict[str, Any] = namespace if namespace is not None else {}
        self.namespace.setdefault("torch", torch)
        self.error: BaseException | None = None
        self.output = io.StringIO()
        capture = Capture()
        with capture, contextlib.redirect_stdout(self.output):
            try:
                exec(compile(source, FILE, "exec"), self.namespace)
            except BaseException as error:
                self.error = error
        self.events: list[Event] = capture.events
        self.run = Run(cell=SourceCell(file=FILE, source=source), notes=list(capture.notes), **run)
        self.record: CellRecord = build_record(capture.events, self.run)
