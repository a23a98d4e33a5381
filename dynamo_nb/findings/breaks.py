"""Graph breaks: one finding per place."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_nb.findings.wording import advice_from, cell_lines, first_sentence, function, place
from dynamo_nb.record.causes import BreakPlace, break_places
from dynamo_nb.record.types import CELL, CellRecord, Finding, Ref

__all__ = ["graph_break"]

#: Where torch's own hint says too little.
_ADVICE = {
    "Operator does not support running with fake tensors": (
        "Tell torch the output's shape and dtype with torch.library.register_fake."
    ),
}


def graph_break(record: CellRecord) -> Iterator[Finding]:
    """Dynamo had to end a graph here; what follows is a graph of its own."""
    for found in break_places(record):
        first = found.first
        yield Finding(
            code="graph-break",
            severity="warning",
            message=_message(found),
            advice=_ADVICE.get(first.kind) or advice_from(first.hints),
            line=found.line,
            lines=_lines(found),
            count=found.count,
            frame=found.frame,
            refs=[Ref(compiled.key, "break", str(index)) for compiled, index in found.breaks],
        )


def _message(found: BreakPlace) -> str:
    first = found.first
    compiled, _ = found.breaks[0]
    name = function(found.frame.name if found.frame and found.frame.name else compiled.name)
    outside = found.frame is not None and found.frame.file != CELL
    where = f"`{name}` ({place(found.frame)})" if outside else f"`{name}`"
    parts = [first.kind, first_sentence(first.explanation or first.context)]
    return f"Graph break in {where}: {'. '.join(filter(None, parts))}."


def _lines(found: BreakPlace) -> list[int]:
    """Return the place's line, and those of the frames and calls in the cell that lead to it."""
    lines = [found.line]
    for compiled, index in found.breaks:
        stack = compiled.graph_breaks[index].user_stack
        lines += [frame.line for frame in stack if frame.file == CELL]
        if found.line is None:
            lines.append(compiled.call_line)
    return cell_lines(*lines)
