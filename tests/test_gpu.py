"""On a GPU: the kernels that ran, their binaries and times, what was tuned, CUDA graphs.

Each of these is also tested without one: test_ran.py, test_binaries.py, test_time.py,
test_check_state.py, test_target.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._inductor.async_compile import AsyncCompile, get_compile_threads
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch._inductor.utils import fresh_cache

from dynamo_nb.record.types import Compile
from dynamo_nb.target.attention import candidates
from dynamo_nb.target.devices import DEVICES
from tests import test_target_attention as attention
from tests.conftest import Shell

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]

SOFTMAX = """\
def soft(x):
    return torch.softmax(x * 2 + 1, dim=-1)
x = torch.randn(64, 4096, device="cuda")
for _ in range(4):
    soft(x)
"""
ONCE = SOFTMAX.replace("range(4)", "range(1)")

TRAINING = """\
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).cuda()
x = torch.randn(32, 64, device="cuda")
for _ in range(4):
    model.zero_grad()
    model(x).square().mean().backward()
model.zero_grad()
"""

TRITON = """\
import triton, triton.language as tl

@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) + 1, at < n)

def added(x):
    y = torch.empty_like(x)
    add_one[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
    return y * 2
"""


@pytest.fixture(autouse=True)
def nothing_cached() -> Iterator[None]:
    """What an earlier run tuned is not tuned again, nor compiled."""
    with fresh_cache():
        yield


def compiled(shell: Shell, flags: str, cell: str) -> tuple[Any, Compile]:
    """Run a cell; return what it showed and its only compile."""
    shell.run("import torch")
    ran = shell.run(f"%%dynamo {flags}\n{cell}")
    assert ran.error is None, ran.error
    assert shell.record.notes == []
    (entry,) = shell.record.compiles
    return ran, entry


def own_target() -> str:
    """Return the GPU that is here as `--target` calls it."""
    major, minor = torch.cuda.get_device_capability()
    spec = f"cuda:{major}{minor}"
    if spec not in DEVICES:
        pytest.skip(f"{spec} is no target")
    return spec


# ------------------------------------------------------------------ kernels and binaries


def test_the_kernel_that_ran_has_nodes_lines_and_a_binary(shell: Shell) -> None:
    ran, entry = compiled(shell, "", SOFTMAX)
    (kernel,) = (kernel for kernel in entry.kernels if kernel.language == "triton")
    assert kernel.nodes
    (binary,) = entry.binaries
    assert binary.kernel == kernel.name
    assert binary.threads >= 32
    assert binary.resources["registers"] > 0
    major, minor = torch.cuda.get_device_capability()
    texts = {text.stage: text for text in binary.texts}
    assert f".target sm_{major}{minor}" in texts["ptx"].text
    assert any(texts["ptx"].lines)
    assert "ran with" in ran.report


def test_a_kernel_from_a_compile_worker_has_a_binary(shell: Shell) -> None:
    if get_compile_threads() <= 1:
        pytest.skip("kernels are compiled in this process")
    AsyncCompile.wait_pool_ready()
    _, entry = compiled(shell, "", SOFTMAX)
    (binary,) = entry.binaries
    assert binary.resources["registers"] > 0
    assert any(line for text in binary.texts for line in text.lines)


def test_a_training_step_has_binaries_both_ways_and_agrees_with_eager(shell: Shell) -> None:
    ran, entry = compiled(shell, "--check", TRAINING)
    directions = {binary.graph for binary in entry.binaries}
    assert directions == {"post_grad.forward", "post_grad.backward"}
    assert {check.status for check in shell.record.checks} == {"same"}
    assert all(check.gradients for check in shell.record.checks)
    assert "ran with" in ran.report


@pytest.mark.parametrize(("given", "_"), attention.CASES, ids=str)
def test_attention_is_what_torch_chooses_for_this_gpu(given: dict[str, Any], _: str) -> None:
    """The rules for targets, where cuDNN is as new as that of torch's wheels."""
    if (torch.backends.cudnn.version() or 0) <= 91500:
        pytest.skip("an older cuDNN")
    device, call = DEVICES[own_target()], attention.call(**given)
    tensors = (
        None if t is None else torch.empty_like(t, device="cuda")
        for t in (call.q, call.k, call.v, call.mask)
    )
    q, k, v, mask = tensors
    for made, like in zip((q, k, v), (call.q, call.k, call.v), strict=True):
        made.requires_grad_(like.requires_grad)
    taken = torch._fused_sdp_choice(
        q, k, v, mask, call.dropout, call.causal, enable_gqa=call.grouped
    )
    names = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}
    assert candidates(device, call)[0] == names[taken]


