"""`--interpret`: the kernels of an absent GPU, run on the CPU and compared with eager."""

from __future__ import annotations

import pytest

from dynamo_nb.runner import targeting
from dynamo_nb.target import client
from dynamo_nb.target.jobs import INTERPRET
from tests.zoo import ZOO

pytestmark = pytest.mark.xdist_group("target")

MAGIC = "%%dynamo --fresh --backend eager --target cuda:90 --interpret"


@pytest.mark.parametrize("function", ZOO, ids=str)
def test_kernels_of_the_zoo_agree_with_eager(shell, function):
    shell.run(function.definition())
    ran = shell.run(f"{MAGIC}\n{function.training()}")
    assert ran.error is None
    (check,) = shell.record.checks
    assert (check.name, check.line, check.target) == ("f", 2, "cuda:90")
    if function.draws:
        assert check.status == "not repeated"
        assert "random numbers" in check.reason
    else:
        assert (check.status, check.mismatches) == ("same", [])
        assert check.gradients
    assert not [finding for finding in shell.record.findings if finding.code == "result-differs"]


def test_kernels_for_amd_and_of_symbolic_sizes_agree(shell):
    shell.run(
        "import torch\nx = torch.randn(6, 20, requires_grad=True)\n"
        "def f(x):\n    return torch.relu(x * 2 + x.shape[0]).sum(-1)\n"
    )
    line = "%%dynamo --fresh --backend eager --dynamic true --target hip:gfx942 --interpret"
    ran = shell.run(f"{line}\nf(x)")
    (check,) = shell.record.checks
    assert (check.status, check.gradients) == ("same", True)
    assert "of the Triton kernels for hip:gfx942, interpreted, agree with eager" in " ".join(
        ran.report.split()
    )


OPTIMIZER = """\
import torch
model = torch.nn.Linear(8, 8)
model(torch.randn(2, 8)).sum().backward()
optimizer = torch.optim.{name}
def step():
    optimizer.step()
"""


@pytest.mark.parametrize(
    "name",
    [
        "SGD(model.parameters(), lr=0.1, momentum=0.9)",
        "AdamW(model.parameters())",
        "AdamW(model.parameters(), capturable=True)",
    ],
)
def test_a_compiled_optimizer_is_taken_with_what_it_holds(shell, name):
    """Parameters and state, of which each step leaves others: eager's and the kernels' agree."""
    shell.run(OPTIMIZER.format(name=name))
    assert shell.run(f"{MAGIC} --as-is\ntorch.compile(step, backend='eager')()").error is None
    (entry,) = [entry for entry in shell.record.compiles if entry.targets]
    (target,) = entry.targets
    assert not target.error
    assert {kernel.language for kernel in target.kernels} == {"triton"}
    (check,) = shell.record.checks
    assert (check.status, check.mismatches) == ("same", [])


def test_what_stands_for_the_gpu_is_named(shell):
    shell.run("import torch\nx = torch.randn(4, 8)\ndef f(x):\n    return x.exp() + 1\n")
    shell.run(f"{MAGIC}\nf(x)")
    (check,) = shell.record.checks
    assert check.unchecked == ["the math library of the GPU: torch's own exp stood for it"]


def test_library_calls_that_the_cpu_does_are_named(shell):
    shell.run(
        "import torch\nw = torch.randn(4, 3, 3, 3)\n"
        "x = torch.randn(1, 3, 8, 8, requires_grad=True)\n"
        "def f(x):\n    y = torch.conv2d(x, w).relu().flatten(1)\n    return (y @ y.T + 1).sum()\n"
    )
    shell.run(f"{MAGIC}\nf(x).backward()")
    (check,) = shell.record.checks
    assert check.status == "same"
    (told,) = check.unchecked
    names = "convolution, convolution_backward, mm"
    assert told == f"library calls: the CPU's own {names} stood for the GPU's"


OVERLAPPING = (
    "import torch\ndef f(a, b):\n    a.add_(1)\n    return a * b\nbase = torch.zeros(8, 8)\n"
)


@pytest.mark.parametrize(
    ("parts", "dynamic"),
    [
        ("base[:4], base[2:6]", ""),
        ("base[:4], base[2:6]", "--dynamic true"),
        ("base, base[2:3]", ""),
        ("base, base[2:3]", "--dynamic true"),
        ("base.detach(), base.detach()", ""),  # torch itself fails on these with symbolic sizes
    ],
)
def test_inputs_that_overlap_overlap_there(shell, parts, dynamic):
    """The GPU's kernels are made for what they are parts of, and read what the others write."""
    shell.run(OVERLAPPING)
    shell.run(f"{MAGIC} {dynamic}\nf({parts})")
    (entry,) = shell.record.compiles
    (target,) = entry.targets
    assert not target.error
    graph = next(graph for graph in target.graphs if "post_grad" in graph.name)
    assert any("as_strided" in str(node.target) for node in graph.nodes)
    (check,) = shell.record.checks
    assert (check.status, check.reason, check.mismatches) == ("same", "", [])


