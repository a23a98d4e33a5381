"""The `text/plain` summary: findings first, then what became of each compiled function.

It is deterministic (no times, addresses, temporary paths) and fits on a screen.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from dynamo_nb.record.check_text import check_text, difference_text
from dynamo_nb.record.types import (
    CELL,
    CellRecord,
    Compile,
    CompileError,
    Finding,
    GraphBreak,
    StackFrame,
)
from dynamo_nb.views.model import Function, Report, final_breaks, main_reason, repeatable
from dynamo_nb.views.passes import custom_pass_lines
from dynamo_nb.views.phrases import (
    calls_text,
    compile_summary,
    entry_text,
    function_text,
    headline,
    kernel_text,
    mode_text,
    named_call,
    recompile_text,
    state_name,
)
from dynamo_nb.views.plain import brief, clean, clip, excerpt, one_line, place, plural, scrub, some
from dynamo_nb.views.ran import cudagraph_lines, ran_lines
from dynamo_nb.views.steps import own_rows
from dynamo_nb.views.targets import PREDICTED, target_lines
from dynamo_nb.views.timings import kernel_time_text, timing_text

__all__ = ["to_text"]

_RESUMED = re.compile(r"\btorch_dynamo_resume_in_(.+)_at_\d+$")

_WIDTH = 100
_HEIGHT = 40
_INDENT = " " * 7
_HANG = " " * 9


class _Detail(NamedTuple):
    """How many of each thing are shown before the rest is counted."""

    findings: int  # with excerpt and advice
    brief: int  # further findings, a line each
    functions: int
    compiles: int
    breaks: int
    kernels: int
    calls: int
    notes: int


#: Tried in order until the summary fits on a screen; the last is taken as it comes.
_DETAILS = (
    _Detail(findings=8, brief=8, functions=8, compiles=8, breaks=3, kernels=6, calls=12, notes=6),
    _Detail(findings=6, brief=4, functions=6, compiles=4, breaks=1, kernels=3, calls=6, notes=3),
    _Detail(findings=4, brief=3, functions=4, compiles=2, breaks=1, kernels=1, calls=3, notes=2),
    _Detail(findings=3, brief=3, functions=4, compiles=1, breaks=0, kernels=0, calls=2, notes=1),
)


#: Kernels of each target, over all compiles: they were asked for, whatever else there is to tell.
_TARGET_KERNELS = 8


def to_text(record: CellRecord) -> str:
    """Return the summary of a record as plain text."""
    report = Report(repeatable(record))
    text = ""
    for detail in _DETAILS:
        text = "\n\n".join("\n".join(lines) for lines in _blocks(report, detail) if lines)
        if text.count("\n") < _HEIGHT:
            break
    return clean(text)


def _blocks(report: Report, detail: _Detail) -> Iterator[list[str]]:
    yield list(_header(report))
    yield list(_findings(report, detail))
    yield list(_functions(report, detail))
    yield list(_calls(report.record, detail))
    yield from _targets(report.record, detail)
    yield list(_checks(report.record, detail))
    yield list(_timings(report.record, detail))
    yield list(_cache(report.record, detail))
    yield list(_uncompiled(report, detail))
    yield list(_steps(report.record))
    yield list(_end(report.record, detail))


def _header(report: Report) -> Iterator[str]:
    record = report.record
    yield from _wrap(f"dynamo: {headline(report)}")
    yield from _wrap(f"        {mode_text(record)}", " " * 8)
    if record.error:
        where = f" at line {record.error.line}" if record.error.line else ""
        message = brief(record.error.message, 160)
        said = f": {message}" if message else ""
        yield from _wrap(f"        the cell raised {record.error.type}{where}{said}")


def _findings(report: Report, detail: _Detail) -> Iterator[str]:
    findings = report.record.findings
    if not findings and report.functions:
        yield "No findings."
    for finding in findings[: detail.findings]:
        yield from _finding(report, finding)
    brief = findings[detail.findings : detail.findings + detail.brief]
    yield from (clip(_finding_head(finding), _WIDTH) for finding in brief)
    yield from _more(len(findings) - detail.findings - detail.brief, "finding")


def _finding_head(finding: Finding) -> str:
    where = f" line {finding.line}" if finding.line else ""
    if not finding.line and finding.frame:
        where = f" {place(finding.frame)}"
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    return scrub(f"{finding.severity}: {finding.code}{where}{times}: {one_line(finding.message)}")


def _finding(report: Report, finding: Finding) -> Iterator[str]:
    yield from _wrap(clip(_finding_head(finding), 400), "  ")
    frame = report.place_of(finding)
    if frame is not None and finding.severity != "info":
        yield from excerpt(report.record, frame, is_named=not finding.line)
    if finding.advice:
        yield from _wrap("  -> " + brief(finding.advice, 400), " " * 5)


def _functions(report: Report, detail: _Detail) -> Iterator[str]:
    for function in report.functions[: detail.functions]:
        yield from _function(report, function, detail)
    yield from _more(len(report.functions) - detail.functions, "compiled function")


def _function(report: Report, function: Function, detail: _Detail) -> Iterator[str]:
    title = function_text(function.name, function.file, function.first_line)
    yield brief(title, _WIDTH)
    for entry in function.compiles[: detail.compiles]:
        yield from _compile(report, entry, detail)
    yield from _more(len(function.compiles) - detail.compiles, "compile", "  ")


def _compile(report: Report, entry: Compile, detail: _Detail) -> Iterator[str]:
    yield from _wrap(f"  {entry.key}  {compile_summary(entry)}", _HANG)
    reason = main_reason(entry)
    if reason:
        yield from _wrap(f"{_INDENT}recompiled: {recompile_text(reason)}", _HANG)
        yield from _unnamed_excerpt(
            report, reason.frame, StackFrame(file=CELL, line=reason.call_line or 0), is_named=False
        )
    breaks = final_breaks(entry)
    for item in breaks[: detail.breaks]:
        yield from _break(report, item)
    yield from _more(len(breaks) - detail.breaks, "graph break", _INDENT)
    if entry.error and entry.error.frame not in [item.frame for item in breaks]:
        yield from _error(report, entry.error)
    for text in custom_pass_lines(entry):
        yield from _wrap(f"{_INDENT}{brief(text, 240)}", _HANG)
    yield from _kernels(entry, detail)


def _unnamed_excerpt(
    report: Report, *frames: StackFrame | None, is_named: bool = True
) -> Iterator[str]:
    """Yield the first place's source, unless a finding names one of the places already.

    `is_named` says that the text before it has the place.
    """
    named = any(frame and report.is_named(frame) for frame in frames)
    if frames[0] and not named:
        yield from excerpt(report.record, frames[0], is_named=is_named)


def _break(report: Report, item: GraphBreak) -> Iterator[str]:
    where = f" at {place(item.frame)}" if item.frame else ""
    yield from _wrap(f"{_INDENT}graph break{where}: {brief(item.kind, 120)}", _HANG)
    yield from _unnamed_excerpt(report, item.frame)


def _error(report: Report, error: CompileError) -> Iterator[str]:
    where = f" at {place(error.frame)}" if error.frame else ""
    shown = brief(error.explanation or error.message or error.kind, 240)
    yield from _wrap(f"{_INDENT}{one_line(error.type)}{where}: {shown}", _HANG)
    yield from _unnamed_excerpt(report, error.frame)


def _kernels(entry: Compile, detail: _Detail) -> Iterator[str]:
    """Yield the fused kernels with the lines they cover, then the extern calls on one line."""
    fused = [kernel for kernel in entry.kernels if kernel.language != "extern"]
    for kernel in fused[: detail.kernels]:
        yield from _wrap(f"{_INDENT}kernel {kernel_text(entry, kernel)}", _HANG)
        for text in ran_lines(entry, kernel):
            yield from _wrap(f"{_HANG}{text}", _HANG)
    yield from _more(len(fused) - detail.kernels, "kernel", _INDENT)
    for text in cudagraph_lines(entry):
        yield from _wrap(f"{_INDENT}{text}", _HANG)
    extern = {kernel.name: None for kernel in entry.kernels if kernel.language == "extern"}
    if extern:
        yield clip(scrub(f"{_INDENT}extern calls: {some(map(one_line, extern))}"), _WIDTH)
    for kernel in entry.kernels:
        if kernel.language == "extern":
            for text in ran_lines(entry, kernel):
                yield from _wrap(f"{_INDENT}{text}", _HANG)


def _calls(record: CellRecord, detail: _Detail) -> Iterator[str]:
    if record.calls:
        yield "Calls"
    for call in record.calls[: detail.calls]:
        for text in calls_text(call):
            yield from _wrap(f"  line {call.line}  {named_call(call, text)}", _HANG)
    yield from _more(len(record.calls) - detail.calls, "call", "  ")


def _targets(record: CellRecord, detail: _Detail) -> Iterator[list[str]]:
    """Yield a block for each GPU that is not there, with the kernels for it (`--target`)."""
    found = [(target, entry) for entry in record.compiles for target in entry.targets]
    for spec, device in dict.fromkeys((target.spec, target.device) for target, _ in found):
        block = [f"For {spec} ({device}), {PREDICTED}"]
        mine = [(target, entry) for target, entry in found if target.spec == spec]
        left = _TARGET_KERNELS
        for target, entry in mine[: detail.functions]:
            for level, text in target_lines(entry, target, left):
                block += _wrap(f"{('  ', _INDENT, _HANG)[level]}{text}", _HANG)
            left = max(left - len(target.binaries), 0)
        block += _more(len(mine) - detail.functions, "compile", "  ")
        yield block


def _checks(record: CellRecord, detail: _Detail) -> Iterator[str]:
    """Yield whether compiled calls agree with eager ones (`--check`)."""
    if record.checks:
        yield "Check against eager"
    for check in record.checks[: detail.calls]:
        where = f"line {check.line}  {brief(check.name, 60)}: " if check.line else ""
        yield from _wrap(f"  {where}{check_text(check)}", _HANG)
        for mismatch in check.mismatches[: detail.breaks]:
            kernel = f", written by {mismatch.kernel}" if mismatch.kernel else ""
            yield from _wrap(f"{_INDENT}{brief(difference_text(mismatch), 240)}{kernel}", _HANG)
        yield from _more(len(check.mismatches) - detail.breaks, "difference", _INDENT)
    yield from _more(len(record.checks) - detail.calls, "check", "  ")


def _timings(record: CellRecord, detail: _Detail) -> Iterator[str]:
    """Yield what calls took, eagerly and compiled, and their longest kernels (`--time`)."""
    if record.timings:
        yield "Times against eager (median ± half the interquartile range)"
    for timing in record.timings[: detail.calls]:
        where = f"line {timing.line}  {brief(timing.name, 60)}: " if timing.line else ""
        yield from _wrap(f"  {where}{timing_text(timing)}", _HANG)
        for time in timing.kernels[: detail.kernels]:
            yield f"{_INDENT}{clip(scrub(kernel_time_text(time)), _WIDTH - len(_INDENT))}"
        yield from _more(len(timing.kernels) - detail.kernels, "kernel", _INDENT)
    yield from _more(len(record.timings) - detail.calls, "call", "  ")


def _cache(record: CellRecord, detail: _Detail) -> Iterator[str]:
    """Yield the entries of code objects that have several, or have one that is of no more use."""
    telling = [
        state
        for state in record.cache
        if len(state.entries) > 1 or any(entry.invalidated for entry in state.entries)
    ]
    if telling:
        yield "Cache, in the order of the next look-up"
    for state in telling[: detail.calls]:
        entries = [
            f"{e.entry} ({text})" if (text := entry_text(e)) else e.entry for e in state.entries
        ]
        yield from _wrap(f"  {brief(state_name(state), 60)}: {some(entries)}", _HANG)
    yield from _more(len(telling) - detail.calls, "code object", "  ")


def _uncompiled(report: Report, detail: _Detail) -> Iterator[str]:
    """Yield the cell's own functions that Dynamo looked at and did not compile, with the reason."""
    skipped = report.uncompiled_frames
    if skipped:
        yield "Not compiled"
    for frame in skipped[: detail.notes]:
        reason = f": {brief(frame.reason, 160)}" if frame.reason else ""
        own = _RESUMED.sub(r"\1", frame.name)
        name = f"rest of {own}" if own != frame.name else own
        yield from _wrap(f"  {name} (line {frame.first_line}), {frame.outcome}{reason}")
    yield from _more(len(skipped) - detail.notes, "frame", "  ")


