"""`%%dynamo --check`: planted errors are caught and their stage named."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from dynamo_nb.record.types import Check, Mismatch

BACKENDS = """\
import torch
from functorch.compile import aot_module_simplified, make_boxed_func
from torch._dynamo.backends.common import aot_autograd

def negates(graph, inputs):
    def run(*args):
        first, *rest = graph.forward(*args)
        return (-first, *rest)
    return run

def as_half(graph, inputs):
    return lambda *args: tuple(out.half() for out in graph.forward(*args))

def as_row(graph, inputs):
    return lambda *args: tuple(out.reshape(-1) for out in graph.forward(*args))

def transposed(graph, inputs):
    return lambda *args: tuple(out.t().contiguous().t() for out in graph.forward(*args))

def breaks_alias(graph, inputs):
    return lambda *args: tuple(out.clone() for out in graph.forward(*args))

def drops_mutation(graph, inputs):
    return lambda *args: graph.forward(*[arg.clone() for arg in args])

def compile_backward(graph, inputs):
    def run(*args):
        return [out * 1.5 if isinstance(out, torch.Tensor) else out for out in graph.forward(*args)]
    return make_boxed_func(run)

wrong_backward = aot_autograd(
    fw_compiler=lambda graph, inputs: make_boxed_func(graph.forward), bw_compiler=compile_backward
)

def raises(graph, inputs):
    def run(*args):
        if args[0].sum() > 100:
            raise RuntimeError("too much")
        return graph.forward(*args)
    return run

def right(graph, inputs):
    return graph.forward
