"""The `text/plain` summary: findings first, then what became of each compiled function.

It is deterministic (no times, addresses, temporary paths) and fits on a screen.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dynamo_nb.record.types import (
    CELL,
    Call,
    CellRecord,
    Compile,
    CompileError,
    Finding,
    Graph,
    GraphBreak,
    Kernel,
    RecompileReason,
    StackFrame,
)
from dynamo_nb.views.model import (
    Function,
    Report,
    call_nodes,
    cell_lines,
    final_breaks,
    kernel_nodes,
    main_reason,
    resume_line,
    stage,
)
from dynamo_nb.views.plain import clean, clip, compact_lines, excerpt, place, plural, scrub

__all__ = ["calls_text", "compile_summary", "headline", "mode_text", "recompile_text", "to_text"]

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


def to_text(record: CellRecord) -> str:
    """Return the summary of a record as plain text."""
    report = Report(record)
    text = ""
    for detail in _DETAILS:
        text = "\n\n".join("\n".join(lines) for lines in _blocks(report, detail) if lines)
        if text.count("\n") < _HEIGHT:
            break
    return scrub(clean(text))


def _blocks(report: Report, detail: _Detail) -> Iterator[list[str]]:
    yield list(_header(report))
    yield list(_findings(report, detail))
    yield list(_functions(report, detail))
    yield list(_calls(report.record, detail))
    yield list(_uncompiled(report, detail))
    yield list(_end(report.record, detail))


def headline(report: Report) -> str:
    """Return what happened in numbers: `1 compiled function, 3 graphs, 2 graph breaks`."""
    own = [function for function in report.functions if function.is_own]
    if not own:
        return "nothing new was compiled" if report.functions else "nothing was compiled"
    counts = [plural(count, noun) for noun, count in report.counts.items() if count]
    return ", ".join([plural(len(own), "compiled function"), *counts])


def mode_text(record: CellRecord) -> str:
    """Return the mode that ran, and why."""
    reason = f" ({clip(_one_line(record.mode_reason), 160)})" if record.mode_reason else ""
    return f"mode {record.mode}{reason}"


def _header(report: Report) -> Iterator[str]:
    record = report.record
    yield from _wrap(f"dynamo: {headline(report)}")
    yield from _wrap(f"        {mode_text(record)}", " " * 8)
    if record.error:
        where = f" at line {record.error.line}" if record.error.line else ""
        message = clip(_one_line(record.error.message), 160)
        yield from _wrap(f"        the cell raised {record.error.type}{where}: {message}")


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
    message = _one_line(finding.message)
    return f"{finding.severity}: {finding.code}{where}: {message}"


def _finding(report: Report, finding: Finding) -> Iterator[str]:
    yield from _wrap(clip(_finding_head(finding), 400), "  ")
    frame = report.place_of(finding)
    if frame is not None and finding.severity != "info":
        yield from excerpt(report.record, frame)
    if finding.advice:
        yield from _wrap("  -> " + clip(_one_line(finding.advice), 400), " " * 5)


def _functions(report: Report, detail: _Detail) -> Iterator[str]:
    for function in report.functions[: detail.functions]:
        yield from _function(report, function, detail)
    yield from _more(len(report.functions) - detail.functions, "compiled function")


def _function(report: Report, function: Function, detail: _Detail) -> Iterator[str]:
    frame = StackFrame(file=function.file, line=function.first_line)
    yield clip(f"{_one_line(function.name)} ({place(frame)})", _WIDTH)
    for entry in function.compiles[: detail.compiles]:
        yield from _compile(report, entry, detail)
    yield from _more(len(function.compiles) - detail.compiles, "compile", "  ")


def _compile(report: Report, entry: Compile, detail: _Detail) -> Iterator[str]:
    yield from _wrap(f"  {entry.key}  {compile_summary(entry)}", _HANG)
    reason = main_reason(entry)
    if reason:
        yield from _wrap(f"{_INDENT}recompiled: {recompile_text(reason)}", _HANG)
        yield from _unnamed_excerpt(
            report, reason.frame, StackFrame(file=CELL, line=reason.call_line or 0)
        )
    breaks = final_breaks(entry)
    for item in breaks[: detail.breaks]:
        yield from _break(report, item)
    yield from _more(len(breaks) - detail.breaks, "graph break", _INDENT)
    if entry.error:
        yield from _error(report, entry.error)
    yield from _kernels(entry, detail)


def _unnamed_excerpt(report: Report, *frames: StackFrame | None) -> Iterator[str]:
    """Yield the first place's source, unless a finding names one of the places already."""
    named = any(frame and report.is_named(frame) for frame in frames)
    if frames[0] and not named:
        yield from excerpt(report.record, frames[0])


