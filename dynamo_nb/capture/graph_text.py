"""A Dynamo graph on its way to another process: what it computes, and of its inputs the shapes.

No tensor travels unless its values are asked for. Callables of torch go by their import path, what
a graph refers to besides (the notebook's own functions) by value.
"""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import cloudpickle
import torch
from msgspec import Struct
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.fx.node import map_arg

from dynamo_nb.capture import arrived_operators, user_kernels, user_operators
from dynamo_nb.capture.graph_aliases import Base
from dynamo_nb.capture.graph_inputs import (
    Input,
    Symbol,
    UntakableError,
    attribute,
    held,
    input_of,
    place_in_bases,
)

__all__ = ["GraphText", "NodeName", "NodeText", "Taken", "pack", "unpack"]

_UNTOLD = (fx.Node, fx.Graph, torch.nn.Module)


class NodeName(Struct, frozen=True):
    """Stands for a node among another node's arguments."""

    name: str


class NodeText(Struct):
    """One node: `target` is an import path where the node calls a function of torch."""

    op: str
    name: str
    target: Any
    args: Any
    kwargs: Any
    meta: dict[str, Any]


class GraphText(Struct):
    """A graph and what its `get_attr` nodes name: tensors and further graphs."""

    nodes: list[NodeText]
    attributes: dict[str, Any]


class Taken(Struct, kw_only=True):
    """A whole graph as it travels; `autocast` is the dtype of an autocast around its call.

    `operators` are those that it calls and that the other process may lack, `outcomes` their calls.
    """

    graph: GraphText
    inputs: list[Input]
    symbols: list[Symbol]
    grad: bool
    autocast: Any = None
    has_user_kernels: bool = False
    operators: list[user_operators.Operator] = []
    outcomes: list[user_operators.Outcome] = []
    bases: list[Base] = []


# ------------------------------------------------------------------ out


def pack(module: fx.GraphModule) -> bytes:
    """Return the graph that Dynamo hands to a backend as bytes.

    Raises
    ------
    UntakableError
        When something in it can't be taken elsewhere; the message names the node.
    """
    symbols: dict[str, Symbol] = {}
    lifted = held(module)
    given = [*(node for node in module.graph.nodes if node.op == "placeholder"), *lifted]
    inputs = [input_of(node, symbols) for node in given]
    bases = place_in_bases(given, inputs, symbols)
    taken = Taken(
        graph=_graph_text(module, lifted),
        inputs=inputs,
        bases=bases,
        symbols=list(symbols.values()),
        grad=torch.is_grad_enabled(),
        autocast=_autocast(),
        has_user_kernels=user_kernels.are_in(module),
        operators=_operators(module),
        outcomes=[user_operators.outcome(node) for node in _calls(module)],
    )
    return _dumps(taken)


def _calls(module: fx.GraphModule) -> Iterator[fx.Node]:
    """Yield the nodes of a graph and of those in it that call an operator that is not torch's."""
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            yield from (node for node in part.graph.nodes if user_operators.is_own(node.target))


def _operators(module: fx.GraphModule) -> list[user_operators.Operator]:
    """Return the operators that a graph calls, and those that their functions refer to."""
    found: list[user_operators.Operator] = []
    names = [user_operators.named(node.target) for node in _calls(module)]

    def dumps(function: Any) -> bytes:
        file = io.BytesIO()
        pickler = _Pickler(file)
        pickler.dump(function)
        names.extend(name for name in pickler.operators if name not in names)
        return file.getvalue()

    for at, name in enumerate(names):
        if name not in names[:at]:
            found += user_operators.described(name, dumps)
    return found


def _autocast() -> torch.dtype | None:
    kinds = [kind for kind in ("cuda", "cpu") if torch.is_autocast_enabled(kind)]
    return torch.get_autocast_dtype(kinds[0]) if kinds else None


