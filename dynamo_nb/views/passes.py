"""Graph passes in words: what each did to its graph, and the nodes by which the two differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dynamo_nb.record.types import Compile, GraphPass, PassRow
from dynamo_nb.views.blocks import Section, table
from dynamo_nb.views.context import Context, where

__all__ = ["custom_pass_lines", "pass_effect", "pass_sections", "pass_title"]

#: In the order in which an effect is told, and the sign of each kind of row.
_SIGNS = {"removed": "-", "added": "+", "changed": "~"}


def pass_title(item: GraphPass) -> str:
    """Return a pass's name: Inductor's group, or the setting and the user's function."""
    name = f"{item.name}.{item.direction}" if item.direction else item.name
    return f"{name} {item.function}" if item.function else f"{name} passes"


def pass_effect(item: GraphPass) -> str:
    """Return what a pass did, `2 removed, 1 added`, and what was wrong with it."""
    counts = Counter(row.kind for row in item.rows)
    parts = [f"{counts[kind]} {kind}" for kind in _SIGNS if counts[kind]]
    effect = ", ".join(parts) if parts else "changed nothing"
    if not item.error:
        return effect
    return f"{effect}; {item.error}" if parts else item.error


def custom_pass_lines(entry: Compile) -> Iterator[str]:
    """Yield a line for each custom pass; Inductor's own are no news."""
    for item in entry.passes:
        if item.function:
            defined = f" ({where(item.frame)})" if item.frame else ""
            yield f"pass {pass_title(item)}{defined}: {pass_effect(item)}"


def pass_sections(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield a section for each pass: its nodes before and after, where they differ."""

    def row(item: PassRow) -> tuple[tuple[str, ...], str]:
        sign = _SIGNS.get(item.kind, item.kind)
        cells = (sign, where(item.frame), item.node, item.before, item.after)
        return cells, context.marks.of(item.frame)

    for item in entry.passes:
        shown = [table("|line|node|before|after", item.rows, row, context.limits)]
        yield Section(
            title=f"pass {pass_title(item)}",
            summary=f"{pass_effect(item)}, {item.same} the same",
            blocks=shown if item.rows else [],
            rank=20,
            marks=context.marks.of(item.frame),
            is_open=bool(item.error),
        )