def compile_summary(entry: Compile) -> str:
    """Return what one compile made: graphs with their lines, guards, where it came from."""
    facts = [_graph_text(graph) for graph in stage(entry, "dynamo")]
    if not facts and entry.status == "ok" and entry.seen == "whole":
        facts.append("no graph")
    others = [
        f"{stage_name} {plural(nodes, 'node')}"
        for stage_name in ("forward", "backward")
        if (nodes := sum(len(graph.nodes) for graph in stage(entry, stage_name)))
    ]
    facts += [", ".join(others)] if others else []
    if entry.guards:
        facts.append(plural(len(entry.guards), "guard"))
    if entry.cell is not None:
        only = ", only its guards could be read" if entry.seen == "guards" else ""
        facts.append(f"compiled by cell [{entry.cell}]{only}")
    elif entry.seen == "guards":
        facts.append("compiled before, only its guards could be read")
    if entry.status != "ok":
        facts.insert(0, f"{entry.status}: {clip(_one_line(entry.reason), 200)}".rstrip(": "))
    resumed = resume_line(entry)
    return (f"resumes at line {resumed}: " if resumed else "") + "; ".join(facts)


def _graph_text(graph: Graph) -> str:
    nodes = call_nodes(graph)
    lines = compact_lines(cell_lines(nodes))
    return f"graph of {plural(len(nodes), 'op')}" + (f" from {lines}" if lines else "")


def recompile_text(reason: RecompileReason) -> str:
    """Return one recompile reason in one line: `x: float32 -> bfloat16 (line 9's call; …)`."""
    what = _one_line(reason.source or reason.guard or reason.text)
    if reason.was or reason.now:
        change = f"{_one_line(reason.was) or '?'} -> {_one_line(reason.now) or '?'}"
        what = f"{clip(what, 80)} {clip(change, 120)}"
    call = f"call at line {reason.call_line}, " if reason.call_line else ""
    return f"{clip(what, 240)} ({call}{reason.entry} did not fit)"


def _break(report: Report, item: GraphBreak) -> Iterator[str]:
    where = f" at {place(item.frame)}" if item.frame else ""
    yield from _wrap(f"{_INDENT}graph break{where}: {clip(_one_line(item.kind), 120)}", _HANG)
    yield from _unnamed_excerpt(report, item.frame)


def _error(report: Report, error: CompileError) -> Iterator[str]:
    where = f" at {place(error.frame)}" if error.frame else ""
    shown = clip(_one_line(error.explanation or error.message or error.kind), 240)
    yield from _wrap(f"{_INDENT}{_one_line(error.type)}{where}: {shown}", _HANG)
    yield from _unnamed_excerpt(report, error.frame)


