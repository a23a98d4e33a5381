"""`%%dynamo --check` leaves everything as it found it, and says what it can't repeat."""

from __future__ import annotations

import builtins
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._C._dynamo.eval_frame import _get_cache_entries_for_region as cache_entries
from torch.overrides import _get_current_function_mode_stack

from dynamo_nb.capture.check_copies import CannotCopyError, Copier, Kept
from dynamo_nb.capture.check_effects import EffectError, no_effects
from dynamo_nb.capture.check_state import Surroundings
from dynamo_nb.record.types import Check
from tests.models import MODELS, Model, build_cell, inference_cell, training_cell
from tests.test_check import checked

EAGER = "%%dynamo --check --backend eager\n"


def only_check(shell: Any, cell: str) -> Check:
    """Return the only check of a cell."""
    (check,) = checked(shell, cell)
    return check


def reason(shell: Any, cell: str) -> str:
    """Return why the only call of a cell was not repeated; the text says it, too."""
    check = only_check(shell, cell)
    assert check.status == "not repeated", check
    assert check.reason[:40] in shell.run("%dynamo").report
    return check.reason


# ------------------------------------------------------------------ what is left as it was


def after(shell: Any, flag: str, cell: str) -> dict[str, Any]:
    """Run a cell after a seed; return what it leaves: names, random numbers, the cache."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(3)
    random.seed(3)
    namespace = shell.ip.user_ns

    def compiled() -> int:
        return sum(name.startswith("__compiled_fn") for name in namespace)

    before = compiled()
    ran = shell.run(f"%%dynamo {flag} --backend eager\n{cell}")
    assert ran.error is None, ran.error
    return {
        "stdout": ran.stdout,
        "names": {
            name: item.tolist() if isinstance(item, torch.Tensor) else item
            for name, item in namespace.items()
            if isinstance(item, torch.Tensor | int | float | list) and not name.startswith("_")
        },
        "random": (torch.rand(1).item(), random.random()),
        "frames": torch._dynamo.convert_frame.FRAME_COUNTER,
        "compiles": dict(torch._dynamo.convert_frame.FRAME_COMPILE_COUNTER),
        "stats": dict(torch._dynamo.utils.counters["stats"]),
        "entries": len(cache_entries(namespace["f"].__code__, -1)),
        "compiled": compiled() - before,
        "modes": (torch.is_grad_enabled(), torch.get_default_dtype()),
    }


STATEFUL = """\
import torch, random
total = torch.zeros(2)
seen = []
count = 0
class Net(torch.nn.Module):
    calls = 0
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)
        self.norm = torch.nn.BatchNorm1d(2)
        self.steps = 0
    def forward(self, x):
        self.steps += 1
        Net.calls += 1
        return self.norm(self.lin(x))
def f(x, into=[]):
    global count
    count += 1
    into.append(count)
    seen.append(count)
    total.add_(x)
    print("called", random.random() < 2)
    return torch.rand(2) + x
