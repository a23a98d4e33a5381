"""What a dimension that is marked dynamic met, where that made it a constant."""

from __future__ import annotations

import ast
import re

from dynamo_nb.findings.sources import enclosing_function, parse
from dynamo_nb.findings.wording import names
from dynamo_nb.record.types import (
    CellRecord,
    Compile,
    Graph,
    Node,
    Specialization,
    StackFrame,
    TensorValue,
)

__all__ = ["met_advice"]

#: How Dynamo names the graph's input for an argument.
_ARGUMENT = re.compile(r"L_(\w+)_")
_OF_MODULE = re.compile(r"_(?:parameters|buffers|modules)_")

_ARGUMENTS_ADVICE = (
    "Mark the dimension of {names} that it meets here, too (torch._dynamo.mark_dynamic): the other "
    "tensor's size is not dynamic, and the two have to be the same. Or remove mark_dynamic "
    "(maybe_mark_dynamic allows torch to specialize)."
)
_MODULE_ADVICE = (
    "Remove mark_dynamic: the size is the one of a parameter or buffer that it meets here, which "
    "is fixed (maybe_mark_dynamic allows torch to specialize)."
)


def met_advice(record: CellRecord, compiled: Compile, item: Specialization) -> str:
    """Return what to do where a tensor of static size met the dimension, empty where none did."""
    graph, frame = compiled.graph("dynamo"), item.frame
    if graph is None or frame is None:
        return ""
    inputs = _met(graph, frame, item.value)
    known = _arguments(record, frame)
    found = [_ARGUMENT.fullmatch(node.target) for node in inputs]
    arguments = [match[1] for match in found if match and match[1] in known]
    if arguments:
        return _ARGUMENTS_ADVICE.format(names=names(arguments))
    is_module = any(_OF_MODULE.search(node.target) for node in inputs)
    return _MODULE_ADVICE if is_module else ""


def _met(graph: Graph, frame: StackFrame, value: str) -> list[Node]:
    """Return the graph's inputs, static and of that size, that come to a node of the line.

    A size that was symbolic until then is text, a static one a number.
    """
    nodes = {node.name: node for node in graph.nodes}
    met: dict[str, Node] = {}
    for node in graph.nodes:
        taken = [nodes[name] for name in node.inputs if name in nodes]
        if _is_at(node, frame) and any(_has(other, value) for other in taken):
            static = [other for other in taken if not _has(other, value)]
            met |= {found.name: found for other in static for found in _sources(other, nodes)}
    sizes = value if not value.isdigit() else int(value)
    return [node for node in met.values() if _has(node, sizes)]


def _is_at(node: Node, frame: StackFrame) -> bool:
    return any((at.file, at.line) == (frame.file, frame.line) for at in node.frames)


def _has(node: Node, size: int | str) -> bool:
    return isinstance(node.value, TensorValue) and size in node.value.shape


def _sources(node: Node, nodes: dict[str, Node]) -> list[Node]:
    """Return the graph's inputs that a node is computed from."""
    seen, pending = {node.name}, [node]
    found = []
    while pending:
        current = pending.pop()
        found += [current] if current.op == "placeholder" else []
        new = [name for name in current.inputs if name in nodes and name not in seen]
        seen.update(new)
        pending += [nodes[name] for name in new]
    return found


def _arguments(record: CellRecord, frame: StackFrame) -> set[str]:
    """Return the names of the arguments of the function that a place is in."""
    tree = parse(record, frame.file)
    function = enclosing_function(tree, frame.line) if tree is not None else None
    parts = ast.walk(function.args) if function is not None else ()
    return {node.arg for node in parts if isinstance(node, ast.arg)}
