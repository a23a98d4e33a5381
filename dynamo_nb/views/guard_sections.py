"""The sections on what a compile assumes: guards, symbols, shape guards, the guard tree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dynamo_nb.record.types import Compile, Guard, GuardTree, ShapeGuard, Symbol
from dynamo_nb.views.blocks import Section, code, table
from dynamo_nb.views.context import Context, where
from dynamo_nb.views.plain import plural

__all__ = ["conditions", "guards"]

#: Torch appends the user's line to a condition; the line has a column of its own here.
_COMMENT = re.compile(r"\s+# .*$", re.DOTALL)

#: Five conditions that come with every tensor that nobody marked as dynamic or static.
_UNMARKED = re.compile(r"hasattr\(.*, '_dynamo_\w*indices'\) == False")


def conditions(code: list[str]) -> str:
    """Return a guard's conditions in one line, without torch's comments and boilerplate."""
    bare = [_COMMENT.sub("", part) for part in code]
    shown = [part for part in bare if not _UNMARKED.fullmatch(part)]
    if len(shown) < len(bare):
        shown.append("no dimension marked dynamic or static")
    return " and ".join(shown)


def guards(entry: Compile, context: Context) -> Iterator[Section]:
    """Yield the guards with the line that made Dynamo assume each."""

    def row(guard: Guard) -> tuple[tuple[str, ...], str]:
        return (
            where(guard.frame),
            guard.kind,
            guard.source or guard.origin,
            guard.value,
            conditions(guard.code),
        ), context.marks.of(guard.frame)

    def shape_row(guard: ShapeGuard) -> tuple[tuple[str, ...], str]:
        return (guard.expr, where(guard.frame)), context.marks.of(guard.frame)

    def symbol_row(symbol: Symbol) -> tuple[tuple[str, ...], str]:
        return (
            symbol.name,
            ", ".join(symbol.sources),
            symbol.hint,
            symbol.range,
            where(symbol.frame),
        ), context.marks.of(symbol.frame)

    if entry.guards:
        yield Section(
            title="guards",
            summary=str(len(entry.guards)),
            blocks=[table("line|kind|source|value|code", entry.guards, row, context.limits)],
            rank=5,
        )
    if entry.shape_guards or entry.symbols:
        yield Section(
            title="symbols and shape guards",
            summary=f"{plural(len(entry.symbols), 'symbol')}, "
            f"{plural(len(entry.shape_guards), 'condition')}",
            blocks=[
                table(
                    "symbol|source|value seen|range|line", entry.symbols, symbol_row, context.limits
                ),
                table("condition|line", entry.shape_guards, shape_row, context.limits),
            ],
            rank=6,
        )
    if entry.guard_tree:
        yield Section(
            title="guard tree",
            summary="in the order of its checks",
            blocks=[code("\n".join(_tree(entry.guard_tree, 0)), context.limits)],
            rank=60,
        )


def _tree(tree: GuardTree, depth: int) -> Iterator[str]:
    indent = "  " * depth
    yield f"{indent}{tree.source or tree.accessor} {tree.manager} {tree.value_type}".rstrip()
    for leaf in tree.leaf_guards:
        yield f"{indent}  {leaf.kind}: {conditions(leaf.code)}"
    for child in tree.children:
        yield from _tree(child, depth + 1)
