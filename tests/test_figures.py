"""Bytes, operations and launches of kernels, against what a cell does when worked out by hand."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from dynamo_nb.record.types import Compile, Kernel
from dynamo_nb.views.schedule import launches_text
from tests.capturing import Captured
from tests.zoo import ZOO


class Figures(NamedTuple):
    """What a kernel reads and writes, in bytes, and its floating-point operations."""

    reads: int
    writes: int
    flops: int | None


def compiled(source: str) -> Compile:
    """Return the one compile of a cell."""
    captured = Captured(f"import torch\nimport torch.nn.functional as F\n{source}")
    assert captured.error is None
    assert not captured.record.notes
    (found,) = captured.record.compiles
    return found


def figures(kernel: Kernel) -> Figures:
    return Figures(sum(kernel.reads.values()), sum(kernel.writes.values()), kernel.flops)


#: Cells, and the figures of their kernels in the order of their calls.
CELLS = {
    # the row that is filled, and not what is in the rest; then all of it
    "a slice that is filled": (
        "@torch.compile\ndef f(b):\n    b[0] = 1\n    return b.sum()\nf(torch.zeros(100, 50))",
        [Figures(100 * 50 * 4, 50 * 4 + 4, 100 * 50)],
    ),
    # k (2x8) into a slice of the cache (2x64x8), all of which both products read: once a kernel
    # with q (2x1x8) and their result, and the weights (2x1x64) that one loop leaves for another
    "a cache of keys": (
        "@torch.compile\ndef f(c, k, q):\n    c[:, 5] = k\n    return (q @ c.mT) @ c\n"
        "f(torch.zeros(2, 64, 8), torch.randn(2, 8), torch.randn(2, 1, 8))",
        [
            Figures(
                (2 * 8 + 2 * 64 * 8 + 2 * 8 + 2 * 64) * 4,
                (2 * 8 + 2 * 64 + 2 * 8) * 4,
                2 * (2 * 2 * 64 * 8),
            )
        ],
    ),
    # 7 rows of 1000, found by 7 indices of 8 bytes
    "rows by index": (
        "f = torch.compile(lambda x, i: x[i] * 2)\n"
        "f(torch.randn(1000, 5), torch.randint(0, 1000, (7,)))",
        [Figures(7 * 8 + 7 * 5 * 4, 7 * 5 * 4, 7 * 5)],
    ),
    # 5 rows are added to a copy of all: what is there is read, added to, and written
    "rows that are added": (
        "f = torch.compile(lambda x, i, v: x.index_put((i,), v, accumulate=True))\n"
        "f(torch.zeros(1000, 4).double(), torch.randint(0, 99, (5,)), torch.ones(5, 4).double())",
        [Figures((1000 * 4 + 5 + 5 * 4 * 2) * 8, (1000 * 4 + 5 * 4) * 8, 5 * 4)],
    ),
    # amax, sub, exp, sum of the logits; log, and two subtractions for one of each row, which is
    # among those that are read anyway
    "one logit of each row": (
        "f = torch.compile(lambda x, t: torch.log_softmax(x, 1).gather(1, t[:, None]))\n"
        "f(torch.randn(8, 4000), torch.randint(0, 4000, (8,)))",
        [Figures(8 * 4000 * 4 + 8 * 8, 8 * 4, 4 * 8 * 4000 + 3 * 8)],
    ),
    # the two halves that two loops take are all of it, and so is what both take; six numbers are
    # added up by five additions, without a loop
    "loops that share a buffer": (
        "f = torch.compile(lambda x: (x[:50].sum(1), x[50:].sum(1), x.sum(0)))\n"
        "f(torch.randn(100, 6))",
        [Figures(100 * 6 * 4, (100 + 6) * 4, 100 * 5 + 6 * 100)],
    ),
    # no arithmetic: copies, masks, integers
    "a copy": (
        "f = torch.compile(lambda a, b: torch.cat([a, b]))\nf(torch.ones(10, 5), torch.ones(3, 5))",
        [Figures(65 * 4, 65 * 4, 0)],
    ),
    "masks and integers": (
        "f = torch.compile(lambda a, b: ((a & ~b).any(-1), (a.int() * 3).sum()))\n"
        "f(torch.rand(8, 16) > 0.5, torch.rand(8, 16) > 0.5)",
        [Figures(2 * 8 * 16, 8 + 8, 0)],
    ),
    # a pooled element is the greatest of four
    "pooling": (
        "f = torch.compile(lambda x: F.max_pool2d(x, 2))\nf(torch.randn(1, 3, 16, 16))",
        [Figures(3 * 16 * 16 * 4, 3 * 8 * 8 * 4, 3 * 3 * 8 * 8)],
    ),
    # two products; a comparison and a choice are none
    "a mask": (
        "f = torch.compile(lambda x, y: torch.where(x > 0, x * 2, y * 3))\n"
        "f(torch.randn(64), torch.randn(64))",
        [Figures(2 * 64 * 4, 64 * 4, 2 * 64)],
    ),
    # a copy, an extern call that comes to 7x5 of 10x5 elements, and a product
    "a call that writes in place": (
        "f = torch.compile(lambda x, i, s: x.scatter_reduce(0, i, s, 'amax') * 2)\n"
        "f(torch.zeros(10, 5), torch.randint(0, 10, (7, 5)), torch.randn(7, 5))",
        [
            Figures(200, 200, 0),
            Figures(35 * (4 + 8 + 4), 35 * 4, None),
            Figures(200, 200, 50),
        ],
    ),
    # what it draws is written over a copy
    "a call that only writes": (
        "f = torch.compile(lambda x: torch.bernoulli(x, 0.3) + 1)\nf(torch.randn(16))",
        [Figures(64, 64, 0), Figures(0, 64, None), Figures(64, 64, 16)],
    ),
    # values and indices, of which nothing takes the latter
    "several results": (
        "f = torch.compile(lambda x: torch.topk(x, 3).values + 1)\nf(torch.randn(2, 16))",
        [Figures(2 * 16 * 4, 2 * 3 * (4 + 8), None), Figures(24, 24, 6)],
    ),
    # a half of what is in memory
    "a call on a view": (
        "f = torch.compile(lambda x, w: x[:, :32] @ w)\n"
        "f(torch.randn(16, 64), torch.randn(32, 32))",
        [Figures((16 * 32 + 32 * 32) * 4, 16 * 32 * 4, 2 * 16 * 32 * 32)],
    ),
    # the sum and its sign; then each branch
    "branches": (
        "f = torch.compile(lambda x: torch.cond(x.sum() > 0, lambda x: x.sin() * 2, "
        "lambda x: x.cos(), (x,)))\nf(torch.randn(64))",
        [Figures(256 + 4, 4 + 1, 64), Figures(256, 256, 128), Figures(256, 256, 64)],
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_figures_are_those_by_hand(name: str):
    source, told = CELLS[name]
    assert [figures(kernel) for kernel in compiled(source).kernels] == told


#: Of functions of the zoo the figures of forward and backward, with one entry a kernel.
FUNCTIONS = {
    # mul, add, relu; the mask that backward takes is a byte each. Backward: where, mul
    "pointwise": (
        [Figures(2 * 12288, 12288 + 3072, 3 * 3072)],
        [Figures(3072 + 12288, 2 * 12288, 3072)],
    ),
    # amax, sub, exp, sum, div; mul, sum, neg, fma of 120 elements each
    "softmax": ([Figures(480, 480, 5 * 120)], [Figures(2 * 480, 480, 4 * 120)]),
    # x, w and b; mean and rstd of 8 rows are kept. Four operations to normalize, one for the mean,
    # two more for the variance, and four for each row
    "layer_norm": ([Figures(1536 + 2 * 192, 1536 + 2 * 32, 7 * 384 + 4 * 8)], None),
    # 4 x 8 rows of 16 out of 100; backward adds them to zeros
    "embedding": (
        [Figures(4 * 8 * 8 + 4 * 8 * 16 * 4, 4 * 16 * 4, 4 * 8 * 16)],
        [Figures(4 * 8 * 8 + 4 * 16 * 4 + 2048, 100 * 16 * 4 + 2048, 4 * 8 * 16)],
    ),
    # a seed; two products, and a mask of a byte each
    "dropout": (
        [Figures(0, 8, None), Figures(8 + 1024, 256 + 1024, 2 * 256)],
        [Figures(1024 + 256, 1024, 2 * 256)],
    ),
    # values and indices; backward puts the gradient where it belongs
    "sort": (
        [Figures(128, 128 + 256, None), Figures(128, 128, 32)],
        [Figures(256 + 128, 2 * 128, 0)],
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_figures_of_the_zoo(name: str):
    function = next(each for each in ZOO if each.name == name)
    definition = function.definition().replace("def f", "@torch.compile\ndef f")
    found = compiled(definition + function.training())
    for direction, told in zip(("forward", "backward"), FUNCTIONS[name], strict=True):
        kernels = [k for k in found.kernels if k.graph == f"post_grad.{direction}"]
        assert told is None or [figures(kernel) for kernel in kernels] == told


def test_calls_that_inductor_is_silent_about_are_kernels():
    found = compiled(CELLS["a call that writes in place"][0])
    call = found.kernels[1]
    assert (call.name, call.language, call.calls) == ("aten.scatter_reduce_.two", "extern", 1)
    assert call.nodes == ["scatter_reduce"]
    assert all(f"{call.name}(" in output.code for output in found.output_code)


def test_branches_have_nodes_of_their_own_alone():
    found = compiled(CELLS["branches"][0])
    assert [set(kernel.nodes) for kernel in found.kernels] == [
        {"sum_1", "gt"},
        {"true_graph_0.sin", "true_graph_0.mul"},
        {"false_graph_0.cos"},
    ]
    assert {item.node: item.why for item in found.folded} == {"cond": "graphs", "getitem": "result"}
    assert found.eager_operators == {"post_grad.inference": 4}  # of branches the longer
    assert launches_text(found) == "3 launches of all branches in place of 4 operators of eager"


def test_a_view_that_inductor_calls_is_no_kernel():
    source = "f = torch.compile(lambda x, y: torch.view_as_real(x * y) + 1)\n"
    source += "f(*(torch.randn(16, dtype=torch.complex64) for _ in range(2)))"
    found = compiled(source)
    assert [figures(kernel) for kernel in found.kernels] == [
        Figures(2 * 128, 128, None),
        Figures(128, 128, 32),
    ]
    assert {item.why for item in found.folded} == {"view"}


def test_results_without_elements_are_empty():
    found = compiled("f = torch.compile(lambda a: (a.sin() + 1, a.sum()))\nf(torch.randn(0, 5))")
    assert {item.node: item.why for item in found.folded} == {"sin": "empty", "add": "empty"}
