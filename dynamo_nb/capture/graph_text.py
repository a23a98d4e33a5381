"""A Dynamo graph on its way to another process: what it computes, and of its inputs the shapes.

No tensor travels unless its values are asked for. Callables of torch go by their import path, what
a graph refers to besides (the notebook's own functions) by value.
"""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Sequence
from typing import Any

import cloudpickle
import torch
from msgspec import Struct
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.node import map_arg

from dynamo_nb.capture import user_kernels

__all__ = [
    "GraphText",
    "Input",
    "NodeName",
    "NodeText",
    "Taken",
    "UntakableError",
    "pack",
    "pack_inputs",
    "sources",
    "unpack",
]

#: Kinds of tensors that are nothing but their sizes, strides and dtype.
_PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor)

#: Elements of all inputs up to which they are interpreted: it takes a second for some 100000.
_ELEMENTS = 1 << 20

_OPERATORS = "torch.ops."
_UNKNOWN = (
    "operator `{name}` is not torch's own: what defines it, the notebook or a library, "
    "is not loaded in the target's process"
)

_UNTOLD = (fx.Node, fx.Graph, torch.nn.Module)


class UntakableError(ValueError):
    """Why a graph can't be taken to another process; names the node."""


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


class Input(Struct, kw_only=True):
    """What a placeholder stands for: a tensor, or a symbolic number `expr`.

    Sizes and strides are integers or sympy expressions.
    """

    name: str
    expr: Any = None
    size: Any = ()
    stride: Any = ()
    dtype: Any = None
    requires_grad: bool = False
    is_parameter: bool = False
    static_type: str = ""


class Symbol(Struct, kw_only=True):
    """A symbol of the inputs' sizes: its value in this call, and the source that names it."""

    symbol: Any
    hint: int
    source: str


class Taken(Struct, kw_only=True):
    """A whole graph as it travels; `autocast` is the dtype of an autocast around its call."""

    graph: GraphText
    inputs: list[Input]
    symbols: list[Symbol]
    grad: bool
    autocast: Any = None
    has_user_kernels: bool = False


# ------------------------------------------------------------------ out


def pack(module: fx.GraphModule) -> bytes:
    """Return the graph that Dynamo hands to a backend as bytes.

    Raises
    ------
    UntakableError
        When something in it can't be taken elsewhere; the message names the node.
    """
    symbols: dict[str, Symbol] = {}
    inputs = [_input(node, symbols) for node in module.graph.nodes if node.op == "placeholder"]
    taken = Taken(
        graph=_graph_text(module),
        inputs=inputs,
        symbols=list(symbols.values()),
        grad=torch.is_grad_enabled(),
        autocast=_autocast(),
        has_user_kernels=user_kernels.are_in(module),
    )
    return _dumps(taken)


def _autocast() -> torch.dtype | None:
    kinds = [kind for kind in ("cuda", "cpu") if torch.is_autocast_enabled(kind)]
    return torch.get_autocast_dtype(kinds[0]) if kinds else None