def test_a_kernel_of_the_user_is_known_in_all_that_is_told(shell: Shell) -> None:
    shell.run(f"import torch\n{TRITON}")
    cell = "x = torch.randn(1000, device='cuda')\nfor _ in range(2):\n    added(x)"
    _, entry = compiled(shell, "--check --time", cell)
    (binary,) = (one for one in entry.binaries if one.kernel == "add_one_0")
    assert (binary.config["BLOCK"], binary.grid) == (128, ["8"])
    (kernel,) = (one for one in entry.kernels if one.name == "add_one_0")
    assert [(item.file, item.line) for item in kernel.definitions] == [("<cell 1>", 5)]
    assert {check.status for check in shell.record.checks} == {"same"}
    (timing,) = shell.record.timings
    assert timing.status == "timed", timing.reason
    assert ("add_one_0", entry.key) in {(row.name, row.compile) for row in timing.kernels}


def test_the_target_is_the_gpu_that_is_here(shell: Shell) -> None:
    """The binary for the own architecture takes what the one that ran takes."""
    _, entry = compiled(shell, f"--target {own_target()}", ONCE)
    (target,), (ran,) = entry.targets, entry.binaries
    assert not target.error
    (made,) = target.binaries
    assert made.kernel == ran.kernel
    if any(made.config[key] != ran.config[key] for key in made.config.keys() & ran.config.keys()):
        pytest.skip("tuning chose another configuration than the first")
    assert made.resources["registers"] == ran.resources["registers"]
    assert made.shared == ran.shared


def test_interpreted_code_agrees_with_the_gpu(shell: Shell) -> None:
    compiled(shell, f"--check --target {own_target()} --interpret", ONCE)
    assert {check.status for check in shell.record.checks} == {"same"}
    assert {check.target for check in shell.record.checks} == {"", own_target()}


# ------------------------------------------------------------------ tuning


def test_several_configurations_are_measured_once(shell: Shell) -> None:
    _, entry = compiled(shell, "--options max_autotune=True", SOFTMAX)
    (tuning,) = entry.tunings
    times = [choice.microseconds for choice in tuning.choices if choice.microseconds is not None]
    assert len(times) > 1
    assert times == sorted(times)


def test_a_matmul_is_chosen_among_candidates(shell: Shell) -> None:
    cell = (
        "def product(a, b):\n    return torch.relu(a @ b)\n"
        "a = torch.randn(512, 512, device='cuda', dtype=torch.half)\nproduct(a, a)"
    )
    ran, entry = compiled(shell, "--options max_autotune=True", cell)
    tuning = next(item for item in entry.tunings if item.operation == "mm")
    assert len(tuning.choices) > 1
    assert tuning.node == "mm"
    assert any(tuning.is_of(kernel) for kernel in entry.kernels)
    assert "autotuned: mm" in ran.report
    assert "autotuning" in ran.displays[-1]["text/html"]
    names = {kernel.name for kernel in entry.kernels}
    assert all(binary.kernel in names for binary in entry.binaries)


# ------------------------------------------------------------------ times and checks


def test_times_are_those_of_events_and_of_each_kernel(shell: Shell) -> None:
    _, entry = compiled(shell, "--time", SOFTMAX)
    (timing,) = shell.record.timings
    assert (timing.status, timing.device) == ("timed", "cuda"), timing.reason
    assert (timing.eager_launches, timing.compiled_launches) == (3, 1)
    (row,) = timing.kernels
    (kernel,) = (kernel for kernel in entry.kernels if kernel.language == "triton")
    assert (row.name, row.compile, row.graph) == (kernel.name, entry.key, kernel.graph)
    assert 0 < row.seconds < timing.compiled.median * 2
    size = 64 * 4096 * 4
    assert size <= timing.compiled_memory < timing.eager_memory
    (machine,) = shell.record.machines
    assert machine.bandwidth > 1e11
    assert machine.flops["float32"] > 1e12


def test_times_of_a_training_step_under_cuda_graphs(shell: Shell) -> None:
    """Gradients of a CUDA graph can't be added to: they are new each time."""
    _, entry = compiled(shell, "--time --mode reduce-overhead", TRAINING)
    (timing,) = shell.record.timings
    assert timing.status == "timed", timing.reason
    assert timing.gradients
    assert {use.graph for use in entry.cudagraphs} == {"post_grad.forward", "post_grad.backward"}


def test_what_a_cuda_graph_returned_outlives_check_and_time(shell: Shell) -> None:
    cell = SOFTMAX.replace("    soft(x)", "    y = soft(x)") + "z = y.clone()\n"
    compiled(shell, "--check --time --mode reduce-overhead", cell)
    assert {check.status for check in shell.record.checks} == {"same"}
    (timing,) = shell.record.timings
    assert "clone or delete it" in timing.reason
    assert shell.run("torch.equal(y, z)").value is True


def test_the_second_gpu_is_waited_for(shell: Shell) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    compiled(shell, "--time --check", SOFTMAX.replace('"cuda"', '"cuda:1"'))
    (timing,) = shell.record.timings
    assert timing.status == "timed", timing.reason
    assert timing.compiled_memory > 0


# ------------------------------------------------------------------ devices


