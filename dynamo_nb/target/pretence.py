"""What a torch without a GPU must be told so that Inductor writes code for one. In the worker only.

Nothing is put back: the process exists for this. `NAMES` lists what is private to torch or triton
and replaced or used here; a test looks each of them up.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch._inductor.config
import torch._inductor.fx_passes.joint_graph as joint_graph
import torch._inductor.runtime.triton_helpers as triton_helpers
import triton
from torch._dynamo import device_interface
from torch._inductor.async_compile import AsyncCompile
from torch.fx.experimental import proxy_tensor
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from dynamo_nb.target.devices import Device

__all__ = ["CONFIG", "NAMES", "absent", "as_amd", "driver", "interface", "pretend"]

#: Private to torch or triton, as `module:attribute`.
NAMES = (
    "torch._C:_ensureCUDADeviceGuardSet",
    "torch._dynamo.device_interface:DeviceInterface",
    "torch._dynamo.device_interface:register_interface_for_device",
    "torch._inductor.async_compile:AsyncCompile.triton",
    "torch._inductor.fx_passes.joint_graph:UniformValueConstantFolder._deduce_value",
    "torch._inductor.runtime.triton_helpers:set_driver_to_gpu",
    "torch.fx.experimental.proxy_tensor:unset_fake_temporarily",
    "torch.cuda:is_bf16_supported",
    "torch.cuda.amp.common:amp_definitely_not_available",
    "torch.utils._triton:has_triton.cache_clear",
    "triton.backends.compiler:GPUTarget",
    "triton.backends.driver:DriverBase",
    "triton.runtime:driver.set_active",
)

#: Inductor's settings for a device that can't be asked: nothing is measured, cached or launched.
CONFIG: dict[str, Any] = {
    "compile_threads": 1,
    "force_disable_caches": True,
    "fx_graph_cache": False,
    "fx_graph_remote_cache": False,
    "shape_padding": False,
    "use_static_triton_launcher": False,
    "triton.autotune_at_compile_time": False,
    "triton.cudagraphs": False,
    "benchmark_epilogue_fusion": False,
    "trace.provenance_tracking_level": 1,
}


def as_amd() -> None:
    """Make torch a ROCm build by name; before `torch._inductor` is imported, which asks once."""
    torch.version.hip = "7.0.0"
    torch.version.cuda = None


def pretend(device: Device, on_kernel: Callable[[str, str], Any]) -> None:
    """Make torch and triton believe in a GPU that is not there.

    `on_kernel(name, source)` gets each Triton kernel in place of what would load it.
    """
    properties = types.SimpleNamespace(**device.properties(), uuid="absent")
    torch.cuda.get_device_capability = lambda *_: device.capability
    torch.cuda.get_device_properties = lambda *_: properties
    torch.cuda.get_device_name = lambda *_: device.name
    torch.cuda.is_bf16_supported = lambda including_emulation=True: (
        including_emulation or device.capability >= (8, 0)
    )
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch._C._cuda_getCurrentRawStream = lambda _: 0
    device_interface.get_interface_for_device("cpu")  # fills the registry, at its first use
    for name in ("cuda", "cuda:0"):
        device_interface.register_interface_for_device(name, interface(device, properties))
    triton.runtime.driver.set_active(driver(device))
    triton_helpers.set_driver_to_gpu = lambda: None
    AsyncCompile.triton = lambda _, name, source, *a, **k: on_kernel(name, source)
    _fold_constants_on_the_cpu()
    torch.utils._triton.has_triton.cache_clear()


def interface(device: Device, properties: Any) -> type[device_interface.DeviceInterface]:
    """Return what Dynamo and Inductor ask about devices of the type `cuda`."""

    class Absent(device_interface.DeviceInterface):
        Event, Stream, device = torch.cuda.Event, torch.cuda.Stream, torch.cuda.device

        class Worker:
            set_device = staticmethod(lambda _: None)
            current_device = staticmethod(lambda: 0)
            get_device_properties = staticmethod(lambda _=None: properties)

        current_device = staticmethod(lambda: 0)
        set_device = staticmethod(lambda _: None)
        device_count = staticmethod(lambda: 1)
        is_available = staticmethod(lambda: True)
        synchronize = staticmethod(lambda _=None: None)
        get_raw_stream = staticmethod(lambda _: 0)
        get_device_properties = staticmethod(lambda _=None: properties)
        get_compute_capability = staticmethod(lambda _=None: device.arch)
        is_bf16_supported = staticmethod(
            lambda including_emulation=False: device.capability >= (8, 0)
        )
        is_triton_capable = staticmethod(lambda _=None: True)
        raise_if_triton_unavailable = staticmethod(lambda _=None: None)

    return Absent


def driver(device: Device) -> DriverBase:
    """Return Triton's driver for the device: it names the target and runs nothing."""
    facts = {
        "max_shared_mem": device.block_shared,
        "max_num_regs": device.registers,
        "multiprocessor_count": device.multiprocessors,
        "warpSize": device.warp,
        "arch": str(device.arch),
    }

    class Absent(DriverBase):
        utils = types.SimpleNamespace(get_device_properties=lambda _: facts)

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            raise NotImplementedError("nothing is launched")

        def get_current_target(self) -> GPUTarget:
            return GPUTarget(device.backend, device.arch, device.warp)

        def get_current_device(self) -> int:
            return 0

        def get_device_capability(self, _: int = 0) -> tuple[int, int]:
            return device.capability

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cuda", 0)

        def get_benchmarker(self) -> Any:
            raise RuntimeError("there is no device to measure on")

    return Absent()


class _OnCpu(TorchDispatchMode):
    """Makes on the CPU what is asked for on the absent device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.prims.device_put.default:
            return args[0]
        kwargs = dict(kwargs or {})
        wanted = kwargs.get("device")
        if wanted is not None and torch.device(wanted).type == "cuda":
            kwargs["device"] = torch.device("cpu")
        return func(*args, **kwargs)


def _fold_constants_on_the_cpu() -> None:
    """Run on the CPU what is really executed: uniform constants, and `torch.tensor(1.0)`."""
    folder = joint_graph.UniformValueConstantFolder
    original = folder._deduce_value

    def deduce(self: Any, node: Any) -> Any:
        with _OnCpu():
            return original(self, node)

    unset_fake_temporarily = proxy_tensor.unset_fake_temporarily

    @contextmanager
    def unset_on_cpu() -> Iterator[Any]:
        with unset_fake_temporarily() as mode, _OnCpu():
            yield mode

    folder._deduce_value = deduce
    proxy_tensor.unset_fake_temporarily = unset_on_cpu


@contextmanager
def absent(settings: dict[str, Any]) -> Iterator[None]:
    """Compile with what the device that can't be asked requires, and with the user's options."""
    with (
        torch._inductor.config.patch({**settings, **CONFIG}),
        torch._functorch.config.patch(force_non_lazy_backward_lowering=True),
    ):
        yield
