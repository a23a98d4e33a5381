"""What this machine's memory and arithmetic can do at best, measured."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["machine"]

#: More than any cache holds, in bytes, and a matrix's side, by type of device.
_COPIED = {"cpu": 128 << 20, "cuda": 1 << 30}
_SIDE = {"cpu": 1024, "cuda": 8192}
_REPEATS = 5

#: Whose rates are measured: those that differ, by the names of the record's `Kernel.dtype`.
_DTYPES = {
    "cpu": ("float32", "float64"),
    "cuda": ("float32", "tf32", "float16", "bfloat16", "float64"),
}


def machine(device: str) -> dict[str, Any]:
    """Return a device's rates in the shape of the record's `Machine`, by the second."""
    threads = torch.get_num_threads()
    return {
        "device": device,
        "name": torch.cuda.get_device_name() if device == "cuda" else f"CPU, threads: {threads}",
        "bandwidth": _bandwidth(device, threads),
        "flops": {dtype: _flops(device, threads, dtype) for dtype in _DTYPES[device]},
        "source": f"measured here, the best of {_REPEATS}: a copy of "
        f"{_COPIED[device] >> 20} MiB, matrix products of side {_SIDE[device]}",
    }


@functools.cache
def _bandwidth(device: str, _: int) -> float:
    source = torch.ones(_COPIED[device] // 4, device=device)
    target = torch.empty_like(source)
    return 2 * _COPIED[device] / _best(lambda: target.copy_(source), device)


@functools.cache
def _flops(device: str, _: int, dtype: str) -> float:
    side = _SIDE[device]
    is_rounded = dtype == "tf32"
    kind = torch.float32 if is_rounded else getattr(torch, dtype)
    matrix = torch.ones(side, side, device=device, dtype=kind)
    result = torch.empty_like(matrix)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if is_rounded else "highest")
    try:
        seconds = _best(lambda: torch.mm(matrix, matrix, out=result), device)
    finally:
        torch.set_float32_matmul_precision(before)
    return 2 * side**3 / seconds


def _best(work: Callable[[], Any], device: str) -> float:
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    seconds = []
    with torch.inference_mode():
        for _ in range(_REPEATS):
            wait()
            began = time.perf_counter()
            work()
            wait()
            seconds.append(time.perf_counter() - began)
    return min(seconds)
