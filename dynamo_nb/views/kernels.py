"""Kernels in HTML: an overview, a page for each, buffers, what was not fused, what needs none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dynamo_nb.record.types import (
    Buffer,
    Compile,
    Folded,
    Kernel,
    Node,
    NotFused,
    OutputCode,
    Target,
    TensorValue,
)
from dynamo_nb.views.blocks import Row, Section, Table, code, table
from dynamo_nb.views.context import Context, inner
from dynamo_nb.views.model import cell_lines, kernel_nodes
from dynamo_nb.views.plain import compact_lines, plural, size_text, span_text, value_text
from dynamo_nb.views.plot import rooflines
from dynamo_nb.views.roofline import floor_text, measured_text

__all__ = ["folded_sections", "kernel_marks", "kernel_sections", "module_section", "output_code"]

#: Lines of generated code that say nothing of the kernel.
_BOILERPLATE = re.compile(r"^(#include|import |from |triton_helpers\.set_driver|$)")

#: What each word of `Folded.why` means.
_FOLDED = {
    "view": "another way to look at memory",
    "result": "one of several results of a call",
    "size": "arithmetic on sizes, done in Python",
    "constant": "put in where it is used",
    "dead": "nothing uses it",
    "effect": "it returns nothing",
}


def kernel_sections(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the kernels with what was fused into them, then a page for each, then the rest."""
    if entry.kernels:
        yield _overview(entry, context)
    for kernel in entry.kernels[: context.limits.rows]:
        if kernel.code or kernel.bytes:
            yield _page(entry, kernel, context)
    yield from _unfused(entry, context)
    yield from _buffers(entry, context)
    yield from folded_sections(entry, entry, context)


def _overview(entry: Compile, context: Context) -> Section:
    def row(kernel: Kernel) -> tuple[tuple[object, ...], str]:
        return (
            kernel.name,
            kernel.language,
            _direction(kernel.graph),
            ", ".join(kernel.nodes),
            compact_lines(cell_lines(kernel_nodes(entry, kernel))),
            kernel.calls or "",
            size_text(kernel.bytes),
            "" if kernel.flops is None else f"{kernel.flops:,}",
        ), kernel_marks(entry, context, kernel)

    columns = "name|language|direction|fused nodes|lines|calls|memory|operations"
    return Section(
        title="kernels",
        summary=_launches(entry),
        blocks=[table(columns, entry.kernels, row, context.limits), *rooflines(entry, context)],
        rank=4,
    )


def _launches(entry: Compile) -> str:
    """Return how many launches a compile's kernels are, and in place of how many."""
    now = sum(kernel.calls for kernel in entry.kernels)
    before = sum(entry.eager_operators.values())
    count = str(len(entry.kernels))
    if not before:
        return count
    return f"{count}, {plural(now, 'launch')} in place of {plural(before, 'operator')} of eager"


def kernel_marks(entry: Compile, context: Context, *kernels: Kernel) -> str:
    """Return the marks of the cell's lines that kernels come from, else of the call's line."""
    lines = {line for kernel in kernels for line in cell_lines(kernel_nodes(entry, kernel))}
    return context.marks.of_lines(sorted(lines) or [entry.call_line])


def _direction(graph: str) -> str:
    return graph.partition(".")[2]


# ------------------------------------------------------------------ a kernel's page


def _page(entry: Compile, kernel: Kernel, context: Context) -> Section:
    nodes = kernel_nodes(entry, kernel)
    blocks = [_facts(entry, kernel, context), _nodes(entry, nodes, context)]
    text, left_out = readable(kernel.code)
    shown = code(text, context.limits) if kernel.code else None
    note = f", without {plural(left_out, 'line')} of boilerplate" if left_out else ""
    return Section(
        title=f"kernel {kernel.name}"
        + (f", {_direction(kernel.graph)}" if kernel.language == "extern" else ""),
        summary=compact_lines(cell_lines(nodes)) + note,
        blocks=[*blocks, *([shown] if shown is not None else [])],
        rank=30,
        marks=kernel_marks(entry, context, kernel),
    )


def readable(text: str) -> tuple[str, int]:
    """Return a kernel's code without its boilerplate, and how many lines that is.

    Triton's begins with imports and Inductor's own decorator, C++ with includes.
    """
    lines = text.split("\n")
    jit = next((at for at, line in enumerate(lines) if line.startswith("@triton.jit")), None)
    if jit is None:
        jit = next((at for at, line in enumerate(lines) if not _BOILERPLATE.match(line)), 0)
    return "\n".join(lines[jit:]), jit


