"""What Inductor's schedule tells besides kernels: buffers, what was not fused, what needs none.

Each is of this machine, which is the compile itself, or of a target.
"""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_nb.record.types import Buffer, Compile, Folded, NotFused, Target, TensorValue
from dynamo_nb.views.blocks import Section, table
from dynamo_nb.views.context import Context
from dynamo_nb.views.model import direction_of
from dynamo_nb.views.plain import plural, size_text, some, value_text

__all__ = ["folded_text", "launches_text", "schedule_sections"]

#: What each word of `Folded.why` means.
_FOLDED = {
    "view": "another way to look at memory",
    "result": "one of several results of a call",
    "size": "arithmetic on sizes, done in Python",
    "memory": "memory that is allocated",
    "constant": "put in where it is used",
    "dead": "nothing uses it",
    "effect": "it returns nothing",
    "empty": "its result has no elements",
    "graphs": "it runs graphs that have kernels of their own",
}


def launches_text(on: Compile | Target) -> str:
    """Return how many launches the kernels are in place of how many; empty where none is known."""
    now = sum(kernel.calls for kernel in on.kernels)
    branches = " of all branches" if any(item.why == "graphs" for item in on.folded) else ""
    before = sum(on.eager_operators.values())
    if not before:
        return ""
    return f"{plural(now, 'launch')}{branches} in place of {plural(before, 'operator')} of eager"


def folded_text(on: Compile | Target) -> str:
    """Return how many nodes need no kernel, and why; empty where there is none."""
    reasons = [_FOLDED.get(item.why, "") for item in on.folded]
    count = plural(len(reasons), "node")
    verb = "needs" if len(reasons) == 1 else "need"
    why = some(dict.fromkeys(filter(None, reasons)))
    return f"{count} {verb} none" + (f" ({why})" if why else "") if reasons else ""


def schedule_sections(
    entry: Compile, on: Compile | Target, context: Context, prefix: str = ""
) -> Iterator[Section]:
    """Yield what was not fused, the buffers, and the nodes that need no kernel."""
    yield from _unfused(entry, on, context, prefix)
    yield from _buffers(entry, on, context, prefix)
    yield from _folded(entry, on, context, prefix)


def _node_marks(entry: Compile, on: Compile | Target, context: Context) -> dict[str, str]:
    """Return the marks of each node, by `graph/name`."""
    return {
        f"{graph.name}/{node.name}": context.marks.of_node(node, entry)
        for graph in on.graphs
        for node in graph.nodes
    }


def _unfused(
    entry: Compile, on: Compile | Target, context: Context, prefix: str
) -> Iterator[Section]:
    marks = _node_marks(entry, on, context)

    def row(item: NotFused) -> tuple[tuple[str, ...], str]:
        both = f"{item.writer} and {item.reader}" if item.writer != item.reader else item.writer
        nodes = [*item.writer_nodes, *item.reader_nodes]
        found = " ".join(marks.get(f"{item.graph}/{name}", "") for name in nodes)
        return (
            both,
            direction_of(item.graph),
            ", ".join(item.buffers),
            size_text(item.bytes),
            item.reason or "declined without a reason",
            "; then ".join(item.loops),
        ), " ".join(dict.fromkeys(found.split()))

    if on.unfused:
        items = sorted(on.unfused, key=lambda item: -item.bytes)
        columns = "kernel|direction|handed on|memory|Inductor's reason|loops"
        yield Section(
            title=f"{prefix}not fused",
            summary=plural(len(items), "pair"),
            blocks=[table(columns, items, row, context.limits)],
            rank=42,
        )


def _buffers(
    entry: Compile, on: Compile | Target, context: Context, prefix: str
) -> Iterator[Section]:
    marks = _node_marks(entry, on, context)

    def row(buffer: Buffer) -> tuple[tuple[str, ...], str]:
        value = TensorValue(shape=buffer.shape, dtype=buffer.dtype, device=buffer.device)
        return (
            buffer.name,
            direction_of(buffer.graph),
            buffer.role,
            buffer.node,
            value_text(value),
            ", ".join(map(str, buffer.stride)),
            size_text(buffer.bytes),
            _fate(buffer),
        ), marks.get(f"{buffer.graph}/{buffer.node}", "")

    if on.buffers:
        columns = "buffer|direction|role|node|value|strides|memory|what becomes of it"
        yield Section(
            title=f"{prefix}buffers",
            summary=_memory(on.buffers),
            blocks=[table(columns, on.buffers, row, context.limits)],
            rank=43,
        )


def _fate(buffer: Buffer) -> str:
    facts = []
    if buffer.reuses:
        how = "in place" if buffer.in_place else "reused"
        facts.append(f"has the memory of {buffer.reuses} ({how})")
    if buffer.mutates:
        facts.append(f"writes into {', '.join(buffer.mutates)}")
    if buffer.views:
        facts.append(f"looks at {', '.join(buffer.views)}")
    if buffer.saved:
        facts.append("saved for backward")
    return ", ".join(facts)


def _memory(buffers: list[Buffer]) -> str:
    reused = sum(bool(buffer.reuses) for buffer in buffers)
    saved = sum(buffer.bytes for buffer in buffers if buffer.saved)
    facts = [str(len(buffers)), *([f"{reused} reuse memory"] if reused else [])]
    return ", ".join([*facts, *([f"{size_text(saved)} saved for backward"] if saved else [])])


def _folded(
    entry: Compile, on: Compile | Target, context: Context, prefix: str
) -> Iterator[Section]:
    nodes = {(graph.name, node.name): node for graph in on.graphs for node in graph.nodes}

    def row(item: Folded) -> tuple[tuple[str, ...], str]:
        node = nodes.get((item.graph, item.node))
        return (
            item.node,
            direction_of(item.graph),
            f"{node.target}({', '.join(node.inputs)})" if node is not None else "",
            _FOLDED.get(item.why, item.why or "not known"),
        ), context.marks.of_node(node, entry) if node is not None else ""

    if on.folded:
        counts = {why: sum(item.why == why for item in on.folded) for why in _FOLDED}
        yield Section(
            title=f"{prefix}nodes without a kernel",
            summary=", ".join(plural(count, why) for why, count in counts.items() if count),
            blocks=[table("node|direction|target|why", on.folded, row, context.limits)],
            rank=75,
        )
