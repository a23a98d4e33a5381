"""The roofline plot: each kernel by its intensity, under what the device can do."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dynamo_nb.record.types import Compile, Kernel, Machine, Target
from dynamo_nb.views.blocks import Figure, Point
from dynamo_nb.views.context import Context
from dynamo_nb.views.plain import rate_text, time_text
from dynamo_nb.views.roofline import floor, peak_of, times_of

__all__ = ["rooflines", "target_roofline"]

_WIDTH, _HEIGHT, _LEFT, _BELOW = 480, 200, 84, 30
#: Operations a byte, from the left edge to the right one, and how far below the peak it goes.
_INTENSITIES = (1e-2, 1e3)
_DECADES = 5


def rooflines(entry: Compile, context: Context) -> Iterator[Figure]:
    """Yield a plot for each device whose rates are known, where kernels were measured on it."""
    for machine in context.record.machines:
        points = [
            (kernel, time.seconds, f"{time_text(time.seconds)} measured")
            for kernel in entry.kernels
            for time in times_of(context.record, entry, kernel)
            if time.seconds
        ]
        yield from _figure(f"roofline of {machine.name}", machine, points, entry, context)


def target_roofline(entry: Compile, target: Target, context: Context) -> Iterator[Figure]:
    """Yield the plot of a GPU that is not there: each kernel where it is at best, on the roof."""
    points = [
        (kernel, at_best.seconds, f"{time_text(at_best.seconds)} at best, by the data sheet")
        for kernel in target.kernels
        if (at_best := floor(target.machine, kernel)) is not None
    ]
    title = f"roofline of {target.device}: at best, by the data sheet"
    yield from _figure(title, target.machine, points, entry, context)


def _figure(
    title: str,
    machine: Machine,
    timed: list[tuple[Kernel, float, str]],
    entry: Compile,
    context: Context,
) -> Iterator[Figure]:
    """Yield a plot of kernels with their seconds; nothing where nothing can be placed."""
    timed = [each for each in timed if each[0].intensity]
    roofs = {kernel.dtype: peak_of(machine, kernel) for kernel, _, _ in timed}
    peak = max(roofs.values(), default=0.0)
    if not peak or not machine.bandwidth:
        return
    yield Figure(
        title=title,
        width=_WIDTH,
        height=_HEIGHT,
        lines=[*(_roof(machine, roof, peak) for roof in set(roofs.values())), _axes()],
        points=[
            _point(kernel, seconds, text, peak, context.marks.of_kernels(entry, kernel))
            for kernel, seconds, text in timed
        ],
        words=_words(machine, roofs, peak),
    )


def _point(kernel: Kernel, seconds: float, text: str, peak: float, marks: str) -> Point:
    rate, intensity = (kernel.flops or 0) / seconds, kernel.intensity or 0.0
    told = f"{kernel.name}: {intensity:.3g} operations a byte, {rate_text(rate, 'FLOP')}, {text}"
    return Point(_x(intensity), _y(rate, peak), told, marks)


def _roof(machine: Machine, roof: float, peak: float) -> list[tuple[float, float]]:
    """Return the line of what is possible: memory's rate up to the ridge, then the peak."""
    low, high = _INTENSITIES
    ridge = roof / machine.bandwidth
    corners = [(low, low * machine.bandwidth), (ridge, roof), (high, roof)]
    return [(_x(intensity), _y(rate, peak)) for intensity, rate in corners]


def _axes() -> list[tuple[float, float]]:
    bottom = float(_HEIGHT - _BELOW)
    return [(float(_LEFT), 0.0), (float(_LEFT), bottom), (float(_WIDTH), bottom)]


def _words(machine: Machine, roofs: dict[str, float], peak: float) -> list[Point]:
    low, high = (round(math.log10(edge)) for edge in _INTENSITIES)
    below = _HEIGHT - _BELOW + 12
    ticks = [Point(_x(10.0**power), below, f"{10.0**power:g}") for power in range(low, high)]
    names: dict[float, list[str]] = {}
    for dtype, roof in roofs.items():
        names.setdefault(roof, []).append(dtype)
    return [
        *ticks,
        Point(_LEFT, _HEIGHT - 4, "operations a byte"),
        *(Point(0, _y(roof, peak) + 4, rate_text(roof, "FLOP")) for roof in names),
        *(
            Point(_WIDTH - 96, _y(roof, peak) + 11, ", ".join(dtypes))
            for roof, dtypes in names.items()
        ),
        Point(_LEFT + 8, _HEIGHT - _BELOW - 8, rate_text(machine.bandwidth, "B")),
    ]


def _x(intensity: float) -> float:
    low, high = map(math.log10, _INTENSITIES)
    share = (math.log10(intensity) - low) / (high - low)
    return round(_LEFT + min(max(share, 0.0), 1.0) * (_WIDTH - _LEFT), 1)


def _y(rate: float, peak: float) -> float:
    share = 1 + math.log10(rate / peak) / _DECADES
    return round((_HEIGHT - _BELOW) * (1 - min(max(share, 0.0), 1.0) * 0.9), 1)
