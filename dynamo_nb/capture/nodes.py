"""The nodes of an FX graph as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import fx

from dynamo_nb.capture.plain import Place, node_target, parse_stack_trace, value
from dynamo_nb.capture.replacements import is_backward, origin_meta, replaced_names

__all__ = ["graph_nodes"]


def _from_node(sources: Any) -> list[tuple[int, str]]:
    """Return `(graph id, node name)` for all that a node came from, nearest first."""
    found: list[tuple[int, str]] = []
    pending = list(sources or ())
    while pending:
        source = pending.pop(0)
        found.append((source.graph_id, source.name))
        pending.extend(source.from_node or ())
    return found


def _module_stack(meta: Mapping[str, Any]) -> list[list[str]]:
    stack = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack") or {}
    return [
        [str(path), kind.__name__ if isinstance(kind, type) else str(kind).rsplit(".", 1)[-1]]
        for path, kind in stack.values()
    ]


def graph_nodes(graph: fx.Graph, places: dict[fx.Node, list[Place]]) -> list[dict[str, Any]]:
    """Return a graph's nodes in the shape of the record's `Node`.

    `places` has the source places of nodes that Dynamo made under our eyes; others fall back on
    their `stack_trace` text. Besides `Node`'s own fields each node has what the builder links by:
    `from_node`, `seq_nr`, and the names of those that a pattern `replaced` by it.
    """
    nodes = []
    for node in graph.nodes:
        meta = origin_meta(node)
        original = meta.get("original_aten")
        nodes.append(
            {
                "name": node.name,
                "op": node.op,
                "target": node_target(node.target),
                "inputs": [used.name for used in node.all_input_nodes],
                "value": value(meta["val"] if "val" in meta else meta.get("example_value")),
                "frames": places.get(node) or parse_stack_trace(meta.get("stack_trace")),
                "module_stack": _module_stack(meta),
                "original_aten": "" if original is None else str(original),
                "is_backward": is_backward(meta),
                "from_node": _from_node(meta.get("from_node")),
                "seq_nr": meta.get("seq_nr", -1),
                "replaced": replaced_names(node),
            }
        )
    return nodes
