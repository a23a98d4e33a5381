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
