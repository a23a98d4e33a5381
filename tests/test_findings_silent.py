"""What torch says nothing of: calls of functions that it gave up, hooks, modules outside graphs."""

from __future__ import annotations

import pytest

from dynamo_nb.record.types import Finding
from tests.conftest import Shell

GIVEN_UP = """\
%%dynamo --backend eager
import torch

def walk(x):
    for _ in range(2):
        torch._dynamo.graph_break()
    return x + 1

x = torch.ones(3)
walk(x)
"""

DECORATED = GIVEN_UP.replace("%%dynamo --backend eager", "%%dynamo").replace(
    "def walk", "@torch.compile(backend='eager')\ndef walk"
)


def not_compiled(shell: Shell) -> list[Finding]:
    return [finding for finding in shell.record.findings if finding.code == "not-compiled"]


def test_later_cell_says_that_a_function_is_left_alone(shell: Shell) -> None:
    shell.run(GIVEN_UP)
    ran = shell.run("%%dynamo --backend eager\n\nfor _ in range(3):\n    walk(x)\n")
    (call,) = shell.record.calls
    assert (call.line, call.name, call.eager) == (4, "walk", 3)
    (found,) = not_compiled(shell)
    assert (found.line, found.count) == (4, 3)
    assert "since an earlier call: graph break in loop" in found.message
    assert "ran eagerly 3 times" in ran.report


def test_same_cell_counts_the_calls_that_left_no_event(shell: Shell) -> None:
    shell.run(GIVEN_UP.replace("\nwalk(x)", "\nfor _ in range(4):\n    walk(x)"))
    (call,) = shell.record.calls
    assert (call.compiles, call.eager) == (["0/0"], 4)
    assert len(not_compiled(shell)) == 1


def test_call_over_several_lines_is_not_mistaken_for_a_silent_one(shell: Shell) -> None:
    cell = "%%dynamo --backend eager\nimport torch\n\nclass Net:\n    def step(self, x):\n"
    cell += (
        "        return x + 1\n\nnet = Net()\ny = (\n    net\n    .step(\n        torch.ones(3)\n"
    )
    shell.run(f"{cell}    )\n)\n")
    (call,) = shell.record.calls
    assert (call.compiles, call.eager) == (["0/0"], 0)
    assert shell.record.findings == []


def test_function_without_tensors_is_no_finding_the_second_time(shell: Shell) -> None:
    cell = "%%dynamo --backend eager\ndef plain(n):\n    return n + 1\n\nplain(1)\nplain(2)\n"
    shell.run(cell)
    assert shell.record.findings == []
    shell.run("%%dynamo --backend eager\nplain(3)\n")
    assert shell.record.findings == []


def test_fresh_makes_dynamo_look_again(shell: Shell) -> None:
    shell.run(GIVEN_UP)
    shell.run("%%dynamo --backend eager --fresh\nwalk(x)\n")
    (found,) = not_compiled(shell)
    assert "as a whole" in found.message


def test_compiled_object_that_dynamo_left_alone(shell: Shell) -> None:
    shell.run(DECORATED)
    shell.run("%%dynamo\ny = walk(x)\n")
    (found,) = not_compiled(shell)
    assert (found.line, found.count) == (2, 1)
    assert "since an earlier call: graph break in loop" in found.message


def test_compiled_object_given_up_in_a_plain_cell(shell: Shell) -> None:
    shell.run(DECORATED.removeprefix("%%dynamo\n"))
    shell.run("%%dynamo\ny = walk(x)\n")
    (found,) = not_compiled(shell)
    assert "was not asked" in found.message


@pytest.mark.parametrize("guarded", ["if not x.any():\n    walk(x)", "walk(x) if x is None else 0"])
def test_call_that_may_not_have_run_is_none(shell: Shell, guarded: str) -> None:
    shell.run(DECORATED)
    shell.run(f"%%dynamo\n{guarded}\n")
    assert not_compiled(shell) == []


def test_modules_of_one_class_outside_graphs_are_all_named(shell: Shell) -> None:
    shell.run(
        "%%dynamo --backend eager\nimport torch\n\ndef report(module, args):\n"
        "    torch._dynamo.graph_break()\n\n"
        "net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))\n"
        "net[1].register_forward_pre_hook(report)\nnet(torch.ones(2, 4))\n"
    )
    modules = [module for call in shell.record.calls for module in call.eager_modules]
    assert modules == ["0 (Linear)", "2 (Linear)"]


def test_modules_that_no_forward_names_are_not(shell: Shell) -> None:
    shell.run(
        "%%dynamo --backend eager\nimport torch\n\nclass Net(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.body = torch.nn.Sequential(torch.nn.GELU(), torch.nn.GELU())\n"
        "        self.unused = torch.nn.GELU()\n\n"
        "    def forward(self, x):\n        for _ in range(1):\n"
        "            torch._dynamo.graph_break()\n        return self.body(x)\n\n"
        "Net()(torch.ones(2, 4))\n"
    )
    modules = [module for call in shell.record.calls for module in call.eager_modules]
    assert modules == ["body.0 (GELU)", "body.1 (GELU)"]
    assert all(call.name or call.eager_modules for call in shell.record.calls)


