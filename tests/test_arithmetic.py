"""The operations that are counted of a kernel, against the lines of its generated code."""

from __future__ import annotations

import re

import pytest

from tests.zoo import ZOO, Function

pytestmark = pytest.mark.xdist_group("target")

#: A line of Triton that does arithmetic on floating-point numbers, in kernels without indices.
_ARITHMETIC = re.compile(
    r"^\s+tmp\d+ = \(?(tmp\d+ [-+*/] tmp\d+|-tmp\d+|tl\.fma|libdevice\.|tl_math\.|tl\.sigmoid|"
    r"tl\.sum|triton_helpers\.max)",
    re.MULTILINE,
)
#: Functions of which several operations are one kernel, each with what was inlined into it.
FUNCTIONS = [
    Function("softmax of a product", "x", "torch.softmax(x * 3, -1)", ("torch.randn(40, 48)",)),
    Function(
        "a quotient by a sum",
        "h, b",
        "(e := torch.exp(h + b)) / e.sum(-1, keepdim=True)",
        ("torch.randn(40, 48)", "torch.randn(48)"),
    ),
    Function(
        "a norm and activations",
        "x, w, b",
        "torch.sigmoid(F.gelu(F.layer_norm(x, (48,), w, b)))",
        ("torch.randn(40, 48)", "torch.randn(48)", "torch.randn(48)"),
    ),
    *(each for each in ZOO if each.name == "pointwise"),
]
#: Lines more that a kernel has: torch writes out a variance, with a mean of its own, `x` less that.
_OF_A_VARIANCE = 2


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_operations_are_the_lines_of_the_generated_code(shell, function):
    """Forward and backward; what is the same for a row counts once for it."""
    shell.run(function.definition())
    ran = shell.run(
        f"%%dynamo --fresh --backend eager --target cuda:90\n{function.training()}",
    )
    assert ran.error is None
    assert not shell.record.notes
    (entry,) = (entry for entry in shell.record.compiles if entry.targets)
    kernels = [kernel for kernel in entry.targets[0].kernels if kernel.language == "triton"]
    assert {kernel.graph.rpartition(".")[2] for kernel in kernels} == {"forward", "backward"}
    for kernel in kernels:
        outer, reduced = (_size(name, kernel.code) for name in ("xnumel", "r0_numel"))
        lines = len(_ARITHMETIC.findall(kernel.code))
        each, of_rows = divmod(kernel.flops, outer * reduced)
        is_variance = "forward" in kernel.graph and "layer_norm" in kernel.name
        assert each + of_rows // outer == lines - _OF_A_VARIANCE * is_variance


def _size(name: str, code: str) -> int:
    found = re.search(rf"^\s+{name} = (\d+)$", code, re.MULTILINE)
    return int(found[1]) if found else 1
