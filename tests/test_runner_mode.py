"""How a cell is run, and the sentence that says why."""

from __future__ import annotations

import pytest

BEFORE = """\
import re, torch
x = torch.ones(3)
xs = [x, x]
number = 3
def mine(t): return t + 1
def compile(t): return t
net = torch.nn.Linear(3, 3)
hidden = torch.nn.Sequential(torch.nn.Linear(3, 3))
hidden[0].compile(backend="eager")
done = torch.compile(mine, backend="eager")
class Holder: pass
holder = Holder()
holder.model = torch.compile(net, backend="eager")
holder.plain = net
hidden = torch._dynamo.disable(mine)
"""

CASES = [
    # as-is: the cell compiles itself
    ("g = torch.compile(mine, backend='eager')\ng(x)", "as-is", "torch.compile (line 2)"),
    ("@torch.compile(backend='eager')\ndef f(t): return t\nf(x)", "as-is", "torch.compile"),
    ("from torch import compile as c\ng = c(mine, backend='eager')", "as-is", "`c`"),
    ("net.compile(backend='eager')\nnet(x)", "as-is", "net.compile"),
    ("done(x)", "as-is", "`done` is compiled already (line 2)"),
    ("holder.model(x)", "as-is", "`holder.model` is compiled already"),
    ("def f(t): return done(t)\nf(x)", "as-is", "`done`"),
    # calls
    ("def f(t): return hidden(t)\nf(x)", "calls", "`f`, which it defines"),
    ("mine(x)", "calls", "`mine` (line 2)"),
    ("y = 2 * mine(x).sum()", "calls", "`mine`"),
    ("net(x)", "calls", "`net`"),
    ("holder.plain(x)", "calls", "`holder.plain`"),
    ("[mine(t) for t in xs]", "calls", "`mine`"),
    ("def f(t): return t\nf(x)", "calls", "`f`, which it defines (line 3)"),
    (
        "class N(torch.nn.Module):\n    def forward(self, t): return t\nN()(x)",
        "calls",
        "`N()`, which it defines",
    ),
    ("def f(t): return t\nf(x + 0).sum().item()", "calls", "`f`, which it defines (line 3)"),
    ("def f(t): return t\nf.a = ', '.join('ab')\nf(x)", "calls", "`f`, which it defines (line 4)"),
    (
        "def f(t): return t\ndef g(t): return f(t)\nf.__str__()\ng(x)",
        "calls",
        "`g`, which it defines (line 5)",
    ),
    ("def f(t): return t\nf.__call__(x)", "calls", "`f.__call__`, of what it defines (line 3)"),
    ("mlp = torch.nn.Linear(3, 1)\nmlp(x)", "calls", "`mlp`, which it makes (line 3)"),
    ("import re\nre.compile('a')\nmine(x)", "calls", "`mine`"),
    ("re.compile('a')\nmine(x)", "calls", "`mine`"),
    ("%time y = mine(x)", "calls", "`mine`"),
    ("%%time\ny = mine(x)", "calls", "`mine`"),
    # cell
    ("y = x.sin() + 1\ny", "cell", "its body is compiled"),
    ("y = torch.stack(xs)", "cell", "its body is compiled"),
    ("import torch\nz = torch.ones(2) * 2", "cell", "its body is compiled"),
    ("total = 0\nfor t in xs:\n    total += t.sum()", "cell", "its body is compiled"),
    # as-is: what one function of it would lose
    ("with torch.inference_mode():\n    y = x + 1", "as-is", "`torch.inference_mode` (line 2)"),
    ("torch.set_default_dtype(torch.float32)\ny = x + 1", "as-is", "`torch.set_default_dtype`"),
    ("with torch.no_grad():\n    y = x + 1", "cell", "its body is compiled"),
    # nothing to compile
    ("number + 1", "as-is", "no tensor"),
    ("import os\na, b = 1, 'two'", "as-is", "no tensor"),
    ("def f(t): return t", "as-is", "only defines"),
    ("x.clone().requires_grad_().sum().backward()", "as-is", "autograd's"),
    ("", "as-is", "no tensor"),
    ("print('x')", "as-is", "no tensor"),
    ("await_me = x + 1\nimport asyncio\nawait asyncio.sleep(0)", "as-is", "`await`"),
    ("%%time\ny = x + 1\nz = y", "as-is", "cell magic"),
    ("%%bash\necho 1", "as-is", "no tensor"),
]


@pytest.mark.parametrize(("body", "mode", "reason"), CASES)
def test_the_mode_fits_the_cell(shell, body, mode, reason):
    shell.run(BEFORE)
    ran = shell.run("%%dynamo\n" + body)
    assert ran.result.success, ran.error
    assert (shell.record.mode, shell.record.notes) == (mode, [])
    assert reason in shell.record.mode_reason


@pytest.mark.parametrize("mode", ["as-is", "calls", "cell"])
def test_asked_for(shell, mode):
    shell.run(BEFORE)
    shell.run(f"%%dynamo --backend eager --compile {mode}\nx + 1")
    assert shell.record.mode == mode
    assert f"--compile {mode}" in shell.record.mode_reason


def test_flags_without_effect_are_named(shell):
    shell.run(BEFORE)
    shell.run("%%dynamo --as-is --backend eager --fullgraph --fresh\nmine(x)")
    assert "--backend, --fullgraph have no effect" in shell.record.mode_reason
    shell.run("%%dynamo --dynamic true\ndone(x)")
    assert "--dynamic has no effect" in shell.record.mode_reason
    shell.run("%%dynamo --fresh\ndone(x)")
    assert "no effect" not in shell.record.mode_reason


def test_choosing_runs_no_code_of_the_user(shell):
    cell = """\
import torch
class Loud:
    @property
    def model(self): raise AssertionError("read")
    def __getattr__(self, name): raise AssertionError("asked")
loud = Loud()
t = torch.ones(1)
"""
    shell.run(cell)
    ran = shell.run(
        "%%dynamo --backend eager\nif False:\n    loud.model(t)\n    loud.other.thing(t)\nt + 1"
    )
    assert ran.result.success, ran.error
    assert shell.record.notes == []


@pytest.mark.parametrize(
    ("cell", "where"),
    [
        ("%%dynamo\n%%time\nf(x)", "`f` (line 3)"),
        ("%%dynamo\ny = 1\n%time f(x)", "`f` (line 3)"),
        ("%%dynamo\n\n%timeit -n2 -r 1 f(x)", "`f` (line 3)"),
    ],
)
def test_lines_under_other_magics_are_the_editors(shell, cell, where):
    shell.run("import torch\ndef f(x):\n    return x.sin()\nx = torch.ones(3)")
    ran = shell.run(cell.replace("%%dynamo", "%%dynamo --backend eager"))
    assert f"the cell calls {where}" in ran.report
    assert [call.line for call in shell.record.calls] == [3]


def test_a_shell_command_is_named(shell):
    shell.run("import torch")
    ran = shell.run("%%dynamo --backend eager\ntorch.ones(3) + 1\n!echo hi")
    assert "`!echo …` runs a shell command (line 3)" in " ".join(ran.report.split())
