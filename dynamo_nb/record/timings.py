"""Timings: calls that were measured eagerly and compiled, with the graphs of their kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from dynamo_nb.record.checks import compile_of
from dynamo_nb.record.places import Places
from dynamo_nb.record.types import CellRecord, Compile, KernelTime, Timing

__all__ = ["RawTiming", "placed", "timing_of"]


class RawTiming(NamedTuple):
    """A timing, and its kernels with the output code that they are in."""

    timing: Timing
    kernels: list[dict[str, Any]]


def timing_of(places: Places, data: dict[str, Any]) -> RawTiming:
    """Return the timing that a `timing` event tells of."""
    line = places.call_line(data.get("user_stack") or ())
    kernels = data.get("kernels") or []
    timing = msgspec.convert({**data, "kernels": []}, Timing)
    return RawTiming(replace(timing, line=line), kernels)


def placed(raw: RawTiming, record: CellRecord) -> Timing:
    """Return a timing whose kernels name their compile and graph, those that take longest first."""
    entry = compile_of(raw.timing, record)
    compiles = [*([entry] if entry is not None else []), *record.compiles]
    kernels = [_kernel(row, compiles) for row in raw.kernels]
    kernels.sort(key=lambda kernel: -kernel.seconds)
    ran = {kernel.compile for kernel in kernels if kernel.compile}
    key = ran.pop() if len(ran) == 1 else entry.key if entry is not None else ""
    return replace(raw.timing, compile=key, kernels=kernels)


def _kernel(row: dict[str, Any], compiles: list[Compile]) -> KernelTime:
    compile_, graph = _home(row["code"], row["name"], compiles)
    shared = {key: row[key] for key in ("name", "calls", "seconds")}
    return KernelTime(**shared, compile=compile_, graph=graph)


def _home(code: str, name: str, compiles: list[Compile]) -> tuple[str, str]:
    """Return the compile and the graph of a kernel: of that output code, else the one with it."""
    for compiled in compiles:
        for output in compiled.output_code:
            if code and output.code.strip() == code.strip():
                return compiled.key, output.graph
    having = {
        (compiled.key, kernel.graph)
        for compiled in compiles
        for kernel in compiled.kernels
        if kernel.name == name
    }
    return having.pop() if len(having) == 1 else ("", "")