# --- functions whose first call had nothing to compile -------------------------------------------

EMPTY_FIRST = """\
%%dynamo --backend eager
import torch

def maybe(x, go):
    if not go:
        return None
    return x.sin() + 1

x = torch.ones(3)
maybe(x, False)
for _ in range(2):
    maybe(x, True)
"""


def test_function_whose_first_call_has_no_ops_is_told(shell: Shell) -> None:
    ran = shell.run(EMPTY_FIRST)
    (found,) = not_compiled(shell)
    assert (found.line, found.count, found.severity) == (4, 2, "warning")
    assert found.lines == [4, 7, 12]
    assert "did not come to line 7" in found.message
    assert "torch._dynamo.reset()" in found.advice
    assert "nothing was compiled" in ran.report.splitlines()[0]


def test_it_is_told_in_a_later_cell_and_for_what_the_cell_compiles_itself(shell: Shell) -> None:
    shell.run(EMPTY_FIRST.replace("def maybe", "@torch.compile(backend='eager')\ndef maybe"))
    assert [found.line for found in not_compiled(shell)] == [5]
    shell.run("%%dynamo\nmaybe(x, True)")
    (found,) = not_compiled(shell)
    assert (found.line, found.count) == (2, 1)
    assert "line 8 of cell [1]" in found.message
    shell.run("%%dynamo\ntorch._dynamo.reset()\nmaybe(x, True)")
    assert not_compiled(shell) == []


@pytest.mark.parametrize(
    "body",
    [
        "    return x.shape[0]",
        "    if x.dim() != 1:\n        raise ValueError(f'{x.dim()} dimensions')",
    ],
)
def test_function_without_tensor_work_is_no_news(shell: Shell, body: str) -> None:
    cell = f"%%dynamo --backend eager\nimport torch\ndef look(x):\n{body}\n"
    shell.run(cell + "for _ in range(3):\n    look(torch.ones(3))")
    assert shell.record.calls[0].eager == 3
    assert shell.record.findings == []


# --- what `calls` mode cannot compile ------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("def later(x):\n    yield x + 1\nlist(later(x))", "a generator function"),
        ("async def later(x):\n    return x + 1\nawait later(x)", "a coroutine function"),
        (
            "async def later(x):\n    yield x + 1\n[y async for y in later(x)]",
            "an asynchronous generator function",
        ),
    ],
)
def test_functions_that_run_later_are_told(shell: Shell, body: str, kind: str) -> None:
    shell.run("import torch\nx = torch.ones(2)")
    ran = shell.run(f"%%dynamo --backend eager\n{body}")
    assert ran.result.success, ran.error
    (found,) = not_compiled(shell)
    assert (found.line, found.severity) == (4, "warning")
    assert kind in found.message
    assert "plain function" in found.advice


@pytest.mark.parametrize(
    ("call", "callee"),
    [
        ("Thread(target=work, args=(x,)).start()", "Thread"),
        ("list(ThreadPoolExecutor(1).map(work, [x]))", "map"),
        ("list(map(work, [x]))", "map"),
    ],
)
def test_functions_that_others_call_are_told(shell: Shell, call: str, callee: str) -> None:
    shell.run("import torch\nfrom threading import Thread\nx = torch.ones(2)")
    shell.run("from concurrent.futures import ThreadPoolExecutor")
    shell.run(f"%%dynamo --backend eager\ndef work(x):\n    return x + 1\n{call}")
    (found,) = not_compiled(shell)
    assert (found.line, found.severity) == (4, "info")
    assert callee in found.message
    assert "torch.compile(work)" in found.advice
    assert "`work` is handed on (line 4)" in shell.record.mode_reason


def test_where_something_was_compiled_what_was_not_is_no_finding(shell: Shell) -> None:
    cell = "%%dynamo --backend eager\nimport torch\ndef batches():\n    yield torch.ones(2)\n"
    cell += "def step(x): return x + 1\nfor x in batches():\n    step(x)\nlist(map(step, [x]))"
    ran = shell.run(cell)
    assert shell.record.findings == []
    assert "batches: not compiled: it is a generator function" in ran.report
    assert "handed" not in ran.report


def test_a_pass_in_a_setting_is_not_told_as_handed_on(shell: Shell) -> None:
    ran = shell.run(
        "%%dynamo --backend eager\nimport torch\nfrom torch._inductor import config\n"
        "def mine(graph):\n    return None\n"
        "def f(x):\n    return x + 1\n"
        "with config.patch(joint_custom_post_pass=mine):\n    f(torch.ones(3))\n"
    )
    assert ran.error is None
    assert "handed" not in ran.report


# --- modules whose forward raises ----------------------------------------------------------------

RAISES = """\
%%dynamo --backend eager
import torch

class Head(torch.nn.Module):
    def forward(self, x):
        raise NotImplementedError("write me")

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)
        self.head = Head()

    def forward(self, x):
        return self.head(self.lin(x))

net = Net()
net(torch.ones(2, 3))
"""


