"""The difference of two records' graphs and kernels, on top of what corresponds in them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dynamo_nb.record.causes import own_compiles
from dynamo_nb.record.difference import GraphChange, KernelChange, NodeChange
from dynamo_nb.record.matching import Match, NodeAt, NodePair
from dynamo_nb.record.types import CellRecord, Compile, Graph, Kernel, Ref, TensorValue

__all__ = [
    "KernelGroup",
    "graph_changes",
    "kernel_changes",
    "kernel_groups",
    "kernel_ref",
    "node_ref",
]

#: A graph's node, or a kernel: its compile, its graph, its name.
_Key = tuple[str, str, str]

#: Kernels of the one record, and those of the other that share nodes with them.
KernelGroup = tuple[list[_Key], list[_Key]]


def node_ref(key: _Key) -> Ref:
    """Return the address of a node."""
    compiled, graph, name = key
    return Ref(compiled, "node", f"{graph}/{name}")


def kernel_ref(key: _Key) -> Ref:
    """Return the address of a kernel, whose graph has the kernel's number behind it."""
    compiled, graph, name = key
    return Ref(compiled, "kernel", f"{graph.rpartition('#')[0]}/{name}")


_At = tuple[Compile, Graph]


def graph_changes(match: Match) -> list[GraphChange]:
    """Return the graphs of both records, those that correspond together, with what changed."""
    changes = _Changes(match)
    return [
        *(changes.of(old, new) for old, new in match.graphs),
        *(changes.of(old, None) for old in match.graphs_gone),
        *(changes.of(None, new) for new in match.graphs_new),
    ]


class _Changes:
    """The changes of nodes, by side and graph."""

    def __init__(self, match: Match) -> None:
        self._same: Counter[tuple[str, ...]] = Counter()
        self._changes: dict[tuple[str, ...], list[NodeChange]] = {}
        for pair in match.nodes:
            changed = _node_change(pair)
            if changed is None:
                compile_id, graph, _ = pair.after.key
                self._same["after", compile_id, graph] += 1
            else:
                self._add("after", pair.after, changed)
        for at in match.nodes_new:
            self._add("after", at, _alone("added", at))
        for at in match.nodes_gone:
            self._add("before", at, _alone("removed", at))

    def _add(self, side: str, at: NodeAt, change: NodeChange) -> None:
        self._changes.setdefault((side, *at.key[:2]), []).append(change)

    def of(self, old: _At | None, new: _At | None) -> GraphChange:
        shown = new or old
        assert shown is not None
        sides = [(s, at[0].key, at[1].name) for s, at in (("after", new), ("before", old)) if at]
        return GraphChange(
            stage=shown[1].stage,
            function=shown[0].resume_of or shown[0].name,
            before=f"{old[0].key} {old[1].name}" if old else "",
            after=f"{new[0].key} {new[1].name}" if new else "",
            same=sum(self._same[side] for side in sides),
            nodes=[change for side in sides for change in self._changes.get(side, ())],
        )


def _node_change(pair: NodePair) -> NodeChange | None:
    was, now = pair.before.node, pair.after.node
    fields = _fields(was.value, now.value)
    if not fields and not pair.moved:
        return None
    return NodeChange(
        change="moved" if pair.moved else "changed",
        target=now.target,
        op=now.op,
        before=pair.before.text,
        after=pair.after.text,
        line=pair.after.line,
        refs_before=[node_ref(pair.before.key)],
        refs_after=[node_ref(pair.after.key)],
        fields=fields,
        was=was.value if fields else None,
        now=now.value,
    )


def _alone(change: str, at: NodeAt) -> NodeChange:
    is_new = change == "added"
    return NodeChange(
        change=change,
        target=at.node.target,
        op=at.node.op,
        before="" if is_new else at.text,
        after=at.text if is_new else "",
        line=at.line,
        refs_before=[] if is_new else [node_ref(at.key)],
        refs_after=[node_ref(at.key)] if is_new else [],
        was=None if is_new else at.node.value,
        now=at.node.value if is_new else None,
    )


def _fields(was: Any, now: Any) -> list[str]:
    """Return what is different in the values of two nodes."""
    if isinstance(was, TensorValue) and isinstance(now, TensorValue):
        names = ("shape", "stride", "dtype", "device", "requires_grad")
        return [name for name in names if getattr(was, name) != getattr(now, name)]
    return [] if was == now else ["value"]


