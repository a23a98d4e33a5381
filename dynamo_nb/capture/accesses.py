"""What scheduled operations read and write: of each buffer how many bytes, and at which places.

Inductor has an estimate of its own (`get_read_write_buffer_accesses`). It takes the whole buffer
where a group looks up a few elements of it, and a written slice for the whole buffer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch._inductor import ir
from torch._inductor.dependencies import MemoryDep, StarDep
from torch._inductor.scheduler import NopKernelSchedulerNode
from torch._inductor.virtualized import V
from torch.utils import _pytree

from dynamo_nb.capture.arithmetic import hint
from dynamo_nb.capture.kernels import extern_nodes, is_view

__all__ = ["Accesses", "accesses", "capacity"]

#: Of each buffer the places that are accessed, as text, with their bytes.
Accesses = dict[str, dict[str, int]]
#: A buffer, a place in it, the bytes there.
_Access = tuple[str, str, int]

_WHOLE = "all"
#: In-place operators that only write: what was there before does not matter.
_OVERWRITING = ("bernoulli_", "copy_", "scatter_", "index_put_")
#: How results that are added to what is there are stored.
_ADDED = "atomic_add"


def accesses(node: Any) -> tuple[Accesses, Accesses]:
    """Return what a group of operations reads and what it writes.

    What one of them leaves for another of the group is in no memory, or is not read from there.
    """
    parts = [part for part in node.get_nodes() if not isinstance(part, NopKernelSchedulerNode)]
    reads, writes = (_merged(side(part) for part in parts) for side in (_reads, _writes))
    own = {part.get_name() for part in parts}
    kept = {name: places for name, places in writes.items() if _is_kept(node, name, own)}
    return {name: places for name, places in reads.items() if name not in writes}, kept


def capacity(name: str) -> int:
    """Return the bytes of a buffer, 0 where it has none; of one that is a slice those of all."""
    buffer = _whole(name)
    layout = buffer.maybe_get_layout() if hasattr(buffer, "maybe_get_layout") else None
    if isinstance(layout, ir.Layout):
        return _count(layout.size) * layout.dtype.itemsize
    constant = V.graph.constants.get(name)
    return constant.nbytes if constant is not None else 0


def _merged(found: Iterable[Iterable[_Access]]) -> Accesses:
    merged: Accesses = {}
    for each in found:
        for name, place, size in each:
            if size:
                merged.setdefault(name, {})[place] = min(size, capacity(name) or size)
    return merged


def _is_kept(node: Any, name: str, own: set[str]) -> bool:
    """Tell whether anything outside a group uses what the group wrote."""
    buffer = node.scheduler.name_to_buf.get(name)
    users = buffer.users if buffer is not None else ()
    return buffer is None or any(not user.is_weak and user.get_name() not in own for user in users)


def _whole(name: str) -> Any:
    """Return the buffer whose memory a name is; it may stand for a slice that was written."""
    graph = V.graph
    buffer = graph.name_to_buffer.get(name) or graph.graph_inputs.get(name)
    layout = getattr(buffer, "layout", None)
    if isinstance(layout, ir.MutationLayoutSHOULDREMOVE):
        return layout.get_buffer()
    if isinstance(layout, ir.NoneLayout) and (mutated := buffer.get_mutation_names()):
        return _whole(mutated[0])
    return buffer


def _count(sizes: Iterable[Any]) -> int:
    return math.prod(hint(size) for size in sizes)


# ------------------------------------------------------------------ by kind of operation


def _reads(part: Any) -> Iterator[_Access]:
    if isinstance(part.node, ir.UserDefinedTritonKernel):
        yield from _of_user_kernel(part, "reads")
    elif part.is_extern():
        yield from _read_by_call(part)
    else:
        written = {_real(part, dep.name) for dep in part.read_writes.writes}
        for dep in part.read_writes.reads:
            # besides reads there are dependencies that only keep an order
            if isinstance(dep, MemoryDep) or _real(part, dep.name) not in written:
                yield from _of_dependency(part, dep)
        current = _current_names(part)
        for dep in part.read_writes.writes:
            if getattr(dep, "mode", None) == _ADDED:
                before = current.get(_real(part, dep.name), dep.name)
                for _, place, size in _of_dependency(part, dep):
                    yield before, place, size


def _writes(part: Any) -> Iterator[_Access]:
    if isinstance(part.node, ir.UserDefinedTritonKernel):
        yield from _of_user_kernel(part, "writes")
    elif part.is_extern():
        yield from _written_by_call(part)
    else:
        for dep in part.read_writes.writes:
            yield from _of_dependency(part, dep)


def _real(part: Any, name: str) -> str:
    return str(part.scheduler.mutation_real_name.get(name, name))


def _of_dependency(part: Any, dep: Any) -> Iterator[_Access]:
    """Yield the elements that a loop comes to: each once, however often."""
    if isinstance(dep, StarDep):
        yield dep.name, _WHOLE, capacity(dep.name)
    elif isinstance(dep, MemoryDep):
        used = dep.index.free_symbols
        if is_indirect := dep.is_indirect():
            # which ones is known at run time: at most one at each turn of the loop
            count = math.prod(_count(sizes) for sizes in part.get_ranges())
        else:
            count = _count(size for var, size in dep.ranges.items() if var in used)
        size = count * V.graph.get_dtype(dep.name).itemsize
        if size >= (whole := capacity(dep.name)):
            yield dep.name, _WHOLE, whole or size
        elif is_indirect:
            yield dep.name, f"{part.get_name()}: {dep.index}", size
        else:
            dep = dep.normalize()  # the same place, however the loops are cut
            yield dep.name, f"{dep.index}, {dep.size}", size


def _of_user_kernel(part: Any, side: str) -> Iterator[_Access]:
    """Yield the arguments that torch finds read or written in the kernel's code."""
    kernel = part.node
    output_of = {
        output.get_mutation_names()[0]: output.get_name() for output in kernel.mutation_outputs
    }
    told = kernel.arg_accesses.read_writes if hasattr(kernel, "arg_accesses") else None
    if told is not None:
        of_argument = {
            name: argument.get_name()
            for name, argument in kernel.kernel_args.items()
            if isinstance(argument, ir.IRNode)
        }
        used = {of_argument.get(dep.name) for dep in getattr(told, side)}
    else:  # torch 2.11 knows only what is written
        used = {item.get_name() for item in kernel.inputs} if side == "reads" else set(output_of)
    names = output_of if side == "writes" else _current_names(part)
    for item in kernel.inputs:
        if item.get_name() in used:
            yield names.get(item.get_name(), item.get_name()), _place(item), _elements_of(item)


