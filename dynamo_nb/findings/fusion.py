"""Operations that stay apart though one reads what the other writes, where that costs something."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from dynamo_nb.findings.wording import cell_lines
from dynamo_nb.record.causes import own_compiles
from dynamo_nb.record.kernels import nodes_of
from dynamo_nb.record.places import innermost
from dynamo_nb.record.types import (
    CELL,
    CellRecord,
    Compile,
    Finding,
    Node,
    NotFused,
    Ref,
    StackFrame,
)

__all__ = ["COSTLY_BYTES", "kernel_not_fused"]

#: Less than this stays in a core's cache between two loops, and is nobody's trouble.
COSTLY_BYTES = 1 << 20

_OTHER_ORDER = (
    "the second reads at other places than the first writes (transposed, shifted, gathered or "
    "broadcast)",
    "Make both run over the same elements in the same order: transpose or gather before the first "
    "operation, or compute the part that is needed in another order a second time.",
)
_OTHER_SIZES = (
    "their loops have different sizes",
    "A reduction must be over before what needs its result begins, unless both run along the same "
    "outer dimension. Reduce over the last dimension, or accept one trip through memory.",
)

#: Inductor's reasons, by how they begin: what they mean, and what could be done.
_REASONS: dict[str, tuple[str, str]] = {
    "memory deps did not match": _OTHER_ORDER,
    "no shared data": _OTHER_ORDER,
    "numel/rnumel mismatch": _OTHER_SIZES,
    "nodes numel": _OTHER_SIZES,
    "tiling mismatch": _OTHER_SIZES,
    "invalid tiling": _OTHER_SIZES,
}

#: Reasons that speak of a third operation between the two: it is that one which matters.
_INDIRECT = ("intermediate nodes", "will create cycle", "node1 must go before")


def kernel_not_fused(record: CellRecord) -> Iterator[Finding]:
    """Two operations hand much on through memory; those of one cause and the same lines are one.

    What is so on a target, too, is not told again.
    """
    for compiled in own_compiles(record):
        here = _by_cause(compiled.unfused, compiled)
        for items in here.values():
            yield _finding(compiled, items, [])
        there: dict[_Key, dict[str, list[NotFused]]] = {}
        for target in compiled.targets:
            for key, items in _by_cause(target.unfused, compiled).items():
                if key not in here:
                    there.setdefault(key, {})[target.spec] = items
        for by_target in there.values():
            yield _finding(compiled, next(iter(by_target.values())), list(by_target))


#: What makes two pairs one: why they are not fused, and the lines of both.
_Key = tuple[str, int | None, int | None]


def _by_cause(unfused: list[NotFused], compiled: Compile) -> dict[_Key, list[NotFused]]:
    found: dict[_Key, list[NotFused]] = {}
    for item in unfused:
        if item.bytes >= COSTLY_BYTES and not item.reason.startswith(_INDIRECT):
            first, second = (frame.line if frame else None for frame in _places(item, compiled))
            found.setdefault((_cause(item)[0], first, second), []).append(item)
    return found


def _cause(item: NotFused) -> tuple[str, str]:
    for begin, told in _REASONS.items():
        if item.reason.startswith(begin):
            return told
    if item.reason:
        return f"Inductor says: {item.reason}", ""
    return _OTHER_ORDER if _are_of_one_size(item.loops) else _OTHER_SIZES


def _are_of_one_size(loops: list[str]) -> bool:
    """Tell whether two loops come to as many elements, and neither is a reduction."""
    if len(loops) != 2 or "reduced" in "".join(loops):
        return False
    first, second = (re.findall(r"\d+", text) for text in loops)
    return math.prod(map(int, first)) == math.prod(map(int, second))


def _finding(compiled: Compile, items: list[NotFused], targets: list[str]) -> Finding:
    item = max(items, key=lambda item: item.bytes)
    why, advice = _cause(item)
    first, second = _places(item, compiled)
    told = len(item.loops) == 2 and why == _OTHER_SIZES[0]
    loops = f" ({'; then '.join(item.loops)})" if told and not item.reason else ""
    kernels = [name for name in dict.fromkeys((item.writer, item.reader)) if name]
    return Finding(
        code="kernel-not-fused",
        severity="info",
        message=(
            f"{_for(targets)}{_what(item.writer_nodes, item, compiled)}{_at(first)} and "
            f"{_what(item.reader_nodes, item, compiled)}{_at(second)} are not fused and hand "
            f"{sum(each.bytes for each in items) / 1e6:.1f} MB on through memory: {why}{loops}."
        ),
        advice=advice,
        line=_line(second) or _line(first) or compiled.call_line,
        lines=cell_lines(_line(first), _line(second)),
        count=len(items),
        frame=second if _line(second) is None else None,
        refs=[Ref(compiled.key, "kernel", f"{item.graph}/{name}") for name in kernels],
    )


def _for(targets: list[str]) -> str:
    return f"For {' and '.join(targets)}, as predicted: " if targets else ""


def _places(item: NotFused, compiled: Compile) -> tuple[StackFrame | None, StackFrame | None]:
    return _place(item.writer_nodes, item, compiled), _place(item.reader_nodes, item, compiled)


def _place(names: list[str], item: NotFused, compiled: Compile) -> StackFrame | None:
    """Return where the last of some nodes comes from: in the cell where it can be."""
    frames = [
        frame
        for node in nodes_of(compiled, item.graph, names)
        for frame in (_in_cell(node) or innermost(node.frames),)
        if frame is not None
    ]
    own = [frame for frame in frames if frame.file == CELL]
    return next((found[-1] for found in (own, frames) if found), None)


def _in_cell(node: Node) -> StackFrame | None:
    return next((frame for frame in reversed(node.frames) if frame.file == CELL), None)


def _what(names: list[str], item: NotFused, compiled: Compile) -> str:
    """Return a group of operations by the last that it computes: `aten.add`."""
    nodes = nodes_of(compiled, item.graph, names)
    if not nodes:
        return "an operation"
    name = nodes[-1].original_aten or nodes[-1].target
    return f"`{'.'.join(name.split('.')[:2])}`"


def _at(frame: StackFrame | None) -> str:
    line = _line(frame)
    return f" (line {line})" if line else ""


def _line(frame: StackFrame | None) -> int | None:
    return frame.line if frame is not None and frame.file == CELL else None
