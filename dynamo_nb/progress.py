"""What torch is compiling, shown while it takes longer than a second."""

from __future__ import annotations

import contextvars
import html
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

__all__ = ["NotebookLine", "Progress", "TerminalLine", "saying", "shown"]

#: A compile shorter than this, in seconds, shows nothing at all.
PATIENCE = 1.0
INTERVAL = 0.5


class Line(Protocol):
    """A place that shows one line of text and can take it away again."""

    def show(self, text: str) -> None:
        """Show `text` in place of what stood there."""

    def clear(self) -> None:
        """Leave no trace."""


class TerminalLine:
    """The terminal's current line, on stderr."""

    def show(self, text: str) -> None:
        """Overwrite the line with `text`."""
        self._write(f"\r\x1b[K{text}")

    def clear(self) -> None:
        """Erase the line."""
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class NotebookLine:
    """One output of the cell that is updated in place.

    An output can't be taken out of a notebook again, so it begins and ends without any data: that
    shows as nothing, and a saved notebook compares equal to one where it never was.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._output = ""

    def show(self, text: str) -> None:
        """Show `text` in the output; make the output first if there is none."""
        if not self._output:
            self._output = uuid.uuid4().hex
            self._publish({}, update=False)
        page = f"<pre>{html.escape(text)}</pre>"
        self._publish({"text/plain": text, "text/html": page})

    def clear(self) -> None:
        """Empty the output."""
        self._publish({})

    def _publish(self, shown: dict[str, str], update: bool = True) -> None:
        output = {"display_id": self._output}
        self._shell.display_pub.publish(shown, transient=output, update=update)


class Progress:
    """Shows which frame and stage torch is at. Calling it says what begins; it never raises."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._at: tuple[str, str, str] | None = None
        self._names: dict[str, str] = {}
        self._since = 0.0
        self._shown = False
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, compile_id: str, name: str, stage: str) -> None:
        """Note that a stage of a compile begins; empty strings say that compiling has ended."""
        with self._lock:
            if not (compile_id or name or stage):
                self._at = None
            else:
                self._since = self._since if self._at else time.monotonic()
                self._names[compile_id] = name or self._names.get(compile_id, "")
                self._at = (compile_id, self._names[compile_id], stage)
        if self._thread is None and self._at is not None:
            self._start()
        if self._at is None:
            self._take_away()

    def close(self) -> None:
        """Take the line away and end the thread."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=2 * INTERVAL)
        self._at = None
        self._take_away()

    def _start(self) -> None:
        context = contextvars.copy_context()  # an output belongs to the cell through its context
        self._thread = threading.Thread(
            target=context.run, args=(self._watch,), name="dynamo_nb progress", daemon=True
        )
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(INTERVAL):
            self.tick()

    def tick(self) -> None:
        """Show where torch is, if it has been compiling long enough."""
        with self._lock:
            elapsed = time.monotonic() - self._since
            if self._at is None or elapsed < PATIENCE or self._done.is_set():
                return
            compile_id, name, stage = self._at
            text = f"compiling {f'{compile_id} {name}'.strip()}: {stage}, {elapsed:.0f} s"
            self._shown = True
            self._safely(self._line.show, text)

    def _take_away(self) -> None:
        with self._lock:
            if self._shown:
                self._shown = False
                self._safely(self._line.clear)

    def _safely(self, act: Callable[..., None], *args: str) -> None:
        try:
            act(*args)
        except Exception:
            self._done.set()  # a front end that can't show it: be silent from here on


def _line_for(shell: Any) -> Line | None:
    if getattr(shell, "kernel", None) is not None:
        return NotebookLine(shell)
    return TerminalLine() if sys.stderr is not None and sys.stderr.isatty() else None


@contextmanager
def shown(shell: Any) -> Iterator[Progress | None]:
    """Show progress while the block runs; yield what `Capture(on_progress=...)` takes."""
    line = _line_for(shell)
    if line is None:
        yield None
        return
    progress = Progress(line)
    try:
        yield progress
    finally:
        progress.close()


@contextmanager
def saying(shell: Any) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line of text in place of the last, until the block ends."""
    line = _line_for(shell)
    if line is None:
        yield lambda _: None
        return
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        line.show(text)

    try:
        yield say
    finally:
        if said:
            line.clear()
