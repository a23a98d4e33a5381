"""Kernels of a record, chosen by the line of the cell that they compute."""

from __future__ import annotations

from dynamo_nb.record.definitions import defined_lines
from dynamo_nb.record.types import CELL, CellRecord, Compile, Kernel, Node

__all__ = ["kernel_nodes", "kernels", "nodes_of"]


def kernels(
    record: CellRecord, line: int | None = None, target: str = ""
) -> list[tuple[str, Kernel]]:
    """Return the kernels of all compiles with their compile's key; see `CellRecord.kernels`."""
    return [
        (compiled.key, kernel)
        for compiled in record.compiles
        for kernel in _kernels_on(compiled, target)
        if line is None or _computes(kernel, compiled, line)
    ]


def _kernels_on(compiled: Compile, target: str) -> list[Kernel]:
    if not target:
        return compiled.kernels
    return [kernel for item in compiled.targets if item.spec == target for kernel in item.kernels]


def kernel_nodes(compiled: Compile, kernel: Kernel) -> list[Node]:
    """Return the post-grad nodes that were fused into a kernel."""
    return nodes_of(compiled, kernel.graph, kernel.nodes)


def nodes_of(compiled: Compile, graph_name: str, names: list[str]) -> list[Node]:
    """Return nodes of a compile's graph by their names, in the graph's order."""
    graph, wanted = compiled.graph(graph_name), set(names)
    return [node for node in graph.nodes if node.name in wanted] if graph else []


def _computes(kernel: Kernel, compiled: Compile, line: int) -> bool:
    nodes = kernel_nodes(compiled, kernel)
    frames = (frame for node in nodes for frame in (*node.frames, *node.also))
    places = (*frames, *(frame for _, frame in defined_lines(kernel)))
    return any(frame.file == CELL and frame.line == line for frame in places)
