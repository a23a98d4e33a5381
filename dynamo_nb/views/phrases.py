"""The short sentences that text and HTML share: what a compile, a kernel, a call did."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_nb.record.types import (
    CELL,
    CacheEntry,
    CacheState,
    Call,
    CellRecord,
    Compile,
    Graph,
    Kernel,
    RecompileReason,
    StackFrame,
)
from dynamo_nb.views.model import (
    Report,
    call_nodes,
    cell_lines,
    direction_of,
    kernel_nodes,
    reason_name,
    resume_line,
    stage,
)
from dynamo_nb.views.plain import brief, compact_lines, one_line, place, plural, scrub, some

__all__ = [
    "OWN_FILES",
    "calls_text",
    "compile_summary",
    "entry_text",
    "function_text",
    "headline",
    "kernel_text",
    "mode_text",
    "named_call",
    "recompile_text",
    "state_name",
]

#: What the head line counts.
_HEAD = ("graph", "graph break", "recompile", "kernel")

#: Where torch keeps the frames that it puts around the user's.
OWN_FILES = "torch/_dynamo/"


def headline(report: Report) -> str:
    """Return what happened in numbers: `1 compiled function, 3 graphs, 2 graph breaks`."""
    own = [function for function in report.functions if function.is_own]
    if not own:
        reused = any(c.cell is not None or c.seen != "whole" for c in report.record.compiles)
        return "nothing new was compiled" if reused else "nothing was compiled"
    counts = [plural(report.counts[noun], noun) for noun in _HEAD if report.counts[noun]]
    return ", ".join([plural(len(own), "compiled function"), *counts])


def mode_text(record: CellRecord) -> str:
    """Return the mode that ran, and why."""
    reason = f" ({scrub(one_line(record.mode_reason))})" if record.mode_reason else ""
    return f"mode {record.mode}{reason}"


def function_text(name: str, file: str, line: int) -> str:
    """Return a function's name with its place, unless that is a wrapper of Dynamo's own."""
    at = place(StackFrame(file=file, line=line)) if file else ""
    return f"{name} ({at})" if at and not file.startswith(OWN_FILES) else name


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
        facts.insert(0, f"{entry.status}: {brief(entry.reason, 200)}".rstrip(": "))
    resumed = resume_line(entry)
    return (f"resumes at line {resumed}: " if resumed else "") + "; ".join(facts)


def _graph_text(graph: Graph) -> str:
    nodes = call_nodes(graph)
    lines = compact_lines(cell_lines(nodes))
    return f"graph of {plural(len(nodes), 'op')}" + (f" from {lines}" if lines else "")


def recompile_text(reason: RecompileReason) -> str:
    """Return one recompile reason in one line: `x float32 -> bfloat16 (call at line 9, …)`."""
    what = reason_name(reason)
    if reason.kind == "BACKEND_MATCH":
        call = f" (call at line {reason.call_line})" if reason.call_line else ""
        now, was = brief(reason.now, 80), brief(reason.was, 80)
        return f"the backend is {now}, and that of {reason.entry} is {was}{call}"
    if reason.was or reason.now:
        change = f"{one_line(reason.was) or '?'} -> {one_line(reason.now) or '?'}"
        what = f"{brief(what, 80)} {brief(change, 120)}"
    call = f"call at line {reason.call_line}, " if reason.call_line else ""
    return f"{brief(what, 240)} ({call}{reason.entry} did not fit)"


def kernel_text(entry: Compile, kernel: Kernel) -> str:
    """Return a kernel's name with what was fused into it, and from which lines."""
    nodes = kernel_nodes(entry, kernel)
    lines = compact_lines(cell_lines(nodes))
    direction = direction_of(kernel.graph)
    facts = [kernel.language, *([direction] if direction not in ("", "inference") else [])]
    facts.append(f"fuses {plural(len(kernel.nodes), 'node')}" + (f" from {lines}" if lines else ""))
    if kernel.definitions:
        own = kernel.definitions[0]
        at = f"line {own.line}" if own.file == CELL else f"{own.file}:{own.line}"
        facts.append(f"written at {at}")
    return f"{kernel.name} ({', '.join(facts)})"


def state_name(state: CacheState) -> str:
    """Return the name of a code object that has a cache; a resume function by what it resumes."""
    if state.resume_of:
        return f"rest of {state.resume_of}"
    return function_text(state.name, state.file, state.first_line)


def entry_text(entry: CacheEntry) -> str:
    """Return what became of a cache entry: hits of this cell, who compiled it, invalidated."""
    facts = []
    if entry.invalidated:
        facts.append(f"invalidated ({brief(entry.invalidated, 120)})")
    if entry.hits:
        facts.append(f"{plural(entry.hits, 'hit')} from {compact_lines(entry.lines)}")
    if entry.cell is not None:
        facts.append(f"compiled by cell [{entry.cell}]")
    return ", ".join(facts)


def named_call(call: Call, text: str) -> str:
    """Return what a call did behind its name, which a call of code outside graphs may lack."""
    return f"{brief(call.name, 60)}: {text}" if call.name else text


def calls_text(call: Call) -> Iterator[str]:
    """Yield what one call site did: one text for what was compiled or reused, one for the rest."""
    if call.uncompiled:
        yield f"not compiled: {call.uncompiled}"
        return
    facts = []
    if call.compiles:
        facts.append("compiled " + some(call.compiles))
    hits = []
    for key, count in call.hits.items():
        times = f" {count} times" if count > 1 else ""
        cell = call.hits_from.get(key)
        origin = f", compiled by cell [{cell}]" if cell is not None else ""
        hits.append(f"{key} hit{times}{origin}")
    if hits:
        facts.append(some(hits))
    if call.eager:
        times = f" {call.eager} times" if call.eager > 1 else ""
        reason = f": {brief(call.reason, 160)}" if call.reason else ""
        facts.append(f"ran eagerly{times}{reason}")
    if facts or not call.eager_modules:
        yield "; ".join(facts) or "no compiled code ran"
    if call.eager_modules:
        yield "outside any graph: " + some(call.eager_modules)
