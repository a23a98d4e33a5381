"""Kernels for GPUs that are not there: the words for them, and their sections in HTML."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from dynamo_nb.record.types import Binary, Compile, Kernel, Node, StageText, Target
from dynamo_nb.views.blocks import Section, code, table
from dynamo_nb.views.context import Context
from dynamo_nb.views.kernels import kernel_page, line_marks, module_section, work_facts
from dynamo_nb.views.model import cell_lines, direction_of, kernel_nodes
from dynamo_nb.views.phrases import kernel_text
from dynamo_nb.views.plain import compact_lines, one_line, percent_text, plural, size_text, some
from dynamo_nb.views.plot import target_roofline
from dynamo_nb.views.roofline import target_floor_text
from dynamo_nb.views.schedule import folded_text, launches_text, schedule_sections

__all__ = [
    "PREDICTED",
    "binary_text",
    "config_text",
    "stage_sections",
    "target_lines",
    "target_sections",
]

PREDICTED = "predicted: not run, not autotuned"

_LEFT_BEHIND = "only the notebook knows"

#: What the stages of Triton's compiler are called where they are shown.
_STAGES = {
    "ttir": "Triton IR",
    "ttgir": "Triton GPU IR",
    "llir": "LLVM IR",
    "ptx": "PTX",
    "amdgcn": "AMDGCN",
    "sass": "SASS",
}


def target_lines(entry: Compile, target: Target, kernels: int) -> Iterator[tuple[int, str]]:
    """Yield what a compile would be on a target as lines of text, each with its level."""
    yield 0, f"{entry.key}  {_summary(target)}"
    fused = [kernel for kernel in target.kernels if kernel.language != "extern"]
    for kernel in fused[:kernels]:
        yield 1, f"kernel {kernel_text(entry, kernel)}"
        binary = target.binary(kernel)
        if binary is not None:
            yield 2, binary_text(binary)
    if len(fused) > kernels:
        yield 1, f"… {plural(len(fused) - kernels, 'more kernel')}"
    extern = {kernel.name: None for kernel in target.kernels if kernel.language == "extern"}
    if extern:
        yield 1, f"extern calls: {some(map(one_line, extern))}"
    for text in target.left_behind:
        yield 1, f"{_LEFT_BEHIND}: {one_line(text)}"


def _summary(target: Target) -> str:
    if target.error:
        return f"nothing: {target.error}"
    triton = [kernel for kernel in target.kernels if kernel.language != "extern"]
    extern = sum(kernel.calls for kernel in target.kernels if kernel.language == "extern")
    facts = [plural(len(triton), "kernel")] if triton else []
    facts += [plural(extern, "extern call")] if extern else []
    if not facts:
        needless = folded_text(target)
        return f"no kernels: {needless or 'the graph has no operations'}"
    broken = sum(bool(binary.error) for binary in target.binaries)
    facts += [f"{broken} without a binary"] if broken else []
    return ", ".join([*facts, *filter(None, [launches_text(target)])])


def binary_text(binary: Binary) -> str:
    """Return what a kernel's binary takes: registers, spills, shared memory, how it is launched."""
    if binary.error:
        return f"no binary: {one_line(binary.error)}"
    facts = [plural(binary.resources.get("registers", 0), "register"), _spills(binary)]
    if binary.shared:
        facts.append(f"{binary.shared} bytes of shared memory")
    if binary.occupancy is not None:
        facts.append(_occupancy(binary, binary.occupancy))
    if binary.grid:
        facts.append(f"grid {' x '.join(binary.grid)} of {binary.threads} threads")
    else:
        facts.append(f"blocks of {binary.threads} threads")
    return ", ".join(facts)


def _spills(binary: Binary) -> str:
    found = binary.resources
    if "spilled_registers" in found:
        count = found["spilled_registers"]
        return f"{plural(count, 'register')} spilled" if count else "no spills"
    spilled = found.get("spill_stores", 0) + found.get("spill_loads", 0)
    return f"{spilled} bytes of spills" if spilled else "no spills"


def _occupancy(binary: Binary, occupancy: float) -> str:
    share = f"occupancy {percent_text(occupancy)}"
    return f"{share} (limited by {binary.limited_by})" if binary.limited_by else share


# ------------------------------------------------------------------ HTML


