"""Operators that are not torch's own, on their way to another process.

Of `torch.library`'s registrations the schema travels, and what Python functions were registered as
fake kernel, as autograd formula and, for a `triton_op`, as body. What an operator computes stays
behind: there it is a call whose results have the shapes that they have here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from msgspec import Struct
from torch import fx
from torch._ops import OpOverload, OpOverloadPacket
from torch.utils import _pytree

from dynamo_nb.capture.plain import Place, parse_stack_trace

__all__ = [
    "Look",
    "Operator",
    "OperatorName",
    "Outcome",
    "described",
    "is_own",
    "named",
    "outcome",
    "packet_of",
    "parted",
]

#: Namespaces that no process lacks.
_TORCHS = {"aten", "prim", "prims", "higher_order"}


class OperatorName(Struct, frozen=True):
    """Stands for an operator among a graph's targets; for all its overloads without `overload`."""

    name: str
    overload: str = ""


class Operator(Struct, kw_only=True):
    """What is registered of an operator `ns::name`; functions are pickled, `unsaid` says why not.

    `has_formula` tells whether autograd knows of it at all.
    """

    name: str
    overload: str
    schema: str
    tags: list[str]
    fake: bytes = b""
    body: bytes = b""
    backward: bytes = b""
    setup_context: bytes = b""
    has_formula: bool = False
    unsaid: dict[str, str] = {}


class Look(Struct):
    """A tensor without its values; sizes and strides are integers or sympy expressions."""

    size: list[Any]
    stride: list[Any]
    dtype: torch.dtype


class Outcome(Struct, kw_only=True):
    """One call of an operator: its tensors, its other arguments as text, and its results.

    A symbolic number among the results is a sympy expression. `places` is where the call is from.
    """

    name: str
    node: str
    tensors: list[Look]
    others: list[str]
    results: Any
    is_trained: bool
    places: list[Place] = []


def is_own(target: Any) -> bool:
    """Tell whether something is an operator that another process may lack."""
    if isinstance(target, OpOverload):
        return target.namespace not in _TORCHS
    if isinstance(target, OpOverloadPacket):
        return target._qualified_op_name.partition("::")[0] not in _TORCHS
    return isinstance(target, torch._library.custom_ops.CustomOpDef)


def named(target: Any) -> OperatorName:
    """Return what stands for an operator."""
    if isinstance(target, OpOverload):
        return OperatorName(target._schema.name, target._overloadname)
    if isinstance(target, OpOverloadPacket):
        return OperatorName(target._qualified_op_name)
    return OperatorName(target._qualname)


def _overloads(name: OperatorName) -> list[OpOverload]:
    packet = packet_of(name.name)
    wanted = [name.overload] if name.overload else packet.overloads()
    return [getattr(packet, overload) for overload in wanted]


def packet_of(name: str) -> OpOverloadPacket:
    """Return an operator of this process by its name `ns::name`."""
    namespace, _, own = name.partition("::")
    packet: OpOverloadPacket = getattr(getattr(torch.ops, namespace), own)
    return packet


def described(name: OperatorName, dumps: Callable[[Any], bytes]) -> Iterator[Operator]:
    """Yield what is registered of an operator's overloads; `dumps` pickles functions."""
    for op in _overloads(name):
        given = Operator(
            name=op._schema.name,
            overload=op._overloadname,
            schema=str(op._schema),
            tags=[tag.name for tag in op.tags],
            has_formula=torch._C._dispatch_has_kernel_for_dispatch_key(op._name, "Autograd"),
        )
        for field, function in _functions(op).items():
            try:
                setattr(given, field, dumps(function) if function is not None else b"")
            except Exception as exc:
                given.unsaid[field] = str(exc)
        yield given


def _functions(op: OpOverload) -> dict[str, Any]:
    """Return the Python functions of an operator.

    Those of `CustomOpDef` (`torch/_library/custom_ops.py`, 2.13); an operator of `Library.define`
    has its fake kernel in a registry, and its formula in the dispatcher alone.
    """
    from torch._library.custom_ops import _maybe_get_opdef
    from torch._library.simple_registry import singleton
    from torch._subclasses.functional_tensor import FunctionalTensorMode

    definition = _maybe_get_opdef(op)
    if definition is None:
        entry = singleton.get(op._name)
        kernel = entry.fake_impl.kernel if entry is not None else None
        return {"fake": getattr(kernel.func, "__wrapped__", kernel.func) if kernel else None}
    is_traced = FunctionalTensorMode in definition._torch_dispatch_fns
    return {
        "body" if is_traced else "fake": definition._abstract_fn,
        "backward": definition._backward_fn,
        "setup_context": definition._setup_context_fn,
    }


def outcome(node: fx.Node) -> Outcome:
    """Return what a call of an operator was given and gave."""
    given = fx.map_arg((node.args, node.kwargs), lambda used: used.meta.get("example_value"))
    tensors, others = parted(given)
    results = _pytree.tree_map(_look, node.meta.get("example_value"))
    return Outcome(
        name=named(node.target).name,
        node=node.name,
        tensors=[_look(tensor) for tensor in tensors],
        others=others,
        results=results,
        is_trained=any(tensor.requires_grad for tensor in tensors),
        places=parse_stack_trace(node.meta.get("stack_trace")),
    )


def parted(given: Any) -> tuple[list[torch.Tensor], list[str]]:
    """Return the tensors among arguments, and the text of all that is known besides."""
    leaves = _pytree.tree_leaves(given)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    plain = [leaf for leaf in leaves if isinstance(leaf, bool | int | float | str)]
    return tensors, [repr(leaf) for leaf in plain]


def _look(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        size, stride = (
            [_expression(s) for s in value.size()],
            [_expression(s) for s in value.stride()],
        )
        return Look(size, stride, value.dtype)
    return _expression(value)


def _expression(value: Any) -> Any:
    return value.node.expr if isinstance(value, torch.SymInt | torch.SymFloat) else value
