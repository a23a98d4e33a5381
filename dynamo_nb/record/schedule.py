"""What kernels read, write and compute, what memory they share, and which nodes need none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from dynamo_nb.record.draft import Draft
from dynamo_nb.record.types import Buffer, Folded, Graph, Kernel, Node, NotFused

__all__ = ["finish_schedule", "graph_of"]

#: An operator that eager runs: its name, and which one of that name.
_Operator = tuple[str, str]

#: A line of output code in which a buffer takes over another's memory.
_REUSE = re.compile(
    r"^\s*(?:auto )?(\w+) = (?:reinterpret_tensor\()?(\w+)\b.*  (?:#|//) reuse$", re.MULTILINE
)


def graph_of(direction: str) -> str:
    """Return the name of the post-grad graph of a direction."""
    return f"post_grad.{direction}" if direction else "post_grad"


def finish_schedule(draft: Draft) -> None:
    """Give a draft's kernels what the scheduler knows, and list buffers and what is not fused."""
    graphs = {graph.name: graph for graph in draft.graphs if graph.stage == "post_grad"}
    for raw in draft.raw_schedules:
        graph = graphs.get(graph_of(raw["direction"]))
        if graph is not None:
            _finish(draft, raw, graph)
    _mark_saved(draft, graphs)


def _finish(draft: Draft, raw: dict[str, Any], graph: Graph) -> None:
    direction = raw["direction"]
    of_op = {
        op: name
        for (where, name), ops in draft.kernel_ops.items()
        if where == direction
        for op in ops
    }
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for group in raw["groups"]:
        groups[_kernel_of(group, of_op)].append(group)
    operators = _operators(draft, raw, graph)
    for index, kernel in enumerate(draft.kernels):
        if kernel.graph == graph.name:
            draft.kernels[index] = _with_work(kernel, groups[kernel.name], operators)
    kernels = [kernel for kernel in draft.kernels if kernel.graph == graph.name]
    draft.eager_operators[graph.name] = _eager_operators(kernels, operators)
    draft.buffers += _buffers(draft, raw, graph, kernels)
    draft.folded += _folded(raw, graph, kernels)
    draft.unfused += _unfused(raw, graph, of_op)


def _kernel_of(group: dict[str, Any], of_op: dict[str, str]) -> str:
    return next((of_op[op] for op in group["ops"] if op in of_op), "")


# ------------------------------------------------------------------ kernels


def _with_work(
    kernel: Kernel, groups: list[dict[str, Any]], operators: dict[str, _Operator]
) -> Kernel:
    return replace(
        kernel,
        reads=_added(group["reads"] for group in groups),
        writes=_added(group["writes"] for group in groups),
        flops=_total([group["flops"] for group in groups]),
        dtype=next((group["dtype"] for group in groups if "dtype" in group), kernel.dtype),
        replaces=_eager_operators([kernel], operators),
    )


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _added(sizes: Any) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in sizes:
        for name, size in each.items():
            total[name] = total.get(name, 0) + size
    return total


def _operators(draft: Draft, raw: dict[str, Any], graph: Graph) -> dict[str, _Operator]:
    """Return the operator of eager that each node of a graph is, or is a part of.

    Views do no work, and what backward computes again of the forward, eager has kept.
    """
    joint = (node for each in draft.graphs if each.stage == "joint" for node in each.nodes)
    forward = {node.name for node in joint if not node.is_backward}
    return {
        node.name: _operator(node)
        for node in graph.nodes
        if not raw["folded"].get(node.name) and not _is_again(node, graph, forward)
    }


def _operator(node: Node) -> _Operator:
    """Return what tells an operator from others.

    Nodes that one was decomposed into share its name and their place in Dynamo's graph.
    """
    if node.original_aten in ("", node.target) or not node.origins:
        return node.target, node.name
    return node.original_aten, node.origins[-1]


