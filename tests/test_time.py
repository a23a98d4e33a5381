"""`--time`: compiled calls are measured on copies against eager; the cell is as it was."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
import torch
from msgspec.structs import replace
from torch.autograd import profiler
from torch.autograd.profiler_util import FunctionEvent

from dynamo_nb.capture import time_kernels, time_machine, time_run
from dynamo_nb.record.timings import RawTiming, placed
from dynamo_nb.record.types import (
    CellRecord,
    Compile,
    Kernel,
    KernelTime,
    Machine,
    Measured,
    Timing,
)
from dynamo_nb.views.html import to_html
from dynamo_nb.views.roofline import measured_text
from dynamo_nb.views.text import to_text
from dynamo_nb.views.timings import timing_text

WORK = """\
import torch

def f(x, w):
    y = torch.relu(x @ w + 1)
    return torch.softmax(y, -1).cumsum(0)

x, w = torch.randn(32, 32), torch.randn(32, 32)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure briefly, and take the machine's rates from a small job."""
    monkeypatch.setattr(time_run, "_SECONDS", 0.01)
    monkeypatch.setattr(time_run, "_BLOCK_SECONDS", 0.001)
    monkeypatch.setattr(time_machine, "_COPIED", {"cpu": 1 << 16})
    monkeypatch.setattr(time_machine, "_SIDE", {"cpu": 32})


def timed(shell, body: str, flags: str = "") -> list[Timing]:
    """Run a cell with `--time`; return its timings."""
    ran = shell.run(f"%%dynamo --time {flags}\n{body}")
    assert ran.error is None
    assert not shell.record.notes
    assert not shell.record.unparsed
    return shell.record.timings


def test_a_call_is_measured_with_its_launches_and_kernels(shell):
    (timing,) = timed(shell, WORK + "for _ in range(3):\n    f(x, w)\n")
    assert (timing.name, timing.status, timing.count) == ("f", "timed", 3)
    assert shell.record.source.splitlines()[timing.line - 1] == "    f(x, w)"
    for side in (timing.eager, timing.compiled):
        assert side.median > 0
        assert side.runs >= 5
    assert timing.speed_up == timing.eager.median / timing.compiled.median
    assert timing.eager_launches == 5  # mm, add, relu, softmax, cumsum
    assert timing.compiled_launches == 3
    assert (timing.eager_memory, timing.gradients, timing.device) == (None, False, "cpu")
    (compiled,) = shell.record.compiles
    assert {time.name for time in timing.kernels} == {kernel.name for kernel in compiled.kernels}
    assert {(t.compile, t.graph, t.calls) for t in timing.kernels} == {
        ("0/0", "post_grad.inference", 1.0)
    }
    seconds = [time.seconds for time in timing.kernels]
    assert seconds == sorted(seconds, reverse=True)
    assert min(seconds) > 0
    (machine,) = shell.record.machines
    assert machine.bandwidth > 0
    assert machine.flops["float32"] > 0
    assert CellRecord.from_json(shell.record.to_json()) == shell.record


def test_backward_is_in_the_time_where_the_cell_runs_it(shell):
    body = "import torch\nm = torch.nn.Linear(8, 8)\nm(torch.randn(4, 8)).relu().sum().backward()\n"
    (timing,) = timed(shell, body)
    assert timing.gradients
    assert {time.graph for time in timing.kernels} >= {"post_grad.forward", "post_grad.backward"}


def test_the_cell_s_state_is_as_it_was(shell):
    body = (
        "import torch\n"
        "seen = []\n"
        "def f(x):\n"
        "    x.add_(1)\n"
        "    return x * torch.rand(())\n"
        "torch.manual_seed(3)\n"
        "x = torch.zeros(4)\n"
        "y = f(x)\n"
        "after = torch.rand(())\n"
    )
    timed(shell, body, "--backend eager")
    space = shell.ip.user_ns
    assert space["x"].tolist() == [1.0] * 4
    first = torch.rand(())
    torch.manual_seed(3)
    torch.rand(()), torch.rand(())
    assert torch.rand(()) == first


