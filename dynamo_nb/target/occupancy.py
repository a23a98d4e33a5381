"""How many warps of a kernel a multiprocessor holds at once: the vendors' own arithmetic."""

from __future__ import annotations

from typing import Any

from dynamo_nb.target.devices import Device

__all__ = ["occupancy"]


def occupancy(device: Device, threads: int, registers: int, shared: int) -> dict[str, Any]:
    """Return the share of a multiprocessor's warps that can be resident, and what limits it.

    `threads` is the size of a block, `registers` what each thread takes, `shared` the bytes of
    shared memory (LDS) that a block takes.
    """
    warps = max(-(-threads // device.warp), 1)
    most = device.threads // device.warp
    limits = {"threads": most // warps, "blocks": device.blocks}
    if registers:
        limits["registers"] = _warps_by_registers(device, registers) // warps
    if shared:
        limits["shared memory"] = device.shared // _shared_of_a_block(device, shared)
    limited_by = min(limits, key=lambda name: limits[name])
    resident = limits[limited_by] * warps
    return {
        "share": min(resident / most, 1.0),
        "blocks": limits[limited_by],
        "warps": resident,
        "limited_by": "" if resident >= most else limited_by,
    }


def _warps_by_registers(device: Device, registers: int) -> int:
    """Return how many warps find registers; a multiprocessor has four parts that share none."""
    unit = device.register_unit
    of_a_warp = -(-registers // unit) * unit * device.warp
    return 4 * (device.registers // 4 // of_a_warp)


def _shared_of_a_block(device: Device, shared: int) -> int:
    """Return what a block takes of the shared memory: with what is reserved, in whole units."""
    unit = device.shared_unit
    return -(-(shared + device.reserved_shared) // unit) * unit