def _dumps(value: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


class _Pickler(cloudpickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _UNTOLD):
            raise UntakableError(f"it refers to a {type(obj).__name__}")
        path = _path(obj)
        if path is not None:
            return _at_path, (path,)
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
            if not hasattr(found, name) and path.startswith(_OPERATORS):
                raise UntakableError(_UNKNOWN.format(name=path.removeprefix(_OPERATORS)))
            found = getattr(found, name)
        return found
    raise ImportError(path)


def _graph_text(module: fx.GraphModule) -> GraphText:
    nodes = [_node_text(node) for node in module.graph.nodes]
    attributes = {
        str(node.target): _attribute(module, node)
        for node in module.graph.nodes
        if node.op == "get_attr"
    }
    return GraphText(nodes, attributes)


def _node_text(node: fx.Node) -> NodeText:
    if node.op == "call_module":
        raise UntakableError(f"node `{node.name}` calls a module")
    try:
        given = node.args, user_kernels.travelling(node)
        args, kwargs = map_arg(given, lambda used: NodeName(used.name))
        text = NodeText(node.op, node.name, node.target, args, kwargs, _meta(node))
        _dumps(text)
    except Exception as exc:
        raise UntakableError(f"node `{node.name}` ({node.target}): {exc}") from exc
    return text


def _attribute(module: fx.GraphModule, node: fx.Node) -> Any:
    value: Any = module
    for name in str(node.target).split("."):
        value = getattr(value, name)
    if isinstance(value, fx.GraphModule):
        return _graph_text(value)
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    raise UntakableError(f"node `{node.name}` reads a {type(value).__name__}")


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
    home = getattr(target, "__module__", None) or ""
    is_torch = home.partition(".")[0] == "torch" or _path(target) is not None
    return target if is_torch else getattr(target, "__name__", type(target).__name__)


def _class_name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else str(kind)


def _input(node: fx.Node, symbols: dict[str, Symbol]) -> Input:
    value = node.meta.get("example_value")
    if isinstance(value, torch.SymInt):
        return Input(name=node.name, expr=_expression(value, symbols, node))
    if not isinstance(value, torch.Tensor):
        raise UntakableError(f"input `{node.name}` is a {type(value).__name__}")
    if value.layout != torch.strided or type(value) not in _PLAIN:
        kind = type(value).__name__ if type(value) not in _PLAIN else f"{value.layout} tensor"
        raise UntakableError(f"input `{node.name}` is a {kind}")
    marks = node.meta.get("tensor_dict") or {}
    static = marks.get("_dynamo_static_input_type") or ""
    return Input(
        name=node.name,
        size=[_expression(size, symbols, node) for size in value.size()],
        stride=[_expression(stride, symbols, node) for stride in value.stride()],
        dtype=value.dtype,
        requires_grad=bool(value.requires_grad),
        is_parameter=isinstance(value, torch.nn.Parameter),
        static_type=str(static),
    )


def _source(node: fx.Node) -> str:
    found = node.meta.get("grapharg")
    name = getattr(getattr(found, "source", None), "name", "")
    return str(name() if callable(name) else name)


def sources(module: fx.GraphModule) -> dict[str, str]:
    """Return where Dynamo found each input of a graph, by its node's name."""
    return {node.name: _source(node) for node in module.graph.nodes if node.op == "placeholder"}


def _expression(size: Any, symbols: dict[str, Symbol], node: fx.Node) -> Any:
    """Return an integer, or the expression of a symbolic one whose symbols are then known."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    inner = size.node
    for symbol in inner.expr.free_symbols:
        if str(symbol) not in symbols:
            symbols[str(symbol)] = _symbol(symbol, inner.shape_env, node)
    return inner.expr


def _symbol(symbol: Any, shape_env: Any, node: fx.Node) -> Symbol:
    hints = getattr(shape_env, "backed_var_to_val", None) or shape_env.var_to_val
    if symbol not in hints:
        raise UntakableError(f"input `{node.name}` has a size without a value ({symbol})")
    sources = shape_env.var_to_sources.get(symbol) or ()
    name = sources[0].name if sources else ""
    return Symbol(
        symbol=symbol,
        hint=int(hints[symbol]),
        source=name() if callable(name) else name,
    )


def pack_inputs(inputs: Sequence[Any]) -> bytes:
    """Return the values of a graph's inputs, leaves of autograd's graph each, on the CPU.

    Raises
    ------
    UntakableError
        When they are too many for an interpreter.
    """
    tensors = [item for item in inputs if isinstance(item, torch.Tensor)]
    elements = sum(item.numel() for item in tensors)
    if elements > _ELEMENTS:
        raise UntakableError(f"its inputs have {elements} elements, more than {_ELEMENTS}")
    return pickle.dumps([_leaf(item) for item in inputs])


def _leaf(item: Any) -> Any:
    if not isinstance(item, torch.Tensor):
        return int(item) if isinstance(item, torch.SymInt) else item
    copied = torch.empty_strided(item.size(), item.stride(), dtype=item.dtype)
    return copied.copy_(item.detach()).requires_grad_(item.requires_grad)


# ------------------------------------------------------------------ in


def unpack(data: bytes) -> Taken:
    """Return what `pack` packed."""
    taken: Taken = pickle.loads(data)
    return taken
