"""What findings advise, on cells that run in a shell: it fits the value, the array, the line."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dynamo_nb.findings.patterns import patterns
from dynamo_nb.record.types import Finding
from tests.conftest import Ran, Shell

MAGIC = "%%dynamo --backend aot_eager"


def run(shell: Shell, cell: str, magic: str = MAGIC) -> Ran:
    shell.run("import enum, functools, numpy as np, torch, torch.nn as nn")
    return shell.run(f"{magic}\n{dedent(cell).strip()}")


def findings(shell: Shell, cell: str, magic: str = MAGIC) -> list[Finding]:
    run(shell, cell, magic)
    found: list[Finding] = shell.record.findings
    return found


def only(shell: Shell, cell: str, code: str, magic: str = MAGIC) -> Finding:
    (found,) = [finding for finding in findings(shell, cell, magic) if finding.code == code]
    return found


# ------------------------------------------------------------------ values that changed


@pytest.mark.parametrize(
    ("body", "first", "second", "says"),
    [
        ("x * 2 if v else x + 1", "True", "False", "torch.where"),
        ("x + v.value", "E.A", "E.B", "one entry for each"),
        ("v(x)", "torch.sin", "torch.cos", "one entry for each"),
        ("v(x)", "lambda t: t + 1", "lambda t: t + 2", "one entry for each"),
        ("x + len(v)", "{1}", "{2, 3}", "same contents"),
        ("x * v", "2", "3", "pass it as a tensor"),
    ],
)
def test_only_a_number_is_to_be_passed_as_a_tensor(
    shell: Shell, body: str, first: str, second: str, says: str
) -> None:
    cell = f"""
    class E(enum.Enum):
        A = 1
        B = 2
    def f(x, v):
        return {body}
    f(torch.ones(3), {first})
    f(torch.ones(3), {second})
    """
    found = only(shell, cell, "recompile", f"{MAGIC} --dynamic false")
    assert says in found.advice
    assert ("as a tensor" in found.advice) == (says == "pass it as a tensor")


def test_the_first_gradient_is_given_before_the_first_step(shell: Shell) -> None:
    cell = """
    w = torch.nn.Parameter(torch.ones(4))
    def step(x):
        return (x * w).sum() if w.grad is None else (x * w + w.grad).sum()
    for _ in range(3):
        step(torch.ones(4)).backward()
    """
    found = only(shell, cell, "recompile")
    assert "no gradient until the first backward" in found.advice
    # and the advice is true
    mended = cell.replace("    def step", "    w.grad = torch.zeros_like(w)\n    def step")
    assert "recompile" not in {item.code for item in findings(shell, mended)}


def test_a_stride_cannot_be_passed_as_a_tensor(shell: Shell) -> None:
    cell = """
    def f(x):
        return x + x.stride()[1]
    base = torch.ones(100)
    for n in (3, 4, 7):
        f(base.as_strided((2, 2), (50, n)))
    """
    found = only(shell, cell, "became-dynamic")
    assert "x.stride()[1]" in found.message
    assert "as a tensor" not in found.advice
    assert "dynamic=True" in found.advice


def test_arrays_are_told_in_numpys_words_with_advice_that_works_for_them(shell: Shell) -> None:
    cell = """
    def f(a):
        return np.sum(a * 2)
    f(np.ones(3))
    f(np.ones(4))
    f(np.ones(4, dtype=np.float32))
    """
    size, dtype = sorted(findings(shell, cell), key=lambda finding: finding.code)
    assert (size.code, dtype.code) == ("became-dynamic", "recompile")
    assert "`a.shape[0]`" in size.message
    assert "from_numpy" in size.advice
    assert "`a.dtype`" in dtype.message
    assert "astype" in dtype.advice


# ------------------------------------------------------------------ conditions on sizes


@pytest.mark.parametrize("value", ["torch.ones(n)", "n"])
def test_a_branch_on_a_size_has_an_entry_for_each_side(shell: Shell, value: str) -> None:
    size = "v.shape[0]" if value != "n" else "v"
    cell = f"""
    def f(x, v):
        size = {size}
        y = x * size
        if size > 5:
            return y * 2
        return y + 1
    for n in (3, 4, 7, 9):
        f(torch.ones(3), {value})
    """
    found = only(shell, cell, "recompile")
    assert found.line == 5
    assert "line 5 branches on it" in found.message
    assert "<= 5`" in found.message
    assert "one entry for each" in found.advice
    assert "torch.cond" in found.advice
    assert "mark_dynamic" not in found.advice


def test_a_size_that_a_line_bounds_is_no_branch(shell: Shell) -> None:
    cell = """
    def f(x):
        return x[:6] + 1
    for n in (7, 8, 4, 5):
        f(torch.ones(n))
    """
    found = only(shell, cell, "recompile")
    assert found.line == 3
    assert "because of line 3 the entry is for `6 <= x.size()[0]` alone" in found.message
    assert "branch" not in found.advice


# ------------------------------------------------------------------ what ran eagerly


def test_a_recurrent_module_is_left_alone_and_nothing_raised(shell: Shell) -> None:
    (found,) = findings(shell, "m = nn.LSTM(4, 4)\nm(torch.ones(3, 2, 4))")
    assert (found.code, found.severity, found.line) == ("not-compiled", "warning", 3)
    assert found.frame is None
    assert "leaves nn.RNN, nn.GRU and nn.LSTM to eager by default" in found.message
    assert "external_utils" not in found.message
    assert "allow_rnn = True" in found.advice


RECURRENT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4)
        self.head = nn.Linear(4, 4)
    def forward(self, x):
        y, _ = self.rnn(x)
        return self.head(y)
Net()(torch.ones(3, 2, 4))
"""

