"""Checks: calls that were repeated eagerly and compiled, with the lines and kernels that differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from dynamo_nb.record.places import Places, innermost
from dynamo_nb.record.types import CellRecord, Check, Compile, Graph, Mismatch, Node, Timing

__all__ = ["check_of", "compile_of", "located"]

_GROUPS = re.compile(r"(?:^|(?<=_))(?:modules|parameters|buffers)_")
_VIEWS = {"getitem", "view", "reshape", "t", "transpose", "permute", "select", "narrow", "squeeze"}


def check_of(places: Places, data: dict[str, Any]) -> Check:
    """Return the check that a `check` event tells of."""
    line = places.call_line(data.get("user_stack") or ())
    return replace(msgspec.convert(data, Check), line=line)


def located(checks: Iterable[Check], record: CellRecord) -> list[Check]:
    """Return checks with the places of what differs, those that are alike counted as one."""
    counted: dict[bytes, Check] = {}
    for check in checks:
        check = _located(check, record)
        key = msgspec.json.encode(check)
        alike = counted.get(key)
        counted[key] = check if alike is None else replace(alike, count=alike.count + 1)
    return list(counted.values())


def _located(check: Check, record: CellRecord) -> Check:
    entry = compile_of(check, record)
    if entry is None:
        return check
    target = next((t for t in entry.targets if t.spec == check.target), None)
    if target is not None:
        graphs = [g for g in entry.graphs if g.stage == "dynamo"] + target.graphs
        entry = replace(entry, graphs=graphs, kernels=target.kernels)
    found = [_placed(mismatch, entry) for mismatch in check.mismatches]
    return replace(check, compile=entry.key, mismatches=found)


def compile_of(check: Check | Timing, record: CellRecord) -> Compile | None:
    """Return the entry that a call compiled or hit, None where its line has several."""
    keys = [
        key
        for call in record.calls
        if call.line == check.line and call.name == check.name
        for key in dict.fromkeys([*call.compiles, *call.hits])
    ]
    entries = [entry for entry in record.compiles if entry.key in keys]
    return entries[0] if len(entries) == 1 else None


def _placed(mismatch: Mismatch, entry: Compile) -> Mismatch:
    graphs = [graph for graph in entry.graphs if graph.stage == "dynamo"]
    if len(graphs) != 1:
        return mismatch
    graph, kernel = graphs[0], ""
    if mismatch.what == "output":
        node = _output_node(mismatch.position, mismatch.outputs, graph)
    else:
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        at = _input_position(mismatch.name, inputs)
        if at is None:
            return mismatch
        node = _writing_node(inputs[at], graph)
        kernel = _kernel_into(entry, at, len(inputs))
    if node is None:
        return replace(mismatch, kernel=kernel)
    kernel = kernel or _kernel_from(entry, f"{graph.name}/{node.name}")
    return replace(mismatch, frame=innermost(node.frames), kernel=kernel)


def _output_node(position: int, outputs: int, graph: Graph) -> Node | None:
    """Return the node of one of the returned tensors, where all of them come from the graph."""
    nodes = {node.name: node for node in graph.nodes}
    returned = [name for node in graph.nodes if node.op == "output" for name in node.inputs]
    if len(returned) != outputs or not 0 <= position < outputs:
        return None
    return nodes.get(returned[position])


def _input_position(name: str, inputs: list[Node]) -> int | None:
    """Return which of a graph's inputs an argument, buffer or global is."""
    wanted = re.sub(r"\W+", "_", name).strip("_").lower()
    return next((i for i, node in enumerate(inputs) if _argument(node.target) == wanted), None)


def _writing_node(placeholder: Node, graph: Graph) -> Node | None:
    """Return the last node that writes into an input, or into a view of it."""
    aliases = {placeholder.name}
    last = None
    for node in graph.nodes:
        if not (node.op.startswith("call") and node.inputs and node.inputs[0] in aliases):
            continue
        operation = node.target.rpartition(".")[2]
        writes = operation == "setitem" or (operation.endswith("_") and operation[-2:] != "__")
        if writes:
            last = node
        if writes or operation in _VIEWS:
            aliases.add(node.name)
    return last


def _argument(target: str) -> str:
    """Return what a placeholder is named after: `L_self_buffers_mean_` is `self_mean`."""
    return _GROUPS.sub("", target.lower().removeprefix("l_").removeprefix("g_")).strip("_")


def _post_grad(entry: Compile) -> list[Graph]:
    return [g for g in entry.graphs if g.stage == "post_grad" and g.direction != "backward"]


def _kernel_into(entry: Compile, position: int, inputs: int) -> str:
    """Return the kernel that copies into an input of the graph, which keeps the inputs' order."""
    for graph in _post_grad(entry):
        names = [node.name for node in graph.nodes if node.op == "placeholder"]
        if len(names) == inputs:
            written = {
                (graph.name, node.name)
                for node in graph.nodes
                if "copy_" in node.target and node.inputs[:1] == [names[position]]
            }
            return _kernel_with(entry, written)
    return ""


def _kernel_from(entry: Compile, origin: str) -> str:
    """Return the last kernel that holds a node which comes from `origin`."""
    known = {f"{graph.name}/{node.name}": node for graph in entry.graphs for node in graph.nodes}
    made = {
        (graph.name, node.name)
        for graph in _post_grad(entry)
        for node in graph.nodes
        if origin in _origins(node, known)
    }
    return _kernel_with(entry, made)


def _kernel_with(entry: Compile, nodes: set[tuple[str, str]]) -> str:
    holding = [k.name for k in entry.kernels if any((k.graph, name) in nodes for name in k.nodes)]
    return holding[-1] if holding else ""


def _origins(node: Node, known: dict[str, Node]) -> Iterator[str]:
    """Yield all nodes that a node comes from, over all stages."""
    seen: set[str] = set()
    pending = list(node.origins)
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        pending += known[name].origins if name in known else []
