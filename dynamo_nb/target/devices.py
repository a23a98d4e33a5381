"""The GPUs that can be a target: what steers Inductor's and Triton's choices, and where it is from.

No figure is measured here, and each names its source: what could be opened and compared. Counts of
multiprocessors, L2 and memory are those that `torch.cuda.get_device_properties` gives, as that is
what Inductor asks.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

__all__ = ["DEVICES", "FIGURES", "Device"]

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30


class Device(Struct, frozen=True, kw_only=True):
    """One GPU as torch and Triton would describe it.

    Sizes are in bytes. `block_shared` is what one block may opt in to, `shared` what a
    multiprocessor has; `registers` are those of 32 bits that a multiprocessor has, and a warp gets
    them in units of `register_unit` a thread; a block gets shared memory in units of `shared_unit`.
    `bandwidth` is in bytes and `flops` in operations a second, by dtype and dense. `sources` says
    where each of the `FIGURES` is from.
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
    shared_unit: int
    l2: int
    memory: int
    bandwidth: float
    flops: dict[str, float]
    sources: dict[str, str]

    @property
    def backend(self) -> str:
        """The name of Triton's backend: `cuda` or `hip`."""
        return self.spec.partition(":")[0]

    @property
    def capability(self) -> tuple[int, int]:
        """What `torch.cuda.get_device_capability` returns."""
        return (9, 4) if isinstance(self.arch, str) else divmod(self.arch, 10)

    @property
    def cited(self) -> list[str]:
        """The sources, each with the figures that are from it."""
        return [
            f"{', '.join(name for name in FIGURES if self.sources[name] == source)}: {source}"
            for source in dict.fromkeys(self.sources.values())
        ]

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


#: What a device is described by; `Device.sources` has each.
FIGURES = (
    "multiprocessors",
    "registers",
    "register_unit",
    "threads",
    "blocks",
    "block_shared",
    "shared",
    "reserved_shared",
    "shared_unit",
    "l2",
    "memory",
    "bandwidth",
    "flops",
)

#: What all NVIDIA architectures from 7.5 on share.
_CUDA: dict[str, Any] = {"warp": 32, "registers": 65536, "register_unit": 8}

_TRAITS = "NVIDIA CCCL, cuda/__device/arch_traits.h"
_CALCULATOR = "CUDA Toolkit 13.5, cuda_occupancy.h"
_PRINT = "torch's own print of the device"
_TORCH = "torch/_inductor/analysis/device_info.py, from the vendor's data sheet"
_B200 = "NVIDIA's Blackwell data sheet (HGX B200) as quoted by pytorch/pytorch#193471"
_QUERY = "the driver's answers in pytorch/ao#4002"
_ROCM = "ROCm documentation, GPU specifications"
_LLVM = "LLVM, AMDGPU backend (AMDGPUUsage and its tests)"
_GUIDE = "float64 by NVIDIA's CUDA programming guide, throughput of arithmetic instructions"
_UNVERIFIED = "not verified: NVIDIA's Ada white paper could not be opened; public tables agree"


def _sources(device: str, memory: str, rates: str) -> dict[str, str]:
    """Return the sources of an NVIDIA device: of its counts, its memory's size, and its rates."""
    return {
        **dict.fromkeys(FIGURES, _TRAITS),
        **dict.fromkeys(("register_unit", "shared_unit"), _CALCULATOR),
        **dict.fromkeys(("multiprocessors", "l2"), device),
        "memory": memory,
        **dict.fromkeys(("bandwidth", "flops"), rates),
    }


def _rates(**rates: float) -> dict[str, float]:
    """Return operations a second by dtype; both formats of float8 have the same rate."""
    eight = rates.pop("float8", 0.0)
    return {**rates, **({"float8_e4m3fn": eight, "float8_e5m2": eight} if eight else {})}