def _facts(entry: Compile, kernel: Kernel, context: Context) -> Table:
    reads, writes = sum(kernel.reads.values()), sum(kernel.writes.values())
    intensity = kernel.intensity
    facts = [
        ("call sites", str(kernel.calls or "")),
        (
            "in place of",
            plural(kernel.replaces, "operator") + " of eager" if kernel.replaces else "",
        ),
        ("reads", _accesses(reads, kernel.reads)),
        ("writes", _accesses(writes, kernel.writes)),
        ("operations", "" if kernel.flops is None else f"{kernel.flops:,}"),
        ("operations a byte", "" if intensity is None else f"{intensity:.3g}"),
        ("at best", floor_text(context.record, kernel) if kernel.bytes else ""),
        ("measured", measured_text(context.record, entry, kernel)),
    ]
    rows = [Row([name, context.limits.line(text)]) for name, text in facts if text]
    return Table(columns=["of this kernel", ""], wide=[False, True], rows=rows)


def _accesses(total: int, accesses: dict[str, int]) -> str:
    if not accesses:
        return ""
    buffers = ", ".join(f"{name} {size_text(size)}" for name, size in accesses.items())
    return f"{size_text(total)}: {buffers}" if len(accesses) > 1 else buffers


def _nodes(entry: Compile, nodes: list[Node], context: Context) -> Table:
    def row(node: Node) -> tuple[tuple[str, ...], str]:
        return (
            node.name,
            node.target,
            value_text(node.value),
            inner(node.frames),
            span_text(node.frames),
            ", ".join(node.origins),
        ), context.marks.of_node(node, entry)

    return table("node|target|value|line|columns|comes from", nodes, row, context.limits)


# ------------------------------------------------------------------ the rest


def _unfused(entry: Compile, context: Context) -> Iterator[Section]:
    def row(item: NotFused) -> tuple[tuple[str, ...], str]:
        both = f"{item.writer} and {item.reader}" if item.writer != item.reader else item.writer
        return (
            both,
            _direction(item.graph),
            ", ".join(item.buffers),
            size_text(item.bytes),
            item.reason or "declined without a reason",
            "; then ".join(item.loops),
        ), ""

    if entry.unfused:
        items = sorted(entry.unfused, key=lambda item: -item.bytes)
        columns = "kernel|direction|handed on|memory|Inductor's reason|loops"
        yield Section(
            title="not fused",
            summary=plural(len(items), "pair"),
            blocks=[table(columns, items, row, context.limits)],
            rank=42,
        )


def _buffers(entry: Compile, context: Context) -> Iterator[Section]:
    def row(buffer: Buffer) -> tuple[tuple[str, ...], str]:
        value = TensorValue(shape=buffer.shape, dtype=buffer.dtype, device=buffer.device)
        return (
            buffer.name,
            _direction(buffer.graph),
            buffer.role,
            buffer.node,
            value_text(value),
            ", ".join(map(str, buffer.stride)),
            size_text(buffer.bytes),
            _fate(buffer),
        ), ""

    if entry.buffers:
        columns = "buffer|direction|role|node|value|strides|memory|what becomes of it"
        yield Section(
            title="buffers",
            summary=_memory(entry),
            blocks=[table(columns, entry.buffers, row, context.limits)],
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


def _memory(entry: Compile) -> str:
    reused = sum(bool(buffer.reuses) for buffer in entry.buffers)
    saved = sum(buffer.bytes for buffer in entry.buffers if buffer.saved)
    facts = [str(len(entry.buffers)), *([f"{reused} reuse memory"] if reused else [])]
    return ", ".join([*facts, *([f"{size_text(saved)} saved for backward"] if saved else [])])


def folded_sections(
    entry: Compile, on: Compile | Target, context: Context, prefix: str = ""
) -> Iterator[Section]:
    """Yield the nodes that need no kernel, of this machine (the compile itself) or of a target."""
    nodes = {(graph.name, node.name): node for graph in on.graphs for node in graph.nodes}

    def row(item: Folded) -> tuple[tuple[str, ...], str]:
        node = nodes.get((item.graph, item.node))
        return (
            item.node,
            _direction(item.graph),
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


def output_code(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the module that Inductor wrote for each graph; calls of kernels carry their lines."""
    for output in entry.output_code:
        yield module_section(entry, output, entry.kernels, context)


def module_section(
    entry: Compile, output: OutputCode, kernels: list[Kernel], context: Context
) -> Section:
    """Return one module: where a kernel is defined, the line carries those it comes from."""
    marks = {
        kernel.code_line: kernel_marks(entry, context, kernel)
        for kernel in kernels
        if kernel.graph == output.graph and kernel.code_line
    }
    return Section(
        title=f"output code {output.graph}",
        summary=plural(output.code.count("\n"), "line"),
        blocks=[code(output.code, context.limits, marks)],
        rank=40,
    )
