"""Compiles that ended in an exception which the cell saw."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from dynamo_nb.findings.advice import advice
from dynamo_nb.findings.line_advice import except_advice, line_advice
from dynamo_nb.findings.met_sizes import met_advice
from dynamo_nb.findings.sources import def_line
from dynamo_nb.findings.wording import cell_lines, first_sentence, function
from dynamo_nb.record.causes import cell_frame, hit_recompile_limit, own_compiles
from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import (
    OPERATOR,
    CellRecord,
    Compile,
    CompileError,
    Finding,
    GraphPass,
    Ref,
    StackFrame,
)

__all__ = [
    "Reason",
    "compile_error",
    "constraint_violations",
    "parse_reasons",
    "raised_anyway",
]

_NO_FAKE = re.compile(r"no fake impl registered for (?:<CustomOpDef\()?([\w:.]+)\)?")
_SPECIALIZED = re.compile(
    r"marked (?P<source>\S+) as dynamic but your code specialized it to be a constant "
    r"\((?P<value>[^)]*)\)"
)
_CONSTANT = (
    "Write the line without that constant, or remove mark_dynamic (maybe_mark_dynamic allows torch "
    "to specialize)."
)
_NEXT_REASON = "*** While handling this graph break, another graph break occurred: ***"


class Reason(Struct, frozen=True):
    """The parts of one of torch's graph-break messages."""

    kind: str
    explanation: str = ""
    hints: list[str] = []


def parse_reasons(message: str) -> list[Reason]:
    """Return the graph breaks that a message of torch's tells of, the first one first.

    `torch/_dynamo/exc.py: format_graph_break_message` (2.13) writes them.
    """
    return [_parse_reason(part.strip()) for part in message.split(_NEXT_REASON) if part.strip()]


def _parse_reason(text: str) -> Reason:
    kind, _, rest = text.partition("\n  Explanation: ")
    rest = rest.partition("\n\n  Developer debug context:")[0]
    explanation, *hints = rest.split("\n  Hint: ")
    return Reason(kind=kind.strip(), explanation=explanation, hints=hints)


def compile_error(record: CellRecord) -> Iterator[Finding]:
    """A compile failed, and the call raised; or what was compiled raises where eager does not."""
    yield from _raised_by_graph(record)
    for compiled, error in _errors(record):
        failed = [item for item in compiled.passes if item.function and item.error]
        if failed:
            yield _failed_pass(record, compiled, failed[-1])
        elif not _SPECIALIZED.search(error.message):
            message = _message(compiled, error)
            yield _finding(record, compiled, "compile-error", message, _advice(record, error))


def _raised_by_graph(record: CellRecord) -> Iterator[Finding]:
    """Yield the error of a graph that was compiled and then raised: the traceback ends there."""
    error = record.error
    if error is None or not error.raised_by:
        return
    name = next((call.name for call in record.calls if call.line == error.line), "")
    whose = f"the graph of `{function(name)}`" if name else "a graph"
    is_operator = error.raised_by == OPERATOR
    by = f" ({error.raised_by})" if ":" in error.raised_by else ""
    yield Finding(
        code="compile-error",
        severity="info" if is_operator else "error",
        message=(
            f"{error.type} was raised while {whose} ran, by an operator in it: the traceback ends "
            "at the call."
            if is_operator
            else f"{error.type} was raised while {whose} ran, by torch's own compiled code{by}, "
            "which eager does not come to."
        ),
        advice=_EAGER_TOO if is_operator else _NOT_EAGER,
        line=error.line,
        lines=cell_lines(error.line),
    )


#: What to do about an error of an operator, and of what torch puts around operators.
_EAGER_TOO = (
    "If eager raises it, too, its traceback names the line: call it under "
    'torch.compiler.set_stance("force_eager").'
)
_NOT_EAGER = (
    "Try `--backend eager` (Dynamo alone) and `--backend aot_eager` to see which part of the stack "
    "it takes; keep the code out with torch.compiler.disable until then."
)