def kernel_groups(a: CellRecord, b: CellRecord, match: Match) -> list[KernelGroup]:
    """Return what became of the kernels: those that share nodes belong together."""
    old, new = _kernels_by_key(a), _kernels_by_key(b)
    writers: dict[_Key, list[_Key]] = {}
    for key, (entry, kernel) in new.items():
        for node in kernel.nodes:
            writers.setdefault((entry.key, kernel.graph, node), []).append(key)
    now = _nodes_now(match)
    ties: dict[_Key, set[_Key]] = {}
    for key, (entry, kernel) in old.items():
        nodes = (now.get((entry.key, kernel.graph, node)) for node in kernel.nodes)
        ties[key] = {found for node in nodes if node for found in writers.get(node, ())}
        if not kernel.nodes and key in new:
            ties[key] = {key}  # nobody said what it is made of: its name has to do
    groups = _groups(ties)
    tied = {key for _, after in groups for key in after}
    return groups + [([], [key]) for key in new if key not in tied]


def kernel_changes(
    a: CellRecord, b: CellRecord, match: Match, groups: list[KernelGroup]
) -> list[KernelChange]:
    """Return the groups of kernels that are different in the two records."""
    old, new, now = _kernels_by_key(a), _kernels_by_key(b), _nodes_now(match)
    changes = (
        _kernel_change({k: old[k] for k in i}, {k: new[k] for k in j}, now) for i, j in groups
    )
    return [change for change in changes if change is not None]


def _nodes_now(match: Match) -> dict[_Key, _Key]:
    return {pair.before.key: pair.after.key for pair in match.nodes}


def _kernels_by_key(record: CellRecord) -> dict[_Key, tuple[Compile, Kernel]]:
    return {
        (entry.key, f"{kernel.graph}#{index}", kernel.name): (entry, kernel)
        for entry in own_compiles(record)
        for index, kernel in enumerate(entry.kernels)
    }


def _groups(ties: dict[_Key, set[_Key]]) -> list[KernelGroup]:
    """Return the kernels of both sides that are tied to each other, directly or in a chain."""
    groups: list[tuple[list[_Key], set[_Key]]] = []
    for key, others in ties.items():
        met = [group for group in groups if group[1] & others]
        groups = [group for group in groups if not group[1] & others]
        before = [old for group in met for old in group[0]]
        groups.append(([*before, key], others.union(*(group[1] for group in met))))
    return [(before, sorted(after)) for before, after in groups]


def _kernel_change(
    keyed_old: dict[_Key, tuple[Compile, Kernel]],
    keyed_new: dict[_Key, tuple[Compile, Kernel]],
    now: dict[_Key, _Key],
) -> KernelChange | None:
    old, new = list(keyed_old.values()), list(keyed_new.values())
    before = {now.get((e.key, k.graph, n), (e.key, k.graph, n)) for e, k in old for n in k.nodes}
    after = {(e.key, k.graph, n) for e, k in new for n in k.nodes}
    change = _KERNEL_CHANGES[min(len(old), 2), min(len(new), 2)]
    if change == "changed" and before == after:
        return None
    lines = {
        line
        for entry, kernel in new or old
        for graph in entry.graphs
        if graph.name == kernel.graph
        for node in graph.nodes
        if node.name in kernel.nodes and (line := NodeAt(entry, graph, node).line)
    }
    return KernelChange(
        change=change,
        before=[f"{entry.key} {kernel.name}" for entry, kernel in old],
        after=[f"{entry.key} {kernel.name}" for entry, kernel in new],
        nodes_before=sum(len(kernel.nodes) for _, kernel in old),
        nodes_after=sum(len(kernel.nodes) for _, kernel in new),
        lines=sorted(lines),
        refs_before=[kernel_ref(key) for key in keyed_old],
        refs_after=[kernel_ref(key) for key in keyed_new],
    )


#: What happened, by the number of kernels before and after; 2 stands for several.
_KERNEL_CHANGES = {
    (0, 1): "added",
    (1, 0): "removed",
    (1, 1): "changed",
    (2, 1): "merged",
    (1, 2): "split",
    (2, 2): "regrouped",
}
