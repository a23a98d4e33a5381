"""The C++ part of the pretence: built once per torch version, loaded before `import torch`."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

__all__ = ["ShimError", "load"]

_SOURCE = Path(__file__).with_name("shim.cpp")
_COMPILERS = ("c++", "g++", "clang++")

#: Libraries of torch in the order in which they are loaded; a CPU build lacks the last two.
_LIBRARIES = ("libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so")


class ShimError(RuntimeError):
    """Why the shim can't be had here."""


def load() -> None:
    """Load torch's libraries and the shim, then torch, and make the absent GPU known."""
    assert "torch" not in sys.modules, "the hooks must be registered before torch asks for them"
    built = _built()
    libraries = _torch() / "lib"
    present = [name for name in _LIBRARIES if (libraries / name).exists()]
    if "libtorch_cuda.so" in present:
        _load_dependencies()
    for name in present:
        ctypes.CDLL(str(libraries / name), mode=ctypes.RTLD_GLOBAL)
    shim = ctypes.CDLL(str(built))
    import torch

    shim.dynamo_nb_absent_gpu()
    # A CUDA build would replace the guard by its own at the first use of the device.
    torch._C._ensureCUDADeviceGuardSet = lambda: None


def _torch() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ShimError("torch is not installed")
    return Path(spec.origin).parent


def _load_dependencies() -> None:
    """Load NVIDIA's libraries where they are wheels of their own, as torch does on import.

    Not globally: one of them, nvblas, would take the CPU's linear algebra over.
    """
    for file in sorted(_torch().parent.glob("nvidia/**/lib*.so*")):
        try:
            ctypes.CDLL(str(file))
        except OSError:
            continue  # one of many that torch does not need


def _built() -> Path:
    """Return the shim for this torch, built unless an earlier process did."""
    source = _SOURCE.read_bytes()
    key = hashlib.sha256(source + version("torch").encode()).hexdigest()[:16]
    file = _cache() / f"absent-gpu-{key}.so"
    if not file.exists():
        _build(file)
    return file


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "dynamo_nb"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="dynamo_nb-"))


def _build(file: Path) -> None:
    compiler = os.environ.get("CXX") or next(filter(shutil.which, _COMPILERS), None)
    if compiler is None:
        raise ShimError("it needs a C++ compiler (g++ or clang++) to build its device guard")
    root = _torch()
    part = file.with_suffix(f".{os.getpid()}.tmp")
    command = [
        *(compiler, "-std=c++20", "-O1", "-shared", "-fPIC", str(_SOURCE), "-o", str(part)),
        *(f"-I{root / 'include'}", f"-L{root / 'lib'}", "-lc10", "-ltorch_cpu"),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        said = (run.stderr.strip().splitlines() or ["no message"])[0]
        raise ShimError(f"its device guard could not be built with {compiler}: {said}")
    part.replace(file)
