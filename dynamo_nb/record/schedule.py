"""What kernels read, write and compute, what memory they share, and which nodes need none."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from dynamo_nb.record.draft import Draft
from dynamo_nb.record.types import Buffer, Folded, Graph, Kernel, Node, NotFused

__all__ = ["finish_schedule", "graph_of"]

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
    schedules: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for raw in draft.raw_schedules:
        schedules[graph_of(raw["direction"])].append(raw)
    for name, found in schedules.items():
        if name in graphs:
            _finish(draft, _joined(found), graphs[name])
    _mark_saved(draft, graphs)


def _joined(schedules: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the schedules of a graph and of the branches and loops in it as one, its own last.

    Inductor names what is in a branch after it, so that no two buffers or operations are alike.
    """
    joined: dict[str, Any] = {
        key: {name: item for raw in schedules for name, item in raw[key].items()}
        for key in ("sizes", "in_place", "folded", "operators")
    }
    joined["unfused"] = []
    joined["groups"] = []
    for raw in schedules:
        before = len(joined["groups"])
        joined["groups"] += raw["groups"]
        joined["unfused"] += [
            {**pair, "groups": [before + at for at in pair["groups"]]} for pair in raw["unfused"]
        ]
    joined["buffers"] = [item for raw in schedules for item in raw["buffers"]]
    return {"direction": schedules[-1]["direction"], **joined}


def _finish(draft: Draft, raw: dict[str, Any], graph: Graph) -> None:
    direction = raw["direction"]
    launches = {name: ops for (where, name), ops in draft.kernel_ops.items() if where == direction}
    of_op = {op: name for name, each in launches.items() for ops in each for op in ops}
    raw["operators"] = _without_repeats(raw["operators"], draft, graph)
    of_group = {op: group for group in raw["groups"] for op in group["ops"]}
    for index, kernel in enumerate(draft.kernels):
        if kernel.graph == graph.name:
            groups = [
                list({id(of_group[op]): of_group[op] for op in ops if op in of_group}.values())
                for ops in launches.get(kernel.name, ())
            ]
            draft.kernels[index] = _with_work(kernel, groups, raw)
    kernels = [kernel for kernel in draft.kernels if kernel.graph == graph.name]
    draft.eager_operators[graph.name] = _eager_operators(draft, graph, kernels)
    draft.buffers += _buffers(draft, raw, graph, kernels)
    draft.folded += _folded(raw, graph, kernels)
    draft.unfused += _unfused(raw, graph, of_op)


def _kernel_of(group: dict[str, Any], of_op: dict[str, str]) -> str:
    return next((of_op[op] for op in group["ops"] if op in of_op), "")


# ------------------------------------------------------------------ kernels


def _with_work(kernel: Kernel, launches: list[list[dict[str, Any]]], raw: dict[str, Any]) -> Kernel:
    """Return a kernel with the work of its launches, each of which does some groups."""
    groups = [group for launch in launches for group in launch]
    return replace(
        kernel,
        reads=_added([_bytes(launch, "reads", raw["sizes"]) for launch in launches]),
        writes=_added([_bytes(launch, "writes", raw["sizes"]) for launch in launches]),
        flops=_total([group["flops"] for group in groups]),
        dtype=next((group["dtype"] for group in groups if "dtype" in group), kernel.dtype),
        replaces=_count_operators(raw["operators"], kernel.nodes),
    )


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _bytes(groups: list[dict[str, Any]], side: str, sizes: dict[str, int]) -> dict[str, int]:
    """Return the bytes of each buffer that groups of one launch read, or write.

    What several of them come to counts once; other parts of a buffer add up to all of it at most.
    """
    places: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for group in groups:
        for name, found in group[side].items():
            places[name].update(found)
    return {
        name: min(sum(found.values()), sizes.get(name) or sum(found.values()))
        for name, found in places.items()
    }


def _added(launches: list[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in launches:
        total.update(each)
    return dict(total)


def _eager_operators(draft: Draft, graph: Graph, kernels: list[Kernel]) -> int:
    """Return how many operators eager runs: those of the graph before Inductor's passes.

    That one has what is folded into constants, too. Where it was not seen, those of the kernels.
    """
    for raw in draft.raw_graphs:
        counts = raw.get("operators", {})
        if graph.direction in counts:
            return int(counts[graph.direction])
    return sum(kernel.replaces for kernel in kernels)


def _without_repeats(
    operators: dict[str, list[str]], draft: Draft, graph: Graph
) -> dict[str, list[str]]:
    """Return the operators of nodes but for what backward computes again: eager has kept that."""
    if graph.direction != "backward":
        return operators
    joint = (node for each in draft.graphs if each.stage == "joint" for node in each.nodes)
    forward = {node.name for node in joint if not node.is_backward}
    again = {node.name for node in graph.nodes if _is_again(node, forward)}
    return {name: found for name, found in operators.items() if name not in again}


def _is_again(node: Node, forward: set[str]) -> bool:
    """Tell whether a node of backward is one of the joint graph's forward part."""
    names = [origin.partition("/")[2] for origin in node.origins if origin.startswith("backward/")]
    return not forward.isdisjoint([*names, node.name])


def _count_operators(operators: dict[str, list[str]], nodes: list[str]) -> int:
    return len({operator for node in nodes for operator in operators.get(node, ())})


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
    for pair in raw["unfused"]:
        writer, reader = (raw["groups"][at] for at in pair["groups"])
        writer_nodes, reader_nodes = pair["nodes"]
        yield NotFused(
            graph=graph.name,
            writer=_kernel_of(writer, of_op),
            reader=_kernel_of(reader, of_op),
            reason=pair["reason"],
            buffers=pair["buffers"],
            bytes=sum(
                side.get(name, 0)
                for side in (
                    _bytes([writer], "writes", raw["sizes"]),
                    _bytes([reader], "reads", raw["sizes"]),
                )
                for name in pair["buffers"]
            ),
            writer_nodes=writer_nodes,
            reader_nodes=reader_nodes,
            loops=[text for loops in pair["loops"] if (text := _loops_text(loops))],
        )


def _loops_text(loops: list[list[str]]) -> str:
    """Return an operation's loops as text: `16 x 8, reduced over 4`."""
    if not loops:
        return ""
    kept, reduced = (" x ".join(size for size in side if size != "1") for side in loops)
    over = f", reduced over {reduced}" if reduced else ""
    return f"{kept or 'one element'}{over}"
