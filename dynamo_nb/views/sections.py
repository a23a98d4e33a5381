"""The sections of one compile: a function for each kind, listed in the table at the end."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from itertools import islice

from msgspec import structs

from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import (
    Attempt,
    Bytecode,
    Compile,
    Graph,
    Instruction,
    Node,
    RecompileReason,
    StageTime,
)
from dynamo_nb.views.blocks import Code, Section, code, table
from dynamo_nb.views.context import Context, inner, where
from dynamo_nb.views.guard_sections import guards
from dynamo_nb.views.kernels import kernel_sections, output_code
from dynamo_nb.views.model import cell_lines, final_breaks
from dynamo_nb.views.passes import pass_sections
from dynamo_nb.views.plain import compact_lines, plural, value_text
from dynamo_nb.views.ran import ran_sections
from dynamo_nb.views.steps import StepRow, own_rows, rows, steps_text
from dynamo_nb.views.targets import target_sections

__all__ = ["compile_sections"]

#: What torch calls the compiled module itself in the paths of its parts.
_ROOT = re.compile(r"^(self|fn|args\[0\])\.")

_COLUMNS = 100  # at which torch's explanations wrap


def graphs(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield a section for each graph: its nodes, what they are computed from, and their values."""

    def row(node: Node) -> tuple[tuple[str, ...], str]:
        return (
            inner(node.frames),
            node.name,
            value_text(node.value),
            node.op,
            _module(node),
            _formula(node),
        ), context.marks.of_node(node, entry)

    columns = "line|name|value|op|module|target"
    for rank, graph in enumerate(entry.graphs):
        yield Section(
            title=f"graph {graph.name}",
            summary=_graph_summary(graph),
            blocks=[
                table(columns, _work_first(graph), row, context.limits),
            ],
            rank=10 + rank,
        )


def _work_first(graph: Graph) -> list[Node]:
    """Return the nodes in their order, but the inputs last: large models have hundreds of them."""
    return sorted(graph.nodes, key=lambda node: node.op in ("placeholder", "get_attr"))


def _formula(node: Node) -> str:
    """Return the target with its inputs; nothing where it only repeats the node's name."""
    if node.inputs:
        return f"{node.target}({', '.join(node.inputs)})"
    return "" if node.target.lower() == node.name.lower() else node.target


def _module(node: Node) -> str:
    """Return the path of the innermost module that a node comes from, without the root's."""
    path = node.module_stack[-1][0] if node.module_stack and node.module_stack[-1] else ""
    return _ROOT.sub("", readable(path))


def _graph_summary(graph: Graph) -> str:
    lines = compact_lines(cell_lines(graph.nodes))
    return plural(len(graph.nodes), "node") + (f", {lines}" if lines else "")


