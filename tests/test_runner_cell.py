"""`cell` mode: the body as one compiled function gives what the plain cell gives."""

from __future__ import annotations

import ast

import pytest
import torch

from dynamo_nb.runner.assigned import maybe_unbound
from dynamo_nb.runner.cell import obstacle, split

SETUP = """\
import torch
acc0 = torch.tensor([1.0, 2.0])
buf = torch.zeros(2)
cfg, lst = {"n": 0}, []
lin = torch.nn.Linear(2, 1)
with torch.no_grad():
    _ = lin.weight.fill_(0.5), lin.bias.zero_()
del _
"""

#: Cells that `--compile cell` must compile, with the same outcome as plain.
COMPILED = {
    "assign": "x = torch.ones(3)\ny = x + 1\ny",
    "augmented": "acc = acc0 + 1\nacc += 2\nacc *= acc\nacc",
    "self-assign": "acc0 = acc0 + 1\nacc0",
    "in place": "buf.add_(1)\nz = buf * 2\nz",
    "late binding": (
        "s = torch.tensor(2.0)\nfs = [lambda v: v * s for _ in range(2)]\n"
        "r1 = fs[0](torch.ones(2))\ns = torch.tensor(5.0)\nr2 = fs[0](torch.ones(2))\n(r1, r2)"
    ),
    "nested function": "k = torch.ones(2)\ndef use():\n    return k + 1\na = use()\nk = a\nuse()",
    "sets a global": (
        "cnt = 0\ndef bump(t):\n    global cnt\n    cnt += 1\n    return t + cnt\n"
        "u = bump(torch.ones(2))\nu = bump(u)\n(cnt, u)"
    ),
    "raises": "p = acc0 + 1\nprint('before')\nraise ValueError('x')\nafter = 1",
    "branches": "if acc0.sum() > 100:\n    m = acc0\nelse:\n    m = buf\nm + 1",
    "maybe bound, unread": "if acc0.sum() > 100:\n    only = 1\nq = acc0 * 3\nq",
    "loop": "tot = torch.zeros(2)\nfor i in range(3):\n    tot = tot + i\n(i, tot)",
    "comprehensions": "a = [acc0 + j for j in range(3)]\nb = {j: acc0 * j for j in range(2)}\na, b",
    "delete": "tmp = acc0 + 1\nres = tmp * 2\ndel tmp\nres",
    "imports": "import math\nfrom collections import deque as D\no = D([acc0 * math.pi])\no[0]",
    "training": (
        "opt = torch.optim.SGD(lin.parameters(), lr=0.1)\nfor _ in range(3):\n"
        "    opt.zero_grad()\n    loss = lin(acc0).pow(2).sum()\n    loss.backward()\n"
        "    opt.step()\nloss"
    ),
    "no_grad": "with torch.no_grad():\n    g = lin(acc0) * 2\ng.requires_grad",
    "unpack": "(a1, (b1, *c1)) = acc0, [1, 2, 3]\na1 * c1[0]",
    "walrus": "if (n := int(acc0.sum())) > 1:\n    a1 = acc0 / n\nelse:\n    a1 = n\na1",
    "mutation": "cfg['n'] = cfg['n'] + 1\nlst.append(acc0 + cfg['n'])\nlen(lst)",
    "prints": "h = acc0 + 1\nprint(h.sum())\nh2 = h * 2\nprint('done', h2)\nh2",
    "None": "x9 = acc0 + 1\nNone",
    "generator": "sm = sum(acc0[i] * i for i in range(2))\nsm",
    "numpy": "import numpy as np\narr = np.arange(3) + 1\nt3 = torch.from_numpy(arr) + 1\nt3",
    "quiet": "acc0 * 2;",
}

#: Cells that are left as they are, and a word of the reason.
LEFT = {
    "await": ("import asyncio\nawait asyncio.sleep(0)\nacc0 + 1", "await"),
    "star": ("x = acc0\nfrom math import *\npi * x", "import *"),
    "annotation": ("aa: int = 3\nacc0 + aa", "annotation"),
    "globals": ("globals()['dyn'] = acc0 + 1\nacc0", "globals"),
    "line magic": ("x = acc0 + 1\n%who_ls\nx", "get_ipython"),
    "maybe unbound": ("if acc0.sum() > 100:\n    only = 1\nacc0 * 2\nonly", "only"),
    "empty loop": ("for item in lst:\n    last = acc0 + item\nlast", "last"),
    "read before": ("w = acc0 + fresh\nfresh = 1", "fresh"),
    "only imports": ("import math\nimport os", "no statements"),
}


