"""What checking guards costs: one check of an entry, and the share of each source."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

from dynamo_nb.capture.identities import without_addresses
from dynamo_nb.capture.trees import children, managers

__all__ = ["Costs", "guard_costs"]

#: Each measurement repeats a check for about this long, three times, and takes the quickest.
_SAMPLE_SECONDS = 2e-4

#: Parts below this share of the check are not split: the clock's noise would be most of them.
_SPLIT_ABOVE = 0.05


class Costs(NamedTuple):
    """One whole check, and `(source, seconds, managers)`, the dearest first."""

    seconds: float
    parts: list[tuple[str, float, int]]


class _Place(NamedTuple):
    """A guard manager: its source, those of the managers above it and of all below it."""

    source: str
    above: tuple[str, ...]
    below: frozenset[str]
    children: list[Any]


def _seconds_of(call: Any, *args: Any, sample: float = _SAMPLE_SECONDS) -> float:
    """Return how long a call takes with warm CPU caches, from three samples of `sample` seconds."""
    start = perf_counter()
    call(*args)
    repeats = max(1, int(sample / max(perf_counter() - start, 1e-7)))
    best = float("inf")
    for _ in range(3):
        start = perf_counter()
        for _ in range(repeats):
            call(*args)
        best = min(best, (perf_counter() - start) / repeats)
    return best


def guard_costs(
    root: Any, f_locals: dict[str, Any], budget: float, *, sample: float = _SAMPLE_SECONDS
) -> Costs:
    """Measure one check of a guard tree, and its parts: those at the top, then what time allows.

    A part is timed as a clone of the tree that holds the way to it and what is below it, less the
    way alone. The dearest part is split first, for about `budget` seconds: so they are spent where
    it matters. Parts that were not split stand for all that is reached through them; when time is
    up before the top is measured there are none.
    `torch._C._dynamo.guards.profile_guard_manager` (2.13) knows the whole check only, and empties
    the CPU caches before each.
    """
    ends = perf_counter() + budget
    timed: dict[frozenset[str], float] = {}

    def time_of(kept: frozenset[str]) -> float:
        if kept not in timed:
            wanted = kept | {root.get_source()}
            clone = root.clone_manager(lambda manager: manager.get_source() in wanted)
            timed[kept] = _seconds_of(clone.check, f_locals, sample=sample)
        return timed[kept]

    def cost(place: _Place) -> float:
        above = frozenset(place.above)
        return max(0.0, time_of(above | place.below | {place.source}) - time_of(above))

    whole = _seconds_of(root.check, f_locals, sample=sample)
    parts: list[tuple[str, float, int]] = []
    waiting: list[tuple[float, int, _Place]] = []
    top = []
    for place in [_place(manager, ()) for manager in children(root)]:
        top.append((place, cost(place)))
        if perf_counter() > ends:
            return Costs(whole, [])  # some of the parts alone would mislead
    for (place, _), seconds in zip(top, _within(whole, [cost for _, cost in top]), strict=True):
        heapq.heappush(waiting, (-seconds, len(timed), place))
    least = whole * _SPLIT_ABOVE
    while waiting and perf_counter() < ends and -waiting[0][0] > least:
        negative, _, place = heapq.heappop(waiting)
        inner = [_place(child, (*place.above, place.source)) for child in place.children]
        costs = _within(-negative, [cost(child) for child in inner])
        parts.append((place.source, max(0.0, -negative - sum(costs)), 1))
        for child, seconds in zip(inner, costs, strict=True):
            heapq.heappush(waiting, (-seconds, len(timed), child))
    parts += [(place.source, -negative, 1 + len(place.below)) for negative, _, place in waiting]
    parts.sort(key=lambda part: -part[1])
    return Costs(whole, [(without_addresses(name), cost, count) for name, cost, count in parts])


def _within(whole: float, parts: list[float]) -> list[float]:
    """Return the parts of a measured whole, which they may not exceed: the clock is coarse."""
    total = sum(parts)
    return [part * whole / total for part in parts] if total > whole else parts


def _place(manager: Any, above: tuple[str, ...]) -> _Place:
    below = frozenset(_below(manager))
    return _Place(manager.get_source(), above, below, list(children(manager)))


def _below(manager: Any) -> Iterator[str]:
    below = managers(manager)
    next(below)
    return (child.get_source() for child in below)
