"""The difference of two records as sections of short lines, shared by its text and its HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from msgspec import Struct

from dynamo_nb.record.difference import (
    BreakChange,
    GraphChange,
    GuardChange,
    KernelChange,
    NodeChange,
    RecompileChange,
    RecordDiff,
    Side,
    TargetChange,
)
from dynamo_nb.record.types import Ref
from dynamo_nb.views.plain import (
    brief,
    compact_lines,
    one_line,
    percent_text,
    plural,
    some,
    value_text,
)

__all__ = ["Change", "Group", "differs", "groups", "headline", "side_text", "times"]

#: Times shorter than this, in seconds, tell nothing.
_WORTH_SAYING = 1e-3


class Change(Struct, frozen=True, kw_only=True):
    """One thing that is different: what became of it, where, and what it is.

    `old` and `new` are the cell's lines that it belongs to, in each record; `refs_before` and
    `refs_after` are what it is about.
    """

    change: str
    text: str
    old: tuple[int, ...] = ()
    new: tuple[int, ...] = ()
    refs_before: list[Ref] = []
    refs_after: list[Ref] = []
    details: list[Change] = []

    @property
    def where(self) -> str:
        """The lines, those of the second record where it has any."""
        return compact_lines(self.new or self.old)


class Group(Struct, frozen=True, kw_only=True):
    """All that is different of one kind of thing."""

    title: str
    changes: list[Change]

    @property
    def summary(self) -> str:
        """How many of each change there are: `2 gone, 1 new`."""
        counts = Counter(change.change for change in self.changes)
        return ", ".join(f"{count} {change}" for change, count in counts.items())


def side_text(side: Side) -> str:
    """Return which report one side is."""
    number = f"cell [{side.cell}]" if side.cell is not None else "a report"
    return f"{side.name} ({number})" if side.name else number


def headline(diff: RecordDiff) -> str:
    """Return the counts that are different: `graphs 2 -> 1, graph breaks 1 -> 0`."""
    facts = [
        f"{_nouns(noun)} {before} -> {after}"
        for noun in dict.fromkeys([*diff.before.counts, *diff.after.counts])
        if (before := diff.before.counts.get(noun, 0)) != (after := diff.after.counts.get(noun, 0))
    ]
    for what in ("mode", "device", "torch", "error"):
        before, after = getattr(diff.before, what), getattr(diff.after, what)
        if before != after:
            facts.append(f"{what} {before or 'none'} -> {after or 'none'}")
    if diff.before.options != diff.after.options:
        facts.append(f"options {_options(diff.before)} -> {_options(diff.after)}")
    return ", ".join(facts) or "the same counts"


def _nouns(noun: str) -> str:
    return plural(2, noun).partition(" ")[2]


def _options(side: Side) -> str:
    pairs = (f"{name}={value}" for name, value in side.options.items())
    return one_line(" ".join(pairs)) or "none"


def differs(diff: RecordDiff) -> bool:
    """Tell whether anything but times is different."""
    edited = any(line.change != "same" for line in diff.source)
    return edited or any(group.changes for group in groups(diff))


def groups(diff: RecordDiff) -> list[Group]:
    """Return what is different, by kind of thing, in reading order."""
    made = [Group(title=title, changes=list(make(diff))) for title, make in _GROUPS.items()]
    return [*(group for group in made if group.changes), *_targets(diff)]


def _findings(diff: RecordDiff) -> Iterator[Change]:
    for item in diff.findings:
        text = f"{item.severity} {item.code}: {one_line(item.message)}"
        yield _at(item.change, text, item.line)


_Located = BreakChange | RecompileChange | NodeChange | GuardChange | KernelChange


def _at(change: str, text: str, line: int | None, item: _Located | None = None) -> Change:
    lines = (line,) if line else ()
    is_old = change in ("gone", "removed")
    return Change(
        change=change,
        text=text,
        old=lines if is_old else (),
        new=() if is_old else lines,
        refs_before=item.refs_before if item else [],
        refs_after=item.refs_after if item else [],
    )


def _breaks(diff: RecordDiff) -> Iterator[Change]:
    for item in diff.breaks:
        times = f", {item.count} times" if item.count > 1 else ""
        where = f" ({item.place})" if item.place else ""
        text = f"{brief(item.kind, 160)} in {item.function}{where}{times}"
        yield _at(item.change, text, item.line, item)


def _recompiles(diff: RecordDiff) -> Iterator[Change]:
    for item in diff.recompiles:
        yield _at(item.change, _recompile_text(item), item.line, item)


def _recompile_text(item: RecompileChange) -> str:
    values = f" ({some(map(one_line, item.values))})" if item.values else ""
    count = f"{item.before} -> {item.after}" if item.before and item.after else ""
    count = count or str(item.before or item.after)
    return f"{brief(item.name, 120)}{values} of {item.function}: {count}"


def _graphs(diff: RecordDiff) -> Iterator[Change]:
    for graph in diff.graphs:
        if graph.change != "same":
            yield Change(
                change=graph.change,
                text=_graph_text(graph),
                details=[_node(node) for node in graph.nodes],
            )


def _graph_text(graph: GraphChange) -> str:
    sides = graph.before or graph.after
    if graph.before and graph.after and graph.before != graph.after:
        sides = f"{graph.before} -> {graph.after}"
    counts = Counter(node.change for node in graph.nodes)
    facts = [f"{count} {change}" for change, count in counts.items()]
    facts = [f"{graph.same} same", *facts] if graph.same else facts
    return f"{sides} of {graph.function}: {', '.join(facts) or 'no nodes'}"


def _node(node: NodeChange) -> Change:
    return _at(node.change, _node_text(node), node.line, node)


def _node_text(node: NodeChange) -> str:
    name = (node.after or node.before).rpartition("/")[2]
    text = name if name == node.target else f"{name} = {node.target}"
    if node.change == "moved":
        text += f", from {node.before.rpartition('/')[0]}"
    was, now = value_text(node.was), value_text(node.now)
    if node.fields:
        same = f"{was} -> {now}" if was != now else now
        hidden = [field for field in node.fields if field not in ("shape", "dtype", "value")]
        return f"{text}: {same}" + (f" ({', '.join(hidden)})" if hidden else "")
    return f"{text}: {now or was}" if now or was else text


def _guards(diff: RecordDiff) -> Iterator[Change]:
    for item in diff.guards:
        yield _at(item.change, _guard_text(item), item.line, item)


def _guard_text(item: GuardChange) -> str:
    codes = [*(f"- {code}" for code in item.before), *(f"+ {code}" for code in item.after)]
    if item.change != "changed":
        codes = [code[2:] for code in codes]
    what = f"{item.kind} {item.source}".strip()
    code = f": {brief(some(codes), 400)}" if codes else ""
    return f"{what} of {item.function}{code}"


def _kernels(diff: RecordDiff) -> Iterator[Change]:
    for item in diff.kernels:
        lines = tuple(item.lines)
        is_old = not item.after
        yield Change(
            change=item.change,
            text=_kernel_text(item),
            old=lines if is_old else (),
            new=() if is_old else lines,
            refs_before=item.refs_before,
            refs_after=item.refs_after,
        )


def _kernel_text(item: KernelChange) -> str:
    names = " -> ".join(some(side) for side in (item.before, item.after) if side)
    if len(item.before) == len(item.after) == 1 and item.before == item.after:
        names = item.before[0]
    nodes = plural(item.nodes_after or item.nodes_before, "node")
    if item.before and item.after and item.nodes_before != item.nodes_after:
        nodes = f"{item.nodes_before} -> {plural(item.nodes_after, 'node')}"
    return f"{names}: {nodes}"


def _targets(diff: RecordDiff) -> Iterator[Group]:
    """Yield a group for each two targets that were compared."""
    by_specs: dict[tuple[str, str], list[Change]] = {}
    for item in diff.targets:
        lines = tuple(item.lines)
        change = Change(
            change=item.change,
            text=_target_text(item),
            old=lines if item.change == "removed" else (),
            new=() if item.change == "removed" else lines,
            refs_before=item.refs_before,
            refs_after=item.refs_after,
        )
        by_specs.setdefault((item.spec_before, item.spec_after), []).append(change)
    for (before, after), changes in by_specs.items():
        title = after if before == after else f"{before} -> {after}"
        yield Group(title=f"Kernels for {title}, predicted", changes=changes)


def _target_text(item: TargetChange) -> str:
    if item.change == "same":
        return f"nothing is different in {plural(item.now['kernels'], 'kernel')}"
    sides = [item.before, item.after] if item.before != item.after else [item.after]
    names = " -> ".join(filter(None, sides))
    if item.change == "changed":
        facts = [_fact_text(name, item) for name in {**item.was, **item.now}]
    else:
        only = {**item.was, **item.now}
        facts = [f"{name} {_value(name, only[name])}" for name in _TELLING if only.get(name)]
    return f"{names}: {', '.join(facts)}"


#: What is said of a kernel that is in one of the records only.
_TELLING = ("error", "nodes", "registers", "occupancy", "grid")


def _fact_text(name: str, item: TargetChange) -> str:
    was, now = (_value(name, side.get(name)) for side in (item.was, item.now))
    return f"{name} {was} -> {now}"


def _value(name: str, value: object) -> str:
    if value is None or value == "":
        return "none"
    if name == "occupancy" and isinstance(value, float):
        return percent_text(value)
    unit = " bytes" if name in ("spills", "shared memory") else ""
    return f"{brief(str(value), 160)}{unit}"


_GROUPS: dict[str, Callable[[RecordDiff], Iterator[Change]]] = {
    "Findings": _findings,
    "Graph breaks": _breaks,
    "Recompiles": _recompiles,
    "Graphs": _graphs,
    "Guards": _guards,
    "Kernels": _kernels,
}


def times(diff: RecordDiff) -> list[tuple[str, str, str]]:
    """Return the stages that took time in either record, in milliseconds: a measurement."""
    return [
        (item.stage, f"{item.before * 1e3:.1f}", f"{item.after * 1e3:.1f}")
        for item in diff.times
        if max(item.before, item.after) >= _WORTH_SAYING
    ]