def _kernels(entry: Compile, detail: _Detail) -> Iterator[str]:
    """Yield the fused kernels with the lines they cover, then the extern calls on one line."""
    fused = [kernel for kernel in entry.kernels if kernel.language != "extern"]
    for kernel in fused[: detail.kernels]:
        yield clip(f"{_INDENT}kernel {_kernel_text(entry, kernel)}", _WIDTH)
    yield from _more(len(fused) - detail.kernels, "kernel", _INDENT)
    extern = {kernel.name: None for kernel in entry.kernels if kernel.language == "extern"}
    if extern:
        yield clip(f"{_INDENT}extern calls: {_some(map(_one_line, extern))}", _WIDTH)


def _kernel_text(entry: Compile, kernel: Kernel) -> str:
    nodes = kernel_nodes(entry, kernel)
    lines = compact_lines(cell_lines(nodes))
    direction = kernel.graph.partition(".")[2]
    facts = [kernel.language, *([direction] if direction not in ("", "inference") else [])]
    facts.append(f"fuses {plural(len(kernel.nodes), 'node')}" + (f" from {lines}" if lines else ""))
    return f"{kernel.name} ({', '.join(facts)})"


def _calls(record: CellRecord, detail: _Detail) -> Iterator[str]:
    if record.calls:
        yield "Calls"
    for call in record.calls[: detail.calls]:
        for text in calls_text(call):
            name = clip(_one_line(call.name), 60)
            yield from _wrap(f"  line {call.line}  {name}: {text}", _HANG)
    yield from _more(len(record.calls) - detail.calls, "call", "  ")


def calls_text(call: Call) -> Iterator[str]:
    """Yield what one call site did: one text for what was compiled or reused, one for the rest."""
    facts = []
    if call.compiles:
        facts.append("compiled " + _some(call.compiles))
    hits = []
    for key, count in call.hits.items():
        times = f" {count} times" if count > 1 else ""
        cell = call.hits_from.get(key)
        origin = f", compiled by cell [{cell}]" if cell is not None else ""
        hits.append(f"{key} hit{times}{origin}")
    if hits:
        facts.append(_some(hits))
    if call.eager:
        times = f" {call.eager} times" if call.eager > 1 else ""
        reason = f": {clip(_one_line(call.reason), 160)}" if call.reason else ""
        facts.append(f"ran eagerly{times}{reason}")
    yield "; ".join(facts) or "no compiled code ran"
    if call.eager_modules:
        yield "outside any graph: " + _some(call.eager_modules)


def _uncompiled(report: Report, detail: _Detail) -> Iterator[str]:
    """Yield the cell's own functions that Dynamo looked at and did not compile, with the reason."""
    skipped = report.uncompiled_frames
    if skipped:
        yield "Not compiled"
    for frame in skipped[: detail.notes]:
        reason = f": {clip(_one_line(frame.reason), 160)}" if frame.reason else ""
        yield from _wrap(f"  {frame.name} (line {frame.first_line}), {frame.outcome}{reason}")
    yield from _more(len(skipped) - detail.notes, "frame", "  ")


def _end(record: CellRecord, detail: _Detail) -> Iterator[str]:
    """Yield what the report lacks."""
    for note in record.notes[: detail.notes]:
        message = clip(_one_line(note.message), 160)
        yield from _wrap(f"note: no {note.panel} ({note.hook} failed: {message})")
    yield from _more(len(record.notes) - detail.notes, "note")
    if record.unparsed:
        names = _some(f"{name} ({count})" for name, count in record.unparsed.items())
        yield from _wrap(f"note: torch said what is not understood here: {names}")


def _more(left: int, noun: str, indent: str = "") -> Iterator[str]:
    """Yield how many more things there are than were shown."""
    if left > 0:
        count, _, rest = plural(left, noun).partition(" ")
        yield f"{indent}… {count} more {rest}"


def _some(items: Iterable[str], limit: int = 4) -> str:
    """Return the first items, separated by commas, and how many more there are."""
    items = list(items)
    more = [f"… {len(items) - limit} more"] if len(items) > limit else []
    return ", ".join([*items[:limit], *more])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _wrap(text: str, indent: str = "  ") -> list[str]:
    first = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
