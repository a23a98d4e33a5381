"""What stayed behind when a graph was taken to a target, and where in the cell it went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dynamo_nb.record.draft import Draft
from dynamo_nb.record.places import Places, innermost
from dynamo_nb.record.types import CELL

__all__ = ["error_text", "left_behind"]

_CALL = "what `{name}` launches: it is a library call here, at {where}"
_UNTRAINED = "the backward of `{name}`, so there is none here: its formula stays there: {reason}"
_FEW = 4


def left_behind(answer: dict[str, Any], draft: Draft, places: Places) -> Iterator[str]:
    """Yield what of a graph only the notebook knows: its own operators."""
    nodes: dict[str, list[str]] = {}
    for name, node in answer.get("operators", ()):
        nodes.setdefault(name, []).append(node)
    for name, called in nodes.items():
        more = f" and {len(called) - _FEW} more" if len(called) > _FEW else ""
        where = "; ".join(_node_text(node, draft, places) for node in called[:_FEW])
        yield _CALL.format(name=name, where=where + more)
    for name, reason in answer.get("untrained", {}).items():
        yield _UNTRAINED.format(name=name, reason=reason)


def error_text(raw: dict[str, Any], draft: Draft, places: Places) -> str:
    """Return why nothing came of a graph, with the node and the line where it went wrong."""
    said = raw.get("error") or "nothing came of it"
    node = raw.get("node") or ""
    line = _line(_frames(node, draft) or raw.get("places") or (), places)
    named = [f"node `{node}`"] if node and f"`{node}`" not in said else []
    where = ", ".join([*named, *([line] if line else [])])
    return f"{said} ({where})" if where else said


def _node_text(node: str, draft: Draft, places: Places) -> str:
    line = _line(_frames(node, draft), places)
    return f"node `{node}` ({line})" if line else f"node `{node}`"


def _frames(node: str, draft: Draft) -> Sequence[Any]:
    """Return the places of a node of the Dynamo graph; nothing where it is another graph's."""
    graphs = [graph for graph in draft.raw_graphs if graph["stage"] == "dynamo"]
    nodes = [raw for graph in graphs for raw in graph["nodes"] if raw["name"] == node]
    return nodes[0]["frames"] if nodes else ()


def _line(stack: Sequence[Any], places: Places) -> str:
    frames = places.frames(stack)
    frame = innermost([frame for frame in frames if frame.file.startswith("<cell")] or frames)
    if frame is None:
        return ""
    return f"line {frame.line}" if frame.file == CELL else f"{frame.file}:{frame.line}"
