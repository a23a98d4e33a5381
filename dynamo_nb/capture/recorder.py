"""The capture's inside: where hooks put what they see, and how each of them fails alone."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import CodeType
from typing import Any, NamedTuple
from weakref import ref

from torch._guards import CompileContext

from dynamo_nb.events import Event
from dynamo_nb.record.types import Note

__all__ = ["Hook", "Hooked", "Recorder"]

_MISSING = object()


class Hook(NamedTuple):
    """One row of the hook table.

    `panel` says, for a person, what the report lacks when the hook is missing or raises. `install`
    attaches it; all that it changed must be undone by `Hooked.undo`.
    """

    name: str
    panel: str
    install: Callable[[Hooked], None]


class Recorder:
    """Collects events and notes of one capture. Safe to be called from any thread."""

    def __init__(self, on_progress: Callable[[str, str, str], None] | None = None) -> None:
        self.events: list[Event] = []
        self.notes: list[Note] = []
        self.generation = 0
        self.codes: dict[int, ref[CodeType]] = {}
        self._on_progress = on_progress
        self._failed: set[str] = set()
        self._local = threading.local()

    def emit(
        self,
        name: str,
        data: Any = None,
        *,
        compile_id: str | None = None,
        attempt: int | None = None,
        payload: str | None = None,
    ) -> None:
        """Add an event; compile id and attempt default to those of the compile under way."""
        context = CompileContext.try_get()
        if compile_id is None:
            compile_id = self.compile_id
        if attempt is None:
            attempt = context.attempt if context is not None else 0
        self.events.append(
            Event(
                name=name,
                compile_id=compile_id,
                generation=self.generation,
                attempt=attempt,
                data=data,
                payload=payload,
                time=time.perf_counter(),
            )
        )

    @property
    def compile_id(self) -> str:
        """Id of the compile under way on this thread, `0/1`; empty outside any."""
        context = CompileContext.try_get()
        current = context.compile_id if context is not None else None
        return "" if current is None else str(current)

    def meet(self, code: CodeType) -> None:
        """Remember, as long as it lives, that Dynamo was asked about a code object."""
        key = id(code)

        def forget(_: object) -> None:
            self.codes.pop(key, None)

        if key not in self.codes:
            self.codes[key] = ref(code, forget)

    def progress(self, compile_id: str, name: str, stage: str) -> None:
        """Say which stage of which frame begins; three empty strings when compiling ends."""
        if self._on_progress is not None:
            self._on_progress(compile_id, name, stage)

    @property
    def graph(self) -> str:
        """Name of the AOT graph that Inductor compiles on this thread: `forward`, ..., or empty."""
        return getattr(self._local, "graph", "")

    @contextmanager
    def inside_graph(self, name: str) -> Iterator[None]:
        """Mark all that is emitted on this thread as belonging to the AOT graph `name`."""
        outer = self.graph
        self._local.graph = name
        try:
            yield
        finally:
            self._local.graph = outer

    @contextmanager
    def apart(self, hook: Hook) -> Iterator[None]:
        """Keep an exception of ours away from the user: it becomes one note for the hook."""
        try:
            yield
        except Exception as error:
            self.note_failure(hook, error)

    def note_failure(self, hook: Hook, error: Exception) -> None:
        """Say once that a hook failed and what is missing for it."""
        if hook.name not in self._failed:
            self._failed.add(hook.name)
            message = f"{type(error).__name__}: {error}"
            self.notes.append(Note(hook=hook.name, panel=hook.panel, message=message))


class Hooked:
    """What one hook installs and how it is undone; handed to `Hook.install`."""

    def __init__(self, hook: Hook, recorder: Recorder) -> None:
        self.hook = hook
        self.recorder = recorder
        self.undo = ExitStack()

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Set an attribute until `undo`; one that `owner` itself did not have is removed again."""
        old = vars(owner).get(name, _MISSING)
        setattr(owner, name, new)
        if old is _MISSING:
            self.undo.callback(delattr, owner, name)
        else:
            self.undo.callback(setattr, owner, name, old)

    def around(
        self,
        owner: Any,
        name: str,
        *,
        before: Callable[..., None] | None = None,
        after: Callable[..., None] | None = None,
        failed: Callable[..., None] | None = None,
    ) -> None:
        """Watch a function of torch: same arguments, same result, same exception.

        `before(*args, **kwargs)` runs ahead of it, `after(result, *args, **kwargs)` once it has
        returned, `failed(error, *args, **kwargs)` when it raised. What they raise is noted.
        """
        original = getattr(owner, name)
        watch = functools.partial(self._watch, original, before, after, failed)

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            return watch(args, kwargs)

        is_static = isinstance(vars(owner).get(name), staticmethod)
        self.replace(owner, name, staticmethod(watched) if is_static else watched)

    def inside(
        self, owner: Any, name: str, context: Callable[..., AbstractContextManager[Any]]
    ) -> None:
        """Run a function of torch inside `context(*args, **kwargs)`; without it if that raises."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with ExitStack() as stack:
                with self.recorder.apart(self.hook):
                    stack.enter_context(context(*args, **kwargs))
                return original(*args, **kwargs)

        self.replace(owner, name, wrapped)

    def _watch(
        self,
        original: Callable[..., Any],
        before: Callable[..., None] | None,
        after: Callable[..., None] | None,
        failed: Callable[..., None] | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if before is not None:
            with self.recorder.apart(self.hook):
                before(*args, **kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            if failed is not None:
                with self.recorder.apart(self.hook):
                    failed(error, *args, **kwargs)
            raise
        if after is not None:
            with self.recorder.apart(self.hook):
                after(result, *args, **kwargs)
        return result