CACHED = """
class Net(nn.Module):
    @functools.cached_property
    def scale(self):
        return torch.ones(3)
    def forward(self, x):
        return x * self.scale
Net()(torch.ones(3))
"""


@pytest.mark.parametrize(("cell", "line"), [(RECURRENT, 7), (CACHED, 6)])
def test_the_modules_of_a_function_that_ran_eagerly_are_no_finding_of_their_own(
    shell: Shell, cell: str, line: int
) -> None:
    (found,) = findings(shell, cell)
    assert (found.code, found.line) == ("not-compiled", line)


def test_a_generator_that_breaks_inside_is_told_by_what_broke(shell: Shell) -> None:
    cell = """
    def f(x, y):
        if any(t.sum() > 100 for t in (x, y)):
            return x * 2
        return x + y
    f(torch.ones(3), torch.ones(3))
    """
    (found,) = findings(shell, cell)
    assert "because of line 3: Data-dependent branching" in found.message
    assert "utations" not in found.message + found.advice
    assert "torch.cond" in found.advice


# ------------------------------------------------------------------ what a line tells


@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        (["if x.sum().item() > 0:", "    return x * 2", "return x"], 3),
        (["n = float(x.sum())", "if n > 0:", "    return x * 2", "return x"], 3),
    ],
)
def test_a_branch_on_an_item_is_not_mended_by_a_switch(
    shell: Shell, lines: list[str], broken: int
) -> None:
    body = "\n".join(f"    {line}" for line in lines)
    found = only(shell, f"def f(x):\n{body}\nf(torch.ones(3))", "graph-break")
    assert found.line == broken
    assert "torch.where" in found.advice
    assert "Set `torch" not in found.advice
    (example,) = patterns(shell.record)
    assert "torch.cond" in example.after


def test_an_item_that_is_only_computed_with_keeps_torchs_hint(shell: Shell) -> None:
    cell = "def f(x):\n    total = x.sum().item()\n    return x * total\nf(torch.ones(3))"
    assert "capture_scalar_outputs = True" in only(shell, cell, "graph-break").advice
    (example,) = patterns(shell.record)
    assert "return x * total" in example.after


TRY = """
def f(x):
    try:
        y = x.view(7)
    except RuntimeError:
        y = x
    return y + 1
"""


