"""Pairs of operations that Inductor did not fuse though one reads what the other writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dynamo_nb.capture.branches import node_name

__all__ = ["Declined", "origins", "unfused"]

#: More pairs than these, of one graph, say nothing new.
_KEPT = 400


class Declined:
    """What Inductor said of the pairs that it did not fuse, by the names of the two."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[str, str], str] = {}
        self._said: dict[tuple[str, str], str] = {}

    def say(self, why: Any, reason: str, *args: Any) -> None:
        """Take in a reason."""
        self._said[why.name1, why.name2] = reason % args if args else reason

    def answer(self, can_fuse: bool, _: Any, node1: Any, node2: Any, *__: Any, **___: Any) -> None:
        """Take in an answer: a backend may decline without a reason."""
        if not can_fuse:
            pair = node1.get_name(), node2.get_name()
            self.pairs.pop(pair, None)
            self.pairs[pair] = self._said.pop(pair, "")

    def clear(self) -> None:
        """Forget all: the next graph begins."""
        self.pairs.clear()
        self._said.clear()


def unfused(nodes: list[Any], declined: dict[tuple[str, str], str]) -> Iterator[dict[str, Any]]:
    """Yield the pairs of groups of which one reads what the other wrote.

    Inductor asks in rounds, first about single operations, and about pairs that only share an
    input. Its last answer on two parts of the groups that do hand something on is the one that
    counts; the nodes and the loops are those of these parts.
    """
    parts = {
        part.get_name(): (part, at) for at, node in enumerate(nodes) for part in node.get_nodes()
    }
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for names, reason in declined.items():
        sides = [[parts[op] for op in name.split("_") if op in parts] for name in names]
        if not all(sides):
            continue
        pair = sides[0][0][1], sides[1][0][1]
        writing, reading = ([part for part, _ in side] for side in sides)
        handed = set(_handed_on(writing, reading))
        if handed and pair[0] != pair[1]:
            ends = (
                [part for part in writing if handed & _written(part)],
                [part for part in reading if handed & _read(part)],
            )
            found.pop(pair, None)
            found[pair] = {
                "reason": reason,
                "nodes": [[name for part in end for name in _own_nodes(part)] for end in ends],
                "loops": [_loops(max(end, key=_reduces)) for end in ends],
            }
    for (writer, reader), told in list(found.items())[:_KEPT]:
        handed_on = _handed_on([nodes[writer]], [nodes[reader]])
        yield {"groups": [writer, reader], "buffers": handed_on, **told}


def _reduces(part: Any) -> bool:
    return bool(part.is_reduction())


def _handed_on(writers: list[Any], readers: list[Any]) -> list[str]:
    """Return the buffers that some operations write and others read."""
    written = {name for node in writers for name in _written(node)}
    return sorted(written & {name for node in readers for name in _read(node)})


def _written(node: Any) -> set[str]:
    return {dep.name for dep in node.read_writes.writes}


def _read(node: Any) -> set[str]:
    """Return what is read; what only must be over before, as it is written over, is not."""
    from torch._inductor.dependencies import WeakDep

    return {dep.name for dep in node.read_writes.reads if not isinstance(dep, WeakDep)}


def _own_nodes(part: Any) -> list[str]:
    """Return the node that an operation is, all that led to it where there is no such node."""
    own = part.node.get_origin_node() if part.node is not None else None
    return [node_name(own)] if own is not None else origins(part)


def origins(part: Any) -> list[str]:
    """Return the nodes that led to a scheduled operation."""
    return list(map(node_name, part.node.get_origins())) if part.node is not None else []


def _loops(node: Any) -> list[list[str]]:
    """Return the sizes of an operation's loops: which stay, and which are reduced over."""
    sizes = getattr(node, "group", (None, None))[1]
    if not isinstance(sizes, tuple | list) or len(sizes) != 2:
        return []
    return [
        [str(size) for size in side] if isinstance(side, tuple | list) else [str(side)]
        for side in sizes
    ]
