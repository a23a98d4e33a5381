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
    compile_, graph, name = _home(row["code"], row["name"], compiles)
    return KernelTime(
        name=name, calls=row["calls"], seconds=row["seconds"], compile=compile_, graph=graph
    )


def _home(code: str, name: str, compiles: list[Compile]) -> tuple[str, str, str]:
    """Return the compile and the graph of a kernel, and its name there.

    It is that of the output code, else the only one with the name. A GPU calls a kernel by its
    function; a user's has a number behind that in the output code.
    """
    for compiled in compiles:
        for output in compiled.output_code:
            if code and output.code.strip() == code.strip():
                return compiled.key, output.graph, name
    all_ = [(entry.key, kernel) for entry in compiles for kernel in entry.kernels]
    for is_it in (lambda kernel: kernel.name == name, lambda kernel: f"def {name}(" in kernel.code):
        having = {(key, kernel.graph, kernel.name) for key, kernel in all_ if is_it(kernel)}
        if having:
            return having.pop() if len(having) == 1 else ("", "", name)
    return "", "", name
