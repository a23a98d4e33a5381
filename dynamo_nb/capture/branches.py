"""Nodes of the branches and loops of a graph, which Inductor compiles as graphs of their own.

They have names of their own graph, which the one around it may have, too: here each begins with its
branch, `true_graph_0.mul`.
"""

from __future__ import annotations

from typing import Any

from torch import fx

from dynamo_nb.capture.nodes import graph_nodes

__all__ = ["branch_nodes", "node_name"]


def node_name(node: fx.Node) -> str:
    """Return a node's name among those of the whole graph that is compiled."""
    return f"{_branch()}{node.name}" if node.graph is _graph() else node.name


def branch_nodes() -> list[dict[str, Any]]:
    """Return what the branch under way calls, in the shape of the record's `Node`s; else nothing.

    What is traced there has no sequence number that would mean the same outside.
    """
    branch = _branch()
    if not branch:
        return []
    nodes = [raw for raw in graph_nodes(_graph(), {}) if raw["op"].startswith("call")]
    known = {raw["name"] for raw in nodes}
    return [
        {
            **raw,
            "name": f"{branch}{raw['name']}",
            "inputs": [f"{branch}{name}" for name in raw["inputs"] if name in known],
            "seq_nr": -1,
        }
        for raw in nodes
    ]


def _branch() -> str:
    from torch._inductor.graph import SubgraphLowering
    from torch._inductor.virtualized import V

    return f"{V.graph.name}." if isinstance(V.graph, SubgraphLowering) else ""


def _graph() -> fx.Graph:
    from torch._inductor.virtualized import V

    graph: fx.Graph = V.graph.module.graph
    return graph