def _read_by_call(part: Any) -> Iterator[_Access]:
    call = part.node
    if isinstance(call, ir.MultiOutput) or is_view(call):
        return
    mutated = set(call.get_mutation_names())
    current = _current_names(part)
    inputs = _pytree.tree_leaves((call.inputs, call.constant_args, call.kwargs))
    for item in (item for item in inputs if isinstance(item, ir.IRNode)):
        name = item.maybe_get_name()
        if name is None or (name in mutated and _only_writes(call)):
            continue
        size = _elements_of(item)
        if name in mutated:
            size = min(size, _touched(call) or size)
        yield current.get(name, name), _place(item), size


def _written_by_call(part: Any) -> Iterator[_Access]:
    call = part.node
    if isinstance(call, ir.MultiOutput) or is_view(call):
        return
    for output in call.get_outputs():
        name = output.get_name()
        if isinstance(output.layout, ir.MultiOutputLayout):
            yield from _results(part, name)
        else:
            size = capacity(name)
            yield name, _WHOLE, min(size, _touched(call) or size)


def _results(part: Any, name: str) -> Iterator[_Access]:
    """Yield the several results of a call; those that nothing uses have no name of their own."""
    users = (getattr(user.node, "node", None) for user in part.scheduler.name_to_buf[name].users)
    used = [user for user in users if isinstance(user, ir.MultiOutput)]
    sizes = {user.get_name(): capacity(user.get_name()) for user in used}
    for result, size in sizes.items():
        yield result, _WHOLE, size
    nodes = extern_nodes(part.node)
    values = _pytree.tree_leaves(nodes[0].meta.get("val")) if len(nodes) == 1 else []
    all_ = sum(
        _count(value.shape) * value.dtype.itemsize
        for value in values
        if isinstance(value, torch.Tensor)
    )
    yield name, _WHOLE, max(0, all_ - sum(sizes.values()))


def _current_names(part: Any) -> dict[str, str]:
    """Return what the buffers are called that an operation reads: another name at each write."""
    return {_real(part, dep.name): dep.name for dep in part.read_writes.reads}


def _place(item: Any) -> str:
    layout = item.maybe_get_layout()
    if not isinstance(layout, ir.Layout):
        return _WHOLE
    return f"{layout.offset}, {layout.size}, {layout.stride}"


def _elements_of(item: Any) -> int:
    """Return the bytes of an argument, which may be a view that repeats elements."""
    layout = item.maybe_get_layout()
    if not isinstance(layout, ir.Layout):
        return 0
    pairs = zip(layout.size, layout.stride, strict=True)
    return _count(size for size, step in pairs if step != 0) * int(layout.dtype.itemsize)


# ------------------------------------------------------------------ calls that write in place


def _only_writes(call: Any) -> bool:
    """Tell whether an in-place call takes no account of what it writes over."""
    operator = getattr(call.op_overload, "_opname", "")
    accumulates = isinstance(call, ir.IndexPutFallback) and call.constant_args[0]
    return isinstance(call, ir.InplaceCopyFallback) or (
        operator in _OVERWRITING and not accumulates and not call.kwargs.get("reduce")
    )


def _touched(call: Any) -> int | None:
    """Return the bytes that an in-place call comes to, None for all."""
    if isinstance(call, ir.ScatterFallback):
        written, index = call.inputs[:2]
        return _count(index.get_size()) * int(written.get_dtype().itemsize)
    if isinstance(call, ir.IndexPutFallback):
        written, _, *indices = call.inputs
        if any(not index.get_dtype().is_signed for index in indices):  # masks
            return None
        places = max(_count(index.get_size()) for index in indices)
        free = [
            size
            for at, size in enumerate(written.get_size())
            if at >= len(call.indices) or call.indices[at] is None
        ]
        return places * _count(free) * int(written.get_dtype().itemsize)
    return None
