"""Kernels in HTML: an overview, a page for each, and the modules that call them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dynamo_nb.record.definitions import defined_lines
from dynamo_nb.record.types import Compile, Kernel, Node, OutputCode
from dynamo_nb.views.blocks import Row, Section, Table, code, table
from dynamo_nb.views.context import Context, inner
from dynamo_nb.views.model import cell_lines, direction_of, kernel_nodes
from dynamo_nb.views.plain import compact_lines, plural, size_text, span_text, value_text
from dynamo_nb.views.plot import rooflines
from dynamo_nb.views.roofline import floor_text, measured_text
from dynamo_nb.views.schedule import launches_text, schedule_sections

__all__ = [
    "kernel_page",
    "kernel_sections",
    "line_marks",
    "module_section",
    "output_code",
    "work_facts",
]

#: What is told of a kernel: each fact's name and text, empty where it is not known.
Facts = list[tuple[str, str]]

#: Lines of generated code that say nothing of the kernel.
_BOILERPLATE = re.compile(r"^(#include|import |from |triton_helpers\.set_driver|$)")


def kernel_sections(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the kernels with what was fused into them, then a page for each, then the rest."""
    if entry.kernels:
        yield _overview(entry, context)
    for kernel in entry.kernels[: context.limits.rows]:
        if kernel.code or kernel.bytes:
            yield _page(entry, kernel, context)
    yield from schedule_sections(entry, entry, context)


def _overview(entry: Compile, context: Context) -> Section:
    def row(kernel: Kernel) -> tuple[tuple[object, ...], str]:
        return (
            kernel.name,
            kernel.language,
            direction_of(kernel.graph),
            ", ".join(kernel.nodes),
            compact_lines(cell_lines(kernel_nodes(entry, kernel))),
            kernel.calls or "",
            size_text(kernel.bytes),
            "" if kernel.flops is None else f"{kernel.flops:,}",
        ), context.marks.of_kernels(entry, kernel)

    columns = "name|language|direction|fused nodes|lines|calls|memory|operations"
    return Section(
        title="kernels",
        summary=", ".join(filter(None, [str(len(entry.kernels)), launches_text(entry)])),
        blocks=[table(columns, entry.kernels, row, context.limits), *rooflines(entry, context)],
        rank=4,
    )


# ------------------------------------------------------------------ a kernel's page


def _page(entry: Compile, kernel: Kernel, context: Context) -> Section:
    facts = [
        *work_facts(kernel),
        ("at best", floor_text(context.record, kernel) if kernel.bytes else ""),
        ("measured", measured_text(context.record, entry, kernel)),
    ]
    of = f", {direction_of(kernel.graph)}" if kernel.language == "extern" else ""
    return kernel_page(entry, kernel, context, title=f"kernel {kernel.name}{of}", facts=facts)


def kernel_page(
    entry: Compile,
    kernel: Kernel,
    context: Context,
    *,
    title: str,
    facts: Facts,
    lines: dict[int, str] | None = None,
) -> Section:
    """Return what is known of one kernel: facts, the nodes fused into it, its code.

    `lines` are the marks of the lines of its code, by default those of what the user wrote.
    """
    lines = line_marks(kernel, context) if lines is None else lines
    nodes = kernel_nodes(entry, kernel)
    text, left_out = readable(kernel.code)
    marks = {number - left_out: classes for number, classes in lines.items()}
    note = f", without {plural(left_out, 'line')} of boilerplate" if left_out else ""
    rows = [Row([name, context.limits.line(text)]) for name, text in facts if text]
    return Section(
        title=title,
        summary=compact_lines(cell_lines(nodes)) + note,
        blocks=[
            Table(columns=["of this kernel", ""], wide=[False, True], rows=rows),
            _nodes(entry, nodes, context),
            *([code(text, context.limits, marks)] if kernel.code else []),
        ],
        rank=30,
        marks=context.marks.of_kernels(entry, kernel),
    )


def line_marks(kernel: Kernel, context: Context) -> dict[int, str]:
    """Return the marks of a kernel's code that the user wrote: those of its lines in the cell."""
    return {number: context.marks.of(frame) for number, frame in defined_lines(kernel)}


def readable(text: str) -> tuple[str, int]:
    """Return a kernel's code without its boilerplate, and how many lines that is.

    Triton's begins with imports and Inductor's own decorator, C++ with includes.
    """
    lines = text.split("\n")
    jit = next((at for at, line in enumerate(lines) if line.startswith("@triton.jit")), None)
    if jit is None:
        jit = next((at for at, line in enumerate(lines) if not _BOILERPLATE.match(line)), 0)
    return "\n".join(lines[jit:]), jit


def work_facts(kernel: Kernel) -> Facts:
    """Return what a kernel does: how often, in place of what, its memory and its arithmetic."""
    reads, writes = sum(kernel.reads.values()), sum(kernel.writes.values())
    intensity = kernel.intensity
    # another kernel may compute the rest of one, so that these need not add up to the total
    replaces = f"all or part of {plural(kernel.replaces, 'operator')} of eager"
    return [
        ("call sites", str(kernel.calls or "")),
        ("in place of", replaces if kernel.replaces else ""),
        ("reads", _accesses(reads, kernel.reads)),
        ("writes", _accesses(writes, kernel.writes)),
        ("operations", "" if kernel.flops is None else f"{kernel.flops:,}"),
        ("operations a byte", "" if intensity is None else f"{intensity:.3g}"),
    ]


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


# ------------------------------------------------------------------ the modules


def output_code(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the module that Inductor wrote for each graph; calls of kernels carry their lines."""
    for output in entry.output_code:
        yield module_section(entry, output, entry.kernels, context)


def module_section(
    entry: Compile, output: OutputCode, kernels: list[Kernel], context: Context
) -> Section:
    """Return one module: where a kernel is defined, the line carries those it comes from."""
    marks = {
        kernel.code_line: context.marks.of_kernels(entry, kernel)
        for kernel in kernels
        if kernel.graph == output.graph and kernel.code_line
    }
    return Section(
        title=f"output code {output.graph}",
        summary=plural(output.code.count("\n"), "line"),
        blocks=[code(output.code, context.limits, marks)],
        rank=40,
    )
