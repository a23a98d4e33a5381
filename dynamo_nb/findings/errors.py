"""Compiles that ended in an exception which the cell saw."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dynamo_nb.findings.wording import advice_from, cell_lines, def_line, first_sentence, function
from dynamo_nb.record.causes import cell_frame, hit_recompile_limit, own_compiles
from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import CellRecord, Compile, CompileError, Finding, Ref

__all__ = ["compile_error", "specialized_dim"]

_NO_FAKE = re.compile(r"no fake impl registered for (?:<CustomOpDef\()?([\w:.]+)\)?")
_SPECIALIZED = re.compile(
    r"marked (?P<source>\S+) as dynamic but your code specialized it to be a constant "
    r"\((?P<value>[^)]*)\)"
)


def compile_error(record: CellRecord) -> Iterator[Finding]:
    """A compile failed, and the call raised."""
    for compiled, error in _errors(record):
        if not _SPECIALIZED.search(error.message):
            yield _finding(
                compiled, error, "compile-error", _message(compiled, error), _advice(error)
            )


def specialized_dim(record: CellRecord) -> Iterator[Finding]:
    """A dimension that was to be dynamic has one size only in this code."""
    for compiled, error in _errors(record):
        for match in _SPECIALIZED.finditer(error.message):
            dimension = readable(match["source"])
            message = (
                f"`{dimension}` is marked dynamic, and this line makes it the constant "
                f"{match['value']}."
            )
            advice = (
                "Write the line without that constant, or remove mark_dynamic (maybe_mark_dynamic "
                "allows torch to specialize)."
            )
            yield _finding(compiled, error, "specialized-dim", message, advice)


def _errors(record: CellRecord) -> Iterator[tuple[Compile, CompileError]]:
    for compiled in own_compiles(record):
        if compiled.error and compiled.status == "failed" and not hit_recompile_limit(compiled):
            yield compiled, compiled.error


def _finding(
    compiled: Compile, error: CompileError, code: str, message: str, advice: str
) -> Finding:
    frame = cell_frame([error.frame, *error.user_stack])
    return Finding(
        code=code,
        severity="error",
        message=message,
        advice=advice,
        line=frame.line if frame else def_line(compiled) or compiled.call_line,
        lines=cell_lines(frame.line if frame else None, compiled.call_line),
        frame=error.user_stack[-1] if error.user_stack else error.frame,
        refs=[Ref(compiled.key, "compile", "")],
    )


def _message(compiled: Compile, error: CompileError) -> str:
    operator = _NO_FAKE.search(error.message)
    if operator:
        why = f"the operator {operator.group(1)} has no fake impl"
    else:
        why = first_sentence(error.explanation) or first_sentence(error.message)
    kind = f"{error.type}: {error.kind}" if error.kind else error.type
    return f"`{function(compiled.name)}` could not be compiled ({kind}): {why}"


def _advice(error: CompileError) -> str:
    operator = _NO_FAKE.search(error.message)
    if operator:
        name = operator.group(1).rpartition("::")[2]
        return (
            f"Tell torch the output's shape and dtype: decorate a function with "
            f"`@{name}.register_fake` (or `torch.library.register_fake`)."
        )
    return advice_from(error.hints, "See the traceback above for the place in your code.")
