"""How much arithmetic scheduled operations are, and in which dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree

from dynamo_nb.capture.kernels import extern_nodes

__all__ = ["dtype_of", "flops_of", "hint"]

#: What makes random floats of integers.
_RANDOM = {"rand", "randn"}
#: What a loop body does with numbers that is no arithmetic: memory, choices, types, random bits.
_NO_ARITHMETIC = {
    "check_bounds",
    "constant",
    "frexp",
    "get_index",
    "identity",
    "index_expr",
    "load",
    "load_seed",
    "masked",
    "partial_accumulate",
    *_RANDOM,
    "sort",
    "store_reduction",
    "to_dtype",
    "to_dtype_bitcast",
    "where",
}
#: What gives integers or truth values of whatever it takes.
_NOT_FLOATS = {
    "bucketize",
    "ceil_to_int",
    "floor_to_int",
    "get_index",
    "isinf",
    "isnan",
    "load_seed",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "randint64",
    "round_to_int",
    "signbit",
    "trunc_to_int",
    *("eq", "ne", "lt", "le", "gt", "ge"),
}
#: Reductions that only choose or combine truth values.
_CHOOSING = {"any", "argmax", "argmin", "xor_sum"}
#: Reductions of several results, and how many operations each of these takes of an element.
_SEVERAL = {"online_softmax_reduce": 2, "welford_combine": 4, "welford_reduce": 3}

#: What matrix units multiply: a mask or an index among the inputs is not it.
_MULTIPLIED = {torch.int8, torch.uint8}


def flops_of(parts: Sequence[Any]) -> int | None:
    """Return how many floating-point operations scheduled ones take, None where one is unknown.

    Matrix products and the like count by torch's own formulas (`torch/utils/flop_counter.py`,
    2.13), loops by the arithmetic of their body, each operation as one whatever it costs. Integers,
    comparisons and indices do not count. Symbolic sizes count by their hints.
    """
    counts = [_flops(part) for part in parts]
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


def hint(size: Any) -> int:
    """Return a size as a number: that of a symbol is the one that was seen."""
    from torch._inductor.virtualized import V

    if isinstance(size, torch.SymInt):
        size = size.node.expr
    return int(size) if isinstance(size, int) else int(V.graph.sizevars.optimization_hint(size, 1))


def _flops(part: Any) -> int | None:
    body = getattr(part, "_body", None)
    if body is None:
        product = _product(part)
        return _count(*product) if product is not None else None
    work = _arithmetic_of(body)
    for sizes in part.get_ranges():
        for size in sizes:
            work *= hint(size)
    return int(work)


def _arithmetic_of(body: Any) -> int:
    """Return the floating-point operations of one turn of a loop."""
    blocks = {name: block.graph for name, block in body.subblocks.items()}
    return _Arithmetic(blocks).of(body.root_block.graph)


class _Arithmetic:
    """Goes through a loop's graphs, and knows of each value whether it is a float.

    What is computed twice is once in the code that Inductor writes.
    """

    def __init__(self, blocks: dict[str, fx.Graph]) -> None:
        self._blocks = blocks
        self._floats: dict[fx.Node, bool] = {}
        self._gives_float = False
        self._same: dict[fx.Node, fx.Node] = {}
        self._known: dict[str, fx.Node] = {}

    def of(self, graph: fx.Graph) -> int:
        """Return how many operations of a graph are floating-point arithmetic."""
        return sum(self._take(node) for node in graph.nodes if self._is_new(node))

    def _is_new(self, node: fx.Node) -> bool:
        args = fx.map_arg((node.args, node.kwargs), lambda used: self._same.get(used, used))
        key = f"{node.op} {node.target} {args}"
        self._same[node] = first = self._known.setdefault(key, node)
        self._floats[node] = self._floats.get(first, False)
        return first is node

    def _take(self, node: fx.Node) -> int:
        name = str(node.target)
        if node.op == "output":
            self._gives_float = self._takes_float(node)
            return 0
        if name in self._blocks:  # what a mask decides about
            inner = _Arithmetic(self._blocks)
            count = inner.of(self._blocks[name])
            self._floats[node] = inner._gives_float
            return count
        self._floats[node] = is_float = self._is_float(node, name)
        if name == "store":
            return int(_argument(node, 4, "mode") == "atomic_add" and self._takes_float(node))
        if name == "reduction" and is_float:
            return _SEVERAL.get(node.args[3], node.args[3] not in _CHOOSING)
        return int(node.op == "call_method" and is_float and name not in _NO_ARITHMETIC)

    def _is_float(self, node: fx.Node, name: str) -> bool:
        if name in _NOT_FLOATS or name in _RANDOM or node.op == "placeholder":
            return name in _RANDOM
        dtypes = [item for item in _pytree.tree_leaves(node.args) if isinstance(item, torch.dtype)]
        if dtypes:  # of a constant, a conversion, a reduction
            return dtypes[0].is_floating_point
        if name == "load":
            from torch._inductor.virtualized import V

            return bool(V.graph.get_dtype(node.args[1]).is_floating_point)
        return self._takes_float(node)

    def _takes_float(self, node: fx.Node) -> bool:
        return any(self._floats.get(used, False) for used in node.all_input_nodes)


def _argument(node: fx.Node, at: int, name: str) -> Any:
    return node.args[at] if len(node.args) > at else node.kwargs.get(name)


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
