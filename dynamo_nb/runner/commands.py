"""What `%dynamo` does: show the last report again, save it, load one, start over."""

from __future__ import annotations

import sys
from collections.abc import Callable

from dynamo_nb.options import UsageError, help_text, words
from dynamo_nb.record.types import CellRecord
from dynamo_nb.runner.report import Reporter, say, write
from dynamo_nb.session import Session

__all__ = ["Commands"]


class Commands:
    """The line magic's commands, in a table: a name, what it is followed by, what it does."""

    def __init__(self, session: Session, reporter: Reporter) -> None:
        self._session = session
        self._reporter = reporter
        self._table: dict[str, tuple[str, Callable[..., None]]] = {
            "": ("", self._show),
            "save": ("FILE", self._save),
            "load": ("FILE", self._load),
            "reset": ("", self._reset),
        }
        #: Commands followed by Python, which is taken as it is written.
        self._python: dict[str, Callable[[str], None]] = {
            "would": self._would,
            "guards": self._guards,
        }
        #: Commands that have options of their own.
        self._parsing: dict[str, Callable[[list[str]], None]] = {
            "diff": self._diff,
            "try": self._try,
        }

    def __call__(self, line: str) -> None:
        """Carry out one `%dynamo` line."""
        first, _, expression = line.strip().partition(" ")
        if first in ("-h", "--help"):
            say(help_text())
            return
        if first in self._python:
            self._python[first](expression)
            return
        verb, *rest = words(self._reporter.expanded(line)) or [""]
        if verb in self._parsing:
            self._parsing[verb](rest)
            return
        if verb not in self._table:
            there_are = ", ".join([*filter(None, self._table), *self._python, *self._parsing])
            raise UsageError(f"%dynamo: no command {verb!r}. There are: {there_are}.")
        operand, act = self._table[verb]
        if len(rest) != bool(operand):
            usage = f"%dynamo {verb} {operand}".strip()
            raise UsageError(f"%dynamo {verb}: {operand or 'nothing'} is expected: {usage}")
        act(*rest)

    def _show(self) -> None:
        self._reporter.show(self._last())

    def _save(self, path: str) -> None:
        record = self._last()
        try:
            say(write(record, path))
        except (OSError, ValueError) as exc:
            raise UsageError(f"%dynamo save: {exc}") from exc

    def _load(self, path: str) -> None:
        from dynamo_nb.record.io import load

        try:
            record = load(path)
        except (OSError, ValueError) as exc:
            raise UsageError(f"%dynamo load: {exc}") from exc
        self._session.keep(record)
        self._reporter.show(record)

    def _would(self, expression: str) -> None:
        from dynamo_nb.runner.would import call_in, would

        f, args, kwargs = call_in(expression, self._reporter.namespace, "would")
        try:
            answer = would(self._session, f, args, kwargs)
        except (TypeError, ValueError) as exc:
            raise UsageError(f"%dynamo would: {exc}") from exc
        self._reporter.display(str(answer), answer._repr_html_())

    def _diff(self, rest: list[str]) -> None:
        from dynamo_nb.runner import diffing

        diffing.show(self._session, self._reporter, rest)

    def _try(self, rest: list[str]) -> None:
        from dynamo_nb.runner import trying

        trying.show(self._last(), self._reporter, rest)

    def _guards(self, expression: str) -> None:
        from dynamo_nb.runner.would import call_in, guard_costs

        f, args, kwargs = call_in(expression, self._reporter.namespace, "guards")
        try:
            costs = guard_costs(self._session, f, args, kwargs)
        except (TypeError, ValueError) as exc:
            raise UsageError(f"%dynamo guards: {exc}") from exc
        self._reporter.display(str(costs), costs._repr_html_())

    def _reset(self) -> None:
        if "torch" in sys.modules:
            from dynamo_nb.capture import compiler

            compiler.reset()
        self._session.reset()

    def _last(self) -> CellRecord:
        record = self._session.last()
        if record is None:
            raise UsageError("%dynamo: there is no report yet. Put %%dynamo on top of a cell.")
        return record
