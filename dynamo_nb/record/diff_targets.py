"""The difference of two records' kernels for GPUs that are not there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from dynamo_nb.record.causes import cell_frame, own_compiles
from dynamo_nb.record.difference import TargetChange
from dynamo_nb.record.matching import Match, paired
from dynamo_nb.record.types import CellRecord, Compile, Kernel, Node, Ref, Target

__all__ = ["TargetPair", "target_changes", "target_pairs"]


class KernelAt(Struct, frozen=True):
    """A kernel with the target and the compile that it is in."""

    compiled: Compile
    target: Target
    kernel: Kernel

    @property
    def ref(self) -> Ref:
        """Its address."""
        return Ref(self.compiled.key, "kernel", f"{self.kernel.graph}/{self.kernel.name}")

    @property
    def text(self) -> str:
        """The kernel as a person would name it: `0/0 triton_poi_fused_0`."""
        return f"{self.compiled.key} {self.kernel.name}"

    @property
    def direction(self) -> str:
        """Which of a compile's graphs it is in, whatever the target."""
        return self.kernel.graph.partition("/")[2]

    @property
    def nodes(self) -> list[Node]:
        """The nodes that it computes."""
        graphs = (graph for graph in self.target.graphs if graph.name == self.kernel.graph)
        return [node for graph in graphs for node in graph.nodes if node.name in self.kernel.nodes]

    @property
    def origins(self) -> list[tuple[str, str, str]]:
        """The nodes of the Dynamo graph that it comes of: compile, graph and name of each."""
        names = dict.fromkeys(origin for node in self.nodes for origin in node.origins)
        parts = (name.partition("/") for name in names)
        return [(self.compiled.key, graph, node) for graph, _, node in parts]

    @property
    def lines(self) -> list[int]:
        """The cell's lines that it comes from."""
        frames = (cell_frame(node.frames) for node in self.nodes)
        return sorted({frame.line for frame in frames if frame})


class TargetPair(Struct, frozen=True):
    """A target of the one record and that of the other, with the kernels that correspond."""

    before: str
    after: str
    kernels: list[tuple[KernelAt, KernelAt]]
    gone: list[KernelAt]
    new: list[KernelAt]
    errors: list[tuple[Compile, Compile, str, str]]


def target_pairs(a: CellRecord, b: CellRecord, match: Match) -> list[TargetPair]:
    """Return the targets that correspond: of the same spec, or the only one on either side."""
    before, after = _specs(a), _specs(b)
    pairs = [(spec, spec) for spec in before if spec in after]
    if not pairs and len(before) == len(after) == 1:
        pairs = [(before[0], after[0])]
    return [_pair(old, new, match) for old, new in pairs]


def _specs(record: CellRecord) -> list[str]:
    targets = (target for entry in own_compiles(record) for target in entry.targets)
    return list(dict.fromkeys(target.spec for target in targets))


def _pair(before: str, after: str, match: Match) -> TargetPair:
    found = TargetPair(before, after, [], [], [], [])
    for old, new in match.compiles:
        sides = _kernels(old, before), _kernels(new, after)
        pairs, gone, come = paired(*sides, _keys(match))
        found.kernels.extend(pairs)
        found.gone.extend(gone)
        found.new.extend(come)
        was, now = _error(old, before), _error(new, after)
        if was != now:
            found.errors.append((old, new, was, now))
    found.gone.extend(at for entry in match.compiles_gone for at in _kernels(entry, before))
    found.new.extend(at for entry in match.compiles_new for at in _kernels(entry, after))
    return found


