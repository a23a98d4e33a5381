"""The only package that imports torch: hooks and torch's structured trace become plain events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import TracebackType

from dynamo_nb.capture import hooks
from dynamo_nb.capture.memory import MEMORY
from dynamo_nb.capture.recorder import Hook, Hooked, Recorder
from dynamo_nb.events import Event
from dynamo_nb.record.types import Note

__all__ = ["Capture"]


class Capture:
    """Watches torch.compile while it is entered.

    Hooks are installed on entry, each on its own, and all taken off on exit, whatever happened.
    One that is missing in this torch, or raises, leaves a note and costs its own panel alone.

    Parameters
    ----------
    on_progress
        Called with `(compile id, frame name, stage)` as a stage begins, and with three empty
        strings when a compile ends.
    more
        Hooks that are installed besides those of the table.
    """

    def __init__(
        self,
        *,
        on_progress: Callable[[str, str, str], None] | None = None,
        more: Iterable[Hook] = (),
    ) -> None:
        self._recorder = Recorder(on_progress)
        self._hooks = (*hooks.HOOKS, *more)
        self._undo = ExitStack()

    @property
    def events(self) -> list[Event]:
        """What was seen so far, in order."""
        return self._recorder.events

    @property
    def notes(self) -> list[Note]:
        """What is missing, and why."""
        return self._recorder.notes

    def __enter__(self) -> Capture:
        self._recorder.generation = MEMORY.generation
        for hook in self._hooks:
            self._install(Hooked(hook, self._recorder))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._undo.close()
        for event in self.events:
            if callable(event.data):
                event.data = event.data()

    def _install(self, hooked: Hooked) -> None:
        """Install one hook, or note what is missing without it."""
        try:
            hooked.hook.install(hooked)
        except Exception as error:
            self._recorder.note_failure(hooked.hook, error)
            hooked.undo.close()
        else:
            self._undo.callback(self._remove, hooked)

    def _remove(self, hooked: Hooked) -> None:
        with self._recorder.apart(hooked.hook):
            hooked.undo.close()