def _failed_pass(record: CellRecord, compiled: Compile, failed: GraphPass) -> Finding:
    """Return the finding on a compile that a custom graph pass made fail."""
    message = (
        f"`{function(compiled.name)}` could not be compiled: the graph pass `{failed.function}` "
        f"({failed.name}) {failed.error}"
    )
    advice = (
        f"Mend the pass, or take it out of `torch._inductor.config.{failed.name}`. The traceback "
        "above shows where it went wrong."
    )
    return _finding(
        record, compiled, "compile-error", f"{message.rstrip('.')}.", advice, failed.frame
    )


def constraint_violations(record: CellRecord) -> Iterator[Finding]:
    """A dimension that is marked dynamic has one size only in this code: the compile failed."""
    for compiled, error in _errors(record):
        for match in _SPECIALIZED.finditer(error.message):
            message = (
                f"`{readable(match['source'])}` is marked dynamic, and this line makes it the "
                f"constant {match['value']}."
            )
            item = next((s for s in compiled.specializations if match["source"] in s.sources), None)
            advice = (met_advice(record, compiled, item) if item else "") or _CONSTANT
            frame = item.frame if item else None
            yield _finding(record, compiled, "specialized-dim", message, advice, frame)


def _errors(record: CellRecord) -> Iterator[tuple[Compile, CompileError]]:
    for compiled in own_compiles(record):
        if raised_anyway(record, compiled) or hit_recompile_limit(compiled):
            continue
        if compiled.error and compiled.status == "failed":
            yield compiled, compiled.error


#: What torch calls a name that is nowhere: Python raises `NameError` for it.
_NO_NAME = ("failed to find name in frame builtins", "Failed to find name in frame builtins")


def raised_anyway(record: CellRecord, compiled: Compile) -> bool:
    """Tell whether Dynamo gave up because the code raises, as the cell then did."""
    if record.error is None:
        return False
    kinds = [graph_break.kind for graph_break in compiled.graph_breaks[-1:]]
    kinds += [compiled.error.kind] if compiled.error is not None else []
    return "Observed exception" in kinds or (
        record.error.type == "NameError" and any(kind in _NO_NAME for kind in kinds)
    )


def _finding(
    record: CellRecord,
    compiled: Compile,
    code: str,
    message: str,
    advice: str,
    frame: StackFrame | None = None,
) -> Finding:
    error = compiled.error
    stack = [frame] if frame or not error else [error.frame, *error.user_stack]
    inside = cell_frame(stack)
    start = def_line(record, compiled)
    return Finding(
        code=code,
        severity="error",
        message=message,
        advice=advice,
        line=inside.line if inside else compiled.call_line or start,
        lines=cell_lines(inside.line if inside else start, compiled.call_line),
        frame=stack[-1],
        refs=[Ref(compiled.key, "compile", "")],
    )


def _message(compiled: Compile, error: CompileError) -> str:
    operator = _NO_FAKE.search(error.message)
    if operator:
        why = f"the operator {operator.group(1)} has no fake impl"
    else:
        paragraph = error.message.strip().partition("\n\n")[0]
        why = first_sentence(error.explanation) or first_sentence(paragraph)
    kind = f"{error.type}: {error.kind}" if error.kind else error.type
    return f"`{function(compiled.name)}` could not be compiled ({kind}): {why}."


def _advice(record: CellRecord, error: CompileError) -> str:
    operator = _NO_FAKE.search(error.message)
    if operator:
        name = operator.group(1).rpartition("::")[2]
        return (
            f"Tell torch the output's shape and dtype: decorate a function with "
            f"`@{name}.register_fake` (or `torch.library.register_fake`)."
        )
    frame = cell_frame([error.frame, *error.user_stack])
    by_line = line_advice(record, frame, error.kind)
    if by_line:
        return by_line
    told = advice(error.kind, error.explanation, error.hints, _otherwise(record, frame))
    passed = except_advice(record, frame) if error.type != "Unsupported" else ""
    return passed or told


def _otherwise(record: CellRecord, frame: StackFrame | None) -> str:
    if record.error is None and frame is not None:
        return f"The cell caught the error. Mend line {frame.line}, from which it comes."
    return "See the traceback above for the place in your code."
