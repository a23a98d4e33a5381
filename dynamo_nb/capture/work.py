"""How much arithmetic scheduled operations are, and in which dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._inductor.scheduler import ForeachKernelSchedulerNode

from dynamo_nb.capture.arithmetic import hint, operations_of_loops
from dynamo_nb.capture.kernels import extern_nodes

__all__ = ["dtype_of", "flops_of"]

#: What matrix units multiply: a mask or an index among the inputs is not it.
_MULTIPLIED = {torch.int8, torch.uint8}


def flops_of(node: Any) -> int | None:
    """Return how many floating-point operations a scheduled group takes, None where not known.

    Matrix products and the like count by torch's own formulas (`torch/utils/flop_counter.py`,
    2.13), loops by the arithmetic of their bodies, each operation as one whatever it costs, what
    several of them compute once. Integers, comparisons and indices do not count. Symbolic sizes
    count by their hints.
    """
    if isinstance(node, ForeachKernelSchedulerNode):  # several kernels side by side
        counts = [flops_of(each) for each in node.snodes]
    else:
        parts = list(node.get_nodes())
        bodies = [body for part in parts if (body := getattr(part, "_body", None)) is not None]
        calls = [_product(part) for part in parts if getattr(part, "_body", None) is None]
        counts = [_count(*call) if call is not None else None for call in calls]
        counts.append(operations_of_loops(bodies))
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def dtype_of(parts: Sequence[Any]) -> str:
    """Return the dtype by which the rate of that arithmetic is found.

    It is the one that a matrix product multiplies (`tf32` where float32 may be rounded to it), else
    that of loops: Inductor computes those of narrow floats in float32.
    """
    for part in parts:
        product = _product(part)
        if product is not None:
            return _multiplied(product[0])
    dtypes = (part.node.maybe_get_dtype() for part in parts if part.node is not None)
    return "float64" if torch.float64 in dtypes else "float32"


def _product(part: Any) -> tuple[fx.Node, Callable[..., Any]] | None:
    """Return the matrix product or the like that an operation is, with torch's formula for it."""
    own = extern_nodes(part.node) if part.is_extern() or part.is_template() else []
    known = [(node, formula) for node in own if (formula := _formula(node)) is not None]
    return known[0] if len(known) == 1 else None


def _formula(node: fx.Node) -> Callable[..., Any] | None:
    from torch.utils.flop_counter import flop_registry

    return flop_registry.get(getattr(node.target, "overloadpacket", node.target))


def _count(node: fx.Node, formula: Callable[..., Any]) -> int | None:
    from torch._inductor.virtualized import V

    args, kwargs = fx.map_arg((node.args, node.kwargs), lambda used: used.meta.get("val"))
    try:
        with V.graph.sizevars.shape_env.suppress_guards():  # formulas compare symbolic sizes
            return hint(formula(*args, **kwargs, out_val=node.meta.get("val")))
    except Exception:  # formulas assert what they take for granted
        return None


def _multiplied(node: fx.Node) -> str:
    values = [used.meta.get("val") for used in node.all_input_nodes]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    dtypes = [t.dtype for t in tensors if t.dtype.is_floating_point or t.dtype in _MULTIPLIED]
    narrow = min(dtypes, key=lambda dtype: dtype.itemsize, default=torch.float32)
    if narrow is torch.float32 and tensors[0].device.type == "cuda" and _may_be_tf32(node):
        return "tf32"
    return str(narrow).removeprefix("torch.")


def _may_be_tf32(node: fx.Node) -> bool:
    try:
        if "convolution" in str(node.target):
            return bool(torch.backends.cudnn.allow_tf32)
        return torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:  # where it was set by torch's new names, the old ones can't be asked
        return False
