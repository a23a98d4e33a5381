"""`calls` mode: which calls are made through torch.compile, and that nothing else changes."""

from __future__ import annotations

import ast
import functools
import gc
import weakref

import pytest
import torch

from dynamo_nb.capture import compiler
from dynamo_nb.runner import calls
from dynamo_nb.runner.callee import is_compilable, is_users_file

DEFINITIONS = """\
import asyncio, functools, torch
def f(x): return x + 1
def gen(x): yield x
async def coro(x): return x + 1
@torch.compile(backend="eager")
def done(x): return x + 2
@torch.compiler.disable
def off(x): return x + 3
@torch.no_grad()
def no_grad(x): return x + 4
@functools.wraps(f)
def wrapped(x): return f(x)
@functools.lru_cache
def cached(n): return n
class Own:
    def __init__(self, k): self.k = k
    def method(self, x): return x * self.k
    def __call__(self, x): return x - self.k
    @staticmethod
    def static(x): return x
    @classmethod
    def make(cls, k): return cls(k)
own = Own(2)
net = torch.nn.Linear(2, 2)
part = functools.partial(f)
deep = functools.partial(functools.partial(own.method))
sin_part = functools.partial(torch.sin)
lam = lambda x: x + 5
compiled_net = torch.compile(torch.nn.Linear(2, 2), backend="eager")
in_place = torch.nn.Linear(2, 2)
in_place.compile(backend="eager")
x = torch.ones(1, 2)
"""

COMPILED = ["f", "no_grad", "wrapped", "own.method", "own", "Own.static", "Own.make"]
COMPILED += ["net", "part", "deep", "lam"]
LEFT = ["gen", "coro", "done", "off", "cached", "Own", "torch.sin", "x.sin", "net.parameters"]
LEFT += [
    "print",
    "sin_part",
    "compiled_net",
    "in_place",
    "torch.nn.functional.relu",
    "len",
    "net.to",
]


@pytest.fixture
def defined(plain_shell):
    plain_shell.run(DEFINITIONS)
    return plain_shell.ip.user_ns


@pytest.mark.parametrize("name", COMPILED)
def test_users_functions_methods_and_modules_are_compiled(defined, name):
    assert is_compilable(eval(name, defined))


@pytest.mark.parametrize("name", LEFT)
def test_everything_else_is_left_alone(defined, name):
    value = eval(name, defined)
    assert not is_compilable(value)
    with calls.Calls({"backend": "eager"}) as run:
        assert calls.through(value, run.number) is value


def test_files_of_the_user(tmp_path):
    assert is_users_file(str(tmp_path / "model.py"))
    assert is_users_file("<ipython-input-3-abc>")
    assert is_users_file("/tmp/ipykernel_12/345.py")
    for file in (ast.__file__, torch.__file__, pytest.__file__, calls.__file__):
        assert not is_users_file(file)
    for file in ("<string>", "<frozen importlib._bootstrap>", "/x/dist-packages/a.py"):
        assert not is_users_file(file)


def test_the_same_callee_gives_the_same_compiled_callable(defined):
    with calls.Calls({"backend": "eager"}) as run:
        for name in ("f", "net", "own.method", "own"):
            first = calls.through(eval(name, defined), run.number)
            assert calls.through(eval(name, defined), run.number) is first


def test_only_the_run_under_way_compiles(defined):
    function = defined["f"]
    with calls.Calls({"backend": "eager"}) as earlier:
        assert calls.through(function, earlier.number) is not function
    assert calls.through(function, earlier.number) is function
    with calls.Calls({"backend": "eager"}):
        assert calls.through(function, earlier.number) is function


def test_a_helper_that_fails_gives_the_plain_callable(defined, monkeypatch):
    def fail(*_):
        raise RuntimeError("no")

    monkeypatch.setattr(compiler, "compiled", fail)
    with calls.Calls({"backend": "eager"}) as run:
        assert calls.through(defined["f"], run.number) is defined["f"]


def test_a_module_bears_no_mark(defined):
    net = defined["net"]
    before = dict(vars(net))
    with calls.Calls({"backend": "eager"}) as run:
        calls.through(net, run.number)(defined["x"])
    assert vars(net).keys() == before.keys()


def test_what_the_cell_lets_go_is_let_go():
    with calls.Calls({"backend": "eager"}) as run:
        kept = torch.nn.Linear(2, 2)
        gone = []
        for _ in range(3):
            module = torch.nn.Linear(2, 2)
            calls.through(module, run.number)(torch.ones(1, 2))
            gone.append(weakref.ref(module))
        del module
        first = calls.through(kept, run.number)
        calls.through(torch.nn.Linear(1, 1), run.number)
        gc.collect()
        assert [ref() for ref in gone] == [None, None, None]
        assert calls.through(kept, run.number) is first


# --- the rewrite ---------------------------------------------------------------------------------


def wrapped_callees(source: str) -> list[str]:
    """Return the callees that the rewrite sends through the helper, in the order of the source."""
    tree = calls.rewrite(ast.parse(source), 7)
    found = [
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".through")
    ]
    found.sort(key=lambda node: (node.lineno, node.col_offset, -node.end_col_offset))
    return [ast.unparse(node).rpartition(".through(")[2].partition(",")[0] for node in found]


@pytest.mark.parametrize(
    ("source", "callees"),
    [
        ("f(x)", ["f"]),
        ("f(g(x))", ["f", "g"]),
        ("a.b(c[0](1))", ["a.b", "c[0]"]),
        ("[f(i) for i in xs if g(i)]", ["f", "g"]),
        ("z = (f(i) for i in h())", ["f", "h"]),
        ("with f() as a: g(a)", ["f", "g"]),
        ("def f(a=g()): return h(a)", []),
        ("@deco(1)\nclass A(base()): x = f()", []),
        ("lambda: f(x)", []),
        ("x: f() = g()", ["g"]),
        ("(lambda: 1)()", []),
        ("'a'()", []),
    ],
)
def test_calls_outside_definitions_are_rewritten(source, callees):
    assert wrapped_callees(source) == callees


def test_generator_consumed_in_a_later_cell(shell):
    shell.run("import torch\ndef f(x): return x + 1")
    shell.run(
        "%%dynamo --backend eager\nlazy = (f(torch.ones(1) * i) for i in (0, 1))\nf(torch.ones(1))"
    )
    ran = shell.run("[v.item() for v in lazy]")
    assert ran.value == [1.0, 2.0]


def test_partials_and_callable_objects_compile(shell):
    shell.run(DEFINITIONS)
    ran = shell.run("%%dynamo --backend eager\na = part(x)\nb = deep(x)\nc = own(x)\n(a + b + c)")
    assert ran.value.tolist() == [[3.0, 3.0]]
    assert {c.name for c in shell.record.compiles} == {"f", "Own.method", "Own.__call__"}


def test_recursion_through_threads(shell):
    shell.run(DEFINITIONS)
    cell = """\
%%dynamo --backend eager
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    got = list(pool.map(lambda i: f(x * i).sum().item(), range(3)))
got
"""
    assert shell.run(cell).value == [2.0, 4.0, 6.0]


def test_partial_is_rebuilt_alike(defined):
    part = functools.partial(defined["f"], defined["x"])
    with calls.Calls({"backend": "eager"}) as run:
        got = calls.through(part, run.number)
    assert got.args == part.args
    assert got.keywords == part.keywords
