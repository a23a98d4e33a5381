"""What the run itself told of kernels: what autotuning chose, binaries that ran, CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_nb.record.types import Binary, Choice, Compile, CudagraphUse, Kernel, Tuning
from dynamo_nb.views.blocks import Section, table
from dynamo_nb.views.context import Context
from dynamo_nb.views.kernels import line_marks
from dynamo_nb.views.model import direction_of
from dynamo_nb.views.plain import brief, one_line, plural, time_text
from dynamo_nb.views.targets import binary_text, config_text, stage_sections

__all__ = ["cudagraph_lines", "ran_lines", "ran_sections"]


def ran_lines(entry: Compile, kernel: Kernel) -> Iterator[str]:
    """Yield what autotuning chose for a kernel, and what its binary takes."""
    for tuning in entry.tunings:
        if tuning.is_of(kernel):
            yield tuning_text(tuning)
    for binary in _binaries(entry, kernel):
        yield f"ran with {config_text(binary)}: {binary_text(binary)}"


def tuning_text(tuning: Tuning) -> str:
    """Return which candidate won, in what time, and how far off the next one is."""
    timed = [choice for choice in tuning.choices if choice.microseconds is not None]
    of = f"{tuning.operation} " if tuning.operation else ""
    if not timed:
        return f"autotuned: {of}none of {plural(len(tuning.choices), 'candidate')} could run"
    best = timed[0]
    text = f"autotuned: {of}{one_line(best.name)} is the fastest of {len(tuning.choices)}"
    text += f" ({_time(best)}"
    if len(timed) > 1:
        text += f"; next {one_line(timed[1].name)}, {_time(timed[1])}"
    return f"{text})"


def _time(choice: Choice) -> str:
    return time_text((choice.microseconds or 0.0) * 1e-6)


def _binaries(entry: Compile, kernel: Kernel) -> list[Binary]:
    key = kernel.name, kernel.graph
    return [item for item in entry.binaries if (item.kernel, item.graph) == key]


def cudagraph_lines(entry: Compile) -> Iterator[str]:
    """Yield what became of each CUDA graph: how often it was recorded and replayed, and why."""
    for use in entry.cudagraphs:
        yield f"CUDA graph{_of(use)}: {_counts(use)}"
        for reason in use.reasons:
            yield f"recorded again: {brief(reason, 240)}"


def _of(use: CudagraphUse) -> str:
    direction = direction_of(use.graph)
    return f" of {direction}" if direction else ""


def _counts(use: CudagraphUse) -> str:
    return (
        f"{plural(use.warm_ups, 'warm-up')}, {plural(use.recordings, 'recording')}, "
        f"{plural(use.replays, 'replay')}"
    )


# ------------------------------------------------------------------ HTML


def ran_sections(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield what autotuning measured, what became of CUDA graphs, and the binaries that ran."""
    yield from _tunings(entry, context)
    yield from _cudagraphs(entry, context)
    for kernel in entry.kernels:
        for binary in _binaries(entry, kernel):
            yield from _binary(entry, kernel, binary, context)


def _tunings(entry: Compile, context: Context) -> Iterator[Section]:
    def row(item: tuple[Tuning, Choice]) -> tuple[tuple[object, ...], str]:
        tuning, choice = item
        best = tuning.choices[0].microseconds
        kernels = [kernel for kernel in entry.kernels if tuning.is_of(kernel)]
        return (
            tuning.operation or tuning.kernel,
            direction_of(tuning.graph),
            ", ".join(tuning.sizes),
            choice.name,
            choice.detail,
            _time(choice) if choice.microseconds is not None else "could not run",
            f"{choice.microseconds / best:.2f}" if best and choice.microseconds else "",
        ), context.marks.of_kernels(entry, *kernels)

    rows = [(tuning, choice) for tuning in entry.tunings for choice in tuning.choices]
    if rows:
        columns = "for|direction|sizes|candidate|details|time|over the fastest"
        yield Section(
            title="autotuning",
            summary=plural(len(entry.tunings), "choice"),
            blocks=[table(columns, rows, row, context.limits)],
            rank=28,
        )


def _cudagraphs(entry: Compile, context: Context) -> Iterator[Section]:
    def row(use: CudagraphUse) -> tuple[tuple[object, ...], str]:
        direction = direction_of(use.graph)
        reasons = "; ".join(use.reasons)
        return (direction, use.warm_ups, use.recordings, use.replays, reasons), ""

    if entry.cudagraphs:
        columns = "direction|warm-ups|recordings|replays|recorded again because"
        yield Section(
            title="CUDA graphs",
            summary=plural(sum(use.recordings for use in entry.cudagraphs), "recording"),
            blocks=[table(columns, entry.cudagraphs, row, context.limits)],
            rank=29,
        )


def _binary(entry: Compile, kernel: Kernel, binary: Binary, context: Context) -> Iterator[Section]:
    def fact(item: tuple[str, object]) -> tuple[tuple[object, ...], str]:
        return item, ""

    marks = context.marks.of_kernels(entry, kernel)
    facts = [("ran with", config_text(binary)), ("takes", binary_text(binary))]
    yield Section(
        title=f"binary of {kernel.name}",
        summary=f"{binary.size} bytes" if binary.size else "",
        blocks=[table("fact|", facts, fact, context.limits)],
        rank=31,
        marks=marks,
    )
    yield from stage_sections(binary, "", line_marks(kernel, context), marks, context)
