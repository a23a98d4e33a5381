"""Operators that are not torch's own, on their way to another process.

Of `torch.library`'s registrations the schema travels, and what Python functions were registered as
fake kernel, as autograd formula and, for a `triton_op`, as body. What an operator computes stays
behind: there it is a call whose results have the shapes that they have here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from msgspec import Struct
from torch import fx
from torch._ops import OpOverload, OpOverloadPacket
from torch.utils import _pytree

from dynamo_nb.capture.plain import Place, parse_stack_trace

__all__ = [
    "Later",
    "Look",
    "Operator",
    "OperatorName",
    "Outcome",
    "arrived",
    "define",
    "described",
    "is_own",
    "named",
    "outcome",
    "outcomes",
    "unknown_calls",
    "untrained",
]

_HIDDEN = "it is none that `torch.library.custom_op` keeps"

#: Namespaces that no process lacks.
_TORCHS = {"aten", "prim", "prims", "higher_order"}


class OperatorName(Struct, frozen=True):
    """Stands for an operator among a graph's targets; for all its overloads without `overload`."""

    name: str
    overload: str = ""


class Later:
    """Stands for an operator in a function: it is looked up when it is called."""

    def __init__(self, name: OperatorName) -> None:
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator."""
        return arrived(self._name)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(arrived(self._name), name)


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


# ------------------------------------------------------------------ here


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
    packet = _packet(name.name)
    wanted = [name.overload] if name.overload else packet.overloads()
    return [getattr(packet, overload) for overload in wanted]


def _packet(name: str) -> OpOverloadPacket:
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
    tensors, others = _parted(given)
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


def _parted(given: Any) -> tuple[list[torch.Tensor], list[str]]:
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


# ------------------------------------------------------------------ there

#: What was defined here, with its library, which keeps it alive.
_DEFINED: dict[str, tuple[Operator, Any]] = {}

#: The calls of the graph under way, and what its symbols stand for here.
_NOW: tuple[Sequence[Outcome], dict[Any, Any]] = ((), {})


def define(operators: Sequence[Operator], loads: Callable[[bytes], Any]) -> None:
    """Register the operators that this process lacks, or that were another thing before."""
    for operator in operators:
        key = f"{operator.name}.{operator.overload}"
        known, library = _DEFINED.get(key, (None, None))
        if known == operator or (known is None and _exists(operator)):
            continue
        if library is not None:
            library._destroy()
        _DEFINED[key] = operator, _registered(_readable(operator, loads), loads)


def _readable(operator: Operator, loads: Callable[[bytes], Any]) -> Operator:
    """Take from an operator what can't be read here: what its module imports may be missing."""
    for field in ("fake", "body", "backward", "setup_context"):
        try:
            if getattr(operator, field):
                loads(getattr(operator, field))
        except Exception as exc:
            setattr(operator, field, b"")
            operator.unsaid[field] = f"{type(exc).__name__}: {exc}"
    return operator


def _exists(operator: Operator) -> bool:
    try:
        return operator.overload in _packet(operator.name).overloads()
    except AttributeError:
        return False


def unknown_calls(known: Sequence[Outcome]) -> list[Outcome]:
    """Return the calls of operators that are nothing but a name here."""
    return [call for call in known if (found := _defined(call.name)) and not found.body]


def untrained(known: Sequence[Outcome]) -> dict[str, str]:
    """Return why the formula of an operator is missing that a graph differentiates, by its name."""
    found = {call.name: _defined(call.name) for call in known if call.is_trained}
    return {
        name: operator.unsaid.get("backward") or _HIDDEN
        for name, operator in found.items()
        if operator is not None and operator.has_formula and not operator.backward
    }


def _defined(name: str) -> Operator | None:
    """Return what was registered here of an operator; nothing where torch has it itself."""
    return next((operator for operator, _ in _DEFINED.values() if operator.name == name), None)


def arrived(target: Any) -> Any:
    """Return the operator that a name stands for; anything else as it is."""
    if not isinstance(target, OperatorName):
        return target
    packet = _packet(target.name)
    return getattr(packet, target.overload) if target.overload else packet


