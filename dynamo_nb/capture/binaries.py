"""The binaries of the Triton kernels that ran on a GPU, and what they take of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

from dynamo_nb.capture.launch import launch_of
from dynamo_nb.capture.recorder import Hooked
from dynamo_nb.capture.tuning import kernel_name

__all__ = ["install_binaries"]

#: The stages of Triton's compiler whose result is text, in order.
_STAGES = ("ttir", "ttgir", "llir", "ptx", "amdgcn")
_IMAGES = ("cubin", "hsaco")

#: How Triton's first stage says where a kernel is: `#loc = loc("/tmp/k.py":18:0)`.
_PLACE = re.compile(r'^#loc = loc\("([^"]+)":', re.MULTILINE)


def install_binaries(hooked: Hooked) -> None:
    """Remember each Triton kernel that is made; tell of it at the end, when it has run.

    Only then is its configuration decided (`torch/_inductor/runtime/triton_heuristics.py:
    CachingAutotuner`, 2.13).
    """
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    recorder = hooked.recorder
    made: WeakSet[Any] = WeakSet()

    def after(_: Any, kernel: Any, *__: Any, **___: Any) -> None:
        if kernel.compile_id is not None:  # else a candidate that max-autotune tries
            made.add(kernel)

    def tell() -> None:
        for kernel in list(made):
            with recorder.apart(hooked.hook):
                if len(kernel.launchers) == 1:  # else it did not run, and could be any of them
                    recorder.emit(
                        "binary",
                        {"is_backward": bool(kernel.is_backward), **_binary(kernel)},
                        compile_id=str(kernel.compile_id),
                    )

    hooked.around(CachingAutotuner, "precompile", after=after)
    hooked.undo.callback(tell)


def _binary(kernel: Any) -> dict[str, Any]:
    (launcher,) = kernel.launchers
    results = [result for result in kernel.compile_results if result.config is launcher.config]
    asm = dict(_asm(results[0], launcher)) if results else {}
    stages = {stage: str(asm[stage]) for stage in _STAGES if stage in asm}
    warp = kernel.device_props.warp_size_or_default
    counts = {"registers": launcher.n_regs, "spilled_registers": launcher.n_spills}
    return {
        "kernel": kernel_name(kernel),
        **launch_of(kernel, launcher.config),
        "threads": launcher.config.num_warps * warp,
        "shared": int(launcher.shared or 0),
        "resources": {name: int(count) for name, count in counts.items() if count is not None},
        "size": next((len(asm[image]) for image in _IMAGES if image in asm), 0),
        "stages": stages,
        "file": _file(kernel, stages),
    }


def _file(kernel: Any, stages: dict[str, str]) -> str:
    """Return the file that a kernel was compiled from, by what its first stage says.

    Triton's cache knows a kernel by its source and the line that it begins in, so it may have been
    compiled from an earlier file. What torch knows of it is not always there: a kernel that came
    from a compile worker has left its function there, and templates are not told their file.
    """
    named = _PLACE.search(stages.get("ttir", ""))
    return str(named[1] if named else kernel.filename or f"{kernel_name(kernel)}.py")


def _asm(result: Any, launcher: Any) -> Iterator[tuple[str, Any]]:
    """Yield what each stage made: from memory, else from the files in Triton's cache.

    A kernel that torch launches itself keeps none of it (`StaticTritonCompileResult`, 2.13).
    """
    from torch._inductor.runtime.runtime_utils import triton_cache_dir

    in_memory = getattr(result.kernel, "asm", None)
    if in_memory:
        yield from in_memory.items()
        return
    device = result.compile_meta.get("device") or 0
    for file in (Path(triton_cache_dir(device)) / launcher.cache_hash).glob("*.*"):
        stage = file.suffix.removeprefix(".")
        if stage in _STAGES:
            yield stage, file.read_text()
        elif stage in _IMAGES:
            yield stage, file.read_bytes()