def test_no_entry_is_added_and_compiles_count_on(shell):
    timed(shell, WORK + "f(x, w)\n", "--backend eager")
    shell.run("%%dynamo --backend eager\nf(x, w)\nf(torch.randn(5, 32), w)\n")
    made = {compiled.compile_id: compiled.cell for compiled in shell.record.compiles}
    assert made == {"0/0": 1, "0/1": None}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "log = []\ndef f(x):\n    log.append(1)\n    return x * len(log)\n",
            "each repetition compiles anew: the call changes what it is guarded on",
        ),
        (
            "import os\ndef f(x):\n    os.system('true')\n    return x + 1\n",
            "the call starts a process",
        ),
        (
            "import threading\ndef f(x, lock=threading.Lock()):\n    return x + 1\n",
            "lock",
        ),
    ],
    ids=["changes", "effect", "copies"],
)
def test_what_can_t_be_repeated_is_said(shell, body, reason):
    timing = timed(shell, f"import torch\n{body}f(torch.ones(3))\n", "--backend eager")[0]
    assert timing.status == "not timed"
    assert reason in timing.reason


def test_without_compiled_calls_that_is_said(shell):
    (timing,) = timed(shell, "1 + 1\n")
    assert timing.reason == "the cell made no compiled call: there is nothing to measure"
    ran = shell.run("%%dynamo --time\nimport torch\ntorch.ones(2) + torch.ones(3)\n")
    assert ran.error is not None
    assert "no call was measured" in shell.record.timings[0].reason


def test_calls_beyond_the_first_few_are_named(shell, monkeypatch):
    monkeypatch.setattr(time_run, "_CALLS", 1)
    body = "import torch\ndef f(x):\n    return x + 1\nf(torch.ones(2))\nf(torch.ones(3, 1))\n"
    first, second = timed(shell, body, "--backend eager")
    assert (first.status, second.status) == ("timed", "not timed")
    assert "first 1" in second.reason


def test_checks_and_times_together(shell):
    timed(shell, WORK + "f(x, w)\n", "--check --backend eager")
    assert [check.status for check in shell.record.checks] == ["same"]
    assert [timing.status for timing in shell.record.timings] == ["timed"]


# ------------------------------------------------------------------ a GPU, stood in for


def test_events_of_the_gpu_measure_its_calls(monkeypatch):
    done, waited = [], []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self, stream: str) -> None:
            assert stream == "stream of cuda:1"
            self.at = len(done)

        def elapsed_time(self, end: Event) -> float:
            return (end.at - self.at) * 2.0  # milliseconds

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    second = torch.device("cuda:1")
    assert time_run._cuda_block(second, lambda: done.append(1), 7) == pytest.approx(2e-3)
    assert waited == [second, second]
    assert len(done) == 7


def test_kernels_of_the_gpu_are_told_by_the_profiler(monkeypatch):
    cuda, cpu = torch.autograd.DeviceType.CUDA, torch.autograd.DeviceType.CPU

    def event(name: str, device: object, micros: float = 0.0, **more: object) -> FunctionEvent:
        return FunctionEvent(1, name, 1, 0.0, micros, device_type=device, use_device="cuda", **more)

    events = [
        event("aten::mm", cpu),
        event("triton_poi_fused_0", cuda, 30.0),
        event("triton_poi_fused_0", cuda, 10.0),
        event("step", cuda, 99.0, is_user_annotation=True),
        event("dynamo_nb:0:extern_kernels.mm", cuda, 99.0),
    ]

    class Profiler:
        function_events = events

        def __enter__(self) -> Profiler:
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(time_kernels, "_profiler", Profiler)
    monkeypatch.setattr(time_kernels, "_CALLS", 2)
    assert time_kernels.launches(lambda: None, "cuda") == 2
    assert time_kernels.launches(lambda: None, "cpu") == 1
    (row,) = time_kernels.kernel_times(lambda: None, "cuda")
    assert (row["name"], row["calls"], row["seconds"]) == ("triton_poi_fused_0", 1.0, 20e-6)
    events[1:] = []  # the driver does not let it look
    assert time_kernels.launches(lambda: None, "cuda") is None


