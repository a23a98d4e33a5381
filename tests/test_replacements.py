"""Nodes that Inductor's patterns put in: they stand for all that they were made of."""

from __future__ import annotations

import pytest
import torch

from dynamo_nb.record.types import CellRecord, Compile, Node
from dynamo_nb.views.html import to_page
from dynamo_nb.views.text import to_text
from tests.capturing import Captured

ADDMM = """\
def f(a, b, c):
    y = a @ b
    z = y + c
    return z.relu()
a = torch.randn(8, 8)
torch.compile(f)(a, a, torch.ones(8))
"""


@pytest.fixture(scope="module")
def record() -> CellRecord:
    return Captured(ADDMM).record


@pytest.fixture(scope="module")
def entry(record: CellRecord) -> Compile:
    return record.compiles[0]


@pytest.fixture(scope="module")
def addmm(entry: Compile) -> Node:
    graph = entry.graph("post_grad.inference")
    return next(node for node in graph.nodes if "addmm" in node.target)


def test_a_product_and_a_sum_in_one_lead_to_both(addmm: Node):
    assert addmm.origins == ["inference/add", "inference/mm", "dynamo/y", "dynamo/z"]
    assert [frame.line for frame in addmm.frames] == [3]
    assert [frame.line for frame in addmm.also] == [2]


def test_its_kernel_is_that_of_both_lines(record: CellRecord, entry: Compile):
    extern = next(kernel for kernel in entry.kernels if kernel.language == "extern")
    for line in (2, 3):
        assert (entry.key, extern) in record.kernels(line)
    assert not [kernel for _, kernel in record.kernels(4) if kernel == extern]
    text = " ".join(to_text(record).split())
    assert "from lines 2-3" in text or "extern calls" in text
    lines = {
        link.b.key
        for link in record.links
        if link.kind == "node-line" and link.a.key.endswith("/addmm_default")
    }
    assert lines == {"<cell>:2", "<cell>:3"}
    assert 'class="l3 l2"' in to_page(record)


def test_meta_of_torchs_own_is_left_alone():
    """The key that the capture adds changes neither kernels nor their names."""
    import torch._inductor.utils as utils

    def f(a, b, c):
        return (a @ b + c).relu()

    a = torch.randn(8, 8)
    torch._dynamo.reset()
    _, (plain,) = utils.run_and_get_code(torch.compile(f), a, a, a)
    (code,) = (
        Captured(
            "def f(a, b, c):\n    return (a @ b + c).relu()\na = torch.randn(8, 8)\n"
            "torch.compile(f)(a, a, a)\n"
        )
        .record.compiles[0]
        .output_code
    )

    def calls(text: str) -> list[str]:
        return [line.strip() for line in text.splitlines() if "extern_kernels" in line]

    assert calls(code.code)[-1] == calls(plain)[-1]


# ------------------------------------------------------------------ what is no origin


def test_a_node_of_the_same_name_is_no_origin():
    """AOTAutograd's `add` and `sub` are layer norm's own; Dynamo's of that name are others."""
    source = """\
def f(x):
    h = torch.nn.functional.layer_norm(x, (8,))
    add = h * 2
    sub = add - 1
    return sub
torch.compile(f)(torch.randn(4, 8, requires_grad=True)).sum().backward()
"""
    (entry,) = Captured(source).record.compiles
    found = 0
    for graph in entry.graphs:
        for node in graph.nodes:
            if graph.stage != "dynamo" and node.original_aten == "aten.native_layer_norm.default":
                found += node.name in ("add", "sub")
                assert [frame.line for frame in node.frames] == [2], (graph.name, node.name)
                assert {"dynamo/add", "dynamo/sub"}.isdisjoint(node.origins)
    assert found >= 4


def test_what_a_branch_calls_has_a_name_and_the_line_of_its_own():
    source = """\
def yes(x):
    return x.sin() * 2
def no(x):
    return x.cos()
def f(x):
    mul = x * 3
    return torch.cond(mul.sum() > 0, yes, no, (mul,)) + 1
torch.compile(f)(torch.randn(8))
"""
    record = Captured(source).record
    (entry,) = record.compiles
    graph = entry.graph("post_grad.inference")
    lines = {node.name: [frame.line for frame in node.frames][-1:] for node in graph.nodes}
    assert (lines["mul"], lines["true_graph_0.mul"]) == ([6], [2])
    assert graph.nodes[-1].op == "output"
    names = {kernel.name: set(kernel.nodes) for _, kernel in record.kernels(2)}
    assert list(names.values()) == [{"true_graph_0.sin", "true_graph_0.mul"}]
    assert len(record.kernels(4)) == 1
    assert [kernel.name for _, kernel in record.kernels(6)] == [entry.kernels[0].name]


def test_a_buffer_for_a_call_is_none_of_its_kernels_nodes():
    source = """\
@torch.library.custom_op("dnb_made_for::copied", mutates_args=())
def copied(x: torch.Tensor) -> torch.Tensor:
    return x.clone()
@copied.register_fake
def _(x):
    return torch.empty_like(x)
def f(x):
    z = x.sin()
    return copied(z)
torch.compile(f)(torch.randn(8, 8))
"""
    (entry,) = Captured(source).record.compiles
    kernels = {kernel.language: kernel for kernel in entry.kernels}
    assert kernels["cpp"].nodes == ["sin"]
    assert kernels["extern"].nodes == ["copied"]