def _keys(match: Match) -> Sequence[Callable[[KernelAt, bool], Hashable]]:
    """Return by what kernels correspond, the strictest first.

    Their own nodes are numbered anew in each graph: those of Dynamo's graph are what is compared.
    """
    now = {pair.before.key: pair.after.key for pair in match.nodes}

    def kind(at: KernelAt, has: Collection[object]) -> Hashable:
        """Return what must be the same besides; of kernels that lack the rest, the name."""
        is_named = at.kernel.language == "extern" or not has
        return at.direction, at.kernel.name if is_named else ""

    def origins(at: KernelAt, is_before: bool) -> list[Hashable]:
        return [now.get(key, key) if is_before else key for key in at.origins]

    def made_of(at: KernelAt, is_before: bool) -> Hashable:
        found = origins(at, is_before)
        return kind(at, found), frozenset(found)

    def by_name(at: KernelAt, _: bool) -> Hashable:
        return at.direction, at.kernel.name

    def on_lines(at: KernelAt, is_before: bool) -> Hashable:
        found = [match.lines.now(line) if is_before else line for line in at.lines]
        return kind(at, found), tuple(found)

    def begins_with(at: KernelAt, is_before: bool) -> Hashable:
        found = origins(at, is_before)[:1]
        return kind(at, found), tuple(found)

    return made_of, by_name, on_lines, begins_with


def _kernels(entry: Compile, spec: str) -> list[KernelAt]:
    targets = (target for target in entry.targets if target.spec == spec)
    return [KernelAt(entry, target, kernel) for target in targets for kernel in target.kernels]


def _error(entry: Compile, spec: str) -> str:
    return next((target.error for target in entry.targets if target.spec == spec), "")


def target_changes(pairs: list[TargetPair]) -> list[TargetChange]:
    """Return what is different in the targets that correspond, kernel by kernel."""
    return [change for pair in pairs for change in list(_changes(pair)) or _same(pair)]


def _same(pair: TargetPair) -> list[TargetChange]:
    """Return that two different targets have the same kernels, which is worth saying."""
    if pair.before == pair.after:
        return []
    now = {"kernels": len(pair.kernels)}
    return [TargetChange(change="same", spec_before=pair.before, spec_after=pair.after, now=now)]


def _changes(pair: TargetPair) -> Iterator[TargetChange]:
    for entry, other, was, now in pair.errors:
        yield TargetChange(
            change="changed",
            spec_before=pair.before,
            spec_after=pair.after,
            before=entry.key,
            after=other.key,
            was={"error": was},
            now={"error": now},
        )
    for old, new in pair.kernels:
        if _facts(old) != _facts(new):
            yield _change("changed", pair, old, new)
    yield from (_change("removed", pair, at, None) for at in pair.gone)
    yield from (_change("added", pair, None, at) for at in pair.new)


def _change(
    change: str, pair: TargetPair, old: KernelAt | None, new: KernelAt | None
) -> TargetChange:
    was, now = _facts(old) if old else {}, _facts(new) if new else {}
    same = [name for name in was if name in now and was[name] == now[name]]
    shown = new or old
    assert shown is not None
    return TargetChange(
        change=change,
        spec_before=pair.before,
        spec_after=pair.after,
        before=old.text if old else "",
        after=new.text if new else "",
        was={name: value for name, value in was.items() if name not in same},
        now={name: value for name, value in now.items() if name not in same},
        lines=shown.lines,
        refs_before=[old.ref] if old else [],
        refs_after=[new.ref] if new else [],
    )


def _facts(at: KernelAt) -> dict[str, Any]:
    """Return what is compared of a kernel: what it fuses, and what its binary takes."""
    facts: dict[str, Any] = {"nodes": len(at.kernel.nodes), "calls": at.kernel.calls}
    binary = at.target.binary(at.kernel)
    if binary is None:
        return facts
    if binary.error:
        return {**facts, "error": binary.error}
    found = binary.resources
    return {
        **facts,
        "registers": found.get("registers", 0),
        "spilled registers": found.get("spilled_registers", 0),
        "spills": found.get("spill_stores", 0) + found.get("spill_loads", 0),
        "shared memory": binary.shared,
        "occupancy": binary.occupancy,
        "limited by": binary.limited_by,
        "grid": " x ".join(binary.grid),
        "threads": binary.threads,
        **binary.config,
    }
