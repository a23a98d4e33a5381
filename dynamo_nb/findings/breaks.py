"""Graph breaks: one finding per place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dynamo_nb.findings.advice import advice, explained
from dynamo_nb.findings.line_advice import line_advice, line_meaning
from dynamo_nb.findings.wording import cell_lines, function, place
from dynamo_nb.record.break_places import BreakPlace, break_places
from dynamo_nb.record.types import CELL, CellRecord, Finding, GraphBreak, Ref, StackFrame

__all__ = ["graph_break"]

_OTHER_ADVICE = (
    "Move that line out of the compiled function, or wrap what it calls with "
    "torch.library.custom_op or torch.compiler.disable."
)
_LOGGING = "logging.Logger method not supported"
_LOGGING_ADVICE = (
    "Log outside of the compiled function, or under `if not torch.compiler.is_compiling():`. "
    "`torch._dynamo.config.ignore_logging_functions.add(logging.Logger.{method})` keeps one graph, "
    "but compiled code then logs nothing."
)
_METHOD = re.compile(r"^method: .*?\.(\w+), args: ")
_SHOWN = 3  # places inside Python's library

_ON_PURPOSE = "Call to `torch._dynamo.graph_break()`"
_ON_PURPOSE_ADVICE = "Nothing has to be done: torch breaks the graph here on purpose."

#: What torch itself keeps out of graphs, through `torch/_compile.py: _disable_dynamo`: seeding,
#: `Optimizer.zero_grad` and the like.
_DISABLED = re.compile(r"MOD_SKIPLIST \(\S*torch[/\\]_compile\b")
_DISABLED_NAME = re.compile(r"Avoid calling the function `([^`]+)`")
_DISABLED_ADVICE = (
    "Nothing is wrong with it: what comes before and after is compiled. Call it outside of the "
    "compiled function to have one graph."
)


def graph_break(record: CellRecord) -> Iterator[Finding]:
    """Dynamo had to end a graph here; what follows is a graph of its own."""
    for found in break_places(record):
        first = found.first
        wanted = first.kind == _ON_PURPOSE and _is_torch(found.frame)
        disabled = _disabled(first)
        mend = (
            _logging_advice(first)
            or line_advice(record, _shown(found), first.kind)
            or advice(first.kind, first.explanation, _hints(found), _OTHER_ADVICE)
        )
        yield Finding(
            code="graph-break",
            severity="info" if wanted or disabled else "warning",
            message=_message(record, found, disabled),
            advice=_ON_PURPOSE_ADVICE if wanted else _DISABLED_ADVICE if disabled else mend,
            line=found.line,
            lines=_lines(found),
            count=found.count,
            frame=found.frame if not _is_dynamos(found.frame) else _shown(found),
            refs=[Ref(compiled.key, "break", str(index)) for compiled, index in found.breaks],
        )


def _hints(found: BreakPlace) -> list[str]:
    """Return torch's hints, but for what Dynamo traces in place of code that is written in C.

    They are about that code, and nobody wrote it.
    """
    stack = found.first.user_stack
    return [] if stack and _is_dynamos(stack[-1]) else found.first.hints


def _logging_advice(first: GraphBreak) -> str:
    """Return what to do about a logger's method, which torch's context names."""
    named = _METHOD.search(first.context) if first.kind.startswith(_LOGGING) else None
    return _LOGGING_ADVICE.format(method=named[1]) if named else ""


def _disabled(first: GraphBreak) -> str:
    """Return the name of the function that torch keeps out of graphs, where that is the cause."""
    named = _DISABLED_NAME.search(" ".join(first.hints))
    return named[1] if named and _DISABLED.search(first.context) else ""


def _message(record: CellRecord, found: BreakPlace, disabled: str) -> str:
    first = found.first
    compiled, _ = found.breaks[0]
    frame = _shown(found)
    name = function(frame.name if frame and frame.name else compiled.name)
    outside = frame is not None and frame.file != CELL
    where = f"`{name}` ({place(frame)})" if outside else f"`{name}`"
    if disabled:
        return f"Graph break in {where}: torch keeps `{disabled}` out of graphs on purpose."
    why = line_meaning(record, frame, first) or explained(
        first.kind, first.explanation or first.context
    )
    return f"Graph break in {where}: {why}.{_further(found)}"


def _shown(found: BreakPlace) -> StackFrame | None:
    """Return the innermost place that is not in Dynamo's own Python code."""
    stack = [*found.first.user_stack, found.first.frame]
    outside = [f for f in stack if f is not None and not _is_dynamos(f)]
    return outside[-1] if outside else found.frame


def _further(found: BreakPlace) -> str:
    """Name the places inside Python's own library that break when it then runs by itself."""
    shown = _shown(found)
    said = (shown.file, shown.line) if shown else None
    further = [place(f) for f in found.inside if (f.file, f.line) != said and not _is_dynamos(f)]
    if not further:
        return ""
    left = f", … {len(further) - _SHOWN} more" if len(further) > _SHOWN else ""
    return f" What it calls breaks as well: {', '.join(further[:_SHOWN])}{left}."


def _is_dynamos(frame: StackFrame | None) -> bool:
    return frame is not None and frame.file.startswith("torch/_dynamo/")


def _is_torch(frame: StackFrame | None) -> bool:
    return frame is not None and frame.file.startswith("torch/")


def _lines(found: BreakPlace) -> list[int]:
    """Return the place's line, and those of the frames and calls in the cell that lead to it."""
    lines = [found.line]
    for compiled, index in found.breaks:
        stack = compiled.graph_breaks[index].user_stack
        lines += [frame.line for frame in stack if frame.file == CELL]
        if found.line is None:
            lines.append(compiled.call_line)
    return cell_lines(*lines)