def plain_data(value):
    if isinstance(value, torch.Tensor):
        return str(value.dtype), [round(x, 4) for x in value.detach().flatten().tolist()]
    if isinstance(value, dict):
        return {key: plain_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(item) for item in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


def outcome(shell, cell):
    ran = shell.run(cell)
    hidden = ("_", "__", "In", "Out")
    names = {k: plain_data(v) for k, v in shell.ip.user_ns.items() if not k.startswith(hidden)}
    printed = [line for line in ran.stdout.splitlines() if "Traceback" not in line]
    error = (type(ran.error).__name__, str(ran.error)) if ran.error is not None else None
    shown = [] if error else printed
    return {
        "value": plain_data(ran.value),
        "error": error,
        "names": names,
        "shown": shown,
        "_": plain_data(shell.ip.user_ns.get("_")),
    }


@pytest.fixture
def other_shell():
    from tests.conftest import Shell

    return Shell()


def compare(shell, other_shell, body):
    shell.run(SETUP)
    other_shell.run(SETUP)
    torch.manual_seed(0)
    plain = outcome(other_shell, "\n" + body)
    torch.manual_seed(0)
    got = outcome(shell, "%%dynamo --compile cell --backend eager\n" + body)
    assert got == plain


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_cells_do_what_the_plain_cell_does(shell, other_shell, name):
    compare(shell, other_shell, COMPILED[name])
    assert shell.record.mode == "cell", shell.record.mode_reason
    assert shell.record.notes == []


@pytest.mark.parametrize("name", LEFT)
def test_cells_that_cannot_be_one_function_run_as_is(shell, other_shell, name):
    body, reason = LEFT[name]
    compare(shell, other_shell, body)
    assert shell.record.mode == "as-is"
    assert reason in shell.record.mode_reason


def test_errors_that_only_a_function_would_not_have(shell):
    shell.run(SETUP)
    for body in ("x = acc0\nyield x", "x = acc0\nreturn x"):
        ran = shell.run("%%dynamo --compile cell\n" + body)
        assert isinstance(ran.error, SyntaxError)
        assert "outside function" in str(ran.error)


def test_graphs_bear_the_editors_lines(shell):
    shell.run(SETUP)
    shell.run("%%dynamo --compile cell --backend eager\n\ny = acc0.sin()\nz = (y +\n     acc0)")
    nodes = [n for c in shell.record.compiles for g in c.graphs for n in g.nodes if n.frames]
    assert {n.frames[-1].line for n in nodes if n.op.startswith("call")} == {3, 4}


def test_the_cell_fails_at_its_own_line(shell):
    shell.run(SETUP)
    shell.run("%%dynamo --compile cell --backend eager\ny = acc0 + 1\nz = {}['no']")
    assert (shell.record.error.type, shell.record.error.line) == ("KeyError", 3)


@pytest.mark.parametrize("shows", ["all", "last_expr_or_assign"])
def test_shells_that_display_more_than_the_last_value(shell, shows):
    shell.run(SETUP)
    shell.ip.ast_node_interactivity = shows
    ran = shell.run("%%dynamo --compile cell\nacc0 + 1\nx = acc0 + 2")
    assert ran.result.success
    assert shell.record.mode == "as-is"
    assert "ast_node_interactivity" in shell.record.mode_reason


# --- the parts -----------------------------------------------------------------------------------


def test_imports_and_line_magics_at_the_start_stay_outside():
    tree = ast.parse("import a\nget_ipython().run_line_magic('x', '')\nb = 1\nimport c\nb")
    preamble, body = split(tree)
    assert (len(preamble), len(body)) == (2, 3)
    assert obstacle(tree, set()) == ""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("a = 1\nb = a", ""),
        ("b = a\na = 1", "a"),
        ("a += 1", "a"),
        ("if x:\n    a = 1\na", "a"),
        ("if x:\n    a = 1\nelse:\n    a = 2\na", ""),
        ("for i in xs:\n    a = i\na", "a"),
        ("for i in range(3):\n    a = i\na, i", ""),
        ("for i in range(3):\n    if x: break\n    a = i\na", "a"),
        ("for i in []:\n    a = i\ni", "i"),
        ("while x:\n    a = 1\na", "a"),
        ("with x:\n    a = 1\na", ""),
        ("with suppress(x):\n    a = 1\na", "a"),
        ("try:\n    a = 1\nexcept E:\n    a = 2\na", ""),
        ("try:\n    a = 1\nexcept E:\n    pass\na", "a"),
        ("try:\n    a = 1\nexcept E as e:\n    a = e\ne", "e"),
        ("try:\n    pass\nfinally:\n    a = 1\na", ""),
        ("a = 1\ndel a\na", "a"),
        ("del a\na = 1", "a"),
        ("[a for a in x]", ""),
        ("[b for a in x]\nb = 1", "b"),
        ("f = lambda: g\ng = 1", "g"),
        ("def f():\n    return g\ng = 1\nf()", "g"),
        ("if (n := x) > 1:\n    n", ""),
        ("match x:\n    case [a]:\n        pass\na", "a"),
    ],
)
def test_names_that_may_be_read_before_they_are_bound(source, name):
    assert maybe_unbound([], ast.parse(source).body, {"x", "xs", "E"}) == name


