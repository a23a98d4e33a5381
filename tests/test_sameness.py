"""With the magic a cell does what it does without: output, result, names, exception.

And torch is afterwards what it was: functions, classes, loggers, configs, modes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests import sameness, snapshot
from tests.conftest import Shell
from tests.models import MODELS, build_cell, inference_cell, training_cell

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.cell"))
MAGIC = re.compile(r"\A%%dynamo.*")

#: Where torch.compile itself differs from eager: the cell is then what it is with torch.compile
#: written by hand, `old` replaced by `new`.
BY_HAND = {
    # an operator without a fake implementation can't be traced
    "op_without_fake": ("use(torch", 'torch.compile(use, backend="eager")(torch'),
    # a dimension that was marked dynamic must not be specialized
    "dynamic_dim_specialized": ("project(x, t", 'torch.compile(project, backend="eager")(x, t'),
    "marked_branch": ("\nf(x)", '\ntorch.compile(f, backend="eager")(x)'),
    # a graph break is an error where a full graph is asked for
    "fullgraph_print": (
        "loud(torch",
        'torch.compile(loud, backend="eager", fullgraph=True)(torch',
    ),
    # a compiled function does not see a hook that is added to a module it has inlined
    "hook_in_function": ("predict(torch", 'torch.compile(predict, backend="eager")(torch'),
    # what raises while it is traced passes the `except` around it
    "except_passed": ("seven(torch", 'torch.compile(seven, backend="eager")(torch'),
    # what raises after a graph break does so in a resume function, which is one more frame
    "interrupted": ("stop(torch", 'torch.compile(stop, backend="eager")(torch'),
}
TRACEBACK = re.compile(r"^-{20,}\n.*", re.DOTALL | re.MULTILINE)

#: Cells whose result is new at each run.
CHANGING = {"clock_call": ("stdout", "value", "namespace['_")}


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Let torch do what it does once, at the first compile of a process: that is no change."""

    def first(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(torch.nn.Linear(3, 3)(x)).sum()

    torch.compile(first)(torch.ones(3)).backward()
    torch.compiler.reset()


@pytest.fixture
def bare() -> Iterator[Shell]:
    """A shell that never hears of the extension."""
    shell = Shell()
    yield shell
    shell.ip.restore_sys_module_state()


def case_cell(name: str) -> str:
    """Return a case's cell; flags that speak of later features are left out."""
    return (CASES / f"{name}.cell").read_text().replace(" --check", "", 1)


def without_magic(cell: str) -> str:
    """Return the cell with a comment for its first line, so that lines keep their numbers."""
    return MAGIC.sub("# plain", cell)


@pytest.mark.parametrize("name", NAMES)
def test_a_case_is_the_plain_cell(name, bare, request):
    cell = case_cell(name)
    plain = sameness.run(bare, without_magic(cell))
    shell = request.getfixturevalue("shell")
    before = snapshot.take()
    magic = sameness.run(shell, cell, reports=1)
    assert not snapshot.differences(before, snapshot.take())

    found = sameness.differences(plain, magic)
    if name in BY_HAND:
        assert found, "eager and compiled agree: take it off the list"
        by_hand = without_magic(cell).replace(*BY_HAND[name])
        assert by_hand != without_magic(cell)
        hand = sameness.run(Shell(), by_hand)
        for one in (hand, magic):  # a traceback quotes the call, which is written differently
            one.stdout = TRACEBACK.sub("", one.stdout)
        found = sameness.differences(hand, magic)
    assert not [path for path in found if not path.startswith(CHANGING.get(name, ()))]


@pytest.mark.xdist_group("models")
@pytest.mark.parametrize("kind", [inference_cell, training_cell])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_model_is_the_plain_cell(model, kind, bare, request):
    assert bare.run(build_cell(model)).error is None
    plain = sameness.run(bare, f"# plain\n{kind(model)}")
    shell = request.getfixturevalue("shell")
    assert shell.run(build_cell(model)).error is None
    before = snapshot.take()
    magic = sameness.run(shell, f"%%dynamo\n{kind(model)}", reports=1)
    assert shell.record.compiles
    assert not snapshot.differences(before, snapshot.take())
    assert not sameness.differences(plain, magic, tolerance=1e-4)


STOPPING = """\
%%dynamo --backend stopping --fresh --config recompile_limit=2 --device meta
def double(x):
    return x * 2

double(torch.ones(3))
"""


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "ValueError('on purpose')", "SystemExit"])
def test_torch_is_put_back_when_compiling_stops_halfway(shell, error):
    shell.run(f"import torch\ndef stopping(graph, inputs):\n    raise {error}")
    shell.run("%%dynamo --backend eager\ntorch.ones(3) + 1")  # what is imported late is now there
    before = snapshot.take()
    ran = shell.run(STOPPING)
    assert ran.error is not None
    assert shell.record.error is not None
    assert not snapshot.differences(before, snapshot.take())


def test_the_snapshot_sees_a_capture():
    """The comparisons above can fail: while a capture is on, torch is not what it was."""
    from dynamo_nb.capture import Capture

    before = snapshot.take()
    with Capture():
        changed = snapshot.differences(before, snapshot.take())
    assert {name.split(":")[0] for name in changed} >= {"attributes", "loggers", "slots"}


def test_the_comparison_sees_differences(bare):
    """The comparisons above can fail: each part of an outcome is looked at."""
    one = sameness.run(bare, "import torch\nprint(1)\nx = {'a': [torch.ones(2)]}\n5")
    other = sameness.run(Shell(), "import torch\nprint(2)\nx = {'a': [torch.zeros(2)]}\n6 / 0")
    found = {path.split(":")[0] for path in sameness.differences(one, other)}
    assert found >= {"stdout", "value", "error[0]", "error[1]", "namespace['x']['a'][0]"}
