"""Kernels: what they read, write and compute, what memory they share, what stays apart and why."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dynamo_nb.findings import find
from dynamo_nb.findings.fusion import COSTLY_BYTES
from dynamo_nb.record.types import (
    CELL,
    Buffer,
    CellRecord,
    Compile,
    Graph,
    Kernel,
    Machine,
    Node,
    NotFused,
    SkippedCudagraph,
    StackFrame,
    Target,
)
from dynamo_nb.views.html import to_html
from dynamo_nb.views.kernels import readable
from dynamo_nb.views.roofline import floor
from tests.capturing import Captured

STEP = """\
def f(x, w, b):
    y = torch.relu(x @ w + b)
    z = torch.softmax(y, -1)
    return (z * y).sum(), y.t()

x = torch.randn(16, 16)
w, b = (torch.randn(16, *rest, requires_grad=True) for rest in ((16,), ()))
loss, _ = torch.compile(f)(x, w, b)
loss.backward()
"""

SIZE = 16 * 16 * 4


@pytest.fixture(scope="module")
def step() -> Compile:
    """Return the compile of a training step."""
    captured = Captured(STEP)
    assert captured.error is None
    assert not captured.record.notes
    assert not captured.record.unparsed
    return captured.record.compiles[0]


def only(compiled: Compile, graph: str, language: str) -> Kernel:
    """Return the one kernel of a graph and a language."""
    (kernel,) = (k for k in compiled.kernels if (k.graph, k.language) == (graph, language))
    return kernel


def buffer_of(compiled: Compile, graph: str, node: str) -> Buffer:
    return next(b for b in compiled.buffers if (b.graph, b.node) == (graph, node))


def test_an_extern_call_has_its_bytes_and_torch_s_own_count_of_operations(step: Compile):
    kernel = only(step, "post_grad.forward", "extern")
    assert sum(kernel.reads.values()) == 2 * SIZE + 16 * 4
    assert list(kernel.writes.values()) == [SIZE]
    assert kernel.flops == 2 * 16**3
    assert kernel.replaces == 2  # mm and add
    assert kernel.intensity == pytest.approx(2 * 16**3 / (3 * SIZE + 16 * 4))


def test_a_fused_kernel_counts_the_operations_of_its_loops(step: Compile):
    kernel = only(step, "post_grad.forward", "cpp")
    # relu; amax, sub, exp, sum; div, mul, sum
    assert kernel.flops == 8 * 16 * 16
    assert kernel.replaces == 4  # relu, softmax, mul, sum
    assert step.eager_operators == {
        "post_grad.forward": 6,  # and mm, add
        "post_grad.backward": 8,  # those of the test below, and mm
    }


def test_backward_counts_what_eager_runs_and_nothing_that_is_computed_again(step: Compile):
    kernel = only(step, "post_grad.backward", "cpp")
    graph = step.graph("post_grad.backward")
    fused = {node.name for node in graph.nodes if node.name in kernel.nodes}
    assert {"exp", "div"} <= fused  # of the forward's softmax
    aten = {node.original_aten for node in graph.nodes if node.name in fused}
    assert "aten._softmax.default" in aten
    # mul twice, add twice, softmax_backward, threshold_backward, sum
    assert kernel.replaces == 7


def test_buffers_tell_reuse_and_what_backward_keeps(step: Compile):
    product = buffer_of(step, "post_grad.forward", "addmm_default")
    relu = buffer_of(step, "post_grad.forward", "relu")
    assert (product.role, product.shape, product.stride) == ("intermediate", [16, 16], [16, 1])
    assert (relu.reuses, relu.in_place, relu.role) == (product.name, True, "output")
    saved = {b.node for b in step.buffers if b.saved}
    assert saved == {"relu", "amax", "sum_1", "primals_1"}


def test_nodes_without_a_kernel_say_why(step: Compile):
    assert {item.why for item in step.folded} == {"view"}
    names = {(item.graph, item.node) for item in step.folded}
    assert ("post_grad.forward", "permute") in names


def test_a_line_names_its_kernels():
    record = Captured(STEP, fresh=True).record
    at_softmax = {kernel.name for _, kernel in record.kernels(line=3)}
    assert at_softmax == {kernel.name for kernel in record.compiles[0].kernels if kernel.code}
    assert any(kernel.language == "extern" for _, kernel in record.kernels(line=2))
    assert record.kernels(line=1) == []
    assert len(record.kernels()) == 4


def test_sizes_that_are_symbols_count_with_the_values_seen():
    source = "g = torch.compile(lambda x: torch.relu(x) + 1, dynamic=True)\ng(torch.randn(6, 7))\n"
    captured = Captured(source)
    assert not captured.record.notes
    (kernel,) = captured.record.compiles[0].kernels
    assert (kernel.bytes, kernel.flops) == (2 * 6 * 7 * 4, 2 * 6 * 7)
    shapes = [buffer.shape for buffer in captured.record.compiles[0].buffers]
    assert any(isinstance(size, str) for shape in shapes for size in shape)


def test_constants_are_read_too():
    source = (
        "def f(x):\n    return x + torch.tensor([float(i * i) for i in range(32)])\n"
        "torch.compile(f)(torch.ones(32))\n"
    )
    (kernel,) = Captured(source).record.compiles[0].kernels
    assert sorted(kernel.reads.values()) == [128, 128]


def test_what_writes_into_its_input_says_so():
    captured = Captured("torch.compile(lambda x: x.add_(1))(torch.zeros(4))\n")
    mutating = [b for b in captured.record.compiles[0].buffers if b.mutates]
    assert [buffer.mutates for buffer in mutating] == [["arg0_1"]]


def test_inputs_that_are_only_written_are_buffers():
    """A slice is filled, and what a function returns has nothing to do with it."""
    captured = Captured(
        "@torch.compile\ndef f(x, s):\n    s[1] = x.sum()\n    return x + 1\n"
        "f(torch.randn(8), torch.zeros(4, 8))\n"
    )
    buffers = {buffer.name: buffer for buffer in captured.record.compiles[0].buffers}
    (written,) = (name for buffer in buffers.values() for name in buffer.mutates)
    assert (buffers[written].role, buffers[written].bytes) == ("input", 4 * 8 * 4)


def test_pairs_that_stay_apart_have_inductor_s_reason():
    source = (
        "def f(x):\n    y = torch.softmax(x, -1)\n    return y + y.t()\n"
        "torch.compile(f)(torch.randn(8, 8))\n"
    )
    (item,) = Captured(source).record.compiles[0].unfused
    assert item.reason == "memory deps did not match"
    assert item.loops == ["8, reduced over 8", "8 x 8"]
    assert item.bytes == 2 * (8 * 8 + 8) * 4
    assert (item.writer_nodes, item.reader_nodes) == (["exp", "sum_1"], ["add"])


def test_a_pair_that_stays_apart_is_what_writes_and_what_reads():
    """Not the last of the two groups, `sum` and `clone`; loops of one size are of another order."""
    source = (
        "def f(x):\n    a = x.softmax(0)\n    return (a.T.contiguous() @ a).sum(), a.sum(1)\n"
        "torch.compile(f)(torch.randn(4000, 1000))\n"
    )
    record = Captured(source).record
    pairs = [(*i.writer_nodes, *i.reader_nodes) for i in record.compiles[0].unfused]
    assert ("div", "clone") in pairs
    told = [f.message for f in findings(record, "kernel-not-fused") if "`aten.clone`" in f.message]
    assert told
    assert all("`aten._softmax` (line 2) and" in message for message in told)
    assert all("reads at other places than the first writes" in message for message in told)


def test_what_only_writes_over_it_later_is_handed_nothing():
    source = (
        "@torch.compile\ndef f(s, x):\n    y = x / s\n    s.add_(1)\n    return y\n"
        "f(torch.ones(()), torch.randn(64, 64))\n"
    )
    captured = Captured(source)
    assert captured.error is None
    assert len(captured.record.compiles[0].kernels) == 1
    assert not captured.record.compiles[0].unfused


# ------------------------------------------------------------------ findings, from records


def a_record(unfused: list[NotFused] = (), skipped: list[SkippedCudagraph] = ()) -> CellRecord:
    """Return a record of one compile with two operations, in lines 3 and 4."""
    nodes = [
        Node(
            name=name,
            op="call_function",
            target=f"aten.{name}.default",
            frames=[StackFrame(file=CELL, line=line, name="f")],
        )
        for name, line in (("exp", 3), ("sum_1", 4))
    ]
    graph = Graph(name="post_grad.inference", stage="post_grad", nodes=nodes)
    compiled = Compile(
        compile_id="0/0",
        name="f",
        call_line=6,
        graphs=[graph],
        unfused=list(unfused),
        skipped_cudagraphs=list(skipped),
    )
    return CellRecord(source="\n" * 8, compiles=[compiled])


def pair(size: int, reason: str = "") -> NotFused:
    return NotFused(
        graph="post_grad.inference",
        writer="cpp_fused_0",
        reader="cpp_fused_0",
        reason=reason,
        bytes=size,
        writer_nodes=["exp"],
        reader_nodes=["sum_1"],
        loops=["8", "one element, reduced over 8"],
    )


def findings(record: CellRecord, code: str) -> list:
    return [finding for finding in find(record) if finding.code == code]


def test_kernel_not_fused_is_told_where_it_costs():
    (finding,) = findings(a_record([pair(COSTLY_BYTES), pair(COSTLY_BYTES)]), "kernel-not-fused")
    assert (finding.severity, finding.line, finding.lines, finding.count) == ("info", 4, [3, 4], 2)
    assert "2.1 MB" in finding.message
    assert "different sizes (8; then one element, reduced over 8)" in finding.message
    assert not findings(a_record([pair(COSTLY_BYTES - 1)]), "kernel-not-fused")


def test_kernel_not_fused_tells_of_targets_what_is_not_so_here():
    def of(spec: str, item: NotFused) -> Target:
        graph = f"{spec}/{item.graph}"
        graphs = [replace(each, name=graph) for each in here.compiles[0].graphs]
        return Target(spec=spec, graphs=graphs, unfused=[replace(item, graph=graph)])

    here = a_record([pair(COSTLY_BYTES)])
    moved = pair(COSTLY_BYTES, "memory deps did not match")
    targets = [of("cuda:80", pair(COSTLY_BYTES)), of("cuda:80", moved), of("cuda:90", moved)]
    record = replace(here, compiles=[replace(here.compiles[0], targets=targets)])
    first, second = findings(record, "kernel-not-fused")
    assert first.message.startswith("`aten.exp` (line 3) and ")
    assert second.message.startswith("For cuda:80 and cuda:90, as predicted: `aten.exp` (line 3) ")
    assert (second.line, second.refs[0].key) == (4, "cuda:80/post_grad.inference/cpp_fused_0")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("memory deps did not match", "reads at other places"),
        ("numel/rnumel mismatch (reduce) (8, 1), (1, 8)", "different sizes"),
        ("device mismatch (cpu vs cuda)", "Inductor says: device mismatch (cpu vs cuda)"),
        ("intermediate nodes between node1 & node2", None),
    ],
)
def test_kernel_not_fused_explains_inductor_s_reasons(reason: str, told: str | None):
    found = findings(a_record([pair(COSTLY_BYTES, reason)]), "kernel-not-fused")
    assert [told in finding.message for finding in found] == ([True] if told else [])


def test_cudagraph_skipped_names_torch_s_line():
    at = StackFrame(file=CELL, line=3, name="f")
    skipped = [
        SkippedCudagraph(graph="post_grad.forward", reason="cpu device (x)", frame=at),
        SkippedCudagraph(graph="post_grad.backward", reason="cpu device (y)"),
        SkippedCudagraph(graph="post_grad.forward", reason="mutated inputs (1 instances)"),
    ]
    first, second = findings(a_record(skipped=skipped), "cudagraph-skipped")
    assert (first.line, first.count, first.lines) == (3, 2, [3, 6])
    assert "move that tensor" in first.advice
    assert (second.line, second.message.split(": ")[1]) == (6, "mutated inputs (1 instances).")


# ------------------------------------------------------------------ views


def test_the_page_of_a_kernel_has_its_facts(step: Compile):
    html = to_html(CellRecord(source=STEP, compiles=[step]))
    for text in (
        "4 launches in place of",
        "operations a byte",
        "not known: the rates of this machine are measured by --time",
        "has the memory of buf0 (in place)",
        "saved for backward",
        "another way to look at memory",
    ):
        assert text in html
    assert "#include" not in html.split("output code")[0]


def test_boilerplate_is_left_out():
    triton = "import triton\n\n@triton_heuristics.pointwise(\n)\n@triton.jit\ndef k(x):\n    pass"
    assert readable(triton) == ("@triton.jit\ndef k(x):\n    pass", 4)
    assert readable('#include <a.h>\nextern "C" void k()') == ('extern "C" void k()', 1)
    assert readable("void k()") == ("void k()", 0)


def test_the_floor_is_the_greater_of_memory_and_arithmetic():
    machine = Machine(device="cpu", bandwidth=10e9, flops={"float32": 100e9})
    kernel = Kernel(name="k", language="cpp", reads={"a": 5000}, writes={"b": 5000}, flops=10_000)
    assert floor(machine, kernel).bound == "memory"
    unknown = replace(kernel, flops=None)
    told = "bound by memory alone (its operations are not known)"
    assert str(floor(machine, unknown)).endswith(told)
    assert floor(machine, kernel).seconds == pytest.approx(1e-6)
    busy = Kernel(name="k", language="cpp", reads={"a": 10_000}, flops=1_000_000)
    assert (floor(machine, busy).bound, floor(machine, busy).seconds) == ("arithmetic", 1e-5)
    assert floor(machine, Kernel(name="k", language="cpp")) is None