def test_a_forward_that_raises_is_the_cause_of_modules_outside_graphs(shell: Shell) -> None:
    ran = shell.run(RAISES)
    assert type(ran.error).__name__ == "NotImplementedError"
    (found,) = shell.record.findings
    assert (found.code, found.severity, found.line) == ("not-compiled", "info", 6)
    assert "`Net.forward` was not compiled because it raises NotImplementedError" in found.message


def test_a_module_without_forward_is_told_as_what_it_raises(shell: Shell) -> None:
    shell.run("import torch")
    cell = "class Empty(torch.nn.Module):\n    pass\nEmpty()(torch.ones(2))"
    shell.run(f"%%dynamo --backend eager\n{cell}")
    (found,) = shell.record.findings
    assert (found.code, found.line) == ("not-compiled", 4)
    assert 'missing the required "forward"' in found.message


# --- what is torch's own business ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name"),
    [("torch.manual_seed(0)", "manual_seed"), ("opt.zero_grad()", "Optimizer.zero_grad")],
)
def test_functions_that_torch_keeps_out_of_graphs_are_no_warning(
    shell: Shell, line: str, name: str
) -> None:
    shell.run("import torch\nlin = torch.nn.Linear(2, 2)")
    shell.run("opt = torch.optim.SGD(lin.parameters(), lr=0.1)")
    shell.run(
        f"%%dynamo --backend eager\ndef f(x):\n    {line}\n    return x + 1\nf(torch.ones(2))"
    )
    (found,) = shell.record.findings
    assert (found.code, found.severity, found.line) == ("graph-break", "info", 3)
    assert f"torch keeps `{name}` out of graphs on purpose" in found.message
    assert "Avoid" not in found.advice


def test_a_decorated_function_of_a_library_has_its_own_name(shell: Shell, tmp_path, monkeypatch):
    code = """\
import functools
import torch

def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

class Net(torch.nn.Module):
    @logged
    def forward(self, x):
        return x + 1

@logged
def step(x, bias=1):
    torch._dynamo.graph_break()
    return x + bias
"""
    (tmp_path / "wrapped_things.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    shell.run("import torch\nfrom wrapped_things import Net, step\nnet = Net()")
    ran = shell.run("%%dynamo --backend eager\nnet(torch.ones(2))\nstep(torch.ones(2))")
    names = {entry.resume_of or entry.name for entry in shell.record.compiles}
    assert {"Net.forward", "step"} <= names
    assert "wrapper" not in names
    assert "line 2  Net.forward: compiled" in ran.report


def test_compiled_optimizers_have_their_own_names(shell: Shell) -> None:
    """All of them share the code of torch's wrapper around `step`.

    AdamW inherits Adam's, which torch wraps for whichever of the two is made first.
    """
    shell.run("import torch\nlin = torch.nn.Linear(2, 2)\nlin(torch.ones(2)).sum().backward()")
    for name in ("SGD", "AdamW", "SGD", "Adagrad"):
        ran = shell.run(
            "%%dynamo --backend eager\n"
            f"opt = torch.optim.{name}(lin.parameters(), lr=0.1)\n"
            "@torch.compile(backend='eager')\n"
            "def step(): opt.step()\n"
            "step()"
        )
        names = {entry.resume_of or entry.name for entry in shell.record.compiles}
        steps = {found for found in names if found.endswith(".step")}
        allowed = {"AdamW": {"AdamW.step", "Adam.step"}}.get(name, {f"{name}.step"})
        assert steps
        assert steps <= allowed
        assert any(f"{step}: compiled" in ran.report for step in steps)


def test_a_name_that_is_nowhere_is_the_cells_own_error(shell: Shell) -> None:
    ran = shell.run("%%dynamo --backend eager\nimport torch\nundefined_name(torch.ones(2))")
    assert isinstance(ran.error, NameError)
    assert not_compiled(shell) == []


def test_a_function_told_to_be_left_alone_is_told_so(shell: Shell) -> None:
    body = "import torch\n@torch._dynamo.disable\ndef d(x):\n    return x + 1\nd(torch.ones(3))"
    ran = shell.run(f"%%dynamo --backend eager\n{body}")
    (found,) = not_compiled(shell)
    assert found.severity == "info"
    assert "Dynamo is disabled for it" in found.message
    assert "d: not compiled: Dynamo is disabled" in ran.report


def test_a_part_of_a_line_that_was_not_come_to_is_named(shell: Shell) -> None:
    body = "def f(x): return x.sin() if x.dim() else x\nf(torch.tensor(1.)); f(torch.ones(2))"
    shell.run(f"%%dynamo --backend eager\nimport torch\n{body}")
    (found,) = not_compiled(shell)
    assert "did not come to `x.sin()` in line 3" in found.message


def test_a_resume_function_that_was_not_compiled_has_its_functions_name(shell: Shell) -> None:
    body = "def f(x):\n    print('hi')\n    return [i for i in range(3)]\nf(torch.ones(3))"
    ran = shell.run(f"%%dynamo --backend eager\nimport torch\n{body}")
    assert "rest of f (line 4), skipped" in ran.report
    assert "torch_dynamo_resume" not in ran.report
