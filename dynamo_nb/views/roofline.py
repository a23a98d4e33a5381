"""How fast a kernel can be at best, by the rates of a device, and how fast it was."""

from __future__ import annotations

from msgspec import Struct

from dynamo_nb.record.types import (
    CellRecord,
    Compile,
    Kernel,
    KernelTime,
    Machine,
    Target,
)
from dynamo_nb.views.plain import rate_text, time_text

__all__ = [
    "Floor",
    "floor",
    "floor_text",
    "measured_text",
    "peak_of",
    "target_floor_text",
    "times_of",
]


class Floor(Struct, frozen=True):
    """The least seconds that a kernel takes, and what bounds it: `memory` or `arithmetic`.

    Where a kernel's operations are not known, it is `memory` alone that was asked.
    """

    seconds: float
    bound: str
    is_whole: bool = True

    def __str__(self) -> str:
        """Return the floor in words."""
        alone = "" if self.is_whole else " alone (its operations are not known)"
        return f"{time_text(self.seconds)}, bound by {self.bound}{alone}"


def floor(machine: Machine, kernel: Kernel) -> Floor | None:
    """Return the floor of a kernel on a device: its memory and its arithmetic at their best."""
    if not machine.bandwidth or not kernel.bytes:
        return None
    peak = peak_of(machine, kernel)
    memory = kernel.bytes / machine.bandwidth
    arithmetic = (kernel.flops or 0) / peak if peak else 0.0
    bound = "memory" if memory >= arithmetic else "arithmetic"
    return Floor(max(memory, arithmetic), bound, is_whole=kernel.flops is not None)


def peak_of(machine: Machine, kernel: Kernel) -> float:
    """Return operations a second: without a rate for the kernel's dtype, that for float32."""
    return machine.flops.get(kernel.dtype) or machine.flops.get("float32", 0.0)


def target_floor_text(target: Target, kernel: Kernel) -> str:
    """Return a kernel's floor on a GPU that is not there, by its data sheet."""
    found = floor(target.machine, kernel)
    return str(found) if found is not None else ""


def floor_text(record: CellRecord, kernel: Kernel) -> str:
    """Return a kernel's floor on the devices whose rates are known, and where these are from."""
    if not record.machines:
        return "not known: the rates of this machine are measured by --time"
    parts = []
    for machine in record.machines:
        found = floor(machine, kernel)
        if found is not None:
            parts.append(
                f"{found} ({machine.name}: {rate_text(machine.bandwidth, 'B')}, "
                f"{rate_text(peak_of(machine, kernel), 'FLOP')}, {machine.source})"
            )
    return "; ".join(parts)


def measured_text(record: CellRecord, entry: Compile, kernel: Kernel) -> str:
    """Return what a kernel took where it was measured (`--time`), with its share of the floor."""
    parts = []
    for time in times_of(record, entry, kernel):
        text = f"{time_text(time.seconds)} a call of the function"
        floors = [floor(machine, kernel) for machine in record.machines]
        if floors and floors[0] is not None and time.seconds:
            text += f", {_share_text(floors[0], time.seconds)}" if floors[0].is_whole else ""
        parts.append(text)
    return "; ".join(parts)


#: Why a kernel is faster than its floor, by what bounds it.
_FASTER = {
    "memory": "faster than memory allows: the data stays in cache",
    "arithmetic": "faster than the arithmetic measured on this machine",
}


def _share_text(floor: Floor, seconds: float) -> str:
    share = round(100 * floor.seconds / seconds)
    return _FASTER[floor.bound] if share > 100 else f"{share}% of what is possible"


def times_of(record: CellRecord, entry: Compile, kernel: Kernel) -> list[KernelTime]:
    """Return what was measured of a kernel."""
    return [
        time
        for timing in record.timings
        for time in timing.kernels
        if time.name == kernel.name and (time.compile, time.graph) == (entry.key, kernel.graph)
    ]