net = Net()
out = net(torch.randn(4, 2))
out.sum().backward()
grad = net.lin.weight.grad
x = f(torch.ones(2))
y = f(x)
steps, calls, defaults = net.steps, Net.calls, f.__defaults__[0]
mean = net.norm.running_mean
"""


def test_the_cell_leaves_the_same_as_without_the_check(shell):
    plain = after(shell, "", STATEFUL)
    assert after(shell, "--check", STATEFUL) == plain
    assert {check.status for check in shell.record.checks} == {"same"}
    assert plain["names"]["seen"] == [1, 2]


def test_the_hooks_are_off_afterwards(shell):
    from torch._dynamo import eval_frame

    before = eval_frame._callback_from_stance, torch.autograd.backward, torch.autograd.grad
    only_check(shell, "def f(x):\n    return x + 1\nf(torch.ones(2))")
    assert before == (
        eval_frame._callback_from_stance,
        torch.autograd.backward,
        torch.autograd.grad,
    )


def test_the_next_cell_hits_the_entries_of_this_one(shell):
    only_check(shell, "def f(x):\n    return x + 1\nf(torch.ones(2))")
    shell.run("%%dynamo --backend eager\nf(torch.ones(2))\nf(torch.ones(3))")
    assert [c.compile_id for c in shell.record.compiles if c.cell is None] == ["0/1"]
    assert any(call.hits == {"0/0": 1} for call in shell.record.calls)


# ------------------------------------------------------------------ what is copied faithfully


def test_inputs_are_those_from_before_the_call(shell):
    cell = (
        "def f(x):\n    x.mul_(2)\n    return x.clone()\n"
        "x = torch.ones(2)\nf(x)\nf(x)\nx.zero_()\nf(x)"
    )
    checks = checked(shell, cell, "--backend negates")
    assert [c.mismatches[0].eager for c in checks[:2]] == ["2", "4"]


def test_views_of_one_tensor_stay_views_of_one(shell):
    cell = (
        "def f(row, whole):\n    row.add_(1)\n    return whole * 2\n"
        "whole = torch.zeros(3, 2)\nf(whole[1], whole)"
    )
    (check,) = checked(shell, cell, "--backend negates")
    assert check.mismatches[0].eager == "2"


def test_random_numbers_are_those_of_the_call(shell):
    check = only_check(shell, "def f(x):\n    return x + torch.rand(2)\nf(torch.ones(2))")
    assert (check.status, check.random) == ("same", True)


def test_inductor_draws_eagers_random_numbers(shell):
    cell = "def f(x):\n    return torch.nn.functional.dropout(x, 0.5)\nf(torch.ones(64))"
    (check,) = checked(shell, cell, "--backend inductor")
    assert (check.status, check.random) == ("same", True)


def test_a_tensor_that_autograd_made(shell):
    cell = (
        "w = torch.ones(3, requires_grad=True)\n"
        "def f(x):\n    return x.sin() * 2\n"
        "f(w * 2).sum().backward()"
    )
    check = only_check(shell, cell)
    assert (check.status, check.gradients) == ("same", True)


def test_modes_are_those_of_the_call(shell):
    cell = (
        "lin = torch.nn.Linear(2, 2)\n"
        "def f(x):\n    return lin(x)\n"
        "with torch.autocast('cpu', torch.bfloat16), torch.no_grad():\n    f(torch.ones(1, 2))"
    )
    (check,) = checked(shell, cell, "--backend as_half")
    assert (check.mismatches[0].kind, check.mismatches[0].eager) == ("dtype", "torch.bfloat16")


def test_environment_variables_are_those_of_the_call(shell):
    cell = (
        "import os\n"
        "def f(x):\n    return x.cos() if os.environ.get('DYNAMO_NB_TEST') else x.sin()\n"
        "f(torch.ones(2))\n"
        "os.environ['DYNAMO_NB_TEST'] = '1'\n"
        "f(torch.ones(2))\n"
        "del os.environ['DYNAMO_NB_TEST']"
    )
    first, second = checked(shell, cell)
    assert (first.status, second.status) == ("same", "differs")
    assert second.stage == "entry"
    assert "DYNAMO_NB_TEST" not in os.environ


def test_attributes_of_functions_are_those_of_the_call(shell):
    """Dynamo guards no attribute of a function: it repeats the first call's value (2.13)."""
    cell = (
        "def f(x):\n    f.calls = getattr(f, 'calls', 0) + 1\n    return x * f.calls\n"
        "for _ in range(2):\n    f(torch.ones(2))"
    )
    first, second = checked(shell, cell)
    assert (first.status, second.status) == ("same", "differs")
    names = {mismatch.name for mismatch in second.mismatches}
    assert "f.calls" in " ".join(names)
    assert shell.ip.user_ns["f"].calls == 1


# ------------------------------------------------------------------ what can't be repeated


@pytest.mark.parametrize(
    ("name", "effect", "done"),
    [
        ("writes", "open(path, 'w').write('x')", "writes a file"),
        ("asks", "input()", "asks for input"),
        ("starts", "__import__('subprocess').run(['true'])", "starts a process"),
    ],
)
def test_an_effect_is_told_and_not_repeated(shell, tmp_path, monkeypatch, name, effect, done):
    monkeypatch.setattr(builtins, "input", lambda: "")
    file = tmp_path / "log"
    cell = (
        f"path = {str(file)!r}\n"
        f"def f(x):\n    y = x + 1\n    {effect}\n    return y * 2\n"
        "f(torch.ones(2))\n"
        "import pathlib; pathlib.Path(path).unlink(missing_ok=True)"
    )
    if name == "asks":
        cell = cell.replace("input()", "__import__('sys').audit('builtins.input', '')")
    assert reason(shell, cell) == f"the call {done}"
    assert not Path(file).exists()


