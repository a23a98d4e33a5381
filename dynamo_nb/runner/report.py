"""A finished run becomes a record, and the record is shown and written. None of it may raise."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from dynamo_nb import progress
from dynamo_nb.record.types import CellRecord
from dynamo_nb.runner.execution import Execution
from dynamo_nb.session import Session

__all__ = ["Reporter", "bundle", "say", "write"]

PAGE = (".html", ".htm")


def bundle(record: CellRecord, view: str = "auto") -> dict[str, str]:
    """Return the report by MIME type. Without the HTML view there is always the text."""
    from dynamo_nb.views.text import to_text

    shown = {"text/plain": to_text(record)}
    if view != "text":
        from dynamo_nb.views.html import to_html

        shown["text/html"] = to_html(record)
    return shown


def write(record: CellRecord, path: str) -> str:
    """Write a single-file page where the name ends in `.html`, else the record as JSON.

    Returns a sentence that says what was written where.
    """
    file = Path(path).expanduser()
    if file.suffix.lower() in PAGE:
        from dynamo_nb.views.page import to_explorer_page

        kind = "page, to open in a browser"
        file.write_text(to_explorer_page(record), encoding="utf-8")
    else:
        from dynamo_nb.record.io import save

        kind = "record, for %dynamo load or dynamo_nb.load"
        save(record, file)
    whose = f"the report of cell [{record.cell}]" if record.cell else "the report"
    return f"dynamo: {whose} was written to {path} (a {kind})"


def say(text: str) -> None:
    """Print a line of text where the cell's own output goes."""
    sys.stdout.write(f"{text}\n")


class Reporter:
    """Shows reports in a shell's output. What fails is said there instead."""

    def __init__(self, shell: Any, session: Session) -> None:
        self._shell = shell
        self._session = session

    def report(self, execution: Execution) -> None:
        """Build, show and save the report of a run."""
        options = execution.options
        if options.fresh:
            self._session.forget_compiles()
        try:
            record = self._session.build(execution.events, execution.run)
        except Exception as exc:
            self._say("the report could not be built", exc)
            return
        self.show(record, options.view)
        if options.save:
            self._save(record, options.save)

    @property
    def namespace(self) -> dict[str, Any]:
        """The notebook's variables."""
        namespace: dict[str, Any] = self._shell.user_ns
        return namespace

    def expanded(self, line: str) -> str:
        """Return a magic's line with the notebook's variables in place of `{name}` and `$name`."""
        expanded: str = self._shell.var_expand(line)
        return expanded

    def display(self, text: str, html: str) -> None:
        """Display an answer that is no report."""
        self._publish({"text/plain": text, "text/html": html})

    def transform(self, cell: str) -> str:
        """Return a cell as Python, its magics as calls."""
        python: str = self._shell.transform_cell(cell)
        return python

    def progress(self) -> AbstractContextManager[Callable[[str], None]]:
        """Return a context that yields a function that shows what goes on in one line."""
        return progress.saying(self._shell)

    def show(self, record: CellRecord, view: str = "auto") -> None:
        """Display a record in the current cell's output.

        In a notebook the explorer follows the static output; where it runs, it takes its place.
        """
        try:
            self._publish(bundle(record, view))
        except Exception as exc:
            self._say("the report could not be shown", exc)
            return
        if view == "auto" and hasattr(self._shell, "kernel"):
            try:
                self._explore(record)
            except Exception as exc:
                self._say("the explorer could not be shown", exc)

    def _explore(self, record: CellRecord) -> None:
        from dynamo_nb.views.widget import explorer

        parent = getattr(self._shell, "parent_header", None) or {}
        cell_id = parent.get("metadata", {}).get("cellId", "")
        self._publish(explorer(record, cell_id, self._session.before(record)))

    def _save(self, record: CellRecord, path: str) -> None:
        try:
            say(write(record, path))
        except Exception as exc:
            self._say(f"the report could not be saved to {path}", exc)

    def _say(self, what: str, exc: Exception) -> None:
        why = "".join(traceback.format_exception_only(exc)).strip()
        self._publish({"text/plain": f"dynamo: {what}: {why}"})

    def _publish(self, shown: dict[str, Any]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._shell.display_pub.publish(shown)