def target_sections(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield, for each target, its kernels with what their binaries take, then each stage's text.

    A cell's output has the assembly of the first kernels alone; the page has every stage of all.
    """
    shown = context.limits.rows if context.limits.exact else _FEW
    for target in entry.targets:
        yield _overview(entry, target, context)
        if context.limits.exact:
            yield from _modules(entry, target, context)
            yield from schedule_sections(entry, target, context, f"{target.spec} ")
        for kernel in [kernel for kernel in target.kernels if kernel.code][:shown]:
            yield from _kernel(entry, target, kernel, context)


def _overview(entry: Compile, target: Target, context: Context) -> Section:
    def row(kernel: Kernel) -> tuple[tuple[object, ...], str]:
        binary = target.binary(kernel)
        return (
            kernel.name,
            kernel.language,
            direction_of(kernel.graph),
            ", ".join(kernel.nodes),
            compact_lines(cell_lines(kernel_nodes(entry, kernel))),
            binary_text(binary) if binary else "",
            config_text(binary) if binary else "",
            f"{len(binary.candidates)}" if binary else "",
            size_text(kernel.bytes),
            target_floor_text(target, kernel),
        ), context.marks.of_kernels(entry, kernel)

    def fact(item: tuple[str, object]) -> tuple[tuple[object, ...], str]:
        return item, ""

    facts: list[tuple[str, object]] = [
        ("device", target.device),
        ("figures from", "; ".join(target.sources)),
        *(("not known without the device", text) for text in target.unknown),
        *((_LEFT_BEHIND, text) for text in target.left_behind),
        *([("error", target.error)] if target.error else []),
        *([] if context.limits.exact else [("the stages of every kernel", _ELSEWHERE)]),
        *(item for item in target.properties.items() if item[0] in _FIGURES),
    ]
    columns = "name|language|direction|fused nodes|lines|binary|configuration|candidates"
    columns += "|memory|at best, by the data sheet"
    return Section(
        title=f"{target.spec}, {PREDICTED}",
        summary=_summary(target),
        blocks=[
            table(columns, target.kernels, row, context.limits),
            *target_roofline(entry, target, context),
            table("target|", facts, fact, context.limits),
        ],
        rank=3,
        is_open=True,
    )


def _modules(entry: Compile, target: Target, context: Context) -> Iterator[Section]:
    """Yield the modules that Inductor would write for the target."""
    for output in target.output_code:
        section = module_section(entry, output, target.kernels, context)
        yield replace(section, summary=f"{section.summary}, {PREDICTED}")


_ELSEWHERE = "in the page: --save FILE.html"

_FIGURES = (
    "multi_processor_count",
    "regs_per_multiprocessor",
    "max_threads_per_multi_processor",
    "shared_memory_per_multiprocessor",
    "L2_cache_size",
    "total_memory",
    "bandwidth",
)


def config_text(binary: Binary) -> str:
    """Return the configuration that a kernel was compiled with: block sizes, warps, stages."""
    return ", ".join(f"{key}={value}" for key, value in binary.config.items())


def _kernel(entry: Compile, target: Target, kernel: Kernel, context: Context) -> Iterator[Section]:
    binary = target.binary(kernel) or Binary(kernel=kernel.name)
    nodes = {node.name: node for node in kernel_nodes(entry, kernel)}
    lines = line_marks(kernel, context) | {
        int(number): _line_marks(names, nodes, entry, context)
        for number, names in binary.source_nodes.items()
    }
    marks = context.marks.of_kernels(entry, kernel)
    facts = [
        *work_facts(kernel),
        ("at best, by the data sheet", target_floor_text(target, kernel)),
        ("binary", binary_text(binary) if binary.texts or binary.error else ""),
        ("configuration", config_text(binary)),
        ("candidates", _candidates(binary)),
    ]
    title = f"{target.spec} kernel {kernel.name}"
    page = kernel_page(entry, kernel, context, title=title, facts=facts, lines=lines)
    yield replace(page, rank=32)
    yield from stage_sections(binary, f"{target.spec} ", lines, marks, context)


def _candidates(binary: Binary) -> str:
    count = len(binary.candidates)
    return f"{count}: the first that fits was compiled" if count > 1 else ""


def stage_sections(
    binary: Binary, prefix: str, lines: dict[int, str], marks: str, context: Context
) -> Iterator[Section]:
    """Yield what each stage of Triton's compiler made; a cell's output has the assembly alone.

    `lines` are the marks of the lines of the kernel's source, `marks` those of the kernel.
    """
    for text in binary.texts:
        if not context.limits.exact and text.stage not in _ASSEMBLY:
            continue
        yield Section(
            title=f"{prefix}{_STAGES.get(text.stage, text.stage)} of {binary.kernel}",
            summary=plural(text.text.count("\n") + 1, "line"),
            blocks=[code(text.text, context.limits, _through(text, lines))],
            rank=_RANKS.get(text.stage, 65),
            marks=marks,
        )


_FEW = 4
_ASSEMBLY = ("ptx", "amdgcn", "sass")

#: What a reader looks for first goes into the report first, where space ends.
_RANKS = {"ptx": 60, "amdgcn": 60, "sass": 61, "ttgir": 63, "ttir": 64}


def _line_marks(names: list[str], nodes: dict[str, Node], entry: Compile, context: Context) -> str:
    found = [context.marks.of_node(nodes[name], entry) for name in names if name in nodes]
    return " ".join(dict.fromkeys(part for text in found for part in text.split()))


def _through(text: StageText, lines: dict[int, str]) -> dict[int, str]:
    """Return the marks of a stage's lines: those of the source lines they come from."""
    return {
        number: lines[source] for number, source in enumerate(text.lines, 1) if lines.get(source)
    }
