"""The operators that eager would run for the nodes of a graph, each of them a launch."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from dynamo_nb.capture.replacements import is_backward, replaced_by

__all__ = ["LAUNCH_NOTHING", "count_operators", "inner_graphs", "operators_of"]

#: What operators begin with that launch nothing: they allocate, or look at what is there.
LAUNCH_NOTHING = (
    "empty",
    "new_empty",
    "resize_",
    "set_",
    "resolve_",
    "is_",
    "item",
    "_local_scalar_dense",
    "detach",
    "alias",
    "lift",
    "scalar_tensor",
    "_unsafe_view",
    "unsafe_chunk",
    "unsafe_split",
    "size",
    "stride",
    "sym_",
    "_assert",
)
#: Of Inductor: what takes the place of one generator of random numbers, besides the numbers.
_OF_SEEDS = ("inductor_seed", "inductor_lookup_seed")
#: What stands for a write into a slice once there are no writes, by the end of its name.
_WRITES_A_SLICE = "_scatter"
_SLICES = ("select", "slice", "as_strided", "diagonal")
#: What returns its input in eager where it has nothing to do, but a copy of it when it is traced.
_GIVES_BACK = ("Dropout", "dropout")
#: How many gradients of one input are looked through.
_SUMMED = 16
#: What converts the dtype of one tensor, and what it becomes: autocast does so for each argument.
_CAST = ("aten._to_copy.default", "prims.convert_element_type.default")
#: Functions that are one operator each in eager, but several when they are traced: torch has
#: decompositions for these that come before autograd (`torch/_decomp/decompositions.py`, 2.13).
_ONE = {
    "hardshrink",
    "interpolate",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "softshrink",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
}


def count_operators(graph: fx.Graph, stage: str) -> dict[str, int]:
    """Return how many operators eager runs for a graph of AOTAutograd, by direction.

    A joint graph has two of these, and the graph of an inference is one; others tell nothing new.
    """
    if stage not in ("joint", "inference"):
        return {}
    found = {False: 0, True: 0}
    last = ""
    for node in graph.nodes:
        for name in (*operators_of(node), *_of_inner_graphs(node)):
            # the nodes of one operator follow each other
            found[is_backward(node.meta)] += name != last
            last = name
    if stage == "inference":
        return {"inference": found[False]}
    return {"forward": found[False], "backward": found[True]}


def _of_inner_graphs(node: fx.Node) -> list[str]:
    """Return the operators of the graphs that a node runs: of branches those of the longer one."""
    found = [
        [f"{node.name}/{name}" for each in graph.nodes for name in operators_of(each)]
        for graph in inner_graphs(node)
    ]
    if node.target is torch.ops.higher_order.cond:
        return max(found, key=len)
    return [name for each in found for name in each]


def inner_graphs(node: fx.Node) -> list[fx.Graph]:
    """Return the graphs that a node runs, as `torch.cond` does its branches."""
    owner = node.graph.owning_module
    if not isinstance(node.target, torch._ops.HigherOrderOperator) or owner is None:
        return []
    names = [str(used.target) for used in node.all_input_nodes if used.op == "get_attr"]
    modules = [getattr(owner, name, None) for name in names]
    return [module.graph for module in modules if isinstance(module, fx.GraphModule)]


def operators_of(node: fx.Node) -> list[str]:
    """Return what tells apart the operators that a node is, or is a part of; views are none.

    A node that a pattern put in is all those that it stands for.
    """
    if not node.op.startswith("call") or not _is_work(node):
        return []
    parts = [_operator("", item.name, item.meta) for item in replaced_by(node)]
    return list(dict.fromkeys(parts)) or [_operator(str(node.target), node.name, _meta(node))]


def _meta(node: fx.Node, depth: int = 0) -> Mapping[str, Any]:
    """Return a node's `meta`; that of its inputs where they alone are of one function.

    Autograd adds up the gradients of what a function uses twice.
    """
    if _source(node.meta)[0] or not is_backward(node.meta) or depth == _SUMMED:
        return node.meta
    made = [used for used in node.all_input_nodes if used.op != "placeholder"]
    inputs = [_meta(used, depth + 1) for used in made]
    if len({_source(meta)[0] for meta in inputs}) != 1 or not _is_one(inputs[0]):
        return node.meta
    return {**inputs[0], "partitioner_tag": "is_backward"}


def _operator(target: str, name: str, meta: Mapping[str, Any]) -> str:
    side = "backward" if is_backward(meta) else "forward"
    source, _ = _source(meta)
    if _is_one(meta):
        return f"{side} of {source}"
    original = str(meta.get("original_aten") or "")
    if original in ("", target) or (original, target) == _CAST:
        return name
    return f"{side} of {source}: {original}"


def _source(meta: Mapping[str, Any]) -> tuple[str, str]:
    """Return the node of Dynamo's graph that a node is from, and the function that it calls."""
    stack = meta.get("source_fn_stack") or meta.get("fwd_source_fn_stack") or [("", "")]
    name, function = stack[-1]
    return str(name), str(getattr(function, "__name__", function))


def _is_one(meta: Mapping[str, Any]) -> bool:
    return _source(meta)[1] in _ONE


def _is_work(node: fx.Node) -> bool:
    """Tell whether a node does anything in eager."""
    if node.target is operator.getitem or getattr(node.target, "is_view", False):
        return False
    name = str(getattr(node.target, "_opname", ""))
    if name.startswith((*LAUNCH_NOTHING, *_OF_SEEDS)) or _is_written_back(node, name):
        return False
    if name == "clone" and _source(node.meta)[1] in _GIVES_BACK:
        return False
    original = node.meta.get("original_aten")
    if getattr(original, "is_view", False) or inner_graphs(node):
        return False
    if str(getattr(original, "_opname", "")).startswith(LAUNCH_NOTHING):
        return False
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return not any(isinstance(size, int) and size == 0 for size in value.shape)
    is_call = isinstance(node.target, torch._ops.HigherOrderOperator)
    return isinstance(value, tuple | list | dict) or (value is None and is_call)


def _is_written_back(node: fx.Node, name: str) -> bool:
    """Tell whether a node only brings a result to where eager has written it at once."""
    if name == "copy_":
        into = node.args[0]
        is_input = isinstance(into, fx.Node) and into.op == "placeholder"
        return is_input or "original_aten" not in node.meta
    if name not in {slice_ + _WRITES_A_SLICE for slice_ in _SLICES}:
        return False
    return _WRITES_A_SLICE not in _source(node.meta)[1]
