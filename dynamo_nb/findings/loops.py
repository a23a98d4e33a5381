"""Python loops that Dynamo unrolled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dynamo_nb.findings.sources import enclosing_loop, parse
from dynamo_nb.findings.wording import cell_lines
from dynamo_nb.record.causes import own_compiles
from dynamo_nb.record.types import CELL, CellRecord, Finding, Graph, Node, Ref

__all__ = ["unrolled_loop"]

#: Fewer iterations than this are not worth a word.
_ITERATIONS = 16


def unrolled_loop(record: CellRecord) -> Iterator[Finding]:
    """A loop of the cell became a graph with a copy of its body for each iteration.

    A loop over a model's layers is none: its nodes belong to different modules.
    """
    for compiled in own_compiles(record):
        for graph in compiled.graphs:
            if graph.stage == "dynamo":
                for line, nodes in _loops(record, graph).items():
                    iterations = _iterations(nodes)
                    if iterations >= _ITERATIONS:
                        yield _finding(line, iterations, nodes, compiled.key, graph)


def _loops(record: CellRecord, graph: Graph) -> dict[int, list[Node]]:
    """Return the nodes of each loop in the cell, by the loop's line."""
    tree = parse(record, CELL)
    if tree is None:
        return {}
    lines = {frame.line for node in graph.nodes for frame in node.frames if frame.file == CELL}
    found = {line: enclosing_loop(tree, line) for line in lines}
    loops: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if not node.op.startswith("call"):
            continue
        inside = (found.get(frame.line) for frame in reversed(node.frames) if frame.file == CELL)
        loop = next(filter(None, inside), None)
        if loop is not None:
            loops.setdefault(loop.lineno, []).append(node)
    return loops


def _iterations(nodes: list[Node]) -> int:
    """Return how often most of the loop's operations occur, each told by its exact place."""
    places = Counter(repr((node.frames, node.module_stack)) for node in nodes)
    (count, _), *_ = Counter(places.values()).most_common(1)
    return count


def _finding(line: int, iterations: int, nodes: list[Node], key: str, graph: Graph) -> Finding:
    return Finding(
        code="unrolled-loop",
        severity="warning",
        message=(
            f"The loop is unrolled: its body is in the graph {iterations} times, as {len(nodes)} "
            "nodes. Compile time grows with it, and another number of iterations is a recompile."
        ),
        advice=(
            "Replace the loop by operations on the whole tensor, compile only its body, or use "
            "torch.scan or torch.while_loop where they fit (torch._higher_order_ops)."
        ),
        line=line,
        lines=cell_lines(line),
        refs=[Ref(key, "node", f"{graph.name}/{node.name}") for node in nodes[:1]],
    )