_DEVICES = (
    Device(
        **_CUDA,
        spec="cuda:75",
        name="Tesla T4",
        arch=75,
        multiprocessors=40,
        threads=1024,
        blocks=16,
        block_shared=64 * KB,
        shared=64 * KB,
        reserved_shared=0,
        shared_unit=256,
        l2=4 * MB,
        memory=15095 * MB,
        bandwidth=320e9,
        flops=_rates(float64=8.1e12 / 32, float32=8.1e12, float16=65e12, int8=130e12),
        sources={
            **_sources(
                _PRINT,
                _PRINT,
                f"NVIDIA's T4 data sheet as quoted by Lightning's throughput.py; {_GUIDE}",
            ),
            "bandwidth": "the driver's answer in NVIDIA/DALI#1813",
        },
    ),
    Device(
        **_CUDA,
        spec="cuda:80",
        name="NVIDIA A100-SXM4-80GB",
        arch=80,
        multiprocessors=108,
        threads=2048,
        blocks=32,
        block_shared=163 * KB,
        shared=164 * KB,
        reserved_shared=1 * KB,
        shared_unit=128,
        l2=40 * MB,
        memory=80 * GB,
        bandwidth=2039e9,
        flops=_rates(
            float64=19.5e12,
            float32=19.5e12,
            tf32=156e12,
            float16=312e12,
            bfloat16=312e12,
            int8=624e12,
        ),
        sources=_sources("the driver's answers in bottlerocket#3873", _TORCH, _TORCH),
    ),
    Device(
        **_CUDA,
        spec="cuda:89",
        name="NVIDIA GeForce RTX 4090",
        arch=89,
        multiprocessors=128,
        threads=1536,
        blocks=24,
        block_shared=99 * KB,
        shared=100 * KB,
        reserved_shared=1 * KB,
        shared_unit=128,
        l2=72 * MB,
        memory=24563 * MB,
        bandwidth=1008e9,
        flops=_rates(
            float64=82.6e12 / 64,
            float32=82.6e12,
            tf32=82.6e12,
            float16=165.2e12,
            bfloat16=165.2e12,
            float8=330.3e12,
        ),
        sources=_sources(_PRINT, _PRINT, f"{_UNVERIFIED}; {_GUIDE}"),
    ),
    Device(
        **_CUDA,
        spec="cuda:90",
        name="NVIDIA H100 80GB HBM3",
        arch=90,
        multiprocessors=132,
        threads=2048,
        blocks=32,
        block_shared=227 * KB,
        shared=228 * KB,
        reserved_shared=1 * KB,
        shared_unit=128,
        l2=50 * MB,
        memory=81089 * MB,
        bandwidth=3350e9,
        flops=_rates(
            float64=67e12,
            float32=67e12,
            tf32=494.5e12,
            float16=989.5e12,
            bfloat16=989.5e12,
            float8=1979e12,
            int8=1979e12,
        ),
        sources=_sources(_PRINT, _PRINT, _TORCH),
    ),
    Device(
        **_CUDA,
        spec="cuda:100",
        name="NVIDIA B200",
        arch=100,
        multiprocessors=148,
        threads=2048,
        blocks=32,
        block_shared=227 * KB,
        shared=228 * KB,
        reserved_shared=1 * KB,
        shared_unit=128,
        l2=253 * MB // 2,
        memory=182630 * MB,
        bandwidth=7700e9,
        flops=_rates(
            float64=37e12,
            float32=75e12,
            tf32=1125e12,
            float16=2250e12,
            bfloat16=2250e12,
            float8=4500e12,
            int8=4500e12,
        ),
        sources=_sources(_QUERY, _QUERY, _B200),
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
        shared_unit=512,
        l2=4 * MB,
        memory=196592 * MB,
        bandwidth=5300e9,
        flops={
            "float64": 163.4e12,
            "float32": 163.4e12,
            "tf32": 653.7e12,
            "float16": 1307.4e12,
            "bfloat16": 1307.4e12,
            "float8_e4m3fnuz": 2614.9e12,
            "float8_e5m2fnuz": 2614.9e12,
            "int8": 2614.9e12,
        },
        sources={
            **dict.fromkeys(FIGURES, _ROCM),
            **dict.fromkeys(
                ("register_unit", "threads", "blocks", "reserved_shared", "shared_unit"), _LLVM
            ),
            **dict.fromkeys(("l2", "memory"), "torch's own print of the device in ROCm#4203"),
            **dict.fromkeys(("bandwidth", "flops"), _TORCH),
        },
    ),
)

#: The devices by the name that `--target` takes.
DEVICES: dict[str, Device] = {device.spec: device for device in _DEVICES}
