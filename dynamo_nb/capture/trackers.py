"""Variable trackers in a few words: what Dynamo takes a value on its symbolic stack to be.

Trackers are told apart by the name of their class and never by `isinstance`: that would realize a
lazy tracker (`torch/_dynamo/variables/lazy.py`, 2.13) and so change what is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo_nb.capture.plain import brief

__all__ = ["describe", "tensor_node"]

_LIMIT = 60


def _constant(tracker: Any) -> str:
    return f"constant {brief(tracker.value)}"


def _tensor(tracker: Any) -> str:
    return f"tensor {tracker.proxy.node.name}"


def _symbol(tracker: Any) -> str:
    return f"symbol {tracker.sym_num}"


def _lazy(tracker: Any) -> str:
    inside = tracker._cache.vt
    if inside is not None:
        return describe(inside)
    source = getattr(tracker, "source", None)
    return f"lazy {source.name}" if source is not None else "lazy"


def _module(tracker: Any) -> str:
    return f"module {type(tracker.value).__name__}"


def _function(tracker: Any) -> str:
    return f"function {tracker.fn.__name__}"


def _method(tracker: Any) -> str:
    return f"method {tracker.fn.__name__}"


def _sequence(tracker: Any) -> str:
    kind = type(tracker).__name__.removesuffix("Variable").lower()
    return f"{kind} of {len(tracker.items)}"


def _valued(tracker: Any) -> str:
    kind = type(tracker).__name__.removesuffix("Variable")
    value = tracker.value
    return f"{kind} {getattr(value, '__name__', type(value).__name__)}"


#: Trackers that stand for what a node of the graph computes.
_TENSORS = ("TensorVariable", "UnspecializedPythonVariable", "NumpyNdarrayVariable")

_WORDS: dict[str, Callable[[Any], str]] = {
    "ConstantVariable": _constant,
    **dict.fromkeys(_TENSORS, _tensor),
    "SymNodeVariable": _symbol,
    "LazyVariableTracker": _lazy,
    "LazyConstantVariable": _lazy,
    "NNModuleVariable": lambda tracker: f"module {tracker.module_key}",
    "UnspecializedNNModuleVariable": _module,
    "FSDPManagedNNModuleVariable": _module,
    "UserFunctionVariable": _function,
    "UserMethodVariable": _method,
    "NestedUserFunctionVariable": lambda tracker: f"function {tracker.f_code.co_name}",
    "ListVariable": _sequence,
    "TupleVariable": _sequence,
    "SizeVariable": _sequence,
    "ConstDictVariable": _sequence,
    "SetVariable": _sequence,
    "NullVariable": lambda _: "NULL",
}


def describe(tracker: Any) -> str:
    """Return what a tracker stands for: its kind, and its name or value where it has one."""
    kind = type(tracker).__name__
    words = _WORDS.get(kind)
    try:
        text = words(tracker) if words is not None else _valued(tracker)
    except Exception:  # a tracker of another torch: its class still says what it is
        text = kind.removesuffix("Variable")
    return text if len(text) <= _LIMIT else text[:_LIMIT] + "…"


def tensor_node(tracker: Any) -> Any:
    """Return the FX node of a tensor's tracker, realized or lazy; None for other trackers."""
    if type(tracker).__name__ == "LazyVariableTracker":
        tracker = tracker._cache.vt
    if type(tracker).__name__ not in _TENSORS:
        return None
    return getattr(getattr(tracker, "proxy", None), "node", None)