def _registered(operator: Operator, loads: Callable[[bytes], Any]) -> Any:
    namespace = operator.name.partition("::")[0]
    if operator.body:
        return _traced(operator, loads)
    library = torch.library.Library(namespace, "FRAGMENT")
    tags = tuple(getattr(torch.Tag, tag) for tag in operator.tags)
    library.define(operator.schema.removeprefix(f"{namespace}::"), tags=tags)
    overload = "" if operator.overload == "default" else f".{operator.overload}"
    fake = loads(operator.fake) if operator.fake else None
    torch.library.register_fake(operator.name + overload, _fake(operator, fake), lib=library)
    if operator.backward:
        setup = loads(operator.setup_context) if operator.setup_context else None
        torch.library.register_autograd(
            operator.name + overload, loads(operator.backward), setup_context=setup, lib=library
        )
    return library


def _traced(operator: Operator, loads: Callable[[bytes], Any]) -> Any:
    """Register a `triton_op`, whose kernels are compiled like any others."""
    schema = torch._C.parse_schema(operator.schema)
    written = [a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write]
    made = torch.library.triton_op(operator.name, loads(operator.body), mutates_args=written)
    if operator.backward:
        setup = loads(operator.setup_context) if operator.setup_context else None
        made.register_autograd(loads(operator.backward), setup_context=setup)
    return made._lib


@contextmanager
def outcomes(known: Sequence[Outcome], symbols: dict[Any, Any]) -> Iterator[None]:
    """Have operators give what they gave in the notebook."""
    global _NOW
    _NOW = known, symbols
    try:
        yield
    finally:
        _NOW = (), {}


def _fake(operator: Operator, function: Any) -> Callable[..., Any]:
    """Return a fake kernel: what a call like this one gave, else what the user's own gives."""

    def fake(*args: Any, **kwargs: Any) -> Any:
        tensors, others = _parted((args, kwargs))
        for known in _NOW[0]:
            if known.name == operator.name and known.others == others:
                symbols = _bound(known.tensors, tensors)
                if symbols is not None:
                    return _results(known.results, symbols, tensors)
        if function is None:
            raise RuntimeError(f"`{operator.name}` has no fake kernel that can be taken along")
        return function(*args, **kwargs)

    return fake


def _bound(looks: list[Look], tensors: list[torch.Tensor]) -> dict[Any, Any] | None:
    """Return what symbols stand for in a call, None where its tensors are others."""
    symbols = dict(_NOW[1])
    if len(looks) != len(tensors):
        return None
    for look, tensor in zip(looks, tensors, strict=True):
        if look.dtype != tensor.dtype or len(look.size) != tensor.dim():
            return None
        for size, actual in zip(look.size, tensor.size(), strict=True):
            if getattr(size, "is_Symbol", False):
                symbols.setdefault(size, actual)
            if str(_number(size, symbols)) != str(actual):
                return None
    return symbols


def _results(results: Any, symbols: dict[Any, Any], tensors: list[torch.Tensor]) -> Any:
    device = tensors[0].device if tensors else torch.device("cuda", 0)

    def made(value: Any) -> Any:
        if not isinstance(value, Look):
            return _number(value, symbols)
        size, stride = [[_number(s, symbols) for s in side] for side in (value.size, value.stride)]
        return torch.empty_strided(size, stride, dtype=value.dtype, device=device)

    return _pytree.tree_map(made, results)


def _number(value: Any, symbols: dict[Any, Any]) -> Any:
    """Return what an expression stands for here; a symbol that is new here is one of the result."""
    from torch.utils._sympy.interp import sympy_interp
    from torch.utils._sympy.reference import PythonReferenceAnalysis

    for symbol in sorted(getattr(value, "free_symbols", ()), key=str):
        if symbol not in symbols:
            symbols[symbol] = torch.library.get_ctx().new_dynamic_size()
    if not hasattr(value, "free_symbols"):
        return value
    return sympy_interp(PythonReferenceAnalysis, symbols, value)
