"""What the run itself tells of kernels: autotuning, binaries, CUDA graphs.

Max-autotune runs here. Tuning of Triton kernels, their binaries and CUDA graphs need a GPU: for
these torch's own methods run on stand-ins for what only a GPU gives.
"""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._inductor import cudagraph_trees
from torch._inductor.cudagraph_trees import (
    CompilationMode,
    CUDAGraphNode,
    CUDAGraphTreeManager,
    ExecutionState,
    FunctionID,
)
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

import dynamo_nb
from dynamo_nb.views.html import to_html
from dynamo_nb.views.text import to_text
from tests.conftest import Shell
from tests.standins import FIRST, Autotuner

BMM = """\
%%dynamo --options max_autotune=True
def product(a, b):
    return torch.bmm(a, b).relu()
product(torch.ones(2, 32, 32), torch.ones(2, 32, 32))
"""


def test_max_autotune_tells_its_candidates(shell: Shell) -> None:
    shell.run("import torch")
    ran = shell.run(BMM)
    assert ran.error is None
    (entry,) = shell.record.compiles
    (tuning,) = entry.tunings
    assert (tuning.operation, tuning.node, tuning.sizes) == ("bmm", "bmm", ["2x32x32"] * 2)
    times = [choice.microseconds for choice in tuning.choices]
    assert len(times) > 1
    assert times == sorted(times)
    assert [kernel.nodes for kernel in entry.kernels if tuning.is_of(kernel)] != []
    assert f"{tuning.choices[0].name} is the fastest of {len(times)}" in ran.report.replace(
        "\n", " "
    )
    html = ran.displays[-1]["text/html"]
    assert "autotuning" in html
    assert all(choice.name in html for choice in tuning.choices)


def test_the_hooks_are_off_again() -> None:
    from torch._inductor.select_algorithm import get_algorithm_selector_cache

    savers = get_algorithm_selector_cache().feedback_saver_fns
    before = list(savers)
    with dynamo_nb.capture():
        assert len(savers) == len(before) + 1
    assert savers == before


# ------------------------------------------------------------------ Triton kernels


def compiled_relu() -> str:
    """Compile a function; return the name of its kernel."""
    torch._dynamo.reset()
    torch.compile(lambda x: x.relu())(torch.ones(3))
    return "cpp_fused_relu_0"


def launched(milliseconds: dict[int, float]) -> Any:
    with dynamo_nb.capture() as capture:
        kernel = Autotuner(compiled_relu(), FIRST, milliseconds)
        CachingAutotuner.precompile(kernel)
        timings = CachingAutotuner.benchmark_all_configs(kernel)
        kernel.launchers = [min(timings, key=timings.get)]
    return capture.record


def test_the_configurations_of_a_kernel_are_told_the_fastest_first() -> None:
    record = launched({64: 0.5, 128: 0.25, 512: float("inf")})
    (tuning,) = record.compiles[0].tunings
    assert (tuning.graph, tuning.kernel) == ("post_grad.inference", "cpp_fused_relu_0")
    assert [(choice.name, choice.microseconds) for choice in tuning.choices] == [
        ("XBLOCK=128, num_warps=4", 250.0),
        ("XBLOCK=64, num_warps=4", 500.0),
        ("XBLOCK=512, num_warps=4", None),
    ]
    assert tuning.choices[0].detail == "registers 24, spilled 0, shared 128"
    text = " ".join(to_text(record).split())
    assert "autotuned: XBLOCK=128, num_warps=4 is the fastest of 3 (250 µs; next" in text
    assert "could not run" in to_html(record)


def test_the_binary_that_ran_is_told() -> None:
    record = launched({64: 0.5, 128: 0.25})
    (binary,) = record.compiles[0].binaries
    assert binary.config == {"XBLOCK": 128, "num_warps": 4}
    assert (binary.threads, binary.shared, binary.size) == (128, 128, 4)
    assert binary.resources == {"registers": 24, "spilled_registers": 0}
    assert [text.stage for text in binary.texts] == ["ptx"]
    text = " ".join(to_text(record).split())
    assert "ran with XBLOCK=128, num_warps=4: 24 registers, no spills, 128 bytes of shared" in text
    html = to_html(record)
    assert "binary of cpp_fused_relu_0" in html
    assert ".target sm_90" in html


