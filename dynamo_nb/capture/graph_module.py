"""A Dynamo graph that arrived in another process, as a module again, on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.fx.node import map_aggregate
from torch.utils._device import _device_constructors

from dynamo_nb.capture import arrived_operators, user_kernels
from dynamo_nb.capture.graph_text import GraphText, NodeName, NodeText

__all__ = ["graph_module"]


def graph_module(text: GraphText, device: str | None = None) -> fx.GraphModule:
    """Return a graph as a module; with `device`, what is made on the CPU or a GPU is made there.

    So is what is made without a device, as under `torch.set_default_device`.
    """
    graph = fx.Graph()
    made: dict[str, fx.Node] = {}
    moved = _mover(device)
    for item in text.nodes:
        args, kwargs = map_aggregate((item.args, item.kwargs), lambda a: moved(_resolved(a, made)))
        if device is not None and _makes_by_default(item):
            kwargs = {**kwargs, "device": torch.device(device)}
        target = arrived_operators.arrived(item.target)
        if device is not None and (item.op, target) == ("call_method", "cuda"):
            target, args, kwargs = "to", (args[0], torch.device(device)), {}
        node = graph.create_node(item.op, target, args, kwargs, item.name)
        node.meta.update(item.meta)
        made[item.name] = node
    root = torch.nn.Module()
    for name, value in text.attributes.items():
        _set_attribute(root, name, _attribute_value(value, device))
    module = fx.GraphModule(root, graph)
    module.recompile()
    return module


def _attribute_value(value: Any, device: str | None) -> Any:
    if isinstance(value, GraphText):
        return graph_module(value, device)
    return value


def _set_attribute(root: torch.nn.Module, path: str, value: Any) -> None:
    *owners, name = path.split(".")
    for owner in owners:
        if not hasattr(root, owner):
            setattr(root, owner, torch.nn.Module())
        root = getattr(root, owner)
    if isinstance(value, torch.Tensor):
        root.register_buffer(name, value)
    else:
        setattr(root, name, value)


def _resolved(value: Any, made: dict[str, fx.Node]) -> Any:
    return made[value.name] if isinstance(value, NodeName) else user_kernels.arrived(value)


def _mover(device: str | None) -> Callable[[Any], Any]:
    if device is None:
        return lambda value: value
    there = torch.device(device)

    def moved(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type in ("cpu", "cuda"):
            return there
        is_named = isinstance(value, str) and value.partition(":")[0] in ("cpu", "cuda")
        return there.type if is_named else value

    return moved


def _makes_by_default(item: NodeText) -> bool:
    """Tell whether a node makes a tensor where torch's default device is."""
    is_call = item.op == "call_function"
    return is_call and item.target in _device_constructors() and not item.kwargs.get("device")
