"""`--check` and `--time`: what the runner does for them, around the cell and after it."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from dynamo_nb.events import Event
from dynamo_nb.options import Options

__all__ = ["Checking"]


class _Repetition(NamedTuple):
    """What repeats calls: its event, what it says of calls that it leaves, words for its work."""

    event: str
    status: str
    repeats: str
    is_to: str


_CHECK = _Repetition("check", "not repeated", "repeated", "check")
_TIME = _Repetition("timing", "not timed", "measured", "measure")


class Checking:
    """Records a cell's compiled calls, and has them repeated once the cell is done."""

    def __init__(self, asked: list[_Repetition], settings: dict[tuple[str, str], Any]) -> None:
        from dynamo_nb.capture.check_calls import CheckedCalls

        self._recorded = CheckedCalls()
        self._settings = settings
        self._asked = asked

    @classmethod
    def asked(cls, options: Options, settings: dict[tuple[str, str], Any]) -> Checking | None:
        """Return a check where the magic's line asks for one, which keeps the cell's settings."""
        asked = [what for what, on in ((_CHECK, options.check), (_TIME, options.time)) if on]
        return cls(asked, settings) if asked else None

    @property
    def hook(self) -> Any:
        """What the capture installs to see the calls."""
        return self._recorded.hook

    def events(self, error: BaseException | None) -> list[Event]:
        """Return what was found; where nothing can be repeated, an event that says why."""
        return [event for what in self._asked for event in self._events(what, error)]

    def _events(self, what: _Repetition, error: BaseException | None) -> list[Event]:
        if error is not None:
            why = f"the cell raised {type(error).__name__}, so no call was {what.repeats}"
            return [_unmade(what, why)]
        if not self._recorded.calls:
            why = f"the cell made no compiled call: there is nothing to {what.is_to}"
            return [_unmade(what, why)]
        try:
            from dynamo_nb.capture import compiler

            with compiler.settings(self._settings):
                return self._repeated(what)
        except Exception as exc:
            why = "".join(traceback.format_exception_only(exc)).strip()
            return [_unmade(what, f"it failed: {why}")]

    def _repeated(self, what: _Repetition) -> list[Event]:
        if what is _CHECK:
            from dynamo_nb.capture.check_run import check

            return check(self._recorded)
        from dynamo_nb.capture.time_run import measure

        return measure(self._recorded)


def _unmade(what: _Repetition, reason: str) -> Event:
    return Event(name=what.event, data={"name": "", "status": what.status, "reason": reason})