@pytest.mark.parametrize(
    ("parts", "status"),
    [("base[:4], base[2:6]", "not repeated"), ("*base.chunk(2, -1)", "same")],
)
def test_inputs_that_overlap_under_autograd_are_not_compared(shell, parts, status):
    """Columns beside one another lie between each other's, and do not overlap."""
    shell.run(
        "import torch\nbase = torch.randn(8, 8, requires_grad=True) * 1\n"
        "def f(a, b):\n    return a * b\n"
    )
    shell.run(f"{MAGIC}\nf({parts})")
    (check,) = shell.record.checks
    assert check.status == status
    assert check.reason.startswith("its inputs overlap" if status != "same" else "")


@pytest.mark.parametrize(("end", "is_told"), [("", False), (".float()", True)])
def test_roundings_that_a_kernel_leaves_out_are_at_most_a_warning(shell, end, is_told):
    shell.run(
        "import torch\ntorch.manual_seed(1)\nx = torch.randn(32, 32)\n"
        f"def f(x):\n    return (x.half() * 1.1 + 0.3).sin().sum(-1){end}\n"
    )
    shell.run(f"{MAGIC}\nf(x)")
    (check,) = shell.record.checks
    assert (check.status, check.casts) == ("differs" if is_told else "same", is_told)
    found = [item for item in shell.record.findings if item.code == "result-differs"]
    assert [item.severity for item in found] == ["warning"] * is_told


def test_a_wrong_constant_in_a_kernel_is_caught(shell, monkeypatch):
    planted = client.Worker("cuda:90", INTERPRET, module="tests.planted_worker")
    monkeypatch.setitem(client._workers, ("cuda:90", INTERPRET), planted)
    shell.run("import torch\nx = torch.randn(4, 8, requires_grad=True)\n")
    try:
        shell.run(f"{MAGIC} --compile cell\ny = x * 2\nz = y + 1")
    finally:
        planted.stop()
    (check,) = shell.record.checks
    assert check.status == "differs"
    names = [mismatch.name for mismatch in check.mismatches]
    assert "x.grad" in names
    (finding,) = [item for item in shell.record.findings if item.code == "result-differs"]
    assert finding.severity == "error"
    assert "for cuda:90" in finding.message
    assert "triton_poi_fused" in finding.message
    assert finding.line == 2


def test_autocast_is_not_compared_with_the_cpus(shell):
    shell.run("import torch\nx = torch.randn(8, 8)\ndef f(x):\n    return (x @ x).relu()\n")
    shell.run(f"{MAGIC}\nwith torch.autocast('cpu', dtype=torch.bfloat16):\n    f(x)")
    (check,) = shell.record.checks
    assert check.status == "not repeated"
    assert "casts otherwise on a GPU" in check.reason


def test_float8_is_beyond_the_interpreter(shell):
    shell.run(
        "import torch\nx = torch.randn(8, 8)\n"
        "def f(x):\n    return x.to(torch.float8_e4m3fn).float() + 1\n"
    )
    shell.run(f"{MAGIC}\nf(x)")
    (check,) = shell.record.checks
    assert (check.status, check.mismatches) == ("not repeated", [])
    assert check.reason == "it computes with float8, which Triton's interpreter does not"


def test_inputs_that_are_too_many_are_not_interpreted(shell):
    shell.run("import torch\nx = torch.randn(1200, 1000)\ndef f(x):\n    return x + 1\n")
    shell.run(f"{MAGIC}\nf(x)")
    (check,) = shell.record.checks
    assert check.status == "not repeated"
    assert check.reason == "its inputs have 1200000 elements, more than 1048576"


def test_an_interpreter_that_takes_too_long_is_ended(shell, monkeypatch):
    monkeypatch.setattr(targeting, "PATIENCE", 0.01)
    shell.run("import torch\nx = torch.randn(300, 300)\ndef f(x):\n    return x.softmax(-1)\n")
    ran = shell.run(f"{MAGIC}\nf(x)")
    assert ran.error is None
    (check,) = shell.record.checks
    assert "it took more than" in check.reason
