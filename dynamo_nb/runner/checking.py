"""`--check`: what the runner does for it, around the cell and after it."""

from __future__ import annotations

import traceback
from typing import Any

from dynamo_nb.events import Event
from dynamo_nb.options import Options

__all__ = ["Checking"]


class Checking:
    """Records a cell's compiled calls, and has them repeated once the cell is done."""

    def __init__(self) -> None:
        from dynamo_nb.capture.check_calls import CheckedCalls

        self._recorded = CheckedCalls()
        self._settings: dict[tuple[str, str], Any] = {}

    @classmethod
    def asked(cls, options: Options, settings: dict[tuple[str, str], Any]) -> Checking | None:
        """Return a check where the magic's line asks for one, which keeps the cell's settings."""
        if not options.check:
            return None
        checking = cls()
        checking._settings = settings
        return checking

    @property
    def hook(self) -> Any:
        """What the capture installs to see the calls."""
        return self._recorded.hook

    def events(self, error: BaseException | None) -> list[Event]:
        """Return what the check found; where it can't be made, an event that says why."""
        if error is not None:
            return [_unmade(f"the cell raised {type(error).__name__}, so no call was repeated")]
        if not self._recorded.calls:
            return [_unmade("the cell made no compiled call: there is nothing to check")]
        try:
            from dynamo_nb.capture import compiler
            from dynamo_nb.capture.check_run import check

            with compiler.settings(self._settings):
                return check(self._recorded)
        except Exception as exc:
            why = "".join(traceback.format_exception_only(exc)).strip()
            return [_unmade(f"the check failed: {why}")]


def _unmade(reason: str) -> Event:
    return Event(name="check", data={"name": "", "status": "not repeated", "reason": reason})
