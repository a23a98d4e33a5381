"""The sections on what a compile assumes: guards, symbols, shape guards, the guard tree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import Compile, Guard, GuardTree, ShapeGuard, Specialization, Symbol
from dynamo_nb.views.blocks import Section, code, table
from dynamo_nb.views.context import Context, where
from dynamo_nb.views.plain import plural

__all__ = ["conditions", "guards", "origin"]

#: Torch appends the user's line to a condition; the line has a column of its own here.
_COMMENT = re.compile(r"\s+# .*$", re.DOTALL)

_NAMES = re.compile(r"[A-Za-z_]\w*")
_SIZE = re.compile(r"(?P<tensor>.+)\.(?P<what>size|stride)\(\)\[(?P<index>\d+)\]")

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
        about = [s for s in entry.symbols if s.name in _NAMES.findall(guard.expr)]
        origins = ", ".join(f"{s.name}: {origin(s.sources[0])}" for s in about if s.sources)
        return (guard.expr, origins, where(guard.frame)), context.marks.of(guard.frame)

    def constant_row(item: Specialization) -> tuple[tuple[str, ...], str]:
        return (
            item.symbol,
            ", ".join(map(origin, item.sources)),
            item.value,
            item.reason,
            where(item.frame),
        ), context.marks.of(item.frame)

    def symbol_row(symbol: Symbol) -> tuple[tuple[str, ...], str]:
        return (
            symbol.name,
            ", ".join(map(origin, symbol.sources)),
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
    if entry.shape_guards or entry.symbols or entry.specializations:
        yield Section(
            title="symbols and shape guards",
            summary=f"{plural(len(entry.symbols), 'symbol')}, "
            f"{plural(len(entry.shape_guards), 'condition')}",
            blocks=[
                table(
                    "symbol|source|value seen|range|line", entry.symbols, symbol_row, context.limits
                ),
                table("condition|about|line", entry.shape_guards, shape_row, context.limits),
                table(
                    "became a constant|source|value|reason|line",
                    entry.specializations,
                    constant_row,
                    context.limits,
                ),
            ],
            rank=6,
        )
    if entry.guard_tree:
        yield Section(
            title="guard tree",
            summary="in the order of its checks",
            blocks=[code("\n".join(_tree(entry.guard_tree, _Made(entry))), context.limits)],
            rank=60,
        )


def origin(source: str) -> str:
    """Return where a symbol comes from: `dimension 0 of x` for the source of a size."""
    match = _SIZE.fullmatch(source)
    if match is None:
        return readable(source)
    what = "dimension" if match["what"] == "size" else "stride"
    return f"{what} {match['index']} of {readable(match['tensor'])}"


class _Made:
    """What Dynamo noted when it made the guards of an entry: values and lines, by source."""

    def __init__(self, entry: Compile) -> None:
        self._values = {guard.source: guard.value for guard in entry.guards if guard.value}
        self._lines = {guard.source: where(guard.frame) for guard in entry.guards if guard.frame}

    def text(self, source: str) -> str:
        """Return the value that a source had, and the line that made Dynamo guard on it."""
        value, line = self._values.get(source, ""), self._lines.get(source, "")
        return (f" = {value}" if value else "") + (f"  ({line})" if line else "")


def _tree(tree: GuardTree, made: _Made, depth: int = 0) -> Iterator[str]:
    indent = "  " * depth
    name = tree.source or tree.accessor
    yield f"{indent}{name} {tree.manager} {tree.value_type}".rstrip() + made.text(tree.source)
    for leaf in tree.leaf_guards:
        yield f"{indent}  {leaf.kind}: {conditions(leaf.code)}"
    for child in tree.children:
        yield from _tree(child, made, depth + 1)