# --- what cannot be traced -----------------------------------------------------------------------


def bound(shell, names):
    return "".join(name for name in names if name in shell.ip.user_ns)


@pytest.mark.parametrize(
    ("before", "flags"),
    [("", ""), ("print('first')\n", ""), ("", "--fullgraph")],
)
def test_names_above_a_statement_that_cannot_be_traced_are_bound(shell, before, flags):
    shell.run("import torch\nseen = []")
    cell = f"%%dynamo --backend eager {flags}\na = torch.ones(2, 3)\n{before}b = torch.ones(4)\n"
    cell += "seen.append(1)\nc = a @ b\nd = c + 1"
    ran = shell.run(cell)
    assert type(ran.error).__name__ == "TorchRuntimeError"
    assert shell.record.mode == "cell"
    assert bound(shell, "abcd") == "ab"
    assert shell.ip.user_ns["seen"] == [1]
    assert ran.stdout.count("first\n") == before.count("first")


def test_a_break_in_the_middle_of_a_statement_runs_nothing_of_what_follows(shell):
    shell.run("import torch")
    cell = "%%dynamo --backend eager\na = torch.ones(2, 3)\nprint(print('first'))\n"
    cell += "b = torch.ones(4)\nc = a @ b"
    ran = shell.run(cell)
    assert "torch_dynamo_resume" in str(ran.error)
    assert bound(shell, "abc") == "a"
    assert ran.stdout.count("first\n") == 1


def test_the_head_and_the_finding_name_the_line_that_cannot_be_traced(shell):
    shell.run("import torch")
    body = "a = torch.ones(2, 3)\nprint('first')\nb = torch.ones(4)\n\nc = a @ b\n"
    for cell in (body, f"def f():\n    a = torch.ones(2, 3)\n\n\n    a @ torch.ones(4)\n{'f()'}"):
        ran = shell.run(f"%%dynamo --backend eager\n{cell}")
        (found,) = (f for f in shell.record.findings if f.code == "compile-error")
        assert (found.line, shell.record.error.line) == (6, 6)
        assert "the cell raised TorchRuntimeError at line 6" in ran.report


def test_an_error_inside_a_graph_is_placed_at_no_wrong_line(shell):
    shell.run("import torch\ndef f(a, i):\n    b = a + 1\n    return b[i] * 2")
    ran = shell.run("%%dynamo --backend aot_eager\na = torch.arange(3)\nb = a[torch.tensor([7])]")
    assert (type(ran.error).__name__, shell.record.error.line) == ("IndexError", None)
    shell.run("%%dynamo --backend aot_eager\na = torch.ones(2)\nf(a, torch.tensor([9]))")
    assert shell.record.error.line == 3


def test_the_call_of_the_body_is_told_at_its_first_line(shell):
    shell.run("%%dynamo --backend eager\nimport torch\n\nx = torch.ones(4)\ny = x * 2 + 1")
    record = shell.record
    assert record.mode == "cell"
    assert [(call.line, call.name) for call in record.calls] == [(4, "<cell>")]
    assert [compiled.call_line for compiled in record.compiles] == [4]
