"""What ran eagerly although a person would expect it compiled."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_nb.findings.advice import advice, explained
from dynamo_nb.findings.calls import NOTHING_TO_COMPILE, eager_calls, is_harmless, unwatched
from dynamo_nb.findings.errors import Reason, parse_reasons, raised_anyway
from dynamo_nb.findings.line_advice import line_advice, line_meaning
from dynamo_nb.findings.sources import def_line, enclosing_function, parse
from dynamo_nb.findings.wording import (
    cell_lines,
    first_sentence,
    function,
    is_cell,
    is_standard_library,
    place,
)
from dynamo_nb.record.causes import cell_frame, hit_recompile_limit, own_compiles
from dynamo_nb.record.types import (
    CELL,
    Call,
    CellRecord,
    Compile,
    Finding,
    Frame,
    GraphBreak,
    Ref,
    StackFrame,
)

__all__ = ["not_compiled"]

#: Code that nobody called by name.
_ANONYMOUS = ("<module>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "__init__")


_MOVE = "Move that line out of the compiled function."


def not_compiled(record: CellRecord) -> Iterator[Finding]:
    """A function, or modules of a called model, ran eagerly as a whole."""
    for compiled in own_compiles(record):
        if _was_given_up(record, compiled):
            yield _function_finding(record, compiled)
    tried = {_code(compiled) for compiled in own_compiles(record)}
    for frame in record.frames:
        if _code(frame) not in tried and _was_refused(frame):
            tried.add(_code(frame))
            yield _frame_finding(record, frame)
    yield from eager_calls(record)
    yield from _modules(record)
    yield from unwatched(record)


def _code(item: Compile | Frame) -> tuple[str, str, int]:
    return item.name, item.file, item.first_line


def _was_given_up(record: CellRecord, compiled: Compile) -> bool:
    """Tell whether Dynamo began with a frame and then left it, although it has tensor work."""
    if compiled.status != "skipped" or not _is_called_by_name(compiled):
        return False
    if hit_recompile_limit(compiled) or raised_anyway(record, compiled):
        return False
    return not any(mark in compiled.reason for mark in NOTHING_TO_COMPILE)


def _is_called_by_name(compiled: Compile) -> bool:
    """Tell whether a function is the notebook's, or called by it, or a module's `forward`.

    Others are a library's inside: it is not for the user to mend them.
    """
    if is_standard_library(compiled.file):
        return False
    callers = compiled.user_stack[-1:]
    return (
        is_cell(compiled.file)
        or compiled.name.endswith("forward")
        or any(is_cell(frame.file) for frame in callers)
    )


def _was_refused(frame: Frame) -> bool:
    """Tell whether Dynamo never began with a function that the notebook defines.

    Once a graph is broken, Dynamo is asked about every Python frame that runs: libraries are full
    of such functions, and none of them is news.
    """
    return (
        frame.outcome == "skipped"
        and is_cell(frame.file)
        and frame.name.rpartition(".")[2] not in _ANONYMOUS
        and not is_harmless(frame.reason)
    )


def _function_finding(record: CellRecord, compiled: Compile) -> Finding:
    name, start, cause = (
        f"`{function(compiled.name)}`",
        def_line(record, compiled),
        _cause(compiled),
    )
    if compiled.resume_of:
        name = f"What comes after the graph break at line {compiled.first_line} of {name}"
    because = f", because of {place(cause)}" if cause and not _is_dynamos(cause.file) else ""
    reason = _first_reason(compiled)
    last = compiled.graph_breaks[-1] if compiled.graph_breaks else None
    why = line_meaning(record, cause, last) or explained(reason.kind, reason.explanation)
    inside = cause.line if cause and cause.file == CELL else None
    return Finding(
        code="not-compiled",
        severity="warning",
        message=f"{name} ran eagerly as a whole{because}: {why}.",
        advice=line_advice(record, cause, reason.kind)
        or advice(reason.kind, reason.explanation, reason.hints, _MOVE),
        line=start or compiled.call_line,
        lines=cell_lines(start, inside, compiled.call_line),
        frame=None if start or _is_dynamos(compiled.file) else _start(compiled),
        refs=[Ref(compiled.key, "compile", "")],
    )


def _is_dynamos(file: str) -> bool:
    """Tell whether code is Dynamo's own, which is nobody's to read."""
    return file.startswith("torch/_dynamo/")


def _raised_finding(record: CellRecord, compiled: Compile) -> Finding:
    """Say that a function raises the cell's error: therefore it, and all in it, ran eagerly."""
    error, start = record.error, def_line(record, compiled)
    assert error is not None
    at = f" at line {error.line}" if error.line else ""
    return Finding(
        code="not-compiled",
        severity="info",
        message=(
            f"`{function(compiled.name)}` was not compiled because it raises {error.type}{at}: "
            f"{first_sentence(error.message)}."
        ),
        advice="Mend that first. Dynamo leaves code that raises to Python, with all that it calls.",
        line=error.line or start or compiled.call_line,
        lines=cell_lines(error.line, start, compiled.call_line),
        refs=[Ref(compiled.key, "compile", "")],
    )


