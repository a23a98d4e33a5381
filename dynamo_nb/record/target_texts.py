"""What stayed behind when a graph was taken to a target, and where in the cell it went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dynamo_nb.record.draft import Draft
from dynamo_nb.record.places import Places, innermost
from dynamo_nb.record.types import CELL, Compile, Note

__all__ = ["error_text", "left_behind", "target_notes"]

_CALL = "what `{name}` launches: it is a library call here, at {where}"
_UNTRAINED = "the backward of `{name}`, so there is none here: its formula stays there: {reason}"
_FEW = 4

_NOTHING = "the cell compiled no graph"
_HINDERED = f"{_NOTHING}; the report says what hindered it"
_LACKING = "{cell} compiled it: run this one with --fresh to take its graph to the target"
_SHOWN = "those shown are from its compile in {cell}"
_UNINTERPRETED = "{cell} compiled it: run this one with --fresh to interpret them"


def left_behind(answer: dict[str, Any], draft: Draft, places: Places) -> Iterator[str]:
    """Yield what of a graph only the notebook knows: its own operators."""
    nodes: dict[str, list[str]] = {}
    for name, node, stack in answer.get("operators", ()):
        nodes.setdefault(name, []).append(_node_text(node, _frames(node, draft) or stack, places))
    for name, called in nodes.items():
        more = f" and {len(called) - _FEW} more" if len(called) > _FEW else ""
        yield _CALL.format(name=name, where="; ".join(called[:_FEW]) + more)
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


def target_notes(options: dict[str, Any], compiles: Sequence[Compile]) -> Iterator[Note]:
    """Yield what the report lacks of the targets asked for, or has from an earlier cell."""
    specs = options.get("target") or ()
    with_graph = [item for item in compiles if item.graphs or item.seen != "whole"]
    if specs and not with_graph:
        hindered = any(item.graph_breaks or item.status != "ok" for item in compiles)
        yield _note(_kernels(specs), _HINDERED if hindered else _NOTHING)
    for entry in with_graph:
        if specs and (entry.cell is not None or entry.seen != "whole"):
            yield from _earlier_notes(entry, specs, interprets=bool(options.get("interpret")))


def _earlier_notes(entry: Compile, specs: Sequence[str], *, interprets: bool) -> Iterator[Note]:
    """Yield notes on an entry that this cell only ran: its graph was not taken anywhere anew."""
    cell = f"cell [{entry.cell}]" if entry.cell is not None else "an earlier cell"
    there = {target.spec for target in entry.targets}
    lacking = [spec for spec in specs if spec not in there]
    shown = [spec for spec in specs if spec in there]
    if lacking:
        yield _note(f"{_kernels(lacking)} of {entry.key}", _LACKING.format(cell=cell))
    if shown:
        yield _note(f"new {_kernels(shown)} of {entry.key}", _SHOWN.format(cell=cell))
    if shown and interprets:
        yield _note(f"check of the kernels of {entry.key}", _UNINTERPRETED.format(cell=cell))


def _note(panel: str, message: str) -> Note:
    return Note(hook="", panel=panel, message=message)


def _kernels(specs: Sequence[str]) -> str:
    return f"kernels for {', '.join(specs)}"


def _node_text(node: str, stack: Sequence[Any], places: Places) -> str:
    line = _line(stack, places)
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
