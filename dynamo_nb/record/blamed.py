"""Which guards of an entry a recompile's reason speaks of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import Guard, RecompileReason

__all__ = ["blamed"]

_Rule = Callable[[RecompileReason, list[Guard]], Iterable[int]]


def blamed(reason: RecompileReason, guards: list[Guard]) -> list[int]:
    """Return the indices of the guards that failed.

    Torch checks by a tree that is made of the guards: a check may bear another name than its guard
    (`EQUALS_MATCH` for a `CONSTANT_MATCH`), another source (a function's code for the function),
    and a condition made anew (`2 <= x <= 9` for its two halves). So the strictest rule that finds
    one decides.
    """
    return next((found for rule in _RULES if (found := list(rule(reason, guards)))), [])


def _same(reason: RecompileReason, guards: list[Guard]) -> Iterable[int]:
    for index, guard in enumerate(guards):
        same = guard.kind == reason.kind or (reason.guard and reason.guard in guard.code)
        if guard.source == reason.source and same:
            yield index


def _denied(reason: RecompileReason, guards: list[Guard]) -> Iterable[int]:
    """Find a condition that torch tells as what was found instead: `len(x) != 1`."""
    condition = reason.guard.replace(" != ", " == ")
    return (i for i, guard in enumerate(guards) if condition and condition in guard.code)


def _shapes(reason: RecompileReason, guards: list[Guard]) -> Iterable[int]:
    """Find the guard on all sizes: it has no source, a failure of it has that of the size."""
    is_shape = reason.kind == "SHAPE_ENV"
    return (i for i, guard in enumerate(guards) if is_shape and guard.kind == "SHAPE_ENV")


def _about(reason: RecompileReason, guards: list[Guard]) -> Iterable[int]:
    """Find the guard on a whole whose condition covers a part: one key of a dict's keys."""
    keys = reason.source.rpartition("[")[0] if reason.source.startswith("list(") else ""
    return (i for i, guard in enumerate(guards) if keys and any(keys in c for c in guard.code))


def _modes(reason: RecompileReason, guards: list[Guard]) -> Iterable[int]:
    """Find the guard on torch function modes: the tree's check of them has a name of its own."""
    is_modes = reason.kind == "TORCH_FUNCTION_MODE_STACK"
    return (
        i for i, guard in enumerate(guards) if is_modes and guard.kind == "TORCH_FUNCTION_STATE"
    )


def _related(reason: RecompileReason, guards: list[Guard]) -> Iterable[int]:
    """Find the guards on the tensors that must not be one: no guard of the record says that."""
    both = reason.name.split(" is ") if reason.kind == "NO_TENSOR_ALIASING" else []
    return (i for i, guard in enumerate(guards) if readable(guard.source) in both)


def _nearest(reason: RecompileReason, guards: list[Guard]) -> Iterable[int]:
    """Find the guards on the thing itself, else on the nearest one that it is reached through."""
    around = {g.source for g in guards if g.source and g.source in reason.source}
    nearest = max(around, key=len, default="")
    return (i for i, guard in enumerate(guards) if nearest and guard.source == nearest)


#: The strictest first.
_RULES: tuple[_Rule, ...] = (_same, _denied, _shapes, _about, _modes, _related, _nearest)