@pytest.mark.parametrize(
    "call", ["f(torch.ones(3))", "try:\n    f(torch.ones(3))\nexcept Exception:\n    pass"]
)
def test_an_except_that_compiled_code_does_not_come_to_is_named(shell: Shell, call: str) -> None:
    found = only(shell, TRY + call, "compile-error")
    assert found.line == 4
    assert "`except` in line 5" in found.advice


def test_an_error_that_the_cell_caught_has_no_traceback_above(shell: Shell) -> None:
    call = "try:\n    f(torch.ones(3))\nexcept Exception:\n    pass"
    found = only(shell, f"def f(x):\n    return x.view(7)\n{call}", "compile-error")
    assert "traceback" not in found.advice
    assert "line 3" in found.advice


def test_an_exception_of_dynamos_own_is_told_with_the_call_it_is_about(shell: Shell) -> None:
    cell = """
    def f(x):
        address = x.data_ptr()
        return x + address % 2
    f(torch.ones(3))
    """
    (found,) = findings(shell, cell)
    assert "line 4: tracing the line raises TypeError(" in found.message
    assert "handler" not in found.message
    assert "`data_ptr()`" in found.advice


def test_a_line_that_raises_is_no_trouble_of_dynamos(shell: Shell) -> None:
    cell = """
    def f(x):
        y = x + 1
        raise ValueError("no")
    try:
        f(torch.ones(3))
    except ValueError:
        pass
    """
    (found,) = findings(shell, cell)
    assert "tracing the line raises" not in found.message


def test_a_break_in_dynamos_own_python_is_shown_at_the_users_line(shell: Shell) -> None:
    cell = """
    def f(x, y):
        z = x + y
        if any([t.sum() > 100 for t in (x, y)]):
            return z * 2
        return z
    f(torch.ones(3), torch.ones(3))
    """
    found = only(shell, cell, "graph-break")
    assert found.line == 4
    assert found.frame is not None
    assert found.frame.file == "<cell>"


# ------------------------------------------------------------------ what raises while a graph runs


SUBCLASS = """
class T(torch.Tensor): pass
def f(x):
    return x + 1
f(torch.ones(3).as_subclass(T))
"""


@pytest.mark.parametrize(
    ("cell", "magic", "line", "by"),
    [
        (
            "m = nn.LSTM(4, 4)\nm(torch.ones(3, 2, 4))",
            f"{MAGIC} --config allow_rnn=True",
            3,
            "torch/_functorch/_aot_autograd/runtime_wrappers.py:",
        ),
        (SUBCLASS, MAGIC, 5, "torch's own compiled code"),
    ],
)
def test_what_only_compiled_code_raises_is_an_error(
    shell: Shell, cell: str, magic: str, line: int, by: str
) -> None:
    (found,) = findings(shell, cell, magic)
    assert (found.code, found.severity, found.line) == ("compile-error", "error", line)
    assert by in found.message
    assert "eager does not come to" in found.message


INDEX = "def f(x, y):\n    return x[y] + 1\nf(torch.ones(3), torch.tensor([5]))"


@pytest.mark.parametrize("magic", [MAGIC, "%%dynamo --backend eager"])
def test_what_an_operator_raises_is_not_said_to_be_the_compilers(shell: Shell, magic: str) -> None:
    found = only(shell, INDEX, "compile-error", magic)
    assert (found.severity, found.line) == ("info", 4)
    assert "by an operator" in found.message
    assert "force_eager" in found.advice


def test_what_the_users_own_code_raises_is_no_finding(shell: Shell) -> None:
    cell = """
    @torch.compiler.disable
    def check(x):
        return x[torch.tensor([5])]
    def f(x):
        y = x + 1
        check(y)
        return y * 2
    f(torch.ones(3))
    """
    assert "compile-error" not in {finding.code for finding in findings(shell, cell)}
    assert shell.record.error.type == "IndexError"


# ------------------------------------------------------------------ marked dimensions