"""


def checked(shell: Any, cell: str, flags: str = "--backend eager") -> list[Check]:
    """Run a cell with `--check`, after the backends; return its checks."""
    assert shell.run(BACKENDS).error is None
    ran = shell.run(f"%%dynamo --check {flags}\n{cell}")
    assert ran.error is None, ran.error
    checks: list[Check] = shell.record.checks
    return checks


def only_mismatch(shell: Any, cell: str, flags: str) -> Mismatch:
    """Return what the only check found, which is reported as a finding, too."""
    (check,) = checked(shell, cell, flags)
    assert check.status == "differs", check
    assert check.stage == flags.split()[-1]
    (finding,) = (f for f in shell.record.findings if f.code == "result-differs")
    assert finding.severity == "error"
    assert check.stage in finding.message
    (mismatch,) = check.mismatches
    return mismatch


FUNCTION = "def f(x):\n    return x * 2 + 1\n\nf(torch.arange(6.0).view(2, 3))"


def test_a_negated_output(shell):
    found = only_mismatch(shell, FUNCTION, "--backend negates")
    assert (found.what, found.kind, found.name) == ("output", "value", "output")
    assert (found.eager, found.compiled) == ("11", "-11")
    assert (found.error, found.index, found.count, found.of) == (22.0, [1, 2], 6, 6)
    assert found.closer == "eager"
    assert found.frame.line == 3


@pytest.mark.parametrize(
    ("backend", "kind", "was", "now"),
    [
        ("as_half", "dtype", "torch.float32", "torch.float16"),
        ("as_row", "shape", "(2, 3)", "(6,)"),
        ("transposed", "stride", "(3, 1)", "(1, 2)"),
    ],
)
def test_a_changed_property(shell, backend, kind, was, now):
    found = only_mismatch(shell, FUNCTION, f"--backend {backend}")
    assert (found.kind, found.eager, found.compiled) == (kind, was, now)


def test_a_rounding_that_inductor_leaves_out_is_a_warning_with_its_setting(shell):
    cell = (
        "def f(x):\n    return (x.half() * 2).float()\n\n"
        "torch.manual_seed(0)\nx = torch.randn(1000)\nf(x)"
    )
    (check,) = checked(shell, cell, "--backend inductor")
    assert (check.status, check.stage, check.casts) == ("differs", "inductor", True)
    (finding,) = (item for item in shell.record.findings if item.code == "result-differs")
    assert finding.severity == "warning"
    assert "leaves out roundings to a narrower dtype" in finding.message
    setting = "options={'emulate_precision_casts': True}"
    assert setting in finding.advice
    # and the advice is true
    same = f"torch.equal(torch.compile(f, {setting})(x), f(x))"
    assert shell.run(same).value is True


@pytest.mark.parametrize("dtype", ["half", "bfloat16"])
def test_a_reference_is_not_rounded_by_the_function_itself(shell, dtype):
    body = f"(x.{dtype}() * 1.1 + 0.3).sin().sum(-1)"
    cell = (
        f"def f(x):\n    return {body}\n\ndef g(x):\n    return {body}.float()\n\n"
        "torch.manual_seed(1)\nx = torch.randn(32, 32, requires_grad=True)\n"
        "f(x).sum().backward()\ng(x)"
    )
    narrow, wide = checked(shell, cell, "--backend inductor")
    assert (narrow.status, narrow.mismatches) == ("same", [])
    assert (wide.status, wide.casts) == ("differs", True)
    assert wide.mismatches[0].closer == ""


def test_a_wrong_result_of_narrow_casts_is_an_error(shell):
    cell = "def f(x):\n    return x.half().sin()\n\nf(torch.randn(100))"
    assert only_mismatch(shell, cell, "--backend negates").closer == "eager"


def test_a_dropped_mutation(shell):
    cell = (
        "def f(x, total):\n    total.add_(x)\n    return x.sum()\n\n"
        "f(torch.ones(3), torch.zeros(3))"
    )
    found = only_mismatch(shell, cell, "--backend drops_mutation")
    assert (found.what, found.name, found.eager, found.compiled) == ("argument", "total", "1", "0")
    assert found.frame.line == 3


def test_a_dropped_mutation_of_a_buffer(shell):
    cell = (
        "class Counter(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        '        self.register_buffer("seen", torch.zeros(2))\n'
        "    def forward(self, x):\n"
        "        self.seen.add_(x.sum(0))\n"
        "        return x * 2\n"
        "counter = Counter()\n"
        "counter(torch.ones(3, 2))"
    )
    found = only_mismatch(shell, cell, "--backend drops_mutation")
    assert (found.what, found.name, found.eager, found.compiled) == (
        "buffer",
        "self.seen",
        "3",
        "0",
    )


def test_a_broken_alias(shell):
    cell = "def f(x):\n    return x.view(-1)\n\nf(torch.ones(2, 3))"
    found = only_mismatch(shell, cell, "--backend breaks_alias")
    assert found.kind == "alias"
    assert found.eager == "shares memory with x"
    assert found.compiled == "has memory of its own"


def test_an_error_in_backward_alone(shell):
    cell = (
        "w = torch.ones(3, requires_grad=True)\n"
        "def f(x):\n"
        "    return (x * w.sin()).sum()\n"
        "f(torch.ones(3)).backward()"
    )
    (check,) = checked(shell, cell, "--backend wrong_backward")
    assert (check.status, check.gradients) == ("differs", True)
    assert [m.name for m in check.mismatches] == ["w.grad"]
    assert check.mismatches[0].what == "gradient"


def test_gradients_are_compared_only_where_the_cell_trains(shell):
    cell = (
        "w = torch.ones(3, requires_grad=True)\n"
        "def f(x):\n    return (x * w.sin()).sum()\n"
        "f(torch.ones(3))"
    )
    (check,) = checked(shell, cell, "--backend wrong_backward")
    assert (check.status, check.gradients) == ("same", False)


def test_several_outputs_are_named(shell):
    cell = 'def f(x):\n    return {"a": x.cos(), "b": (x + 1, x.sin())}\n\nf(torch.ones(3))'
    found = only_mismatch(shell, cell, "--backend negates")
    assert found.name == "output['a']"


def test_calls_that_agree_are_counted_by_line(shell):
    cell = (
        "def f(x):\n    return x + 1\n\n"
        "for n in (1, 2, 3):\n    f(torch.ones(2) * n)\n"
        "f(torch.ones(2))"
    )
    checks = checked(shell, cell)
    assert [(c.line, c.status, c.count) for c in checks] == [(6, "same", 3), (7, "same", 1)]
    assert "results agree with eager (backend eager) (3 calls)" in shell.run("%dynamo").report


def test_what_the_cell_compiles_itself_is_checked(shell):
    cell = "def f(x):\n    return x + 1\n\ng = torch.compile(f, backend=negates)\ng(torch.ones(2))"
    (check,) = checked(shell, cell, "")
    assert (check.status, check.stage, check.line) == ("differs", "negates", 6)


def test_the_whole_cell_is_one_call(shell):
    assert shell.run("import torch\nx = torch.ones(3)").error is None
    (check,) = checked(shell, "y = x * 3\nz = y + 1\nz", "--compile cell --backend negates")
    assert check.status == "differs"
    assert {m.name for m in check.mismatches} == {"output", "z"}
    assert shell.ip.user_ns["x"].tolist() == [1, 1, 1]


def test_the_float64_reference_excuses_another_rounding(shell):
    backend = (
        "def rounds(graph, inputs):\n"
        "    wide = lambda a: a.double() if isinstance(a, torch.Tensor) else a\n"
        "    return lambda *args: tuple(o.float() for o in graph.forward(*map(wide, args)))\n"
    )
    assert shell.run("import torch\n" + backend).error is None
    cell = "def f(x):\n    return ((x + 1e8) - 1e8) * 3\n\nf(torch.full((4,), 0.3))"
    (check,) = checked(shell, cell, "--backend rounds")
    assert check.status == "same"


def test_one_wrong_element_among_many_is_seen(shell):
    backend = (
        "def spoils(graph, inputs):\n"
        "    def run(*args):\n"
        "        out, = graph.forward(*args)\n"
        "        out[7] += 1e-3\n"
        "        return (out,)\n"
        "    return run\n"
    )
    assert shell.run("import torch\n" + backend).error is None
    cell = "def f(x):\n    return x.sin()\n\nf(torch.arange(100000.0))"
    found = only_mismatch(shell, cell, "--backend spoils")
    assert (found.index, found.count, found.closer) == ([7], 1, "eager")


def test_the_first_stage_that_differs_is_named(shell):
    cell = "def f(x):\n    return x + (1 if torch.compiler.is_compiling() else 2)\nf(torch.ones(2))"
    (check,) = checked(shell, cell, "--backend aot_eager")
    assert (check.status, check.stage, check.backend) == ("differs", "eager", "aot_eager")


def test_an_entry_without_its_guard(shell):
    """Dynamo calls this function once, while it traces: the second call hits a stale entry."""
    cell = (
        "class Config:\n    scale = 2.0\n"
        "config = Config()\n"
        "@torch._dynamo.assume_constant_result\n"
        "def scale():\n    return config.scale\n"
        "def f(x):\n    return x * scale()\n"
        "f(torch.ones(2))\n"
        "config.scale = 3.0\n"
        "f(torch.ones(2))"
    )
    first, second = checked(shell, cell, "--backend aot_eager")
    assert first.status == "same"
    assert (second.status, second.stage, second.backend) == ("differs", "entry", "aot_eager")
    (finding,) = (f for f in shell.record.findings if f.code == "result-differs")
    assert "lacks a guard" in finding.advice


def test_a_call_that_raises_only_compiled(shell):
    cell = (
        "def f(x):\n    return x + 1\n\n"
        "try:\n    f(torch.full((3,), 99.0))\nexcept RuntimeError:\n    pass"
    )
    found = only_mismatch(shell, cell, "--backend raises")
    assert (found.kind, found.eager, found.compiled) == ("error", "returns", "raises RuntimeError")


OVERLAPPING = "def f(a, b):\n    a.add_(1)\n    return a * b\n\nbase = torch.zeros({rows}, 8)\n"


@pytest.mark.parametrize("parts", ["base[:4], base[2:6]", "base.T[:4], base.T[2:6]"])
def test_inputs_that_overlap_are_copied_with_their_base(shell, parts):
    """AOTAutograd replaces them by what they are views of."""
    (check,) = checked(shell, OVERLAPPING.format(rows=8) + f"f({parts})", "--backend inductor")
    assert (check.status, check.reason) == ("same", "")
    assert shell.record.unparsed == {}


def test_overlapping_parts_of_a_large_tensor_are_not_copied_apart(shell):
    cell = OVERLAPPING.format(rows=800) + "f(base[:4], base[2:6])"
    (check,) = checked(shell, cell, "--backend aot_eager")
    assert check.status == "not repeated"
    assert "overlap in a tensor that is much larger" in check.reason


def test_an_error_of_the_repetition_alone_is_no_difference(shell):
    cell = (
        "def once(graph, inputs):\n"
        "    def run(*args):\n"
        "        run.calls += 1\n"
        "        if run.calls > 1:\n"
        "            raise RuntimeError('again')\n"
        "        return graph.forward(*args)\n"
        "    run.calls = 0\n"
        "    return run\n"
    )
    assert shell.run(cell).error is None
    (check,) = checked(shell, "def f(x):\n    return x + 1\n\nf(torch.ones(3))", "--backend once")
    assert check.status == "not repeated"
    assert check.reason.startswith("repeated compiled, it raised RuntimeError: again")


AT_EXIT = """\
from dynamo_nb.capture import check_effects

class Late:
    def __init__(self):
        self.open = open

    def __del__(self):
        self.open("/dev/null").close()

with check_effects.no_effects_outside():
    pass
check_effects._watch.late = Late()  # goes when the module's globals are None
"""


def test_the_hook_is_silent_when_python_ends() -> None:
    ran = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