def _eager_operators(kernels: list[Kernel], operators: dict[str, _Operator]) -> int:
    """Return how many operators eager runs for kernels; each extern call is one."""
    fused = [kernel for kernel in kernels if kernel.language != "extern"]
    names = {name for kernel in fused for name in kernel.nodes}
    found = {operators[name] for name in names if name in operators}
    calls = sum(kernel.calls for kernel in kernels if kernel.language == "extern")
    return len(found) + calls


def _is_again(node: Node, graph: Graph, forward: set[str]) -> bool:
    """Tell whether backward computes a node of the joint graph's forward part again."""
    names = [origin.partition("/")[2] for origin in node.origins if origin.startswith("backward/")]
    return graph.direction == "backward" and not forward.isdisjoint([*names, node.name])


# ------------------------------------------------------------------ buffers


def _buffers(
    draft: Draft, raw: dict[str, Any], graph: Graph, kernels: list[Kernel]
) -> Iterator[Buffer]:
    code = "\n".join(output.code for output in draft.output_code if output.graph == graph.name)
    reuses = dict(_REUSE.findall(code)) | raw["in_place"]
    for item in raw["buffers"]:
        name = item["name"]
        reused = reuses.get(name, "")
        yield Buffer(
            **item,
            graph=graph.name,
            reuses=reused,
            in_place=bool(reused)
            and any(name in kernel.writes and reused in kernel.reads for kernel in kernels),
        )


def _mark_saved(draft: Draft, graphs: dict[str, Graph]) -> None:
    """Mark the buffers of the forward that backward takes: it names its inputs after the nodes."""
    forward, backward = (graphs.get(graph_of(name)) for name in ("forward", "backward"))
    if forward is None or backward is None:
        return
    nodes = {node.name: node for node in forward.nodes}
    taken = [node.name for node in backward.nodes if node.op == "placeholder"]
    saved = {_looked_at(name, nodes, draft.folded) for name in taken if name in nodes}
    for index, buffer in enumerate(draft.buffers):
        if buffer.graph == forward.name and buffer.node in saved:
            draft.buffers[index] = replace(buffer, saved=True)


def _looked_at(name: str, nodes: dict[str, Node], folded: list[Folded]) -> str:
    """Return the node whose memory a node is, through views."""
    views = {item.node for item in folded if item.why == "view"}
    while name in views and name in nodes and nodes[name].inputs:
        name = nodes[name].inputs[0]
    return name


# ------------------------------------------------------------------ nodes without a kernel, fusion


def _folded(raw: dict[str, Any], graph: Graph, kernels: list[Kernel]) -> Iterator[Folded]:
    computed = {name for kernel in kernels for name in kernel.nodes}
    for node in graph.nodes:
        if node.op.startswith("call") and node.name not in computed:
            yield Folded(graph=graph.name, node=node.name, why=raw["folded"].get(node.name, ""))


def _unfused(raw: dict[str, Any], graph: Graph, of_op: dict[str, str]) -> Iterator[NotFused]:
    for first, second, buffers, reason in raw["unfused"]:
        writer, reader = raw["groups"][first], raw["groups"][second]
        yield NotFused(
            graph=graph.name,
            writer=_kernel_of(writer, of_op),
            reader=_kernel_of(reader, of_op),
            reason=reason,
            buffers=buffers,
            bytes=sum(
                writer["writes"].get(name, 0) + reader["reads"].get(name, 0) for name in buffers
            ),
            writer_nodes=writer["nodes"],
            reader_nodes=reader["nodes"],
            loops=[text for group in (writer, reader) if (text := _loops_text(group["loops"]))],
        )


def _loops_text(loops: list[list[str]]) -> str:
    """Return a group's loops as text: `16 x 8, reduced over 4`."""
    if not loops:
        return ""
    kept, reduced = (" x ".join(size for size in side if size != "1") for side in loops)
    over = f", reduced over {reduced}" if reduced else ""
    return f"{kept or 'one element'}{over}"
