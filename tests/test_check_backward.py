"""`--check` and `--time` on steps that run their backward themselves: seen, and not in the way."""

from __future__ import annotations

import pytest
import torch

SETUP = """\
import torch
net = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
count = 0
"""
BACKWARD = """\
def step(x):
    loss = net(x).pow(2).mean()
    loss.backward()
    return loss
step(torch.ones(2, 4))
"""
GRAD = """\
def step(x):
    loss = net(x).pow(2).mean()
    return torch.autograd.grad(loss, net.weight)
step(torch.ones(2, 4))
"""
WHOLE = """\
def step(x):
    global count
    count += 1
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
    return loss
step(torch.ones(2, 4))
"""
KEPT = """\
def step(x):
    loss = net(x).pow(2).mean()
    (slope,) = torch.autograd.grad(loss, net.weight, create_graph=True)
    return loss + slope.pow(2).sum()
step(torch.ones(2, 4)).backward()
"""
TRACED = "--config trace_autograd_ops=True"


def seen(shell, cell, flags):
    """Run a cell anew; return what a report says of its compiling."""
    torch._dynamo.reset()
    torch._dynamo.convert_frame.FRAME_COUNTER = 0
    torch._dynamo.convert_frame.FRAME_COMPILE_COUNTER.clear()
    assert shell.run(SETUP).error is None
    assert shell.run(f"%%dynamo --backend eager {flags}\n{cell}").error is None
    record = shell.record
    return (
        [(item.code, item.line, item.message) for item in record.findings],
        [(item.compile_id, item.name, len(item.guards)) for item in record.compiles],
        [(call.name, call.eager) for call in record.calls],
    )


@pytest.mark.parametrize("more", ["", TRACED])
@pytest.mark.parametrize("cell", [BACKWARD, GRAD, WHOLE], ids=["backward", "grad", "whole"])
def test_the_report_is_that_without_the_flags(shell, cell, more):
    engine = torch.autograd._engine_run_backward
    plain = seen(shell, cell, more)
    assert seen(shell, cell, f"--check {more}") == plain
    assert seen(shell, cell, f"--time {more}") == plain
    assert torch.autograd._engine_run_backward is engine


@pytest.mark.parametrize("cell", [BACKWARD, GRAD, KEPT], ids=["backward", "grad", "kept"])
def test_such_a_step_is_checked_and_measured(shell, cell):
    seen(shell, cell, "--check --time")
    (check,), (timing,) = shell.record.checks, shell.record.timings
    assert (check.status, check.reason, check.gradients) == ("same", "", True)
    assert (timing.status, timing.reason) == ("timed", "")


def test_a_step_that_counts_its_calls(shell):
    """It is guarded on its count, so that each repetition compiles: that is said."""
    seen(shell, WHOLE, "--check --time")
    (check,), (timing,) = shell.record.checks, shell.record.timings
    assert (check.status, check.reason) == ("same", "")
    assert timing.reason.startswith("each repetition compiles anew")


def test_an_error_is_told_with_its_message(shell):
    cell = (
        "def f(x):\n"
        "    if torch.compiler.is_compiling():\n"
        "        return x + 1\n"
        "    raise ValueError('only compiled. And more')\n"
        "f(torch.ones(2))"
    )
    seen(shell, cell, "--time")
    (timing,) = shell.record.timings
    assert timing.reason == "repeated eagerly, it raised ValueError: only compiled"
