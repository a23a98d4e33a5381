"""The GPUs that can be a target: what steers Inductor's and Triton's choices, and where it is from.

No figure is measured here. Limits of a multiprocessor are those of the vendor's tables; counts of
multiprocessors, L2 and memory are what torch printed for the device in public threads, as
`torch.cuda.get_device_properties` is what Inductor asks.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

__all__ = ["DEVICES", "Device"]

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30


class Device(Struct, frozen=True, kw_only=True):
    """One GPU as torch and Triton would describe it.

    Sizes are in bytes. `block_shared` is what one block may opt in to, `shared` what a
    multiprocessor has; `registers` are those of 32 bits that a multiprocessor has, and a warp gets
    them in units of `register_unit` a thread. `bandwidth` is in bytes and `flops` in operations a
    second, by dtype and dense.
    """

    spec: str
    name: str
    arch: int | str
    warp: int
    multiprocessors: int
    registers: int
    register_unit: int
    threads: int
    blocks: int
    block_shared: int
    shared: int
    reserved_shared: int
    l2: int
    memory: int
    bandwidth: float
    flops: dict[str, float]
    sources: list[str]

    @property
    def backend(self) -> str:
        """The name of Triton's backend: `cuda` or `hip`."""
        return self.spec.partition(":")[0]

    @property
    def capability(self) -> tuple[int, int]:
        """What `torch.cuda.get_device_capability` returns."""
        return (9, 4) if isinstance(self.arch, str) else divmod(self.arch, 10)

    def properties(self) -> dict[str, Any]:
        """Return the fields of `torch.cuda.get_device_properties`."""
        major, minor = self.capability
        is_amd = self.backend == "hip"
        return {
            "name": self.name,
            "major": major,
            "minor": minor,
            "multi_processor_count": self.multiprocessors,
            "regs_per_multiprocessor": self.registers,
            "max_threads_per_multi_processor": self.threads,
            "max_threads_per_block": 1024,
            "warp_size": self.warp,
            "shared_memory_per_block": self.block_shared if is_amd else 48 * KB,
            "shared_memory_per_block_optin": self.block_shared,
            "shared_memory_per_multiprocessor": self.shared,
            "L2_cache_size": self.l2,
            "total_memory": self.memory,
            "is_integrated": False,
            "is_multi_gpu_board": False,
            "gcnArchName": f"{self.arch}:sramecc+:xnack-" if is_amd else "",
        }


_LIMITS = "CUDA C++ Programming Guide, technical specifications per compute capability"

_DEVICES = (
    Device(
        spec="cuda:75",
        name="Tesla T4",
        arch=75,
        warp=32,
        multiprocessors=40,
        registers=65536,
        register_unit=8,
        threads=1024,
        blocks=16,
        block_shared=64 * KB,
        shared=64 * KB,
        reserved_shared=0,
        l2=4 * MB,
        memory=15 * GB,
        bandwidth=320e9,
        flops={"float32": 8.1e12, "float16": 65e12},
        sources=[_LIMITS, "NVIDIA T4 data sheet"],
    ),
    Device(
        spec="cuda:80",
        name="NVIDIA A100-SXM4-80GB",
        arch=80,
        warp=32,
        multiprocessors=108,
        registers=65536,
        register_unit=8,
        threads=2048,
        blocks=32,
        block_shared=163 * KB,
        shared=164 * KB,
        reserved_shared=1 * KB,
        l2=40 * MB,
        memory=80 * GB,
        bandwidth=2039e9,
        flops={"float32": 19.5e12, "tf32": 156e12, "float16": 312e12, "bfloat16": 312e12},
        sources=[_LIMITS, "NVIDIA A100 data sheet"],
    ),
    Device(
        spec="cuda:89",
        name="NVIDIA GeForce RTX 4090",
        arch=89,
        warp=32,
        multiprocessors=128,
        registers=65536,
        register_unit=8,
        threads=1536,
        blocks=24,
        block_shared=99 * KB,
        shared=100 * KB,
        reserved_shared=1 * KB,
        l2=72 * MB,
        memory=24 * GB,
        bandwidth=1008e9,
        flops={"float32": 82.6e12, "tf32": 82.6e12, "float16": 165.2e12, "bfloat16": 165.2e12},
        sources=[_LIMITS, "NVIDIA Ada GPU architecture white paper, RTX 4090"],
    ),
    Device(
        spec="cuda:90",
        name="NVIDIA H100 80GB HBM3",
        arch=90,
        warp=32,
        multiprocessors=132,
        registers=65536,
        register_unit=8,
        threads=2048,
        blocks=32,
        block_shared=227 * KB,
        shared=228 * KB,
        reserved_shared=1 * KB,
        l2=50 * MB,
        memory=81089 * MB,
        bandwidth=3350e9,
        flops={"float32": 66.9e12, "tf32": 494.7e12, "float16": 989.4e12, "bfloat16": 989.4e12},
        sources=[_LIMITS, "NVIDIA H100 data sheet, SXM5", "torch's own print of the device"],
    ),
    Device(
        spec="cuda:100",
        name="NVIDIA B200",
        arch=100,
        warp=32,
        multiprocessors=148,
        registers=65536,
        register_unit=8,
        threads=2048,
        blocks=32,
        block_shared=227 * KB,
        shared=228 * KB,
        reserved_shared=1 * KB,
        l2=126 * MB,
        memory=182642 * MB,
        bandwidth=8000e9,
        flops={"float32": 75e12, "tf32": 1.1e15, "float16": 2.25e15, "bfloat16": 2.25e15},
        sources=[_LIMITS, "NVIDIA DGX B200 data sheet", "torch's own print of the device"],
    ),
    Device(
        spec="hip:gfx942",
        name="AMD Instinct MI300X",
        arch="gfx942",
        warp=64,
        multiprocessors=304,
        registers=131072,
        register_unit=8,
        threads=2048,
        blocks=32,
        block_shared=64 * KB,
        shared=64 * KB,
        reserved_shared=0,
        l2=4 * MB,
        memory=196592 * MB,
        bandwidth=5300e9,
        flops={"float32": 163.4e12, "tf32": 653.7e12, "float16": 1307.4e12, "bfloat16": 1307.4e12},
        sources=["AMD CDNA 3 ISA reference", "AMD Instinct MI300X data sheet", "ROCm/ROCm#4203"],
    ),
)

#: The devices by the name that `--target` takes.
DEVICES: dict[str, Device] = {device.spec: device for device in _DEVICES}