def test_a_kernel_that_did_not_run_has_no_binary() -> None:
    with dynamo_nb.capture() as capture:
        CachingAutotuner.precompile(Autotuner(compiled_relu(), FIRST, {64: 1.0, 128: 1.0}))
    assert capture.record.compiles[0].binaries == []
    assert capture.record.notes == []


def test_what_belongs_to_no_compile_of_ours_is_left_out() -> None:
    with dynamo_nb.capture() as capture:
        CachingAutotuner.benchmark_all_configs(Autotuner("triton_poi", None, {64: 1.0}))
    assert capture.record.compiles == []


# ------------------------------------------------------------------ CUDA graphs


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> CUDAGraphTreeManager:
    """Make a manager of one function, on which torch's own `run` decides what to do."""

    def run_eager(self: Any, inputs: Any, function_id: Any) -> str:
        self.warmed_up_functions.add(function_id)
        return "warm"

    def record_function(self: Any, inputs: Any, function_id: Any) -> str:
        node = object.__new__(CUDAGraphNode)
        node.address = inputs[0]  # type: ignore[attr-defined]
        self.roots[function_id].append(node)
        return "recorded"

    def check_invariants(self: Any, inputs: Any) -> Any:
        status = cudagraph_trees.CheckInvariantStatus
        if self.address == inputs[0]:
            return status.SUCCESS, lambda: ""
        return status.CudagraphManagedIdxMismatch, lambda: f"address {inputs[0]} is new"

    for name, new in (("run_eager", run_eager), ("record_function", record_function)):
        monkeypatch.setattr(CUDAGraphTreeManager, name, new)
    monkeypatch.setattr(CUDAGraphTreeManager, "execute_node", lambda *_: "replayed")
    monkeypatch.setattr(CUDAGraphNode, "check_invariants", check_invariants)
    made = object.__new__(CUDAGraphTreeManager)
    function = SimpleNamespace(mutated_input_idxs=[], model=lambda inputs: "eager")
    vars(made).update(
        graph=object(),
        id_to_mode={FunctionID(0): CompilationMode.INFERENCE},
        id_to_compile_id={FunctionID(0): FIRST},
        ids_to_funcs={FunctionID(0): function},
        non_cudagraph_managed_mutation_hint=defaultdict(lambda: {FunctionID(0): False}),
        num_rerecord=defaultdict(lambda: defaultdict(int)),
        warmed_up_functions=set(),
        roots=defaultdict(list),
        path_state=ExecutionState.NONE,
        _current_node=None,
        debug_fail_counter=0,
    )
    return made


def calls(manager: CUDAGraphTreeManager, *addresses: int) -> Any:
    with dynamo_nb.capture() as capture:
        compiled_relu()
        answers = [manager.run([address], FunctionID(0)) for address in addresses]
    return answers, capture.record


def test_recordings_and_replays_are_counted(manager: CUDAGraphTreeManager) -> None:
    answers, record = calls(manager, 1, 1, 1, 1, 2, 2)
    assert answers == ["warm", "recorded", "replayed", "replayed", "recorded", "replayed"]
    (use,) = record.compiles[0].cudagraphs
    assert use.graph == "post_grad.inference"
    assert (use.warm_ups, use.recordings, use.replays) == (1, 2, 3)
    assert use.reasons == ["address 2 is new"]
    text = " ".join(to_text(record).split())
    assert "CUDA graph of inference: 1 warm-up, 2 recordings, 3 replays" in text
    assert "recorded again: address 2 is new" in text
    assert "recorded again because" in to_html(record)


def test_a_graph_that_is_recorded_too_often_is_skipped(manager: CUDAGraphTreeManager) -> None:
    limit = torch._inductor.config.triton.cudagraph_unexpected_rerecord_limit
    answers, record = calls(manager, 1, *range(limit + 4))
    assert answers[-1] == "eager"
    (finding,) = [item for item in record.findings if item.code == "cudagraph-skipped"]
    assert "re-recording limit" in finding.message
