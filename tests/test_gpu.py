"""On a GPU: the kernels that ran, their binaries and times, what was tuned, CUDA graphs.

Each of these is also tested without one: test_ran.py, test_time.py, test_target.py.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dynamo_nb.record.types import Compile
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


def compiled(shell: Shell, flags: str, cell: str) -> tuple[Any, Compile]:
    """Run a cell; return what it showed and its only compile."""
    shell.run("import torch")
    ran = shell.run(f"%%dynamo {flags}\n{cell}")
    assert ran.error is None, ran.error
    assert shell.record.notes == []
    (entry,) = shell.record.compiles
    return ran, entry


def test_the_kernel_that_ran_has_nodes_lines_and_a_binary(shell: Shell) -> None:
    ran, entry = compiled(shell, "", SOFTMAX)
    (kernel,) = (kernel for kernel in entry.kernels if kernel.language == "triton")
    assert kernel.nodes
    (binary,) = entry.binaries
    assert binary.kernel == kernel.name
    assert binary.threads >= 32
    assert binary.resources["registers"] > 0
    major, minor = torch.cuda.get_device_capability()
    ptx = {text.stage: text.text for text in binary.texts}["ptx"]
    assert f".target sm_{major}{minor}" in ptx
    assert "ran with" in ran.report


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
    _, entry = compiled(shell, "--options max_autotune=True", cell)
    tuning = next(item for item in entry.tunings if item.operation == "mm")
    assert len(tuning.choices) > 1
    assert any(tuning.is_of(kernel) for kernel in entry.kernels)


def test_times_are_those_of_events_and_of_each_kernel(shell: Shell) -> None:
    compiled(shell, "--time", SOFTMAX)
    (timing,) = shell.record.timings[:1]
    assert timing.status == "timed"
    assert timing.kernels
    assert all(kernel.seconds > 0 for kernel in timing.kernels)
    assert shell.record.machines[0].bandwidth > 1e11


def test_the_cells_device_is_the_gpu(shell: Shell) -> None:
    cell = SOFTMAX.replace(', device="cuda"', "")
    _, entry = compiled(shell, "--device cuda", cell)
    assert shell.record.device == "cuda"
    assert entry.binaries


def test_a_cuda_graph_is_recorded_and_replayed(shell: Shell) -> None:
    ran, entry = compiled(shell, "--mode reduce-overhead", SOFTMAX)
    (use,) = entry.cudagraphs
    assert (use.warm_ups, use.recordings) == (1, 1)
    assert use.replays >= 1
    assert "CUDA graph of inference" in ran.report


def test_a_cuda_graph_is_recorded_again_for_another_address(shell: Shell) -> None:
    cell = SOFTMAX.replace(
        "    soft(x)",
        "    torch._dynamo.mark_static_address(x)\n    soft(x)\n    x = x.clone()",
    )
    _, entry = compiled(shell, "--mode reduce-overhead", cell)
    (use,) = entry.cudagraphs
    assert use.recordings > 1
    assert use.reasons


def test_a_graph_with_a_cpu_tensor_has_no_cuda_graph(shell: Shell) -> None:
    cell = SOFTMAX.replace("x * 2 + 1", "x * 2 + torch.ones(1).sum()")
    compiled(shell, "--mode reduce-overhead", cell)
    (finding,) = [item for item in shell.record.findings if item.code == "cudagraph-skipped"]
    assert finding.line == 3


def test_interpreted_code_agrees_with_the_gpu(shell: Shell) -> None:
    major, minor = torch.cuda.get_device_capability()
    cell = SOFTMAX.replace("range(4)", "range(1)")
    compiled(shell, f"--check --target cuda:{major}{minor} --interpret", cell)
    assert {check.status for check in shell.record.checks} == {"same"}
