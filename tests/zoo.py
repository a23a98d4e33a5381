"""Small functions that between them need every kind of kernel; each is a cell that defines `f`.

They are text because they go through the magic as a user's cell does.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ZOO", "Function"]


@dataclass(frozen=True)
class Function:
    """A function: `code` is its body, `inputs` the expressions of its arguments.

    Arguments that are floats are differentiated unless `trains` is false. `draws` says that it uses
    random numbers, so that two devices can't agree.
    """

    name: str
    parameters: str
    code: str
    inputs: tuple[str, ...]
    trains: bool = True
    draws: bool = False

    def __str__(self) -> str:
        return self.name

    def definition(self) -> str:
        """Return the cell that defines the function and its inputs."""
        return (
            "import torch\nimport torch.nn.functional as F\n\n"
            f"def f({self.parameters}):\n    return {self.code}\n\n"
            "_ = torch.manual_seed(0)\n"
            f"inputs = [{', '.join(self.inputs)}]\n"
            "inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]\n"
        )

    def forward(self) -> str:
        """Return the cell that calls it with nothing to differentiate."""
        return "with torch.no_grad():\n    output = f(*inputs)\n"

    def training(self) -> str:
        """Return the cell that calls it and runs the backward."""
        return "output = f(*inputs)\noutput.float().pow(2).sum().backward()\n"


ZOO = [
    Function("pointwise", "x, y", "torch.relu(x * 2 + y)", ("torch.randn(64, 48)",) * 2),
    Function(
        "reduction",
        "x",
        "(x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)",
        ("torch.randn(4, 600)",),
    ),
    Function("softmax", "x", "torch.softmax(x, -1)", ("torch.randn(4, 30)",)),
    Function(
        "layer_norm",
        "x, w, b",
        "F.layer_norm(x, (48,), w, b)",
        ("torch.randn(8, 48)", "torch.randn(48)", "torch.randn(48)"),
    ),
    Function(
        "matmul",
        "a, w, b",
        "F.gelu(F.linear(a, w, b))",
        ("torch.randn(16, 32)", "torch.randn(24, 32)", "torch.randn(24)"),
    ),
    Function(
        "convolution",
        "x, w, b",
        "torch.relu(F.conv2d(x, w, b, padding=1))",
        ("torch.randn(1, 3, 8, 8)", "torch.randn(4, 3, 3, 3)", "torch.randn(4)"),
    ),
    Function(
        "attention",
        "q, k, v",
        "F.scaled_dot_product_attention(q, k, v, is_causal=True) * 2",
        ("torch.randn(1, 2, 16, 32).half()",) * 3,
    ),
    Function(
        "scatter",
        "x, i",
        "torch.zeros_like(x).scatter_add(0, i, x * 2)",
        ("torch.randn(8, 16)", "torch.randint(0, 8, (8, 16))"),
    ),
    Function("sort", "x", "torch.sort(x)[0] + 1", ("torch.randn(2, 16)",)),
    Function("cumsum", "x", "torch.cumsum(x * 2, 0)", ("torch.randn(50)",)),
    Function("dropout", "x", "F.dropout(x, 0.5, True)", ("torch.randn(256)",), draws=True),
    Function(
        "embedding",
        "w, i",
        "F.embedding(i, w).sum(1)",
        ("torch.randn(100, 16)", "torch.randint(0, 100, (4, 8))"),
    ),
]
