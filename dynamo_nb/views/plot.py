"""The roofline plot: each measured kernel by its intensity, under what the device can do."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dynamo_nb.record.types import Compile, Kernel, Machine
from dynamo_nb.views.blocks import Figure, Point
from dynamo_nb.views.context import Context
from dynamo_nb.views.model import cell_lines, kernel_nodes
from dynamo_nb.views.roofline import times_of

__all__ = ["rooflines"]

_WIDTH, _HEIGHT, _LEFT, _BELOW = 480, 200, 84, 30
#: Operations a byte, from the left edge to the right one, and how far below the peak it goes.
_INTENSITIES = (1e-2, 1e3)
_DECADES = 5


def rooflines(entry: Compile, context: Context) -> Iterator[Figure]:
    """Yield a plot for each device whose rates are known, where kernels were measured on it."""
    for machine in context.record.machines:
        points = [p for kernel in entry.kernels for p in _points(machine, entry, kernel, context)]
        peak = machine.flops.get("float32", 0.0)
        if points and peak and machine.bandwidth:
            yield Figure(
                title=f"roofline of {machine.name}",
                width=_WIDTH,
                height=_HEIGHT,
                lines=[_roof(machine, peak), _axes()],
                points=points,
                words=_words(machine, peak),
            )


def _points(machine: Machine, entry: Compile, kernel: Kernel, context: Context) -> Iterator[Point]:
    peak = machine.flops.get("float32", 0.0)
    for time in times_of(context.record, entry, kernel):
        if kernel.intensity and kernel.flops and time.seconds and peak:
            rate = kernel.flops / time.seconds
            lines = sorted(cell_lines(kernel_nodes(entry, kernel)))
            text = f"{kernel.name}: {kernel.intensity:.3g} operations a byte, {_rate(rate)}"
            yield Point(_x(kernel.intensity), _y(rate, peak), text, context.marks.of_lines(lines))


def _roof(machine: Machine, peak: float) -> list[tuple[float, float]]:
    """Return the line of what is possible: memory's rate up to the ridge, then the peak."""
    low, high = _INTENSITIES
    ridge = peak / machine.bandwidth
    corners = [(low, low * machine.bandwidth), (ridge, peak), (high, peak)]
    return [(_x(intensity), _y(rate, peak)) for intensity, rate in corners]


def _axes() -> list[tuple[float, float]]:
    bottom = float(_HEIGHT - _BELOW)
    return [(float(_LEFT), 0.0), (float(_LEFT), bottom), (float(_WIDTH), bottom)]


def _words(machine: Machine, peak: float) -> list[Point]:
    low, high = (round(math.log10(edge)) for edge in _INTENSITIES)
    below = _HEIGHT - _BELOW + 12
    ticks = [Point(_x(10.0**power), below, f"{10.0**power:g}") for power in range(low, high)]
    return [
        *ticks,
        Point(_LEFT, _HEIGHT - 4, "operations a byte"),
        Point(0, _y(peak, peak) + 4, _rate(peak)),
        Point(_LEFT + 8, _HEIGHT - _BELOW - 8, f"{machine.bandwidth / 1e9:.3g} GB/s"),
    ]


def _x(intensity: float) -> float:
    low, high = map(math.log10, _INTENSITIES)
    share = (math.log10(intensity) - low) / (high - low)
    return round(_LEFT + min(max(share, 0.0), 1.0) * (_WIDTH - _LEFT), 1)


def _y(rate: float, peak: float) -> float:
    share = 1 + math.log10(rate / peak) / _DECADES
    return round((_HEIGHT - _BELOW) * (1 - min(max(share, 0.0), 1.0) * 0.9), 1)


def _rate(rate: float) -> str:
    return f"{rate / 1e9:.3g} GFLOP/s"
