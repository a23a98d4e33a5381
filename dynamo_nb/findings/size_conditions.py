"""Conditions on sizes: an entry with a symbol holds for one side of a comparison alone."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from msgspec import Struct

from dynamo_nb.findings.sources import is_test, parse
from dynamo_nb.findings.wording import place
from dynamo_nb.record.causes import RecompileCause
from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import CELL, CellRecord, ShapeGuard, StackFrame

__all__ = ["Condition", "condition"]

_BRANCH_ADVICE = (
    "Each side of the branch is code of its own: accept one entry for each. Or branch outside of "
    "the compiled function, or put both sides into one graph with torch.cond."
)
_OTHER_ADVICE = (
    "Marking the dimension does not help. Write the line so that it works for any size, or accept "
    "one entry for each side of the condition."
)

#: A comparison of one symbol with a number, as sympy writes it.
_COMPARED = re.compile(r"(?:\w+ (?P<sign><|<=|>|>=)|(?P<call>Eq|Ne)\(\w+,) (?P<number>-?\d+)\)?")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "Eq": operator.eq,
    "Ne": operator.ne,
}


class Condition(Struct, frozen=True, kw_only=True):
    """A condition on a size that failed: what to say of it, what to do, its line in the cell."""

    text: str
    advice: str
    line: int | None


def condition(record: CellRecord, cause: RecompileCause) -> Condition | None:
    """Return the condition that a size, or a number with a symbol, did not meet.

    None where a value itself changed, or where torch sets the sizes 0 and 1 apart.
    """
    reason = cause.first
    if reason.kind != "SHAPE_ENV" or not reason.guard or reason.now in ("0", "1"):
        return None
    frame = _asking_frame(record, cause) or reason.frame
    line = frame.line if frame is not None and frame.file == CELL else None
    guard = readable(reason.guard)
    if reason.name:  # a value kept across a break has a better name than its source
        guard = guard.replace(readable(reason.source), reason.name)
    if frame is not None and _is_branch(record, frame):
        text = f"{place(frame)} branches on it, and the entry is for `{guard}` alone"
        return Condition(text=text, advice=_BRANCH_ADVICE, line=line)
    because = f"because of {place(frame)} " if frame is not None else ""
    text = f"{because}the entry is for `{guard}` alone"
    return Condition(text=text, advice=_OTHER_ADVICE, line=line)


def _asking_frame(record: CellRecord, cause: RecompileCause) -> StackFrame | None:
    """Return the line that asked for what failed, as the earlier entry's own guards tell.

    Torch's message names the first use of the size, whatever the condition comes from.
    """
    reason = cause.first
    for entry in record.compiles:
        if entry.key != reason.entry:
            continue
        symbols = [s.name for s in entry.symbols if reason.source in s.sources]
        about = [g for g in entry.shape_guards if any(_speaks(g, s) for s in symbols)]
        failed = [g for g in about if _fails(g, reason.now)]
        return next((guard.frame for guard in [*failed, *about]), None)
    return None


def _speaks(guard: ShapeGuard, symbol: str) -> bool:
    return re.search(rf"\b{symbol}\b", guard.expr) is not None


def _fails(guard: ShapeGuard, value: str) -> bool:
    """Tell whether a comparison of one symbol with a number is false for a value."""
    found = _COMPARED.fullmatch(guard.expr)
    if found is None or not value.isdigit():
        return False
    return not _SIGNS[found["sign"] or found["call"]](int(value), int(found["number"]))


def _is_branch(record: CellRecord, frame: StackFrame) -> bool:
    tree = parse(record, frame.file)
    return tree is not None and is_test(tree, frame.line)