def _dumps(value: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


class _Pickler(cloudpickle.Pickler):
    """Pickles functions of the notebook; `operators` are those that these refer to."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.operators: list[user_operators.OperatorName] = []

    def reducer_override(self, obj: Any) -> Any:
        if user_operators.is_own(obj):
            name = user_operators.named(obj)
            self.operators.append(name)
            return arrived_operators.Later, (name,)
        if isinstance(obj, _UNTOLD):
            raise UntakableError(f"it refers to a {type(obj).__name__}")
        path = _path(obj)
        if path is not None:
            return _at_path, (path,)
        kernel = user_kernels.reduced(obj)
        if kernel is not None:
            return kernel
        return super().reducer_override(obj)


def _path(obj: Any) -> str | None:
    """Return the import path of a callable of torch, None for all else."""
    if isinstance(obj, HigherOrderOperator):
        return f"torch.ops.higher_order.{obj.name()}"
    if isinstance(obj, OpOverload | OpOverloadPacket):
        return f"torch.ops.{obj!s}"
    if not callable(obj) or isinstance(obj, type) or not getattr(obj, "__name__", None):
        return None
    try:
        path = fx.node._get_qualified_name(obj)
        return path if path.startswith("torch.") and _at_path(path) is obj else None
    except (RuntimeError, AttributeError, ImportError, ValueError):
        return None


def _at_path(path: str) -> Any:
    """Return what stands at an import path: the longest module in it, then attributes."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for name in parts[end:]:
            found = getattr(found, name)
        return found
    raise ImportError(path)


def _graph_text(module: fx.GraphModule, lifted: Sequence[fx.Node] = ()) -> GraphText:
    """Return a graph, in which the nodes of tensors that it holds may be inputs instead."""
    names = {str(node.target): node.name for node in lifted}
    inputs = [NodeText("placeholder", node.name, node.name, (), {}, _meta(node)) for node in lifted]
    nodes, attributes = [], {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            inputs.insert(len(inputs) - len(lifted), _node_text(node, names))
        elif node.op == "get_attr" and str(node.target) in names:
            continue
        else:
            nodes.append(_node_text(node, names))
        if node.op == "get_attr":
            attributes[str(node.target)] = _attribute(module, node)
    return GraphText([*inputs, *nodes], attributes)


def _node_text(node: fx.Node, lifted: dict[str, str]) -> NodeText:
    if node.op == "call_module":
        raise UntakableError(f"node `{node.name}` calls a module", node.name)
    try:
        given = node.args, user_kernels.travelling(node)
        args, kwargs = map_arg(given, lambda used: NodeName(_name(used, lifted)))
        text = NodeText(node.op, node.name, _target(node), args, kwargs, _meta(node))
        _dumps(text)
    except Exception as exc:
        raise UntakableError(f"node `{node.name}` ({node.target}): {exc}", node.name) from exc
    return text


def _target(node: fx.Node) -> Any:
    target = node.target
    return user_operators.named(target) if user_operators.is_own(target) else target


def _name(node: fx.Node, lifted: dict[str, str]) -> str:
    return lifted.get(str(node.target), node.name) if node.op == "get_attr" else node.name


def _attribute(module: fx.GraphModule, node: fx.Node) -> Any:
    value = attribute(module, node)
    if isinstance(value, fx.GraphModule):
        return _graph_text(value)
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    raise UntakableError(f"node `{node.name}` reads a {type(value).__name__}", node.name)


def _meta(node: fx.Node) -> dict[str, Any]:
    """Return what of a node's metadata Inductor reads: places, and the callables it stands for."""
    kept: dict[str, Any] = {}
    if node.meta.get("stack_trace"):
        kept["stack_trace"] = str(node.meta["stack_trace"])
    if "source_fn_stack" in node.meta:
        kept["source_fn_stack"] = [
            (name, _known(target)) for name, target in node.meta["source_fn_stack"]
        ]
    if "nn_module_stack" in node.meta:
        kept["nn_module_stack"] = {
            key: (path, _class_name(kind))
            for key, (path, kind) in node.meta["nn_module_stack"].items()
        }
    return kept


def _known(target: Any) -> Any:
    """Return a callable of torch as it is, another one by its name."""
    if isinstance(target, str):
        return target
    if user_operators.is_own(target):
        return str(target)
    home = getattr(target, "__module__", None) or ""
    is_torch = home.partition(".")[0] == "torch" or _path(target) is not None
    return target if is_torch else getattr(target, "__name__", type(target).__name__)


def _class_name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else str(kind)


# ------------------------------------------------------------------ in


def unpack(data: bytes) -> Taken:
    """Return what `pack` packed, with the operators defined that it calls."""
    taken: Taken = pickle.loads(data)
    arrived_operators.define(taken.operators, pickle.loads)
    return taken