def test_on_a_gpu_the_profiler_sees_each_kernel(monkeypatch):
    """Without Kineto torch gives operators an estimate, and kernels are no events."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    monkeypatch.setattr(profiler, "_supported_activities", lambda: set(activities))
    made = time_kernels._profiler()
    assert made.profiler_kind == torch.autograd.ProfilerState.KINETO
    assert made.kineto_activities == set(activities)


def test_the_gpu_of_a_call_is_that_of_its_tensors():
    def on(device: str) -> SimpleNamespace:
        return SimpleNamespace(device=torch.device(device))

    assert time_run._device([on("cpu"), on("cuda:1"), on("cuda:1")]) == torch.device("cuda:1")
    assert time_run._device([on("cpu")]) == torch.device("cpu")
    with pytest.raises(time_run._CannotTimeError, match="several GPUs: cuda:0, cuda:1"):
        time_run._device([on("cuda:0"), on("cuda:1")])


def test_gradients_are_new_in_each_repetition(shell, monkeypatch):
    seen = []
    ours = time_run._work

    def work(function, again, trains):
        repeated = ours(function, again, trains)

        def watched() -> None:
            repeated()
            seen.append(again.target.weight.grad.clone())

        return watched

    monkeypatch.setattr(time_run, "_work", work)
    body = "import torch\nm = torch.nn.Linear(2, 2)\nm(torch.ones(1, 2)).sum().backward()\n"
    timed(shell, body, "--backend eager")
    assert len(seen) > 2
    assert all(torch.equal(gradient, torch.ones(2, 2)) for gradient in seen)


def test_a_kernel_of_the_user_has_the_name_that_the_output_code_gives_it():
    """The profiler names its function; the output code adds a number."""
    code = "async_compile.triton('add', '''\n@triton.jit\ndef add(x):\n    pass\n''')"
    kernels = [
        Kernel(name=name, language="triton", graph="post_grad.inference", code=text)
        for name, text in (("triton_poi_add_0", "def triton_poi_add_0(x):"), ("add_0", code))
    ]
    record = CellRecord(source="f(x)\n", compiles=[Compile(compile_id="0/0", kernels=kernels)])
    rows = [
        {"code": "", "name": name, "calls": 1.0, "seconds": 1e-6}
        for name in ("triton_poi_add_0", "add", "nvjet_tst_128x64")
    ]
    timing = placed(RawTiming(Timing(name="f", status="timed"), rows), record)
    assert {(row.name, row.compile, row.graph) for row in timing.kernels} == {
        ("triton_poi_add_0", "0/0", "post_grad.inference"),
        ("add_0", "0/0", "post_grad.inference"),
        ("nvjet_tst_128x64", "", ""),
    }


def test_a_machine_too_full_to_be_measured_costs_no_time(shell, monkeypatch):
    def full(device: str) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(time_run, "machine", full)
    (timing,) = timed(shell, WORK + "f(x, w)\n", "--backend eager")
    assert timing.status == "timed"
    assert shell.record.machines == []


def test_what_a_cuda_graph_returned_is_not_overwritten(shell, monkeypatch):
    monkeypatch.setattr(time_run, "outputs_are_alive", lambda: True)
    (timing,) = timed(shell, WORK + "f(x, w)\n", "--backend eager")
    assert timing.status == "not timed"
    assert "clone or delete it" in timing.reason


def test_a_profiler_that_fails_costs_its_figures_alone(shell, monkeypatch):
    def broken() -> None:
        raise RuntimeError("no profiler")

    monkeypatch.setattr(time_kernels, "_profiler", broken)
    (timing,) = timed(shell, WORK + "f(x, w)\n", "--backend eager")
    assert timing.status == "timed"
    assert (timing.eager_launches, timing.compiled_launches, timing.kernels) == (None, None, [])


# ------------------------------------------------------------------ views


def measured() -> CellRecord:
    timing = Timing(
        name="f",
        status="timed",
        line=2,
        eager=Measured(median=3e-3, spread=2e-4, runs=50),
        compiled=Measured(median=1e-3, spread=1e-5, runs=90),
        eager_launches=9,
        compiled_launches=2,
        eager_memory=5_000_000,
        compiled_memory=2_000_000,
        kernels=[KernelTime(name="cpp_fused_0", calls=2, seconds=7e-4, compile="0/0")],
    )
    machine = Machine(device="cpu", name="CPU", bandwidth=1e9, source="measured here")
    return CellRecord(source="%%dynamo --time\nf(x)\n", timings=[timing], machines=[machine])


def test_text_has_the_times():
    text = to_text(measured())
    assert "line 2  f: 3 ms ± 100 µs eager, 1 ms ± 5 µs compiled: 3.00 times as fast" in text
    assert "9 -> 2 launches" in text
    assert "700 µs in 2 runs  cpp_fused_0" in text
    assert timing_text(Timing(name="f", status="not timed", reason="why")) == "not timed: why"


def test_what_varies_by_more_is_no_clear_difference():
    noisy = Timing(
        name="f",
        status="timed",
        eager=Measured(median=3e-3, spread=2e-3, runs=5),
        compiled=Measured(median=4e-3, spread=1e-3, runs=5),
    )
    told = "no clear difference (0.75 times as fast, and they vary by more)"
    assert timing_text(noisy).endswith(told)
    slow = replace(noisy, compiled=Measured(median=1.0, spread=1e-3, runs=5))
    assert timing_text(slow).endswith("compiled: 0.003 times as fast")


def test_html_has_the_times():
    html = re.sub(r"<[^>]+>", " ", to_html(measured()))
    for text in ("times against eager", "3 ms ± 100 µs", "5.0 MB", "2.0 MB", "cpp_fused_0", "100%"):
        assert text in html


@pytest.mark.parametrize(
    ("seconds", "flops", "said"),
    [
        (2e-3, 10**6, "50% of what is possible"),
        (1e-3, 10**6, "100% of what is possible"),
        (5e-4, 10**6, "faster than memory allows: the data stays in cache"),
        (5e-4, 10**8, "faster than the arithmetic measured on this machine"),
    ],
)
def test_a_kernel_beats_its_floor_only_with_a_reason(seconds, flops, said):
    kernel = Kernel(name="k", language="cpp", reads={"a": 10**6}, flops=flops, graph="post_grad")
    entry = Compile(compile_id="0/0", kernels=[kernel])
    time = KernelTime(name="k", calls=1, seconds=seconds, compile=entry.key, graph=kernel.graph)
    record = CellRecord(
        source="f(x)\n",
        timings=[Timing(name="f", status="timed", kernels=[time])],
        machines=[Machine(device="cpu", bandwidth=1e9, flops={"float32": 8e9})],
    )
    assert measured_text(record, entry, kernel).endswith(f"a call of the function, {said}")


def test_measured_kernels_stand_under_the_roofline():
    kernel = Kernel(
        name="cpp_fused_0", language="cpp", reads={"a": 10**6}, flops=10**6, graph="post_grad"
    )
    time = KernelTime(name="cpp_fused_0", calls=1, seconds=2e-3, compile="0/0", graph=kernel.graph)
    machine = Machine(device="cpu", name="CPU", bandwidth=1e9, flops={"float32": 8e9})
    record = CellRecord(
        source="f(x)\n",
        compiles=[Compile(compile_id="0/0", kernels=[kernel])],
        timings=[Timing(name="f", status="timed", kernels=[time])],
        machines=[machine],
    )
    html = to_html(record)
    assert "cpp_fused_0: 1 operations a byte, 500 MFLOP/s" in html
    assert "50% of what is possible" in html
    roof, _ = re.findall(r'<polyline[^>]*points="([^"]*)"', html)
    (_, _), (ridge, top), (_, peak) = (map(float, pair.split(",")) for pair in roof.split())
    x, y = map(float, re.search(r'<circle cx="([\d.]+)" cy="([\d.]+)"', html).groups())
    assert x < ridge  # memory binds it: the ridge is at eight operations a byte
    assert y > top == peak
    assert "<svg" not in to_html(replace(record, machines=[]))


def test_reports_that_did_not_ask_have_none():
    record = CellRecord(source="%%dynamo\nf(x)\n")
    assert "Times" not in to_text(record)
    assert "times against eager" not in to_html(record)
