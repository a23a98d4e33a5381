"""Dynamic shapes stay what they are: what is watched adds no guard, no constraint, no compile."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import torch
import torch._functorch.config
import torch._inductor.config
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from dynamo_nb.target import client
from dynamo_nb.target.jobs import Answer

#: What is compiled, and its calls: sizes, strides, offsets, scalars and views that change.
CELLS = {
    "marked": (
        "def f(x):\n    return (x * 2).sum(-1)\n",
        "x = torch.randn(10, 33)\ntorch._dynamo.mark_dynamic(x, 0)\nf(x)\nf(torch.randn(20, 33))",
    ),
    "sizes": (
        "def f(x, y):\n    return torch.relu(x @ y).softmax(-1)\n",
        "for n in (12, 13, 14): f(torch.randn(n, n + 1), torch.randn(n + 1, n + 2))",
    ),
    "strides": (
        "def f(x):\n    return x.t().contiguous() * x.stride(0)\nb = torch.randn(4000)\n",
        "for n in (10, 20, 30): f(b[:40 * n].view(40, n)[:, :7])",
    ),
    "offsets": (
        "def f(x):\n    return (x[1:] * 2).sum(-1) + x.storage_offset()\nb = torch.randn(99, 40)\n",
        "for n in (10, 20, 30): f(b[n:, :n])",
    ),
    "scalars": (
        "def f(x, k, s):\n    return x * k + s\n",
        "for n in (2, 3, 4): f(torch.randn(4, 4), n, n * 1.5)",
    ),
    "products": (
        "def f(x, w):\n    y = torch.conv2d(x, w)\n    return y @ y.new_ones(y.shape[-1], 3)\n",
        "for n in (12, 13, 14): f(torch.randn(n, 3, n, n + 2), torch.randn(5, 3, 3, 3))",
    ),
    "training": (
        "w = torch.randn(8, 8, requires_grad=True)\n"
        "def f(x):\n    return ((x @ w).relu() / x.shape[0]).sum()\n",
        "for n in (12, 13, 14): f(torch.randn(n, 8)).backward()",
    ),
    "views": (
        "def f(x, y):\n    return torch.cat([x, y], 1).view(-1) * x.numel()\n",
        "for n in (12, 13, 14): f(torch.randn(n, 4), torch.randn(n, n))",
    ),
}

FLAGS = ("", "--check", "--target cuda:90", "--target cuda:90 --interpret")


class Nobody:
    """Stands for a worker: what the notebook's process does is all that is looked at."""

    def start(self):
        return self.submit(None)

    def submit(self, _):
        done: Future[Answer] = Future()
        done.set_result(Answer(error="nobody was asked"))
        return done


@pytest.fixture
def environments(monkeypatch):
    """Collect every shape environment, without the caches that replay guards as text."""
    made = []
    original = ShapeEnv.__init__

    def watched(self, *args, **kwargs):
        original(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(ShapeEnv, "__init__", watched)
    monkeypatch.setattr(client, "worker_for", lambda *_: Nobody())
    with (
        torch._inductor.config.patch(fx_graph_cache=False),
        torch._functorch.config.patch(enable_autograd_cache=False),
    ):
        yield made


def state(environment) -> dict[str, list[str]]:
    """Return all that a shape environment decided."""
    return {
        "guards": [str(guard.expr) for guard in environment.guards],
        "replacements": list(map(str, environment.replacements.items())),
        "ranges": list(map(str, environment.var_to_range.items())),
        "asserts": list(map(str, environment.deferred_runtime_asserts)),
    }


def run(shell, environments, setup: str, cell: str) -> list[dict[str, list[str]]]:
    torch._dynamo.reset()
    shell.run(f"import torch\n{setup}")
    environments.clear()
    ran = shell.run(cell)
    assert ran.error is None
    return [state(environment) for environment in environments]


@pytest.mark.parametrize("name", CELLS)
def test_what_is_watched_adds_no_guard(shell, environments, name):
    setup, calls = CELLS[name]
    plain = run(shell, environments, f"{setup}f = torch.compile(f)\n", calls)
    assert any(found["ranges"] for found in plain)
    for flags in FLAGS:
        watched = run(shell, environments, setup, f"%%dynamo {flags}\n{calls}")
        assert watched[: len(plain)] == plain, flags
        assert len(watched) == len(plain) or "--check" in flags, flags
        assert not shell.record.notes, flags


def test_what_is_timed_adds_no_guard(shell, environments):
    setup, calls = CELLS["marked"]
    plain = run(shell, environments, f"{setup}f = torch.compile(f)\n", calls)
    watched = run(shell, environments, setup, f"%%dynamo --time\n{calls}")
    assert watched[: len(plain)] == plain


def test_inputs_without_values_are_not_interpreted(shell, environments):
    """A fake tensor has none, and a number that only the run tells has none either."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    from dynamo_nb.capture.graph_inputs import UntakableError, pack_inputs

    environment, module = ShapeEnv(), torch.fx.symbolic_trace(torch.nn.Identity())
    with FakeTensorMode(shape_env=environment), pytest.raises(UntakableError, match="fake"):
        pack_inputs([torch.ones(3)], module)
    with pytest.raises(UntakableError, match="a number without a value"):
        pack_inputs([environment.create_unbacked_symint()], module)
    assert not environment.guards


def test_a_formula_that_compares_sizes_adds_no_guard():
    from torch._dynamo.source import ConstantSource
    from torch._inductor.sizevars import SizeVarAllocator
    from torch._inductor.virtualized import V

    from dynamo_nb.capture.work import _count

    environment = ShapeEnv()
    two = [
        environment.create_symintnode(
            environment.create_symbol(hint, ConstantSource(name), DimDynamic.DYNAMIC), hint=hint
        )
        for name, hint in (("a", 6), ("b", 6))
    ]
    node = torch.fx.Graph().call_function(torch.add, ())
    node.meta["val"] = None

    def formula(out_val):
        assert two[0] == two[1]
        return two[0] * two[1]

    graph = SimpleNamespace(sizevars=SizeVarAllocator(environment))
    with V.set_graph_handler(graph):
        assert _count(node, formula) == 36
    assert not environment.guards
    assert not environment.replacements
