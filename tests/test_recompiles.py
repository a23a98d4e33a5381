"""One recompile per kind of guard: what changed, was and now, the call's line, the reading line."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from dynamo_nb.record.causes import recompile_causes
from dynamo_nb.record.types import Guard, RecompileReason, Ref
from tests.capturing import Captured
from tests.conftest import Shell

#: kind → (cell, source, name, was, now). `@call` marks the line of the second call, `@read` the
#: line that reads what changed; the call alone decides where there is none.
CASES: dict[str, tuple[str, str, str, str, str]] = {
    "tensor size": (
        """
        def f(x):
            return x + 1  # @read
        compiled(f)(torch.ones(3))
        compiled(f)(torch.ones(4))  # @call
        """,
        "L['x']",
        "x.size()[0]",
        "3",
        "4",
    ),
    "tensor rank": (
        """
        def f(x):
            return x + 1  # @read
        compiled(f)(torch.ones(3))
        compiled(f)(torch.ones(3, 1))  # @call
        """,
        "L['x']",
        "x.dim()",
        "1",
        "2",
    ),
    "tensor stride": (
        """
        def f(x):
            return x + 1  # @read
        compiled(f)(torch.ones(4, 4))
        compiled(f)(torch.ones(4, 4).t())  # @call
        """,
        "L['x']",
        "x.stride()[0]",
        "4",
        "1",
    ),
    "tensor dtype": (
        """
        def f(x):
            return x + 1  # @read
        compiled(f)(torch.ones(3))
        compiled(f)(torch.ones(3).to(torch.bfloat16))  # @call
        """,
        "L['x']",
        "x.dtype",
        "float32",
        "bfloat16",
    ),
    "tensor device": (
        """
        def f(x):
            return x + 1  # @read
        compiled(f)(torch.ones(3))
        compiled(f)(torch.ones(3, device="meta"))  # @call
        """,
        "L['x']",
        "x.device",
        "cpu",
        "meta",
    ),
    "requires_grad": (
        """
        def f(x):
            return x + 1  # @read
        compiled(f)(torch.ones(3))
        compiled(f)(torch.ones(3, requires_grad=True))  # @call
        """,
        "L['x']",
        "x.requires_grad",
        "False",
        "True",
    ),
    "parameter": (
        """
        net = torch.nn.Linear(3, 3)
        def f(x):
            return net(x)
        compiled(f)(torch.ones(2, 3))
        net.weight.requires_grad_(False)
        compiled(f)(torch.ones(2, 3))  # @call
        """,
        "G['net']._parameters['weight']",
        "net.weight.requires_grad",
        "True",
        "False",
    ),
    "int": (
        """
        def f(x, k):
            return x * k  # @read
        compiled(f)(torch.ones(3), 2)
        compiled(f)(torch.ones(3), 3)  # @call
        """,
        "L['k']",
        "k",
        "2",
        "3",
    ),
    "float": (
        """
        def f(x, k):
            return x * k  # @read
        compiled(f)(torch.ones(3), 2.5)
        compiled(f)(torch.ones(3), 3.5)  # @call
        """,
        "L['k']",
        "k",
        "2.5",
        "3.5",
    ),
    "str": (
        """
        def f(x, mode):
            return x + 1 if mode == "a" else x - 1  # @read
        compiled(f)(torch.ones(3), "a")
        compiled(f)(torch.ones(3), "b")  # @call
        """,
        "L['mode']",
        "mode",
        "'a'",
        "'b'",
    ),
    "bool": (
        """
        def f(x, flag):
            return x + 1 if flag else x - 1  # @read
        compiled(f)(torch.ones(3), True)
        compiled(f)(torch.ones(3), False)  # @call
        """,
        "L['flag']",
        "flag",
        "True",
        "False",
    ),
    "none": (
        """
        def f(x, mask=None):
            return x + 1 if mask is None else x * mask  # @read
        compiled(f)(torch.ones(3))
        compiled(f)(torch.ones(3), torch.ones(3))  # @call
        """,
        "L['mask']",
        "type(mask)",
        "NoneType",
        "Tensor",
    ),
    "type": (
        """
        def f(x, k):
            return x * k  # @read
        compiled(f)(torch.ones(3), 2)
        compiled(f)(torch.ones(3), 2.5)  # @call
        """,
        "L['k']",
        "type(k)",
        "int",
        "float",
    ),
    "class of an object": (
        """
        class A:
            scale = 2
        class B:
            scale = 2
        def f(x, box):
            return x * box.scale  # @read
        compiled(f)(torch.ones(3), A())
        compiled(f)(torch.ones(3), B())  # @call
        """,
        "L['box']",
        "type(box)",
        "A",
        "B",
    ),
    "attribute": (
        """
        class Box:
            def __init__(self, scale):
                self.scale = scale
        def f(x, box):
            return x * box.scale  # @read
        compiled(f)(torch.ones(3), Box(2))
        compiled(f)(torch.ones(3), Box(3))  # @call
        """,
        "L['box'].scale",
        "box.scale",
        "2",
        "3",
    ),
    "module attribute": (
        """
        class Net(torch.nn.Module):
            def forward(self, x):
                return x + 1 if self.training else x - 1  # @read
        net = Net()
        step = compiled(net)
        step(torch.ones(3))
        net.eval()
        step(torch.ones(3))  # @call
        """,
        "L['self'].training",
        "self.training",
        "True",
        "False",
    ),
    "closure cell": (
        """
        def make(scale):
            def inner(x):
                return x * scale  # @read
            return inner
        compiled(make(2))(torch.ones(3))
        compiled(make(3))(torch.ones(3))  # @call
        """,
        "L['scale']",
        "scale",
        "2",
        "3",
    ),
    "global": (
        """
        SCALE = 2
        def f(x):
            return x * SCALE  # @read
        compiled(f)(torch.ones(3))
        SCALE = 3
        compiled(f)(torch.ones(3))  # @call
        """,
        "G['SCALE']",
        "SCALE",
        "2",
        "3",
    ),
    "default": (
        """
        def helper(x, k=2):
            return x * k
        def f(x):
            return helper(x)
        compiled(f)(torch.ones(3))
        helper.__defaults__ = (3,)
        compiled(f)(torch.ones(3))  # @call
        """,
        "G['helper'].__defaults__[0]",
        "helper default[0]",
        "2",
        "3",
    ),
    "list length": (
        """
        def f(xs):
            return sum(xs)  # @read
        compiled(f)([torch.ones(3)])
        compiled(f)([torch.ones(3)] * 2)  # @call
        """,
        "L['xs']",
        "len(xs)",
        "1",
        "2",
    ),
    "dict length": (
        """
        def f(x, options):
            for value in options.values():  # @read
                x = x * value
            return x
        compiled(f)(torch.ones(3), {"a": 2})
        compiled(f)(torch.ones(3), {"a": 2, "b": 3})  # @call
        """,
        "L['options']",
        "len(options)",
        "1",
        "2",
    ),
    "dict value": (
        """
        def f(x, options):
            return x * options["a"]  # @read
        compiled(f)(torch.ones(3), {"a": 2})
        compiled(f)(torch.ones(3), {"a": 3})  # @call
        """,
        "L['options']['a']",
        "options['a']",
        "2",
        "3",
    ),
    "dict key": (
        """
        def f(x, options):
            for value in options.values():  # @read
                x = x * value
            return x
        compiled(f)(torch.ones(3), {"a": 2})
        compiled(f)(torch.ones(3), {"b": 2})  # @call
        """,
        "list(dict.keys(L['options']))[0]",
        "list(options)",
        "'a'",
        "'b'",
    ),
    "function identity": (
        """
        def double(x):
            return x * 2
        def triple(x):
            return x * 3
        def f(x, g):
            return g(x)  # @read
        compiled(f)(torch.ones(3), double)
        compiled(f)(torch.ones(3), triple)  # @call
        """,
        "L['g'].__code__",
        "g",
        "function double",
        "function triple",
    ),
    "object identity": (
        """
        def f(x, kind):
            return x + 1 if kind is int else x - 1  # @read
        compiled(f)(torch.ones(3), int)
        compiled(f)(torch.ones(3), float)  # @call
        """,
        "L['kind']",
        "kind",
        "type int",
        "type float",
    ),
    "grad mode": (
        """
        def f(x):
            return x + 1
        compiled(f)(torch.ones(3))
        with torch.no_grad():
            compiled(f)(torch.ones(3))  # @call
        """,
        "",
        "grad_mode",
        "True",
        "False",
    ),
    "default device": (
        """
        def f(x):
            return x + 1
        x = torch.ones(3)
        compiled(f)(x)
        torch.set_default_device("cpu")
        try:
            compiled(f)(x)  # @call
        finally:
            torch.set_default_device(None)
        """,
        "",
        "default device",
        "None",
        "cpu",
    ),
    "torch function mode": (
        """
        from torch.overrides import TorchFunctionMode
        class Mode(TorchFunctionMode):
            def __torch_function__(self, f, types, args=(), kwargs=None):
                return f(*args, **(kwargs or {}))
        def f(x):
            return x + 1
        compiled(f)(torch.ones(3))
        with Mode():
            compiled(f)(torch.ones(3))  # @call
        """,
        "",
        "torch function modes",
        "none",
        "Mode",
    ),
    "two that are now one": (
        """
        def f(x, y):
            return x + y
        x, y = torch.ones(3), torch.ones(3)
        compiled(f)(x, y)
        compiled(f)(x, x)  # @call
        """,
        "",
        "x is y",
        "False",
        "True",
    ),
    "one that is now two": (
        """
        def f(x, y):
            return x + y
        x, y = torch.ones(3), torch.ones(3)
        compiled(f)(x, x)
        compiled(f)(x, y)  # @call
        """,
        "",
        "x is y",
        "True",
        "False",
    ),
    "autocast": (
        """
        def f(x):
            return x @ x
        compiled(f)(torch.ones(3, 3))
        with torch.autocast("cpu"):
            compiled(f)(torch.ones(3, 3))  # @call
        """,
        "",
        "autocast(cpu)_enabled",
        "False",
        "True",
    ),
    "default dtype": (
        """
        def f(x):
            return x + 1
        compiled(f)(torch.ones(3))
        x = torch.ones(3)
        torch.set_default_dtype(torch.float64)
        try:
            compiled(f)(x)  # @call
        finally:
            torch.set_default_dtype(torch.float32)
        """,
        "",
        "default_dtype",
        "float32",
        "float64",
    ),
    "deterministic algorithms": (
        """
        def f(x):
            return x + 1
        compiled(f)(torch.ones(3))
        torch.use_deterministic_algorithms(True)
        try:
            compiled(f)(torch.ones(3))  # @call
        finally:
            torch.use_deterministic_algorithms(False)
        """,
        "",
        "deterministic_algorithms",
        "False",
        "True",
    ),
    "shape guard": (
        """
        def f(x):
            return x + 1 if x.size(0) < 10 else x - 1  # @read
        step = torch.compile(f, backend="eager", dynamic=True)
        step(torch.ones(5))
        step(torch.ones(20))  # @call
        """,
        "L['x'].size()[0]",
        "x.size()[0]",
        "5",
        "20",
    ),
}

COMPILED = "def compiled(f):\n    return torch.compile(f, backend='eager', dynamic=False)\n"


def _marked(source: str, mark: str) -> int | None:
    lines = source.splitlines()
    return next((n for n, line in enumerate(lines, 1) if f"@{mark}" in line), None)


def _captured(source: str) -> Any:
    captured: Any = Captured(source)
    assert captured.error is None, captured.error
    assert captured.record.notes == []
    assert [c.compile_id for c in captured.record.compiles] == ["0/0", "0/1"]
    return captured.record


def _blamed(record: Any, index: int) -> list[Guard]:
    """Return the guards that a reason of the recompile is linked to."""
    here = Ref("0/1", "recompile", str(index))
    found = [x.b for x in record.links if x.kind == "recompile-guard" and x.a == here]
    assert all((ref.compile, ref.artifact) == ("0/0", "guard") for ref in found)
    return [record.compiles[0].guards[int(ref.key)] for ref in found]


#: The guard that torch makes the failing check of, where it bears another name or source.
OTHER_NAMES = {
    "dict length": ("DICT_KEYS_MATCH", "L['options']"),
    "dict key": ("DICT_KEYS_MATCH", "L['options']"),
    "function identity": ("CLOSURE_MATCH", "L['g']"),
    "shape guard": ("SHAPE_ENV", ""),
    "tensor size": ("TENSOR_MATCH", "L['x']"),
}


@pytest.mark.parametrize("kind", CASES)
def test_recompile(kind: str) -> None:
    cell, source, name, was, now = CASES[kind]
    text = COMPILED + textwrap.dedent(cell).lstrip("\n")
    record = _captured(text)
    reasons: list[RecompileReason] = record.compiles[1].recompile_reasons
    reason = reasons[0]
    for index in range(len(reasons)):
        assert _blamed(record, index), "a recompile leads to the guard that failed"
    if kind in OTHER_NAMES:
        assert [(g.kind, g.source) for g in _blamed(record, 0)] == [OTHER_NAMES[kind]]
    assert (reason.source, reason.name) == (source, name)
    assert (reason.was, reason.now) == (was, now)
    assert reason.entry == "0/0"
    assert reason.call_line == _marked(text, "call")
    read = _marked(text, "read")
    if read is not None:
        assert reason.frame is not None
        assert (reason.frame.file, reason.frame.line) == ("<cell>", read)


NEAREST = {
    "a type hides what is guarded below it": (
        """
        def f(x, a=None, b=None):
            if a is None:
                return x * 2
            return torch.cat([a, x]) + torch.cat([b, x])
        compiled(f)(torch.ones(2, 3))
        for n in (2, 5):
            compiled(f)(torch.ones(2, 3), torch.ones(n, 3), torch.ones(n, 3))
        """,
        "0/1",
        {"a.size()[0]", "b.size()[0]"},
    ),
    "global state hides the rest": (
        """
        def f(x):
            return x * 2
        compiled(f)(torch.ones(3))
        with torch.no_grad():
            compiled(f)(torch.ones(3))
        compiled(f)(torch.ones(3, requires_grad=True))
        """,
        "0/0",
        {"x.requires_grad"},
    ),
}


@pytest.mark.parametrize("kind", NEAREST)
def test_the_entry_that_nearly_fitted_is_blamed(kind: str) -> None:
    cell, entry, names = NEAREST[kind]
    record = Captured(COMPILED + textwrap.dedent(cell).lstrip("\n")).record
    reasons = record.compiles[2].recompile_reasons
    assert reasons[0].entry == entry
    assert {reason.name for reason in reasons if reason.entry == entry} == names
    (cause,) = [cause for cause in recompile_causes(record) if cause.first == reasons[0]]
    assert cause.name in names


def test_another_type_is_no_other_value_of_a_symbol() -> None:
    cell = """
    def f(x, key):
        return x * key
    compiled(f)(torch.ones(2), 7)
    compiled(f)(torch.ones(2), 7.25)
    """
    record = _captured(COMPILED.replace("dynamic=False", "dynamic=None") + textwrap.dedent(cell))
    (cause,) = recompile_causes(record)
    assert (cause.name, cause.symbol) == ("type(key)", None)


@pytest.mark.parametrize(("bounds", "specialized"), [("VR[2, 64]", False), ("VR[9, 9]", True)])
def test_a_symbol_with_more_than_one_value_is_not_specialized(bounds, specialized):
    from dynamo_nb.findings import find
    from dynamo_nb.record.types import (
        CellRecord,
        Compile,
        RecompileReason,
        Specialization,
        Symbol,
    )

    source = "L['ids'].size()[1]"
    reason = RecompileReason(
        entry="0/0", source=source, name="ids.size()[1]", was="7", now="9", call_line=3
    )
    again = Compile(
        compile_id="0/1",
        name="encode",
        file="model.py",
        recompile_reasons=[reason],
        symbols=[Symbol(name="s50", sources=[source], hint="9", range=bounds)],
        specializations=[Specialization(symbol="s50", sources=[source], value="9")],
    )
    first = Compile(compile_id="0/0", name="encode", file="model.py")
    codes = {finding.code for finding in find(CellRecord(compiles=[first, again]))}
    assert ("became-dynamic" in codes) != specialized


SIN = """import torch
def f(x):
    return x.sin()
"""


def test_the_nearest_entry_is_the_one_with_the_fewest_failures(shell: Shell) -> None:
    body = "f(torch.ones(3)); f(torch.ones(3).double()); f(torch.ones(7))"
    ran = shell.run(f"%%dynamo --backend eager\n{SIN}{body}")
    assert "x.size()[0] 3 -> 7 (call at line 5, 0/0 did not fit)" in ran.report


def test_another_backend_is_the_reason_and_no_size(shell: Shell) -> None:
    shell.run(f"%%dynamo --backend eager\n{SIN}f(torch.ones(3)); f(torch.ones(4))")
    ran = shell.run("%%dynamo --backend aot_eager\nf(torch.ones(4))")
    assert [finding.code for finding in shell.record.findings] == ["recompile"]
    text = " ".join(ran.report.split())
    assert "for another backend (eager -> aot_eager)" in text
    assert "recompiled: the backend is aot_eager, and that of 0/" in text
