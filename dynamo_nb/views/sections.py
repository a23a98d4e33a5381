"""The sections of the HTML report: one function for each kind, listed in two tables at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dynamo_nb.record.types import (
    CELL,
    Attempt,
    Bytecode,
    Call,
    Compile,
    CompiledObject,
    Frame,
    Graph,
    GraphBreak,
    Guard,
    GuardTree,
    Instruction,
    Kernel,
    Node,
    RecompileReason,
    ShapeGuard,
    StackFrame,
    StageTime,
    Symbol,
)
from dynamo_nb.views.blocks import Section, code, table
from dynamo_nb.views.limits import Limits
from dynamo_nb.views.marks import Marks
from dynamo_nb.views.model import Report, cell_lines, final_breaks, kernel_nodes
from dynamo_nb.views.phrases import calls_text
from dynamo_nb.views.plain import compact_lines, place, plural, value_text

__all__ = ["compile_sections", "report_sections"]


class Context:
    """What the sections need besides their compile."""

    def __init__(self, report: Report, marks: Marks, limits: Limits) -> None:
        self.report = report
        self.record = report.record
        self.marks = marks
        self.limits = limits


def where(frame: StackFrame | None) -> str:
    """Return a place, or nothing."""
    return place(frame) if frame else ""


def inner(frames: list[StackFrame]) -> str:
    """Return the innermost line of the cell; without one, the innermost place."""
    cell = [frame for frame in frames if frame.file == CELL] or frames
    return place(cell[-1]) if cell else ""


def graphs(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield a section for each graph: its nodes, what they are computed from, and their values."""

    def row(node: Node) -> tuple[tuple[str, ...], str]:
        inputs = f"({', '.join(node.inputs)})" if node.inputs else ""
        module = node.module_stack[-1][0] if node.module_stack and node.module_stack[-1] else ""
        return (
            node.name,
            node.op,
            node.target + inputs,
            value_text(node.value),
            module,
            inner(node.frames),
        ), context.marks.of(*node.frames)

    for rank, graph in enumerate(entry.graphs):
        yield Section(
            title=f"graph {graph.name}",
            summary=_graph_summary(graph),
            blocks=[
                table("name|op|target|value|module|line", graph.nodes, row, context.limits),
            ],
            rank=10 + rank,
        )


def _graph_summary(graph: Graph) -> str:
    lines = compact_lines(cell_lines(graph.nodes))
    return plural(len(graph.nodes), "node") + (f", {lines}" if lines else "")


