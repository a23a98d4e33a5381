"""Inductor's schedule: what was fused, what each group reads and writes, what needs no kernel."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from dynamo_nb.capture.arithmetic import hint
from dynamo_nb.capture.branches import branch_nodes, node_name
from dynamo_nb.capture.operators import inner_graphs, operators_of
from dynamo_nb.capture.recorder import Hooked
from dynamo_nb.capture.replacements import is_backward
from dynamo_nb.capture.unfused import Declined, origins, unfused

if TYPE_CHECKING:
    from dynamo_nb.capture.accesses import Accesses

__all__ = ["install_schedule"]

#: Operators that give memory, and put nothing in it.
_ALLOCATES = ("empty", "new_empty")


def install_schedule(hooked: Hooked) -> None:
    """Watch `Scheduler.codegen`, and which pairs were not fused on the way there.

    `WhyNoFuse.__call__` gets the reason that torch's own fusion log prints
    (`torch/_inductor/scheduler.py`, 2.13).
    """
    from torch._inductor import scheduler

    recorder = hooked.recorder
    declined = Declined()

    def on_codegen(_: Any, schedule: Any) -> None:
        try:
            found = _schedule(schedule, declined.pairs, recorder.graph)
            found["branch_nodes"] = branch_nodes()
            recorder.emit("schedule", {"direction": recorder.graph, **found})
        finally:
            declined.clear()

    hooked.around(scheduler.WhyNoFuse, "__call__", before=declined.say)
    hooked.around(scheduler.Scheduler, "can_fuse", after=declined.answer)
    hooked.around(scheduler.Scheduler, "codegen", after=on_codegen)


def _schedule(
    schedule: Any, declined: dict[tuple[str, str], str], direction: str
) -> dict[str, Any]:
    from torch._inductor.virtualized import V

    from dynamo_nb.capture.accesses import accesses, capacity  # of torch, what may move
    from dynamo_nb.capture.work import dtype_of, flops_of

    graph = V.graph
    groups = [
        {
            **_group(node, *accesses(node)),
            "flops": flops_of(node),
            "dtype": dtype_of(list(node.get_nodes())),
        }
        for node in schedule.nodes
    ]
    touched = {name for group in groups for side in ("reads", "writes") for name in group[side]}
    return {
        "groups": groups,
        "sizes": {name: capacity(name) for name in touched},
        "buffers": list(_buffers(graph, touched)),
        "unfused": list(unfused(schedule.nodes, declined)),
        "in_place": dict(graph.wrapper_code.reuses),
        "folded": dict(_folded(graph.module.graph)),
        "operators": dict(_operators(graph.module.graph, direction)),
    }


# ------------------------------------------------------------------ groups


def _group(node: Any, reads: Accesses, writes: Accesses) -> dict[str, Any]:
    """Return one thing that is scheduled: its operations, and what it does to which buffers."""
    parts = list(node.get_nodes())
    return {
        "ops": [part.get_name() for part in parts],
        "nodes": list(dict.fromkeys(name for part in parts for name in origins(part))),
        "reads": reads,
        "writes": writes,
    }


# ------------------------------------------------------------------ buffers


def _buffers(graph: Any, touched: set[str]) -> Iterator[dict[str, Any]]:
    """Yield the buffers that exist at run time: inputs, constants, what kernels leave.

    What is written in place has a name of its own, but the memory of what was there before.
    """
    outputs = set(graph.get_output_names())
    touched = touched | {name for each in touched for name in _mutated(graph, each)}
    for name, item in graph.graph_inputs.items():
        if name in touched or name in outputs:
            yield from _buffer(graph, item, name=name, role="input", node=name)
    for name, item in graph.constants.items():
        if name in touched:
            yield {"name": name, "role": "constant", "node": "", **_of_tensor(item)}
    for name, item in graph.name_to_buffer.items():
        if name not in graph.removed_buffers and (name in touched or name in outputs):
            origin = item.get_origin_node()
            role = "output" if name in outputs else "intermediate"
            node = node_name(origin) if origin is not None else ""
            yield from _buffer(graph, item, name=name, role=role, node=node)


def _buffer(graph: Any, item: Any, *, name: str, role: str, node: str) -> Iterator[dict[str, Any]]:
    """Yield a buffer; nothing where it has no layout (several results, no result)."""
    layout = _layout(graph, item)
    if getattr(layout, "size", None) is None or getattr(layout, "dtype", None) is None:
        return
    size, stride = list(layout.size), list(layout.stride or ())
    count = layout.dtype.itemsize
    for length in size:
        count *= hint(length)
    yield {
        "name": name,
        "role": role,
        "node": node,
        "shape": [_size(length) for length in size],
        "stride": [_size(step) for step in stride],
        "dtype": str(layout.dtype).removeprefix("torch."),
        "device": str(layout.device),
        "bytes": count,
        "mutates": list(_names(item, "get_mutation_names")),
        "views": list(_names(item, "get_inputs_that_alias_output")),
    }


def _layout(graph: Any, item: Any) -> Any:
    """Return a buffer's layout; that of what it writes into where it has none of its own."""
    layout = item.maybe_get_layout() if hasattr(item, "maybe_get_layout") else None
    written = list(_names(item, "get_mutation_names"))
    if getattr(layout, "size", None) is not None or len(written) != 1:
        return layout
    before = graph.name_to_buffer.get(written[0]) or graph.graph_inputs.get(written[0])
    return _layout(graph, before)


def _mutated(graph: Any, name: str) -> Iterator[str]:
    """Yield the buffers whose memory it is that a buffer writes, which may do the same."""
    for before in _names(graph.name_to_buffer.get(name), "get_mutation_names"):
        yield before
        yield from _mutated(graph, before)


def _of_tensor(tensor: torch.Tensor) -> dict[str, Any]:
    return {
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": str(tensor.device),
        "bytes": tensor.numel() * tensor.dtype.itemsize,
        "mutates": [],
        "views": [],
    }


def _size(size: Any) -> int | str:
    text = str(size)
    return int(text) if text.lstrip("-").isdigit() else text


def _names(item: Any, method: str) -> Iterable[str]:
    get = getattr(item, method, None)
    return get() if get is not None else ()


# ------------------------------------------------------------------ what is no kernel's work


def _operators(graph: fx.Graph, direction: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the operators that each node is part of; not what the forward does for backward."""
    for node in graph.nodes:
        if direction != "forward" or not is_backward(node.meta):
            yield node_name(node), operators_of(node)


def _folded(graph: fx.Graph) -> Iterator[tuple[str, str]]:
    """Yield the nodes that need no kernel, each with why; some of them get one all the same."""
    for node in graph.nodes:
        if node.op.startswith("call") and (why := _needless(node)):
            yield node_name(node), why


def _needless(node: fx.Node) -> str:
    """Return why a call node may come to nothing by itself, in a word of the record's `Folded`."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and _is_empty(value):
        return "empty"
    if node.target is operator.getitem:
        return "result"
    if getattr(node.target, "is_view", False):
        return "view"
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float | bool):
        return "size"
    if inner_graphs(node):
        return "graphs"
    if value is None:
        return "effect"
    if not node.users:
        return "dead"
    if str(getattr(node.target, "_opname", "")).startswith(_ALLOCATES):
        return "memory"
    if isinstance(value, torch.Tensor) and not any(
        used.op == "placeholder" or used.op.startswith("call") for used in node.all_input_nodes
    ):
        return "constant"
    return ""


def _is_empty(value: torch.Tensor) -> bool:
    return any(isinstance(size, int) and size == 0 for size in value.shape)