def test_what_cannot_be_copied_is_named(shell):
    cell = "def f(x, it):\n    return x + next(it)\nf(torch.ones(2), (n for n in range(3)))"
    assert "type generator, which cannot be copied" in reason(shell, cell)


def test_a_global_that_cannot_be_copied_is_named(shell):
    cell = "it = (n for n in range(3))\ndef f(x):\n    return x + next(it)\nf(torch.ones(2))"
    assert reason(shell, cell).startswith("`it` (global): it holds an object of type generator")


def test_inputs_too_large_for_memory(shell, monkeypatch):
    from dynamo_nb.capture import check_calls

    monkeypatch.setattr(check_calls, "_free_memory", lambda _: 4_000)
    cell = "def f(x):\n    return x + 1\nf(torch.ones(2))\nf(torch.ones(1000))"
    small, large = checked(shell, cell)
    assert small.status == "same"
    assert "too large" in large.reason


def test_the_default_device_is_set_again_as_it_was_given():
    """`cuda` is not `cuda:0`, which is another device for a guard."""
    with torch.device("cuda"):
        around = Surroundings()
    with around.again():
        (mode,) = _get_current_function_mode_stack()
        assert mode.device == torch.device("cuda")
    assert _get_current_function_mode_stack() == []


def test_each_device_has_its_own_share_of_memory():
    free = {torch.device("cuda:0"): 100, torch.device("cuda:1"): 10}
    kept = Kept(free.__getitem__)
    kept.take(90, torch.device("cuda:0"))
    kept.take(10, torch.device("cuda:1"))
    kept.take(10, torch.device("cuda:0"))
    with pytest.raises(CannotCopyError, match="too large"):
        kept.take(1, torch.device("cuda:1"))


def test_a_triton_kernel_is_code_and_compiling_it_is_no_effect(tmp_path):
    triton = pytest.importorskip("triton")
    kernel = triton.jit(test_each_device_has_its_own_share_of_memory)
    assert Copier().copy([kernel])[0] is kernel
    source = f"open({str(tmp_path / 'binary')!r}, 'w').close()"
    with no_effects() as seen:
        exec(compile(source, triton.compiler.__file__, "exec"))
        assert not seen
        with pytest.raises(EffectError):
            exec(compile(source, "<cell>", "exec"))
    assert seen == ["writes a file"]


def test_a_function_that_gives_something_else_each_time(shell):
    cell = (
        "import time\n"
        "def f(x):\n    torch._dynamo.graph_break()\n"
        "    return x + time.perf_counter_ns() % 1000003\n"
        "f(torch.ones(2))"
    )
    assert "two eager runs" in reason(shell, cell)


def test_a_cell_that_raises(shell):
    ran = shell.run(f"{EAGER}import torch\ndef f(x):\n    return x + 1\nf(torch.ones(2))\n1 / 0")
    assert isinstance(ran.error, ZeroDivisionError)
    (check,) = shell.record.checks
    assert check.reason == "the cell raised ZeroDivisionError, so no call was repeated"
    assert check.reason in ran.report


def test_nothing_compiled(shell):
    ran = shell.run(f"{EAGER}1 + 1")
    assert ran.value == 2
    (check,) = shell.record.checks
    assert check.reason == "the cell made no compiled call: there is nothing to check"
    assert check.reason in ran.report


# ------------------------------------------------------------------ what is right


@pytest.mark.parametrize("cell", [inference_cell, training_cell])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_real_model_does_not_differ(shell, model: Model, cell: Any):
    assert shell.run(build_cell(model)).error is None
    ran = shell.run(f"%%dynamo --check\n{cell(model)}")
    assert ran.error is None
    (check,) = shell.record.checks
    assert (check.status, check.backend) == ("same", "inductor"), check
    assert check.gradients == (cell is training_cell)
