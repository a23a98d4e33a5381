"""What the capture remembers between cells: values that live cache entries were compiled for.

Dynamo's cache outlives a cell, so a recompile may be against an entry of an earlier one. Kept are
plain values only, by guard manager and only as long as it lives.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, ref

import torch

from dynamo_nb.capture.plain import brief, tensor_value

__all__ = ["MEMORY", "Entry", "Memory", "Seen", "names", "seen"]


class Seen(NamedTuple):
    """A guarded value at compile time: as text, its type, its length, its tensor properties."""

    text: str
    type: str
    length: int | None
    tensor: dict[str, Any] | None


class Entry(NamedTuple):
    """What a cache entry was compiled for: values by guard source, and torch's global state."""

    compile_id: str
    generation: int
    values: dict[str, Seen]
    state: dict[str, Any]


class Memory:
    """Entries by guard manager, and the generation that counts Dynamo's resets."""

    def __init__(self) -> None:
        self.generation = 0
        self._ids: set[str] = set()
        self._entries: WeakKeyDictionary[Any, Entry] = WeakKeyDictionary()
        #: By id, because two cells with the same text have equal code objects.
        self._left_alone: dict[int, tuple[ReferenceType[CodeType], str]] = {}
        self._asked: dict[int, int] = {}  # how often, by the same ids

    def begin(self, compile_id: str) -> int:
        """Return the generation of a compile that starts now: an id seen before means a reset."""
        if compile_id in self._ids:
            self.generation += 1
            self._ids.clear()
        self._ids.add(compile_id)
        return self.generation

    def keep(self, manager: Any, entry: Entry) -> None:
        """Remember what the entry behind a guard manager was compiled for."""
        self._entries[manager] = entry

    def entry(self, manager: Any) -> Entry | None:
        """Return what is known of the entry behind a guard manager, None when it was not seen."""
        return self._entries.get(manager)

    def leave_alone(self, code: CodeType, reason: str) -> None:
        """Remember why Dynamo does not compile a code object; empty when it has compiled it."""
        key = id(code)

        def forget(_: object = None) -> None:
            self._left_alone.pop(key, None)
            self._asked.pop(key, None)

        if not reason:
            forget()
            return
        self._left_alone[key] = ref(code, forget), reason
        self._asked[key] = self._asked.get(key, 0) + 1

    def left_alone(self, code: CodeType) -> str:
        """Return why Dynamo leaves a code object alone, empty when nothing is known."""
        known, reason = self._left_alone.get(id(code), (None, ""))
        return reason if known is not None and known() is code else ""

    def asked(self, code: CodeType) -> int:
        """Return how often Dynamo was asked about a code object that it leaves alone."""
        return self._asked.get(id(code), 0)


#: One per process, as Dynamo's cache is.
MEMORY = Memory()


def seen(item: Any) -> Seen:
    """Return what to remember of a guarded value."""
    tensor = tensor_value(item) if isinstance(item, torch.Tensor) else None
    sized = isinstance(item, list | tuple | dict | set | frozenset | str)
    return Seen(brief(item), type(item).__name__, len(item) if sized else None, tensor)


def names(values: dict[str, Seen]) -> Callable[[str], str]:
    """Return a function that names the object which a source held, empty where not known."""

    def name_of(source: str) -> str:
        known = values.get(source)
        return known.text if known is not None else ""

    return name_of