def test_the_cells_device_is_the_gpu(shell: Shell) -> None:
    cell = SOFTMAX.replace(', device="cuda"', "")
    _, entry = compiled(shell, "--device cuda --check", cell)
    assert shell.record.device == "cuda:0"
    assert entry.binaries
    assert {check.status for check in shell.record.checks} == {"same"}


def test_a_gpu_that_is_not_there_is_told(shell: Shell) -> None:
    ran = shell.run("%%dynamo --device cuda:99\nran = True")
    assert "cuda devices here" in str(ran.error)


def test_would_takes_what_is_on_the_gpu(shell: Shell) -> None:
    compiled(shell, "", SOFTMAX)
    assert "0/0" in shell.run("%dynamo would soft(x)").report
    told = shell.run("%dynamo would soft(x.cpu())").report
    assert "device" in told


def test_the_gpus_own_error_is_told_and_nothing_stays(shell: Shell) -> None:
    before = CachingAutotuner.precompile
    shell.run("import torch")
    cell = "def big(x):\n    return x.expand(1 << 23, -1) + 1\n"
    ran = shell.run(f"%%dynamo\n{cell}big(torch.ones(1 << 16, device='cuda'))")
    assert isinstance(ran.error, torch.OutOfMemoryError)
    assert "CUDA out of memory" in str(ran.error)
    assert "OutOfMemoryError" in ran.report
    assert CachingAutotuner.precompile is before
    _, entry = compiled(shell, "", SOFTMAX)
    assert entry.binaries


# ------------------------------------------------------------------ CUDA graphs


def test_a_cuda_graph_is_recorded_and_replayed(shell: Shell) -> None:
    ran, entry = compiled(shell, "--mode reduce-overhead", SOFTMAX)
    (use,) = entry.cudagraphs
    assert (use.warm_ups, use.recordings) == (1, 1)
    assert use.replays >= 1
    assert "CUDA graph of inference" in ran.report


def test_replays_of_an_earlier_cells_graph_are_counted(shell: Shell) -> None:
    compiled(shell, "--mode reduce-overhead", SOFTMAX)
    ran = shell.run("%%dynamo --mode reduce-overhead\nfor _ in range(3):\n    soft(x)")
    assert ran.error is None
    uses = [use for entry in shell.record.compiles for use in entry.cudagraphs]
    assert [(use.warm_ups, use.recordings, use.replays) for use in uses] == [(0, 0, 3)]


def test_a_cuda_graph_is_recorded_again_for_another_address(shell: Shell) -> None:
    cell = SOFTMAX.replace(
        "    soft(x)",
        "    torch._dynamo.mark_static_address(x)\n    soft(x)\n    x = x.clone()",
    )
    _, entry = compiled(shell, "--mode reduce-overhead", cell)
    (use,) = entry.cudagraphs
    assert use.recordings > 1
    assert use.reasons[0].startswith("static input data pointer changed (")


def test_a_cuda_graph_is_recorded_for_each_size(shell: Shell) -> None:
    cell = (
        "def soft(x):\n    return torch.softmax(x * 2 + 1, dim=-1)\n"
        "for size in (64, 64, 64, 128, 128, 128):\n"
        "    soft(torch.randn(size, 256, device='cuda'))\n"
    )
    _, entry = compiled(shell, "--mode reduce-overhead --dynamic true", cell)
    (use,) = entry.cudagraphs
    assert use.recordings == 2
    assert any("another size: 128" in reason for reason in use.reasons)


def test_a_cell_that_writes_into_its_input_has_no_cuda_graph(shell: Shell) -> None:
    cell = "def bump(x):\n    x.add_(1)\n    return x * 2\nx = torch.ones(64, device='cuda')\n"
    compiled(shell, "--mode reduce-overhead", f"{cell}for _ in range(3):\n    bump(x)")
    (finding,) = [item for item in shell.record.findings if item.code == "cudagraph-skipped"]
    assert "mutated inputs" in finding.message
    assert finding.line in (3, 7)  # the write, where torch knows it, else the call


MIXED = """\
def mixed(x, y):
    z = torch.relu(y + 1)
    return x * 2, z
x, y = torch.ones(64, device="cuda"), torch.ones(64)
for _ in range(4):
    mixed(x, y)
"""


def test_work_of_the_cpu_stays_outside_of_the_cuda_graph(shell: Shell) -> None:
    """Inductor cuts the graph there."""
    _, entry = compiled(shell, "--mode reduce-overhead", MIXED)
    (use,) = entry.cudagraphs
    assert use.recordings >= 1
    assert [item for item in shell.record.findings if item.code == "cudagraph-skipped"] == []


def test_uncut_a_graph_with_work_of_the_cpu_has_no_cuda_graph(shell: Shell) -> None:
    flags = "--mode reduce-overhead --config inductor.graph_partition=false"
    compiled(shell, flags, MIXED)
    (finding,) = [item for item in shell.record.findings if item.code == "cudagraph-skipped"]
    assert "cpu device" in finding.message
    assert finding.line == 3
