"""Binaries of Triton kernels as torch itself makes, packs and launches them on a GPU.

Triton compiles for a GPU that is not here; loading and launching alone are stood in for.
"""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._inductor import config
from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.static_triton_launcher import StaticallyLaunchedCudaKernel

import dynamo_nb
from dynamo_nb.target.devices import DEVICES
from dynamo_nb.views.text import to_text
from tests.standins import FIRST

triton = pytest.importorskip("triton")

#: What Inductor writes for `x.relu()`, under the name of the kernel that is compiled here.
SOURCE = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

@HEURISTICS
@triton.jit
def triton_poi_fused_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel
    value = tl.load(in_ptr0 + xindex, xmask)
    tl.store(out_ptr0 + xindex, tl.maximum(value, 0.0), xmask)
"""
META = """
    triton_meta={
        'signature': {
            'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32', 'XBLOCK': 'constexpr'
        },
        'device': DeviceProperties(
            type='cuda', index=0, multi_processor_count=132, cc=90, major=9,
            regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048,
            max_threads_per_block=1024, warp_size=32,
        ),
        'constants': {},
        'configs': [{(0,): [['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]]}],
    },
    inductor_meta={
        'grid_type': 'Grid1D', 'kernel_name': 'cpp_fused_relu_0', 'mutated_arg_names': [],
        'store_cubin': False, 'autotune_local_cache': False,
    },
"""
POINTWISE = SOURCE.replace(
    "HEURISTICS",
    f"triton_heuristics.pointwise(size_hints={{'x': 4096}}, filename=__file__, {META})",
)
#: Templates are not told their file.
TEMPLATE = SOURCE.replace(
    "HEURISTICS",
    f"triton_heuristics.user_autotune(configs=[{{'XBLOCK': 128, 'num_warps': 2, "
    f"'num_stages': 1}}], {META})",
)


@pytest.fixture(autouse=True)
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for an H100; a binary that is loaded says that it takes 24 registers."""
    from dynamo_nb.target import pretence

    loads = SimpleNamespace(_load_kernel=lambda *_: (1, 2, 24, 0), _unload_kernel=lambda *_: None)
    device = SimpleNamespace(exchange_device=lambda _: 0, maybe_exchange_device=lambda _: 0)
    made = triton_heuristics.CachingAutotuner
    monkeypatch.setattr(made, "get_device_interface", lambda _: device)
    monkeypatch.setattr(StaticallyLaunchedCudaKernel, "C_impl", loads)
    monkeypatch.setattr(triton.compiler.CompiledKernel, "_init_handles", initialized)
    monkeypatch.setattr(triton_helpers, "set_driver_to_gpu", lambda: None)
    monkeypatch.setattr(triton.runtime.driver, "_active", pretence.driver(DEVICES["cuda:90"]))


def initialized(kernel: Any) -> None:
    """Stand for loading a kernel by triton."""
    kernel.n_regs, kernel.n_spills = 24, 0
    kernel.function = kernel._run = 1


def through_a_worker(kernel: Any) -> Any:
    """Compile a kernel as a compile worker does, and pack it for the notebook's process."""
    kernel.precompile(warm_cache_only=True)
    kernel.prepare_for_pickle()
    received = pickle.loads(pickle.dumps(kernel))
    received.restore_after_unpickle(old_values=None)
    return received


def ran(source: str, compiled_by: Any, compile_id: Any = FIRST) -> Any:
    """Return the record of a cell in which the kernel was compiled so, tuned and launched."""
    torch._dynamo.reset()
    with dynamo_nb.capture() as capture:
        torch.compile(lambda x: x.relu())(torch.ones(3))
        kernel = compiled_by(PyCodeCache.load(source).triton_poi_fused_relu_0)
        kernel.set_compile_info(compile_id, False)
        kernel.precompile()
        kernel.bench = lambda launcher, *_, **__: float(launcher.config.num_warps)
        if len(kernel.launchers) > 1:
            kernel.autotune_to_one_config()
    assert capture.record.notes == []
    return capture.record


@pytest.mark.parametrize("statically", [True, False], ids=["static", "triton"])
@pytest.mark.parametrize("worker", [True, False], ids=["worker", "here"])
@pytest.mark.parametrize("source", [POINTWISE, TEMPLATE], ids=["pointwise", "template"])
def test_the_binary_that_ran_is_read(source: str, worker: bool, statically: bool) -> None:
    source += f"\n# {statically} {worker}\n"  # a module of its own: Triton's cache has the first
    with config.patch(use_static_triton_launcher=statically):
        record = ran(source, through_a_worker if worker else lambda kernel: kernel)
    (entry,) = record.compiles
    (binary,) = entry.binaries
    assert binary.kernel == "cpp_fused_relu_0"
    assert binary.resources == {"registers": 24, "spilled_registers": 0}
    assert binary.threads == binary.config["num_warps"] * 32
    assert binary.size > 1000
    assert [text.stage for text in binary.texts] == ["ttir", "ttgir", "llir", "ptx"]
    texts = {text.stage: text for text in binary.texts}
    assert ".target sm_90" in texts["ptx"].text
    assert "cpp_fused_relu_0.py" in texts["ttir"].text
    for text in binary.texts:  # each knows the source line of what it says
        assert max(text.lines) == 1 + source[: source.index("tl.store")].count("\n")
        assert "inductor" not in text.text  # the cache's folder
    assert "24 registers" in to_text(record)


def test_a_candidate_of_max_autotune_is_no_kernel_that_ran() -> None:
    record = ran(f"{TEMPLATE}\n# candidate\n", lambda kernel: kernel, compile_id=None)
    assert record.compiles[0].binaries == []