def graph_breaks(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the graph breaks, with torch's explanation, hints and page."""
    breaks = final_breaks(entry)
    blocks = []
    for item in breaks[: context.limits.rows]:
        text = [
            f"{where(item.frame)}: {item.kind}",
            item.explanation or item.reason,
            *(f"Hint: {hint}" for hint in item.hints),
            f"Context: {item.context}" if item.context else "",
            item.url or item.id,
        ]
        blocks.append(_prose(text, context.marks.of(item.frame, *item.user_stack), context))
    if breaks:
        yield Section(title="graph breaks", summary=str(len(breaks)), blocks=blocks, rank=1)


def _prose(paragraphs: list[str], marks: str, context: Context) -> Code:
    """Return paragraphs of torch's as a block that wraps, all of which belongs to some lines."""
    lines = [
        line
        for paragraph in paragraphs
        for part in paragraph.split("\n")
        for line in textwrap.wrap(part, _COLUMNS, subsequent_indent="  ") or [""] * bool(part)
    ]
    return code("\n".join(lines), context.limits, dict.fromkeys(range(1, len(lines) + 1), marks))


def failure(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the error that ended a compile."""
    error = entry.error
    if error:
        text = [error.message or error.kind]
        text += [part for part in (error.explanation,) if part and part not in error.message]
        text += [f"Hint: {hint}" for hint in error.hints if hint not in error.message]
        marks = context.marks.of(error.frame)
        yield Section(
            title=f"error {error.type}",
            summary=where(error.frame),
            blocks=[_prose(text, marks, context)],
            rank=1,
            marks=marks,
            is_open=True,
        )


def attempts(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the attempts at a compile, where it was restarted."""

    def row(attempt: Attempt) -> tuple[tuple[object, ...], str]:
        return (attempt.attempt, attempt.status, attempt.reason.partition("\n")[0]), ""

    if len(entry.attempts) > 1:
        yield Section(
            title="attempts",
            summary=str(len(entry.attempts)),
            blocks=[table("attempt|status|reason", entry.attempts, row, context.limits)],
            rank=7,
        )


def reasons(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield why a frame was compiled again, against each of the entries that did not fit."""

    def row(reason: RecompileReason) -> tuple[tuple[str, ...], str]:
        return (
            reason.entry,
            reason.guard,
            reason.was,
            reason.now,
            reason.text,
            where(reason.frame),
        ), context.marks.of(reason.frame)

    if entry.recompile_reasons:
        yield Section(
            title="recompile reasons",
            summary=str(len(entry.recompile_reasons)),
            blocks=[
                table(
                    "entry|guard that failed|was|now|torch says|line",
                    entry.recompile_reasons,
                    row,
                    context.limits,
                )
            ],
            rank=2,
        )


def bytecode(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield a frame's instructions before Dynamo, and those that replace them."""

    def row(instruction: Instruction) -> tuple[tuple[object, ...], str]:
        frame = instruction.frame
        return (
            instruction.offset,
            instruction.opname,
            instruction.argument,
            where(frame),
        ), context.marks.of(frame)

    both = entry.bytecode or Bytecode()
    for name, instructions in (("before", both.before), ("after", both.after)):
        if instructions:
            yield Section(
                title=f"bytecode {name}",
                summary=plural(len(instructions), "instruction"),
                blocks=[table("offset|opname|argument|line", instructions, row, context.limits)],
                rank=50,
            )


def steps(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield Dynamo's walk over the bytecode: the stack that each instruction met, what it did.

    Below a cell it is without the code of libraries, which the page has.
    """
    columns = "line|offset|instruction|stack|did"

    def row(item: StepRow) -> tuple[tuple[object, ...], str]:
        offset = item.instruction.offset
        return (
            item.where,
            offset if offset >= 0 else "",
            item.name,
            item.top,
            item.effect,
        ), context.marks.of(item.instruction.frame)

    if entry.steps is not None and not context.limits.exact:
        own = own_rows(entry.steps)
        others = len(own) < len(entry.steps.steps)
        yield Section(
            title="steps",
            summary=plural(len(own), "instruction") + (", libraries' code apart" if others else ""),
            blocks=[table(columns, own, row, context.limits)],
            rank=55,
        )
    elif entry.steps is not None:
        shown = list(islice(rows(entry.steps), context.limits.rows + 1))
        block = table(columns, shown, row, context.limits)
        left = max(len(entry.steps.steps) - context.limits.rows, 0)
        yield Section(
            title="steps",
            summary=steps_text(entry.steps),
            blocks=[structs.replace(block, left_out=left)],
            rank=55,
        )


def times(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the time of each stage, what the caches did, and torch's metrics: on the page only."""
    if not context.limits.exact:
        return

    def row(stage: StageTime) -> tuple[tuple[str, ...], str]:
        return (stage.name, f"{stage.start * 1e3:.1f}", f"{stage.seconds * 1e3:.1f}"), ""

    def pair(item: tuple[str, object]) -> tuple[tuple[str, ...], str]:
        return (item[0], str(item[1])), ""

    if entry.stages:
        longest = max(stage.seconds for stage in entry.stages)
        yield Section(
            title="time",
            summary=f"{longest:.2f} s",
            blocks=[table("stage|start, ms|time, ms", entry.stages, row, context.limits)],
            rank=8,
        )
    if entry.cache or entry.metrics:
        items = [*entry.cache.items(), *entry.metrics.items()]
        yield Section(
            title="caches and metrics",
            summary=str(len(items)),
            blocks=[table("name|value", items, pair, context.limits)],
            rank=70,
        )


_COMPILE: tuple[Callable[[Compile, Context], Iterator[Section]], ...] = (
    failure,
    graph_breaks,
    attempts,
    reasons,
    graphs,
    pass_sections,
    guards,
    kernel_sections,
    ran_sections,
    output_code,
    target_sections,
    bytecode,
    steps,
    times,
)


def compile_sections(entry: Compile, context: Context) -> list[Section]:
    """Return the sections of one compile, in reading order."""
    return [section for make in _COMPILE for section in make(entry, context)]