@pytest.mark.parametrize("body", ["x + y", "x * 3 + y.exp()"])
def test_the_argument_that_a_marked_dimension_meets_is_to_be_marked_too(
    shell: Shell, body: str
) -> None:
    cell = f"""
    def f(x, y):
        return {body}
    x = torch.ones(4)
    torch._dynamo.mark_dynamic(x, 0)
    f(x, torch.ones(4))
    """
    found = only(shell, cell, "specialized-dim")
    assert found.line == 3
    assert "Mark the dimension of `y`" in found.advice
    assert "without that constant" not in found.advice


def test_a_marked_dimension_that_meets_a_parameter_is_fixed(shell: Shell) -> None:
    cell = """
    layer = nn.Linear(4, 4)
    def f(x):
        return layer(x)
    x = torch.ones(4)
    torch._dynamo.mark_dynamic(x, 0)
    f(x)
    """
    assert "of a parameter" in only(shell, cell, "specialized-dim").advice


def test_a_marked_dimension_that_a_number_fixes_keeps_its_advice(shell: Shell) -> None:
    cell = """
    def f(x):
        return x.view(2, 2)
    x = torch.ones(4)
    torch._dynamo.mark_dynamic(x, 0)
    f(x)
    """
    assert "without that constant" in only(shell, cell, "specialized-dim").advice


# ------------------------------------------------------------------ results that differ


def test_a_default_dtype_that_is_set_inside_is_why_the_result_differs(shell: Shell) -> None:
    cell = """
    torch.set_default_dtype(torch.float64)
    r = torch.ones(2) + 1
    torch.set_default_dtype(torch.float32)
    """
    found = only(shell, cell, "result-differs", f"{MAGIC} --compile cell --check")
    assert "`set_default_dtype` in line 2" in found.advice
    assert "custom autograd functions" not in found.advice


def test_inference_mode_has_its_effect(shell: Shell) -> None:
    cell = """
    with torch.inference_mode():
        r = torch.ones(2) + 1
    r.is_inference()
    """
    assert run(shell, cell).value is True
    assert shell.record.mode == "as-is"


# ------------------------------------------------------------------ attributes, keys, classes


PRESENCE = """
class C: pass
def f(x, v):
    return {body}
bare, tagged = C(), C()
tagged.z = 2
x, y = torch.ones(3), torch.ones(3)
y.z = 2
f(x, {first})
f(x, {second})
"""


@pytest.mark.parametrize(
    ("body", "first", "second", "says"),
    [
        ("x + 1 if hasattr(v, 'z') else -x", "bare", "tagged", "`hasattr(v, 'z')` changed (False"),
        ("x + getattr(v, 'z', 1)", "bare", "tagged", "`hasattr(v, 'z')` changed (False -> True)"),
        ("v + 1 if hasattr(v, 'z') else -v", "x", "y", "`hasattr(v, 'z')` changed (False -> True)"),
        ("x + 1 if 'a' in v else x * 2", "{}", "{'a': 1}", "`'a' in v` changed (False -> True)"),
        ("x + 1 if 1 in v else x * 2", "{1}", "{2}", "`1 in v` changed (True -> False)"),
    ],
)
def test_what_a_value_has_now_or_lacks_is_named(
    shell: Shell, body: str, first: str, second: str, says: str
) -> None:
    cell = PRESENCE.format(body=body, first=first, second=second)
    found = only(shell, cell, "recompile")
    assert says in found.message
    assert "as a tensor" not in found.advice
    assert "torch.where" not in found.advice


def test_a_key_that_the_function_adds_invalidates_its_own_entry(shell: Shell) -> None:
    cell = """
    cache = {}
    def f(x):
        if "k" in cache:
            return x + cache["k"]
        cache["k"] = x * 2
        return x
    f(torch.ones(3))
    f(torch.ones(3))
    """
    found = only(shell, cell, "self-invalidating-guard")
    assert found.line == 6
    assert "change `cache` outside" in found.advice


def test_a_class_that_is_defined_again_is_another_class(shell: Shell) -> None:
    cell = """
    def f(x, o):
        return x + o.v
    for _ in range(2):
        T = type("T", (), {"v": 1})
        f(torch.ones(3), T())
    """
    found = only(shell, cell, "recompile")
    assert "`type(o)` changed (T -> another T)" in found.message
    assert "Make the class once" in found.advice
