"""What the run itself tells of kernels: autotuning, binaries, CUDA graphs.

Max-autotune runs here. Tuning of Triton kernels, their binaries and CUDA graphs need a GPU: for
these torch's own methods run on stand-ins for what only a GPU gives.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
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
from torch._inductor.cudagraph_utils import PlaceholderInfo, log_data_ptr_mismatch
from torch._inductor.graph import GraphLowering
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

import dynamo_nb
from dynamo_nb.capture import cudagraphs, replays
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


def test_what_is_measured_when_kernels_are_fused_knows_its_node(shell: Shell) -> None:
    """On a GPU torch measures candidates once all is lowered, when no node is under way."""
    from torch._inductor.select_algorithm import AlgorithmSelectorCache

    later = []

    def call(self: Any, name: str, choices: Any, input_nodes: Any, layout: Any, **_: Any) -> Any:
        times = dict.fromkeys(choices, 1.0)
        later.extend(partial(told, times, name, input_nodes) for told in self.feedback_saver_fns)
        return choices[0].output_node(), choices[0]

    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        assert self.current_node is None
        for tell in later:
            tell()
        return ours(self, *args, **kwargs)

    ours = GraphLowering._compile_to_module
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AlgorithmSelectorCache, "__call__", call)
        patch.setattr(GraphLowering, "_compile_to_module", generate)
        shell.run("import torch")
        assert shell.run(BMM).error is None
    (entry,) = shell.record.compiles
    (tuning,) = entry.tunings
    assert tuning.node == "bmm"


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
        has_live_user_visible_output_cloning=False,  # of torch 2.14
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


def test_graphs_that_an_earlier_cell_made_are_counted(manager: CUDAGraphTreeManager) -> None:
    """Torch keeps `manager.run` as it was when the graph was made: here under another capture."""
    with dynamo_nb.capture():
        run = partial(manager.run, function_id=FunctionID(0))
        run([1])
    with dynamo_nb.capture() as capture:
        compiled_relu()
        assert [run([1]) for _ in range(3)] == ["recorded", "replayed", "replayed"]
    (use,) = capture.record.compiles[0].cudagraphs
    assert (use.warm_ups, use.recordings, use.replays) == (0, 1, 2)


def test_a_reason_names_inputs_and_no_addresses() -> None:
    tensors: list[Any] = [torch.ones(1), torch.ones(1)]
    placeholders = [PlaceholderInfo(name, None, [], None) for name in ("weight", "bias")]
    status = cudagraph_trees.CheckInvariantStatus.StaticInputIdxMismatch
    told = log_data_ptr_mismatch(placeholders, tensors, [1, tensors[1].data_ptr()], [0, 1], status)
    assert "0x" not in told
    assert str(tensors[0].data_ptr()) in told
    assert cudagraphs._refusal(told) == "static input data pointer changed (weight)"


def test_another_size_is_a_reason_to_record(
    manager: CUDAGraphTreeManager, monkeypatch: Any
) -> None:
    def graphed(model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        return manager.run, manager.run([1], FunctionID(0))

    monkeypatch.setattr(cudagraph_trees, "cudagraphify", graphed)
    monkeypatch.setattr(cudagraph_trees, "get_input_idxs_to_check", lambda *_: [])
    modes = {"device_index": 0, "is_backward": False, "is_inference": True, "compile_id": FIRST}
    with dynamo_nb.capture() as capture:
        compiled_relu()
        function = cudagraph_trees.cudagraphify_impl(lambda _: None, [8, 1], (), **modes)
        for size in (8, 16, 32):
            function([size, 1])
    (use,) = capture.record.compiles[0].cudagraphs
    assert use.reasons == ["another size: 16, 1", "another size: 32, 1"]


def test_a_check_runs_no_cuda_graph(manager: CUDAGraphTreeManager) -> None:
    with replays.without_replays():
        assert manager.run([1], FunctionID(0)) == "eager"
    assert manager.run([1], FunctionID(0)) == "warm"


@pytest.mark.parametrize(("dead", "alive"), [(None, False), (True, False), (False, True)])
def test_living_outputs_of_a_cuda_graph_are_known(
    dead: bool | None, alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not replays.outputs_are_alive()
    node = None if dead is None else SimpleNamespace(all_outputs_are_dead=lambda: dead)
    containers = {
        0: SimpleNamespace(tree_manager=None),
        1: SimpleNamespace(tree_manager=SimpleNamespace(current_node=node)),
    }
    monkeypatch.setattr(cudagraph_trees.local, "tree_manager_containers", containers)
    assert replays.outputs_are_alive() is alive
