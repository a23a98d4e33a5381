"""How many operators eager runs: what a graph tells agrees with what the profiler counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from dynamo_nb.capture.time_kernels import launches
from tests.capturing import Captured


def written(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[0] = 1
    y.add_(1)
    return y.sin()


def made(x: torch.Tensor) -> torch.Tensor:
    return x + torch.ones(6) * torch.arange(6) + torch.full((6,), 2.0)


def narrowed(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return F.linear(x, w, b).relu()


#: Functions of tensors, with the sizes of these, and the operators of forward and backward.
FUNCTIONS = {
    # mm, add, relu; threshold_backward, sum (of the bias), mm twice
    "product": (lambda a, b, c: torch.relu(a @ b + c), [(4, 6), (6, 5), (5,)], (3, 4)),
    # addmm, gelu; gelu_backward, mm twice, sum
    "linear": (lambda x, w, b: F.gelu(F.linear(x, w, b)), [(4, 6), (5, 6), (5,)], (2, 4)),
    # each forward and its backward
    "softmax": (lambda x: torch.softmax(x, -1), [(4, 6)], (1, 1)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), [(4, 6), (6,), (6,)], (1, 1)),
    "bilinear": (
        lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
        [(1, 2, 4, 4)],
        (1, 1),
    ),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2.0), [(1, 2, 4, 4)], (1, 1)),
    "pool": (lambda x: F.max_pool2d(x, 2), [(1, 2, 4, 4)], (1, 1)),
    # std; mul, div, masked_fill, eq, ..., as autograd has it
    "std": (lambda x: x.std(-1), [(4, 6)], None),
    "max": (lambda x: x.max(-1)[0], [(4, 6)], None),
    "where": (lambda x, y: torch.where(x > 0, x, y), [(4, 6), (4, 6)], None),
    # log_softmax, nll_loss_forward; their backwards
    "loss": (
        lambda x: F.cross_entropy(x, torch.zeros(4, dtype=torch.int64)),
        [(4, 6)],
        (3, 2),  # and zeros
    ),
    # conv, relu; threshold_backward, convolution_backward
    "conv": (
        lambda x, w, b: torch.relu(F.conv2d(x, w, b)),
        [(1, 3, 6, 6), (4, 3, 3, 3), (4,)],
        (2, 2),
    ),
    # ones, arange, mul, add, full, add; nothing: what comes in goes out
    "made": (made, [(4, 6)], (6, 0)),
    # mul, fill, add, sin; backward has no slices to copy
    "written": (written, [(4, 6)], (4, None)),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        [(1, 2, 8, 16)] * 3,
        (1, 1),
    ),
    # a cast of each argument, addmm, relu
    "autocast": (narrowed, [(4, 6), (5, 6), (5,)], (5, 7)),
    # mul, and what gives back its input
    "no_dropout": (lambda x: F.dropout(x * 2, 0.5, False), [(8,)], (1, 1)),
    # mul, cumsum, exp; mul, flip, cumsum, flip, mul
    "cumsum": (lambda x: torch.cumsum(x * 2, 0).exp(), [(8,)], (3, 5)),
}


def counted(function: Callable[..., torch.Tensor], inputs: list[torch.Tensor]) -> dict[str, int]:
    """Return the operators of eager by direction, as a capture has them."""
    source = "out = torch.compile(function, backend='aot_eager_decomp_partition')(*inputs)\n"
    captured = Captured(source, namespace={"function": function, "inputs": inputs})
    assert captured.error is None
    assert not captured.record.notes
    graphs = [event.data for event in captured.events if event.name == "graph"]
    return next(graph["operators"] for graph in graphs if graph["operators"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_graph_tells_is_what_runs(name: str):
    function, sizes, told = FUNCTIONS[name]
    inputs = [torch.randn(size) for size in sizes]
    forward = launches(lambda: function(*inputs), "cpu")
    assert counted(function, inputs)["inference"] == forward

    for each in inputs:
        each.requires_grad_()
    output = function(*inputs)
    ones = torch.ones_like(output)
    trained = launches(lambda: torch.autograd.grad(function(*inputs), inputs, ones), "cpu")
    found = counted(function, inputs)
    assert found["forward"] == forward
    if told is None or told[1] is not None:
        assert found["backward"] == trained - forward
        assert told is None or told == (forward, trained - forward)
