"""What was measured (`--time`): the words for it, in text and in HTML."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_nb.record.types import KernelTime, Measured, Timing
from dynamo_nb.views.blocks import Section, table
from dynamo_nb.views.context import Context
from dynamo_nb.views.model import direction_of
from dynamo_nb.views.plain import plural, size_text, time_text

__all__ = ["kernel_time_text", "timing_text", "timings"]


def timing_text(timing: Timing) -> str:
    """Return what was measured of a call: `1.20 ms eager, 0.40 ms compiled: 3.00 times as fast`."""
    if timing.eager is None or timing.compiled is None:
        return f"{timing.status}: {timing.reason}"
    facts = [
        f"{_measured_text(timing.eager)} eager, {_measured_text(timing.compiled)} compiled: "
        f"{_speed_up_text(timing)}"
    ]
    if timing.gradients:
        facts.append("with backward")
    if timing.eager_launches is not None and timing.compiled_launches is not None:
        facts.append(f"{timing.eager_launches} -> {plural(timing.compiled_launches, 'launch')}")
    if timing.eager_memory is not None and timing.compiled_memory is not None:
        before, now = size_text(timing.eager_memory), size_text(timing.compiled_memory)
        facts.append(f"{before} -> {now} at most")
    return ", ".join(facts)


def _speed_up_text(timing: Timing) -> str:
    ratio = timing.speed_up or 0.0
    text = f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"
    if timing.is_clear:
        return f"{text} times as fast"
    return f"no clear difference ({text} times as fast, and they vary by more)"


def _measured_text(measured: Measured) -> str:
    return f"{time_text(measured.median)} ± {time_text(measured.spread / 2)}"


def kernel_time_text(time: KernelTime) -> str:
    """Return what a kernel took within one call."""
    runs = f" in {time.calls:g} runs" if time.calls != 1 else ""
    return f"{time_text(time.seconds)}{runs}  {time.name}"


def timings(context: Context) -> Iterator[Section]:
    """Yield the calls that were measured, and the kernels of each."""

    def row(timing: Timing) -> tuple[tuple[object, ...], str]:
        both = [timing.eager, timing.compiled]
        return (
            timing.line or "",
            timing.name,
            *(_measured_text(side) if side is not None else "" for side in both),
            _speed_up_text(timing).removesuffix(" times as fast") if all(both) else "",
            timing.eager_launches if timing.eager_launches is not None else "",
            timing.compiled_launches if timing.compiled_launches is not None else "",
            size_text(timing.eager_memory or 0),
            size_text(timing.compiled_memory or 0),
            timing.compile,
            timing.reason or ("with backward" if timing.gradients else ""),
        ), context.marks.of_lines([timing.line])

    def kernel_row(item: tuple[Timing, KernelTime]) -> tuple[tuple[object, ...], str]:
        timing, time = item
        total = sum(each.seconds for each in timing.kernels)
        return (
            timing.line or "",
            time.name,
            time.compile,
            direction_of(time.graph),
            f"{time.calls:g}",
            time_text(time.seconds),
            f"{100 * time.seconds / total:.0f}%" if total else "",
        ), context.marks.of_lines([timing.line])

    measured = context.record.timings
    if measured:
        columns = "line|callable|eager|compiled|times as fast|launches eager|launches compiled"
        columns += "|memory eager|memory compiled|entry|"
        kernels = [(timing, time) for timing in measured for time in timing.kernels]
        by_kernel = "line|kernel|entry|direction|runs|time|share of all kernels"
        yield Section(
            title="times against eager",
            summary=plural(sum(timing.status == "timed" for timing in measured), "call"),
            blocks=[
                table(columns, measured, row, context.limits),
                table(by_kernel, kernels, kernel_row, context.limits),
            ],
            is_open=True,
        )