def _cause(compiled: Compile) -> StackFrame | None:
    """Return the place where Dynamo gave up: the last break's, or the error's."""
    for graph_break in reversed(compiled.graph_breaks):
        return cell_frame([graph_break.frame, *graph_break.user_stack]) or graph_break.frame
    if compiled.error is not None:
        return cell_frame([compiled.error.frame, *compiled.error.user_stack])
    return None


def _first_reason(compiled: Compile) -> Reason:
    """Return what made Dynamo give up in the first place.

    The break that ends such a compile is often only the last straw ("graph break in loop"); torch
    puts what was behind it first in its message, or has told it before, deeper in the same line.
    """
    error = compiled.error
    if error is None:
        return Reason(kind=first_sentence(compiled.reason))
    behind = _break_behind(compiled)
    if behind is not None:
        return Reason(behind.kind, behind.explanation, behind.hints)
    parsed = parse_reasons(error.message)
    own = Reason(kind=error.kind or error.type, explanation=error.explanation, hints=error.hints)
    return parsed[0] if len(parsed) > 1 else own


def _break_behind(compiled: Compile) -> GraphBreak | None:
    """Return the break inside the code of a line that the last one gave up for, if there is one.

    A generator or an iterator that breaks inside `any()` can't be handed over half done: torch
    tells of that.
    """
    if not compiled.graph_breaks:
        return None
    *before, last = compiled.graph_breaks
    place = cell_frame([last.frame, *last.user_stack])
    for earlier in before:
        at_place = cell_frame([earlier.frame, *earlier.user_stack]) == place
        if at_place and len(earlier.user_stack) > len(last.user_stack):
            return earlier
    return None


def _start(item: Compile | Frame) -> StackFrame:
    return StackFrame(file=item.file, line=item.first_line, name=item.name)


def _frame_finding(record: CellRecord, frame: Frame) -> Finding:
    start = def_line(record, frame)
    return Finding(
        code="not-compiled",
        severity="warning",
        message=f"`{function(frame.name)}` ran eagerly as a whole: {first_sentence(frame.reason)}.",
        advice="Compile the function that calls it instead, or move the tensor work out of it.",
        line=start or frame.call_line,
        lines=cell_lines(start, frame.call_line),
        count=frame.count,
        frame=None if start else _start(frame),
    )


def _modules(record: CellRecord) -> Iterator[Finding]:
    """Yield the modules outside every graph; where the code raises, that is what to know.

    A function of the cell's that raises needs no words besides the traceback.
    """
    calls = [c for c in record.calls if c.eager_modules and not _is_in_given_up(record, c)]
    raised = [c for c in own_compiles(record) if raised_anyway(record, c)]
    if not raised:
        yield from map(_modules_finding, calls)
    elif calls or raised[0].status == "failed" or _is_dynamos(raised[0].file):
        yield _raised_finding(record, raised[0])


def _is_in_given_up(record: CellRecord, call: Call) -> bool:
    """Tell whether a call is one of a function that ran eagerly as a whole, or made inside it.

    That its modules ran eagerly, too, needs no words of its own.
    """
    tree = parse(record, CELL)
    around = enclosing_function(tree, call.line) if tree is not None else None
    return any(
        compiled.key in call.compiles
        or (around is not None and def_line(record, compiled) == around.lineno)
        for compiled in own_compiles(record)
        if _was_given_up(record, compiled) and not compiled.resume_of
    )


def _modules_finding(call: Call) -> Finding:
    return Finding(
        code="not-compiled",
        severity="warning",
        message=f"Modules that ran outside every graph: {', '.join(call.eager_modules)}.",
        advice="Mend the graph break before them: what torch.nn defines is compiled only as part "
        "of a graph that a function of yours, or the whole model, begins.",
        line=call.line,
        lines=[call.line],
        count=len(call.eager_modules),
    )
