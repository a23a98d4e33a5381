"""A Triton kernel through Triton's compiler to a binary, and what that says. In the worker only."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch._inductor.config
import triton
from torch._inductor.codecache import _load_triton_kernel_from_source

from dynamo_nb.capture.launch import launch_of, plain, settings
from dynamo_nb.record.stage_texts import sass_of, text_of
from dynamo_nb.target import pretence
from dynamo_nb.target.devices import Device
from dynamo_nb.target.occupancy import occupancy

__all__ = ["NAMES", "compiled"]

NAMES = (
    "torch._inductor.codecache:_load_triton_kernel_from_source",
    "torch._inductor.runtime.triton_heuristics:CachingAutotuner._precompile_config",
    "torch._inductor.runtime.triton_heuristics:GridExpr.from_meta",
    "triton:knobs.compilation.always_compile",
    "triton:knobs.nvidia.dump_ptxas_log",
    "triton:knobs.nvidia.nvdisasm",
    "triton.runtime.autotuner:Config.all_kwargs",
)

#: The stages of Triton's compiler in order, those of both backends; the rest of `asm` is binary.
_STAGES = ("ttir", "ttgir", "llir", "ptx", "amdgcn")

#: What ptxas says of a kernel with `-v`, and what an AMD binary has in its metadata.
_PTXAS = {
    "registers": r"Used (\d+) registers",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
    "stack": r"(\d+) bytes stack frame",
}
_AMD = {
    "registers": r"\.vgpr_count:\s+(\d+)",
    "scalar_registers": r"\.sgpr_count:\s+(\d+)",
    "spilled_registers": r"\.vgpr_spill_count:\s+(\d+)",
    "stack": r"\.private_segment_fixed_size:\s+(\d+)",
}


def compiled(name: str, source: str, device: Device, *, sass: bool) -> dict[str, Any]:
    """Compile a kernel with the first of its configurations that fits the device.

    Which configuration wins is measured on the device, so it can't be known: all of them are named.
    """
    with torch._inductor.config.patch(pretence.CONFIG):
        kernel = _load_triton_kernel_from_source(name, source)
        candidates = list(kernel.configs or ())
        result, log = _first_that_fits(kernel, candidates, device)
    binary = result.kernel
    resources = _resources(name, binary, log)
    file = kernel.fn.fn.__code__.co_filename
    texts = [text_of(s, binary.asm[s], name, file) for s in _STAGES if s in binary.asm]
    if sass and "cubin" in binary.asm:
        texts.append(sass_of(_disassembled(binary.asm["cubin"]), texts[-1], name))
    threads = binary.metadata.num_warps * device.warp
    shared = int(binary.metadata.shared)
    return {
        **launch_of(kernel, result.config),
        "candidates": [plain(settings(item)) for item in candidates],
        "threads": threads,
        "shared": shared,
        "resources": resources,
        "occupancy": occupancy(device, threads, resources.get("registers", 0), shared),
        "texts": texts,
        "binary_size": len(binary.asm.get("cubin") or binary.asm.get("hsaco") or b""),
    }


def _first_that_fits(kernel: Any, candidates: list[Any], device: Device) -> tuple[Any, str]:
    """Return the compile result of the first configuration that the compiler takes, and its log."""
    trouble: Exception | None = None
    triton.knobs.nvidia.dump_ptxas_log = True
    triton.knobs.compilation.always_compile = True  # a binary from a cache comes without a log
    for config in candidates:
        log = io.StringIO()
        try:
            with contextlib.redirect_stdout(log):
                result = kernel._precompile_config(config)
            _check_shared(result.kernel.metadata.shared, device)
            return result, log.getvalue()
        except Exception as exc:
            trouble = trouble or exc
    raise trouble or ValueError("Inductor gave it no configuration")


def _check_shared(shared: int, device: Device) -> None:
    """Raise where a block takes more than it can have, which else only a launch would tell."""
    if shared > device.block_shared:
        raise ValueError(
            f"a block takes {shared} bytes of shared memory, and may have {device.block_shared}"
        )


def _resources(name: str, binary: Any, log: str) -> dict[str, int]:
    """Return registers, spills and stack of the kernel's entry function."""
    if "amdgcn" in binary.asm:
        found = binary.asm["amdgcn"], _AMD
    else:
        found = _entry_log(log, name), _PTXAS
    text, patterns = found
    matches = {key: re.search(pattern, text) for key, pattern in patterns.items()}
    return {key: int(match[1]) for key, match in matches.items() if match}


def _entry_log(log: str, name: str) -> str:
    """Return what ptxas says of the entry function, without the functions that it calls."""
    _, _, rest = log.partition(f"Function properties for {name}\n")
    return rest.split("Function properties for")[0]


def _disassembled(cubin: bytes) -> str:
    """Return a cubin's SASS, with the lines of PTX that its instructions come from."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        command = [triton.knobs.nvidia.nvdisasm.path, "-gp", "-c", str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
