"""Walking a guard manager tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["children", "managers"]


def children(manager: Any) -> Iterator[Any]:
    """Yield the guard managers below one, those of a dict's keys and values included."""
    from torch._C._dynamo.guards import DictGuardManager

    if isinstance(manager, DictGuardManager):
        for _, pair in sorted(manager.get_key_value_managers().items()):
            yield from (child for child in pair if child is not None)
    yield from manager.get_child_managers()


def managers(root: Any) -> Iterator[Any]:
    """Yield each guard manager of a tree, the root first."""
    waiting = [root]
    while waiting:
        manager = waiting.pop()
        yield manager
        waiting += reversed(list(children(manager)))
