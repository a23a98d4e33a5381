"""How much floating-point arithmetic the loops of a kernel do: what they compute twice counts once.

Each scheduled operation has a loop body of its own, with all that was inlined into it, so that
operations which are fused repeat each other. The code that Inductor writes for them doesn't: it
keeps values by how they are computed, and does not load what it has just stored. So does this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree

__all__ = ["hint", "operations_of_loops"]

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
_STORES = ("store", "store_reduction")
_ADDED = "atomic_add"

#: Where two indices are compared, in parts of the loops: equal at all of these, they are the same.
_AT = (0.0, 0.13, 0.37, 0.71, 1.0)
#: Keeps the numbers of values apart that stand for what is looked up.
_SPREAD = 7919


def hint(size: Any) -> int:
    """Return a size as a number: that of a symbol is the one that was seen."""
    from torch._inductor.virtualized import V

    if isinstance(size, torch.SymInt):
        size = size.node.expr
    if isinstance(size, int) or getattr(size, "is_Integer", False):
        return int(size)
    return int(V.graph.sizevars.optimization_hint(size, 1))


def operations_of_loops(bodies: Sequence[Any]) -> int:
    """Return how many floating-point operations the loop bodies of one kernel do."""
    loops = [_Loop.of(body) for body in bodies]
    widest = max(loops, key=lambda loop: loop.reduced, default=None)
    if widest is None or not all(loop.turns for loop in loops):
        return 0
    kernel = _Kernel(widest.turns // widest.reduced, widest.reduced)
    return sum(_Turn(kernel, loop).count(loop.body.root_block.graph) for loop in loops)


@dataclass(frozen=True)
class _Loop:
    """One operation's loop: its body, its sizes, how often it turns, over how many it reduces."""

    body: Any
    sizes: tuple[int, ...]
    turns: int
    reduced: int

    @classmethod
    def of(cls, body: Any) -> _Loop:
        kept, over = (tuple(hint(size) for size in side) for side in body.sizes)
        return cls(body, (*kept, *over), math.prod((*kept, *over)), math.prod(over))


@dataclass(frozen=True)
class _Value:
    """What is computed: `each` tells that it differs along what the kernel reduces over."""

    number: int
    is_float: bool
    each: bool


class _Kernel:
    """What a kernel has computed so far, by how, and what it has stored, by where."""

    def __init__(self, outer: int, reduced: int) -> None:
        self.outer = outer
        self.reduced = reduced
        self.stored: dict[tuple[Any, ...], _Value] = {}
        self._known: dict[Hashable, _Value] = {}
        self._places: dict[Hashable, list[list[int]]] = {}

    def value(self, key: Hashable, make: Callable[[], tuple[bool, bool]]) -> tuple[_Value, bool]:
        """Return the value that is computed so, and whether it is new.

        `make` tells of a new one whether it is a float, and whether it differs along the reduction.
        """
        known = self._known.get(key)
        if known is not None:
            return known, False
        self._known[key] = made = _Value(len(self._known), *make())
        return made, True

    def is_own(self, loop: _Loop) -> bool:
        """Tell whether a loop turns neither as the reductions do nor as what they leave."""
        return loop.turns not in (self.outer, self.outer * self.reduced)

    def times(self, loop: _Loop, value: _Value) -> int:
        """Return how often a loop computes a value: once for all that it is the same for."""
        return loop.turns if value.each or self.is_own(loop) else self.outer

    def places(self, index: Any, loop: _Loop) -> list[list[int]]:
        """Return where an index leads at some turns of the kernel, however a loop is cut.

        There is a list for each turn that stays, of what it is along the reduction.
        """
        variables = (*loop.body.iter_vars, *loop.body.reduce_vars)
        key = (index, variables, loop.sizes)
        if key not in self._places:
            self._places[key] = [
                [
                    hint(
                        index.xreplace(dict(zip(variables, _unravel(at, loop.sizes), strict=True)))
                    )
                    for at in along
                ]
                for along in self._turns(loop)
            ]
        return self._places[key]

    def _turns(self, loop: _Loop) -> list[list[int]]:
        if self.is_own(loop):
            return [_some(loop.turns)]
        if loop.turns == self.outer:
            return [[at] * len(_some(self.reduced)) for at in _some(self.outer)]
        return [[at * self.reduced + r for r in _some(self.reduced)] for at in _some(self.outer)]


