"""What stands for the same thing in two records, as pairs of their `Ref`s."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from dynamo_nb.record.diff_graphs import KernelGroup, kernel_ref, node_ref
from dynamo_nb.record.diff_targets import TargetPair
from dynamo_nb.record.difference import Counterpart
from dynamo_nb.record.links import line_ref
from dynamo_nb.record.matching import Match, paired, steady
from dynamo_nb.record.types import CELL, Compile, GraphBreak, Guard, RecompileReason, Ref

__all__ = ["counterparts"]

T = TypeVar("T")

_Pairs = Iterable[tuple[Ref, Ref]]


def counterparts(
    match: Match, kernels: Sequence[KernelGroup], targets: Sequence[TargetPair]
) -> list[Counterpart]:
    """Return the pairs of lines, compiles, nodes, kernels, guards, breaks and recompiles.

    Of kernels that share nodes, each of the one record belongs to each of the other.
    """
    pairs: list[tuple[Ref, Ref]] = [
        (line_ref(CELL, old), line_ref(CELL, new)) for old, new in match.lines.pairs
    ]
    pairs += ((node_ref(pair.before.key), node_ref(pair.after.key)) for pair in match.nodes)
    pairs += ((kernel_ref(i), kernel_ref(j)) for old, new in kernels for i in old for j in new)
    pairs += ((i.ref, j.ref) for target in targets for i, j in target.kernels)
    for old, new in match.compiles:
        pairs.append((Ref(old.key, "compile", ""), Ref(new.key, "compile", "")))
        pairs += _guards(old, new)
        pairs += _breaks(match, old, new)
        pairs += _recompiles(old, new)
    return [Counterpart(before=old, after=new) for old, new in pairs]


def _guards(old: Compile, new: Compile) -> _Pairs:
    def alike(guard: Guard, _: bool) -> Hashable:
        return guard.kind, steady(guard.source), tuple(map(steady, guard.code))

    def of_source(guard: Guard, _: bool) -> Hashable:
        return guard.kind, steady(guard.source)

    keys = (alike, of_source)
    return _numbered("guard", (old.key, old.guards), (new.key, new.guards), keys)


def _breaks(match: Match, old: Compile, new: Compile) -> _Pairs:
    def at_place(item: GraphBreak, is_before: bool) -> Hashable:
        return item.kind, match.place(item.frame, is_before)

    sides = (old.key, old.graph_breaks), (new.key, new.graph_breaks)
    return _numbered("break", *sides, (at_place,))


def _recompiles(old: Compile, new: Compile) -> _Pairs:
    def of_entry(reason: RecompileReason, _: bool) -> Hashable:
        return reason.entry, reason.name

    def of_name(reason: RecompileReason, _: bool) -> Hashable:
        return reason.name

    sides = (old.key, old.recompile_reasons), (new.key, new.recompile_reasons)
    return _numbered("recompile", *sides, (of_entry, of_name))


def _numbered(
    artifact: str,
    before: tuple[str, list[T]],
    after: tuple[str, list[T]],
    keys: Sequence[Callable[[T, bool], Hashable]],
) -> Iterator[tuple[Ref, Ref]]:
    """Yield the pairs of things that a compile numbers; a side is its key and its list."""

    def of_thing(key: Callable[[T, bool], Hashable]) -> Callable[[tuple[int, T], bool], Hashable]:
        return lambda item, is_before: key(item[1], is_before)

    numbered = list(enumerate(before[1])), list(enumerate(after[1]))
    for (i, _), (j, _) in paired(*numbered, [of_thing(key) for key in keys])[0]:
        yield Ref(before[0], artifact, str(i)), Ref(after[0], artifact, str(j))
