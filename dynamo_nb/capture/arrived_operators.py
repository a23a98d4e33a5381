"""Operators that are not torch's own, in the process where they arrived.

One is a name with a schema there: its fake kernel gives what the same call gave in the notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree

from dynamo_nb.capture.user_operators import (
    Look,
    Operator,
    OperatorName,
    Outcome,
    packet_of,
    parted,
)

__all__ = ["Later", "arrived", "define", "outcomes", "unknown_calls", "untrained"]

_HIDDEN = "it is none that `torch.library.custom_op` keeps"

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
        return operator.overload in packet_of(operator.name).overloads()
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
    packet = packet_of(target.name)
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
        tensors, others = parted((args, kwargs))
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
