"""`would`: the entry that a call hits or the guards that fail, told without making the call."""

from __future__ import annotations

import functools
import gc
from typing import Any

import pytest
import torch

import dynamo_nb
from dynamo_nb.capture import failing
from dynamo_nb.record.types import Would
from tests.conftest import Shell


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def scale(x: Any, y: Any = 2, *rest: Any, k: Any = None, **more: Any) -> Any:
    return x * y + len(rest) + (0 if k is None else k)


def changes(answer: Would, entry: int = 0) -> list[tuple[str, str, str]]:
    return [(f.name, f.was, f.now) for f in answer.entries[entry].failed]


def test_it_says_hit_or_every_guard_that_fails() -> None:
    f = torch.compile(scale, backend="eager")
    f(torch.ones(3))
    assert dynamo_nb.would(f, torch.ones(3)).outcome == "hit"
    answer = dynamo_nb.would(f, torch.ones(4), 5)
    assert answer.outcome == "compile"
    assert sorted(changes(answer)) == [("x.size()[0]", "3", "4"), ("y", "2", "5")]
    assert "0/0  does not fit" in repr(answer)
    assert "x.size()[0]: 3 -&gt; 4" in answer._repr_html_()


def test_it_lists_every_property_of_a_tensor_that_differs() -> None:
    torch._dynamo.reset()
    f = torch.compile(scale, backend="eager", dynamic=False)
    with dynamo_nb.capture():
        f(torch.ones(3, 2))
    answer = dynamo_nb.would(f, torch.ones(4, 5).double())
    assert changes(answer) == [
        ("x.dtype", "float32", "float64"),
        ("x.size()[0]", "3", "4"),
        ("x.size()[1]", "2", "5"),
    ]


def test_sizes_that_an_entry_leaves_open_are_not_told() -> None:
    torch._dynamo.reset()
    f = torch.compile(scale, backend="eager")
    with dynamo_nb.capture():
        f(torch.ones(3, 2))
        f(torch.ones(4, 2))
    assert changes(dynamo_nb.would(f, torch.ones(7, 5))) == [("x.size()[1]", "2", "5")]
    one = dynamo_nb.would(f, torch.ones(7))
    assert changes(one) == [("x.dim()", "2", "1")]


def test_a_function_of_torch_is_named_as_it_is_written() -> None:
    with pytest.raises(ValueError, match=r"^torch\.sin is no Python function"):
        dynamo_nb.would(torch.sin, torch.ones(3))