def _steps(record: CellRecord) -> Iterator[str]:
    """Yield how many instructions Dynamo interpreted, and how to see them."""
    stepped = [entry for entry in record.compiles if entry.steps is not None]
    if stepped:
        own = {e.key: len(own_rows(e.steps)) for e in stepped if e.steps}
        others = any(own[e.key] < len(e.steps.steps) for e in stepped if e.steps)
        counts = some(f"{count} in {key}" for key, count in own.items())
        yield from _wrap(
            f"Bytecode interpreted{', libraries apart' if others else ''}: {counts}; "
            f'print(dynamo_nb.last().compile("{stepped[0].key}").steps) shows each step'
        )


def _end(record: CellRecord, detail: _Detail) -> Iterator[str]:
    """Yield what the report lacks."""
    for note in record.notes[: detail.notes]:
        message = brief(note.message, 160)
        why = f"({note.hook} failed: {message})" if note.hook else f"({message})"
        yield from _wrap(f"note: no {note.panel} {why}")
    yield from _more(len(record.notes) - detail.notes, "note")
    if record.unparsed:
        names = some(f"{name} ({count})" for name, count in record.unparsed.items())
        yield from _wrap(f"note: torch said what is not understood here: {names}")


def _more(left: int, noun: str, indent: str = "") -> Iterator[str]:
    """Yield how many more things there are than were shown."""
    if left > 0:
        count, _, rest = plural(left, noun).partition(" ")
        yield f"{indent}… {count} more {rest}"


def _wrap(text: str, indent: str = "  ") -> list[str]:
    text = scrub(text)
    first = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