class _Turn:
    """Goes through the graphs of one loop's body, and counts what is new to the kernel."""

    def __init__(self, kernel: _Kernel, loop: _Loop) -> None:
        self._kernel = kernel
        self._loop = loop
        self._blocks = {name: block.graph for name, block in loop.body.subblocks.items()}
        self._indirect: dict[Any, _Value] = {}

    def count(self, graph: fx.Graph) -> int:
        """Return how many operations the loop adds to those that the kernel does already."""
        return self._of_graph(graph, None)[0]

    def _of_graph(self, graph: fx.Graph, mask: int | None) -> tuple[int, _Value | None]:
        """Return the operations of a graph, and its result; `mask` decides about what it loads."""
        values: dict[Any, _Value] = {}
        total = 0
        for node in graph.nodes:
            if node.op == "output":
                return total, next(map(values.get, node.all_input_nodes), None)
            if node.op == "placeholder":
                continue
            total += self._take(node, values, mask)
        return total, None

    def _take(self, node: fx.Node, values: dict[Any, _Value], mask: int | None) -> int:
        """Give a node its value, and return how many operations that takes."""
        name = str(node.target)
        used = [values[item] for item in node.all_input_nodes if item in values]
        floats, each = (any(value.is_float for value in used), any(value.each for value in used))
        count = 0
        key: tuple[Any, ...] = (name, mask if name == "load" else None)
        if name == "get_index":
            values[node] = self._index(str(node.args[0]))
            return 0
        if name in _STORES:
            return self._store(node, values)
        if name.startswith("set_indirect"):
            variable = name.removeprefix("set_")
            symbols = (item for item in self._loop.body.indirect_vars if str(item) == variable)
            self._indirect |= dict.fromkeys(symbols, used[0])
            return 0
        if name in self._blocks:  # what a mask decides about
            count, result = self._of_graph(self._blocks[name], used[0].number)
            key = ("masked", result.number if result is not None else None)
            floats, each = (result.is_float, each or result.each) if result else (False, each)
        if name == "load":
            place = (str(node.args[1]), *(value.number for value in used))
            stored = self._kernel.stored.get(place)
            if stored is not None:
                values[node] = stored
                return 0
        own = (node.args, node.kwargs)
        numbers = fx.map_arg(own, lambda item: values[item].number if item in values else "ops")
        is_float = floats if name in self._blocks else _is_float(node, name, floats)
        if name == "reduction":
            each = False
        value, is_new = self._kernel.value((*key, str(numbers)), lambda: (is_float, each))
        values[node] = value
        if not is_new:
            return count
        if name in ("reduction", "partial_accumulate") and is_float:
            kind = node.args[3] if name == "reduction" else node.args[2]
            return count + self._loop.turns * _SEVERAL.get(kind, kind not in _CHOOSING)
        is_work = node.op == "call_method" and is_float and name not in _NO_ARITHMETIC
        return count + (self._kernel.times(self._loop, value) if is_work else 0)

    def _store(self, node: fx.Node, values: dict[Any, _Value]) -> int:
        args: list[Any] = [*node.args[1:], *node.kwargs.values()]
        buffer, index, stored, *mode = args
        if not isinstance(stored, fx.Node) or stored not in values:
            return 0
        if _ADDED in mode:
            return self._loop.turns * values[stored].is_float
        self._kernel.stored[str(buffer), values[index].number] = values[stored]
        return 0

    def _index(self, name: str) -> _Value:
        """Return an index as a value: the same wherever it leads to the same places."""
        index = self._loop.body.indexing_exprs[name]
        looked_up = [
            (variable, value)
            for variable, value in self._indirect.items()
            if variable in index.free_symbols
        ]
        # what is looked up is known at run time: here its own number stands for it
        named = {variable: _integer(_SPREAD * (value.number + 1)) for variable, value in looked_up}
        places = self._kernel.places(index.xreplace(named), self._loop)
        each = any(value.each for _, value in looked_up) or any(
            len(set(along)) > 1 for along in places
        )
        own = self._loop.turns if self._kernel.is_own(self._loop) else 0
        return self._kernel.value(("index", own, str(places)), lambda: (False, each))[0]


def _is_float(node: fx.Node, name: str, floats: bool) -> bool:
    if name in _NOT_FLOATS or name in _RANDOM:
        return name in _RANDOM
    dtypes = [item for item in _pytree.tree_leaves(node.args) if isinstance(item, torch.dtype)]
    if dtypes:  # of a constant, a conversion, a reduction
        return dtypes[0].is_floating_point
    if name == "load":
        from torch._inductor.virtualized import V

        return bool(V.graph.get_dtype(node.args[1]).is_floating_point)
    return floats


def _some(length: int) -> list[int]:
    return [int(at * (length - 1)) for at in _AT]


def _unravel(at: int, sizes: tuple[int, ...]) -> list[Any]:
    """Return a turn's place in each of the loops of these sizes."""
    places = []
    for size in reversed(sizes):
        places.append(_integer(at % size))
        at //= size
    return places[::-1]


def _integer(number: int) -> Any:
    import sympy

    return sympy.Integer(number)