MISMATCHES = {
    "dtype": (lambda: torch.ones(3, dtype=torch.half), ("x.dtype", "float32", "float16")),
    "rank": (lambda: torch.ones(3, 1), ("x.dim()", "1", "2")),
    "stride": (lambda: torch.ones(6)[::2], ("x.stride()[0]", "1", "2")),
    "grad": (lambda: torch.ones(3, requires_grad=True), ("x.requires_grad", "False", "True")),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_tensors_of_an_entry_that_nobody_saw(case: str) -> None:
    make, change = MISMATCHES[case]
    f = torch.compile(scale, backend="eager", dynamic=False)
    f(torch.ones(3))
    assert changes(dynamo_nb.would(f, make())) == [change]


def test_nothing_is_run_or_compiled() -> None:
    calls = []

    def backend(module: Any, inputs: Any) -> Any:
        calls.append(module)
        return module.forward

    @torch.compile(backend=backend)
    def f(x: Any) -> Any:
        x.add_(1)
        return x

    x = torch.zeros(3)
    f(x)
    for shape in (3, 4):
        dynamo_nb.would(f, torch.zeros(shape))
        dynamo_nb.would(f, x)
    assert (len(calls), x.tolist()) == (1, [1, 1, 1])


def test_the_entry_that_fits_is_named_in_the_order_of_the_look_up() -> None:
    f = torch.compile(scale, backend="eager", dynamic=False)
    for size in (3, 4, 3):
        f(torch.ones(size))
    answer = dynamo_nb.would(f, torch.ones(4))
    assert [(check.entry, check.fits) for check in answer.entries] == [
        ("0/0", False),
        ("0/1", True),
    ]
    assert answer.entry == "0/1"


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.scale = 2

    def forward(self, x: Any) -> Any:
        return self.inner(x) * self.scale

    def twice(self, x: Any) -> Any:
        return x * 2 * self.scale


def make_closure(value: float) -> Any:
    def inner(x: Any) -> Any:
        return x * value

    return inner


def _method() -> tuple[Any, Any]:
    net = Net()
    return torch.compile(net.twice, backend="eager"), net.twice


def _compiled_in_place() -> tuple[Any, Any]:
    net = Net()
    net.compile(backend="eager")
    return net, net


def _module(make: Any) -> tuple[Any, Any]:
    net = make()
    return torch.compile(net, backend="eager"), net


def _function(function: Any) -> tuple[Any, Any]:
    return torch.compile(function, backend="eager"), function


CALLABLES = {
    "function": lambda: _function(scale),
    "closure": lambda: _function(make_closure(2.5)),
    "bound method": _method,
    "module": lambda: _module(Net),
    "torch's own container": lambda: _module(lambda: torch.nn.Sequential(torch.nn.Linear(3, 3))),
    "module compiled in place": _compiled_in_place,
    "partial": lambda: (
        functools.partial(torch.compile(scale, backend="eager"), k=2),
        functools.partial(scale, k=2),
    ),
}


@pytest.mark.parametrize("kind", CALLABLES)
def test_every_kind_of_callable(kind: str) -> None:
    """Both what torch.compile returned and the plain callable, which shares its code's entries."""
    compiled, plain = CALLABLES[kind]()
    compiled(torch.ones(2, 3))
    for f in (compiled, plain):
        assert dynamo_nb.would(f, torch.ones(2, 3)).outcome == "hit"
        assert dynamo_nb.would(f, torch.ones(2, 3).double()).outcome == "compile"


def test_attributes_closures_and_variable_arguments() -> None:
    net = Net()
    f = torch.compile(net, backend="eager")
    f(torch.ones(2, 3))
    net.scale = 3
    assert changes(dynamo_nb.would(f, torch.ones(2, 3))) == [("self.scale", "2", "3")]
    g = torch.compile(scale, backend="eager")
    g(torch.ones(2), 2, 3, 4, k=1)
    assert dynamo_nb.would(g, torch.ones(2), 2, 3, 4, k=1).outcome == "hit"
    assert changes(dynamo_nb.would(g, torch.ones(2), 2, 3, k=1)) == [("len(rest)", "2", "1")]


def test_global_state_counts_as_it_is_now() -> None:
    f = torch.compile(scale, backend="eager")
    f(torch.ones(3))
    with torch.no_grad():
        answer = dynamo_nb.would(f, torch.ones(3))
    assert answer.outcome == "compile"
    assert "grad_mode" in str(answer)


def test_what_follows_a_failed_global_state_is_told_too() -> None:
    f = torch.compile(scale, backend="eager", dynamic=False)
    x = torch.ones(3)
    with dynamo_nb.capture():
        f(x, torch.ones(3), k=2)
    torch.set_default_device("cpu")
    try:
        with torch.no_grad():
            answer = dynamo_nb.would(f, x, x, k=3)
    finally:
        torch.set_default_device(None)
    assert changes(answer) == [
        ("grad_mode", "True", "False"),
        ("default device", "None", "cpu"),
        ("k", "2", "3"),
        ("x is y", "False", "True"),
    ]


def test_what_follows_a_failed_relation_is_told_too() -> None:
    f = torch.compile(scale, backend="eager", dynamic=False)
    x, y = torch.ones(3), torch.ones(3)
    with dynamo_nb.capture():
        f(x, y)
    assert changes(dynamo_nb.would(f, x, x)) == [("x is y", "False", "True")]
    x = torch.ones(4)
    assert sorted(changes(dynamo_nb.would(f, x, x, k=1))) == [
        ("type(k)", "NoneType", "int"),
        ("x is y", "False", "True"),
        ("x.size()[0]", "3", "4"),
        ("y.size()[0]", "3", "4"),
    ]


def test_the_limit_the_stance_and_disable_decide_what_a_miss_does() -> None:
    f = torch.compile(scale, backend="eager", dynamic=False)
    f(torch.ones(3))
    with torch._dynamo.config.patch(recompile_limit=1):
        answer = dynamo_nb.would(f, torch.ones(4))
    assert answer.outcome == "eager"
    assert answer.reason == "recompile_limit (1) is reached: it would run eagerly"
    with torch.compiler.set_stance("fail_on_recompile"):
        assert dynamo_nb.would(f, torch.ones(4)).outcome == "error"
        assert dynamo_nb.would(f, torch.ones(3)).outcome == "hit"
    with torch.compiler.set_stance("force_eager"):
        assert dynamo_nb.would(f, torch.ones(3)).outcome == "eager"
    assert dynamo_nb.would(torch.compiler.disable(scale), torch.ones(3)).outcome == "eager"


def test_entries_of_another_backend_are_passed_over() -> None:
    torch.compile(scale, backend="eager")(torch.ones(3))
    other = torch.compile(scale, backend="aot_eager")
    with pytest.raises(ValueError, match="not with this backend"):
        dynamo_nb.would(other, torch.ones(3))


def test_an_invalidated_entry_is_said() -> None:
    box = type("Box", (), {"scale": 2})

    def f(x: Any, box: Any) -> Any:
        return x * box.scale

    compiled = torch.compile(f, backend="eager")
    compiled(torch.ones(3), box())
    del box
    gc.collect()
    other = type("Box", (), {"scale": 2})
    answer = dynamo_nb.would(compiled, torch.ones(3), other())
    assert answer.outcome == "compile"
    assert "invalidated: " in str(answer)
    assert answer.entries[0].invalidated


def test_what_it_cannot_know_it_says() -> None:
    def broken(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    f = torch.compile(broken, backend="eager")
    f(torch.ones(3))
    answer = dynamo_nb.would(f, torch.ones(3))
    assert answer.outcome == "hit"
    assert "before its graph break" in answer.notes[0]

    net = Net()
    net.register_forward_pre_hook(lambda module, args: None)
    g = torch.compile(net, backend="eager")
    g(torch.ones(2, 3))
    assert "pre-hook" in dynamo_nb.would(g, torch.ones(2, 3)).notes[0]


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="scale was never compiled"):
        dynamo_nb.would(scale, torch.ones(3))
    with pytest.raises(ValueError, match="len is no Python function"):
        dynamo_nb.would(len, [1])
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        dynamo_nb.would(scale)


CELL = """\
%%dynamo --backend eager
import torch
def f(x, options=None):
    return x * options["scale"]
f(torch.ones(3), {"scale": 2})
"""


def test_the_magic_shows_cell_and_lines(shell: Shell) -> None:
    shell.run(CELL)
    assert shell.run('%dynamo would f(torch.ones(3), {"scale": 2})').report == (
        "f would hit 0/0\n  0/0  fits (compiled by cell [1])"
    )
    ran = shell.run('%dynamo would f(torch.ones(3), options={"scale": 3})')
    assert "options['scale']: 2 -> 3 (read at line 4 of cell [1])" in ran.report
    assert "text/html" in ran.displays[-1]


WRONG = {
    "": "a call is expected",
    "f(": "was never closed",
    "f": "'f' is no call",
    "len([1])": "len is no Python function",
    "g(1)": "g was never compiled",
    "f()": "missing a required argument: 'x'",
}


@pytest.mark.parametrize("call", WRONG)
def test_the_magic_explains_bad_input(call: str, shell: Shell) -> None:
    shell.run(CELL)
    shell.run("def g(x): return x")
    ran = shell.run(f"%dynamo would {call}")
    assert type(ran.error).__name__ == "UsageError"
    assert str(ran.error).startswith("%dynamo would: ")
    assert WRONG[call] in str(ran.error)


def test_other_commands_still_take_variables(shell: Shell, tmp_path: Any) -> None:
    shell.run(CELL)
    shell.ip.user_ns["target"] = str(tmp_path / "report.json")
    shell.run("%dynamo save {target}")
    assert (tmp_path / "report.json").exists()


def test_many_failing_guards_are_the_same_one_by_one_and_swept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = torch.nn.Sequential(*(torch.nn.Dropout(0.5) for _ in range(12)))
    f = torch.compile(net, backend="eager", dynamic=False)
    f(torch.ones(3))
    net.eval()
    x = torch.ones(4)
    swept = dynamo_nb.would(f, x).entries[0].failed
    monkeypatch.setattr(failing, "_ONE_BY_ONE", 1000)
    one_by_one = dynamo_nb.would(f, x).entries[0].failed
    assert len(swept) == 13
    assert {(r.source, r.name, r.was, r.now) for r in swept} == {
        (r.source, r.name, r.was, r.now) for r in one_by_one
    }


def test_the_last_cells_config_counts(shell: Shell) -> None:
    import torch

    cell = "import torch\ndef g(x):\n    return x + 1\nfor n in range(2, 5):\n    g(torch.ones(n))"
    flags = "--config recompile_limit=2 --config automatic_dynamic_shapes=False"
    shell.run(f"%%dynamo --backend eager {flags}\n{cell}")
    before = torch._dynamo.config.recompile_limit
    ran = shell.run("%dynamo would g(torch.ones(9))")
    assert "recompile_limit (2) is reached: it would run eagerly" in ran.report
    assert f"note: told as for the last cell: {flags}" in ran.report
    assert torch._dynamo.config.recompile_limit == before


@pytest.mark.parametrize("command", ["would", "guards"])
@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("nope(1)", "NameError: name 'nope' is not defined"),
        ("print(nope)", "NameError: name 'nope' is not defined"),
        ("print(1 / 0)", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_call_that_cannot_be_evaluated_is_one_sentence(
    shell: Shell, command: str, call: str, why: str
) -> None:
    ran = shell.run(f"%dynamo {command} {call}")
    assert ran.stdout == f"UsageError: %dynamo {command}: {call} can't be evaluated: {why}\n"