def guards(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the guards with the line that made Dynamo assume each."""

    def row(guard: Guard) -> tuple[tuple[str, ...], str]:
        return (
            guard.kind,
            guard.source or guard.origin,
            " and ".join(guard.code),
            guard.value,
            where(guard.frame),
        ), context.marks.of(guard.frame)

    def shape_row(guard: ShapeGuard) -> tuple[tuple[str, ...], str]:
        return (guard.expr, where(guard.frame)), context.marks.of(guard.frame)

    def symbol_row(symbol: Symbol) -> tuple[tuple[str, ...], str]:
        return (
            symbol.name,
            ", ".join(symbol.sources),
            symbol.hint,
            symbol.range,
            where(symbol.frame),
        ), context.marks.of(symbol.frame)

    if entry.guards:
        yield Section(
            title="guards",
            summary=str(len(entry.guards)),
            blocks=[table("kind|source|code|value|line", entry.guards, row, context.limits)],
            rank=5,
        )
    if entry.shape_guards or entry.symbols:
        yield Section(
            title="symbols and shape guards",
            summary=f"{plural(len(entry.symbols), 'symbol')}, "
            f"{plural(len(entry.shape_guards), 'condition')}",
            blocks=[
                table(
                    "symbol|source|value seen|range|line", entry.symbols, symbol_row, context.limits
                ),
                table("condition|line", entry.shape_guards, shape_row, context.limits),
            ],
            rank=6,
        )
    if entry.guard_tree:
        yield Section(
            title="guard tree",
            summary="in the order of its checks",
            blocks=[code("\n".join(_tree(entry.guard_tree, 0)), context.limits)],
            rank=60,
        )


def _tree(tree: GuardTree, depth: int) -> Iterator[str]:
    indent = "  " * depth
    yield f"{indent}{tree.source or tree.accessor} {tree.manager} {tree.value_type}".rstrip()
    for leaf in tree.leaf_guards:
        yield f"{indent}  {leaf.kind}: {' and '.join(leaf.code)}"
    for child in tree.children:
        yield from _tree(child, depth + 1)


def graph_breaks(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the graph breaks, with torch's explanation and hints."""

    def row(item: GraphBreak) -> tuple[tuple[str, ...], str]:
        explanation = item.explanation or item.reason
        url = item.url if item.url.startswith("https://") else ""
        return (
            where(item.frame),
            item.kind,
            explanation,
            " ".join(item.hints),
            item.context,
            url or item.id,
        ), context.marks.of(item.frame, *item.user_stack)

    breaks = final_breaks(entry)
    if breaks:
        yield Section(
            title="graph breaks",
            summary=str(len(breaks)),
            blocks=[
                table("line|kind|explanation|hints|context|see", breaks, row, context.limits),
            ],
            rank=1,
        )


def failure(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the error that ended a compile, and the attempts before."""
    error = entry.error
    if error:
        text = [error.message or error.kind, error.explanation]
        text += [f"Hint: {hint}" for hint in error.hints]
        yield Section(
            title=f"error {error.type}",
            summary=where(error.frame),
            blocks=[code("\n".join(part for part in text if part), context.limits)],
            rank=1,
            marks=context.marks.of(error.frame),
            is_open=True,
        )

    def row(attempt: Attempt) -> tuple[tuple[object, ...], str]:
        return (attempt.attempt, attempt.status, attempt.reason), ""

    if len(entry.attempts) > 1:
        yield Section(
            title="attempts",
            summary=str(len(entry.attempts)),
            blocks=[table("attempt|status|reason", entry.attempts, row, context.limits)],
            rank=7,
        )


def kernels(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the kernels with what was fused into them, then the code of each."""

    def row(kernel: Kernel) -> tuple[tuple[object, ...], str]:
        nodes = kernel_nodes(entry, kernel)
        return (
            kernel.name,
            kernel.language,
            kernel.graph.partition(".")[2],
            ", ".join(kernel.nodes),
            compact_lines(cell_lines(nodes)),
            kernel.calls or "",
        ), _kernel_marks(entry, kernel, context)

    if entry.kernels:
        yield Section(
            title="kernels",
            summary=str(len(entry.kernels)),
            blocks=[
                table(
                    "name|language|direction|fused nodes|lines|calls",
                    entry.kernels,
                    row,
                    context.limits,
                ),
            ],
            rank=4,
        )
    for kernel in entry.kernels[: context.limits.rows]:
        if kernel.code:
            yield Section(
                title=f"kernel {kernel.name}",
                summary=compact_lines(cell_lines(kernel_nodes(entry, kernel))),
                blocks=[code(kernel.code, context.limits)],
                rank=30,
                marks=_kernel_marks(entry, kernel, context),
            )


def _kernel_marks(entry: Compile, kernel: Kernel, context: Context) -> str:
    return context.marks.of_lines(sorted(cell_lines(kernel_nodes(entry, kernel))))


def output_code(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the module that Inductor wrote for each graph; calls of kernels carry their lines."""
    for output in entry.output_code:
        marks = {
            kernel.code_line: _kernel_marks(entry, kernel, context)
            for kernel in entry.kernels
            if kernel.graph == output.graph and kernel.code_line
        }
        yield Section(
            title=f"output code {output.graph}",
            summary=plural(output.code.count("\n"), "line"),
            blocks=[code(output.code, context.limits, marks)],
            rank=40,
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


def recompiles(context: Context) -> Iterator[Section]:
    """Yield every recompile: which entry did not fit, what changed, at which call."""

    def row(item: tuple[Compile, RecompileReason]) -> tuple[tuple[str, ...], str]:
        entry, reason = item
        return (
            entry.key,
            reason.entry,
            reason.source,
            reason.was,
            reason.now,
            f"line {reason.call_line}" if reason.call_line else "",
            where(reason.frame),
            reason.guard or reason.text,
        ), " ".join(
            filter(
                None, [context.marks.of(reason.frame), context.marks.of_lines([reason.call_line])]
            )
        )

    items = [(entry, reason) for entry in context.report.own for reason in entry.recompile_reasons]
    if items:
        columns = "new entry|did not fit|source|was|now|call|read at|guard"
        count = len({entry.key for entry, _ in items})
        yield Section(
            title="recompiles",
            summary=str(count),
            blocks=[table(columns, items, row, context.limits)],
        )


def calls(context: Context) -> Iterator[Section]:
    """Yield what each call of the cell did: compiled, hit an entry, ran eagerly."""

    def row(call: Call) -> tuple[tuple[object, ...], str]:
        return (
            call.line,
            call.name,
            "; ".join(calls_text(call)),
        ), context.marks.of_lines([call.line])

    def object_row(item: CompiledObject) -> tuple[tuple[object, ...], str]:
        bypasses = ", ".join(f"{bypass.callee} (line {bypass.line})" for bypass in item.bypasses)
        return (
            item.name,
            item.callee,
            item.line or "",
            item.entered,
            bypasses,
        ), context.marks.of_lines([item.line, *(bypass.line for bypass in item.bypasses)])

    record = context.record
    if record.calls or record.compiled_objects:
        yield Section(
            title="calls and cache",
            summary=str(len(record.calls)),
            blocks=[
                table("line|call|what it did", record.calls, row, context.limits),
                table(
                    "compiled object|callee|line|frames entered|calls that go around it",
                    record.compiled_objects,
                    object_row,
                    context.limits,
                ),
            ],
        )


def frames(context: Context) -> Iterator[Section]:
    """Yield the frames that Dynamo looked at and did not compile, with its reasons."""

    def row(frame: Frame) -> tuple[tuple[object, ...], str]:
        at = StackFrame(file=frame.file, line=frame.first_line)
        return (frame.name, place(at), frame.outcome, frame.count, frame.reason), ""

    skipped = [frame for frame in context.record.frames if frame.outcome != "compiled"]
    if skipped:
        yield Section(
            title="frames not compiled",
            summary=str(len(skipped)),
            blocks=[table("frame|place|outcome|times|reason", skipped, row, context.limits)],
        )


_COMPILE: tuple[Callable[[Compile, Context], Iterator[Section]], ...] = (
    failure,
    graph_breaks,
    graphs,
    guards,
    kernels,
    output_code,
    bytecode,
    times,
)
_REPORT: tuple[Callable[[Context], Iterator[Section]], ...] = (recompiles, calls, frames)


def compile_sections(entry: Compile, context: Context) -> list[Section]:
    """Return the sections of one compile, in reading order."""
    return [section for make in _COMPILE for section in make(entry, context)]


def report_sections(context: Context) -> list[Section]:
    """Return the sections that belong to the whole cell."""
    return [section for make in _REPORT for section in make(context)]
