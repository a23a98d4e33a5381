"""Mends that need no change of code: which may help with a record's findings.

A rule is one function from the record to mends; `RULES` is the table of all of them. Whether a mend
helps is not decided here: it is tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from dynamo_nb.record.causes import RecompileCause, own_compiles, recompile_causes
from dynamo_nb.record.trials import Mark, Mend
from dynamo_nb.record.types import CellRecord, Finding

__all__ = ["RULES", "mends"]

Rule = Callable[[CellRecord], Iterator[Mend]]

#: A switch with its value in torch's hints: "`torch._dynamo.config.x = True`", "`...x` to `True`".
_SWITCH = re.compile(r"torch\._dynamo\.config\.(\w+)`?\s*(?:=|to)\s*`?(True|False)\b")
_REORDERABLE = re.compile(r"\(e\.g\. `([\w.]+)`\), .*reorderable_logging_functions")
_LOGGER_METHOD = re.compile(r"method: <\w*Logger .*?>\.(\w+)")
_SIZE = re.compile(r"\.size\(\)\[(\d+)\]$")
_SOURCE = re.compile(r"[LG]\['\w+'\](?:\[\d+\]|\['\w+'\]|\.\w+)*")

#: Functions of C, and the names by which a person calls them.
_PUBLIC = {"_warnings.warn": "warnings.warn", "builtins.print": "print"}

#: Findings about something that changed between calls.
_CHANGES = ("recompile", "became-dynamic", "recompile-limit", "self-invalidating-guard")

_LIMIT_STEP = 8


def mends(record: CellRecord) -> list[Mend]:
    """Return the mends that may help with the record's findings, each once."""
    found: dict[str, Mend] = {}
    for rule in RULES:
        for mend in rule(record):
            first = found.setdefault(mend.paste, mend)
            found[mend.paste] = replace(
                first,
                codes=list(dict.fromkeys([*first.codes, *mend.codes])),
                lines=sorted({*first.lines, *mend.lines}),
            )
    return list(found.values())


def _for(mend: Mend, *findings: Finding) -> Mend:
    return replace(
        mend,
        codes=list(dict.fromkeys(finding.code for finding in findings)),
        lines=sorted({finding.line for finding in findings if finding.line}),
    )


def _of(record: CellRecord, *codes: str) -> list[Finding]:
    return [finding for finding in record.findings if finding.code in codes]


def _hints(record: CellRecord) -> Iterator[tuple[str, list[Finding]]]:
    """Yield torch's hints, each with the findings that it belongs to."""
    for entry in own_compiles(record):
        for index, item in enumerate(entry.graph_breaks):
            for hint in item.hints:
                yield hint, _about(record, entry.key, "break", str(index))
        for index, reason in enumerate(entry.recompile_reasons):
            yield reason.text, _about(record, entry.key, "recompile", str(index))
        for hint in entry.error.hints if entry.error else ():
            yield hint, _of(record, "compile-error", "not-compiled", "specialized-dim")


def _about(record: CellRecord, key: str, artifact: str, index: str) -> list[Finding]:
    wanted = (key, artifact, index)
    return [
        finding
        for finding in record.findings
        if any((ref.compile, ref.artifact, ref.key) == wanted for ref in finding.refs)
    ]


def hinted_switches(record: CellRecord) -> Iterator[Mend]:
    """The switches of torch's configuration that its own hints name, with the value they name."""
    for hint, findings in _hints(record):
        for name, value in _SWITCH.findall(hint):
            line = f"torch._dynamo.config.{name} = {value}"
            note = f"for one cell: %%dynamo --config {name}={value}"
            yield _for(Mend(paste=line, note=note, code=[line]), *findings)


def logging_functions(record: CellRecord) -> Iterator[Mend]:
    """Functions that only say something: called after the graph, or not at all."""
    for hints, context, findings in _calls_that_break(record):
        for name in _REORDERABLE.findall(" ".join(hints)):
            if not re.search(rf"(?:builtin|qualname:) {name.rpartition('.')[2]}\b", context):
                continue  # torch names it as an example: it is another function that breaks
            name = _PUBLIC.get(name, name)
            note = "its calls come after those of the graph"
            yield _for(_added("reorderable_logging_functions", name, note), *findings)
            yield _for(_added("ignore_logging_functions", name, _SILENT), *findings)
        if any("ignore_logging_functions" in hint for hint in hints):
            for method in _LOGGER_METHOD.findall(context):
                name = f"logging.Logger.{method}"
                yield _for(_added("ignore_logging_functions", name, _SILENT), *findings)


def _calls_that_break(record: CellRecord) -> Iterator[tuple[list[str], str, list[Finding]]]:
    """Yield hints and context of what Dynamo can't trace, a break or an error with `fullgraph`."""
    for entry in own_compiles(record):
        for index, item in enumerate(entry.graph_breaks):
            yield item.hints, item.context, _about(record, entry.key, "break", str(index))
        if entry.error is not None:
            yield entry.error.hints, entry.error.message, _of(record, "compile-error")


_SILENT = "compiled code does not call it any more"


def _added(setting: str, name: str, note: str) -> Mend:
    module = name.rpartition(".")[0].partition(".")[0]
    line = f"torch._dynamo.config.{setting}.add({name})"
    return Mend(paste=line, note=note, code=[f"import {module}", line] if module else [line])


def compile_arguments(record: CellRecord) -> Iterator[Mend]:
    """Arguments of torch.compile: dynamic shapes, entries of their own for each object."""
    changes = _of(record, *_CHANGES)
    if changes:
        asked = record.options.get("dynamic")
        if asked is not True:
            yield _for(_argument(record, "dynamic", True, "--dynamic true"), *changes)
        if asked is False:
            yield _for(_argument(record, "dynamic", None, "--dynamic auto"), *changes)
    apart = [finding for finding in changes if "isolate_recompiles" in finding.advice]
    if apart:
        yield _for(_argument(record, "isolate_recompiles", True, ""), *apart)
    whole = _of(record, "graph-break")
    if whole and not record.options.get("fullgraph"):
        yield _for(_argument(record, "fullgraph", True, "--fullgraph"), *whole)
    refused = [f for f in _of(record, "compile-error") if "(Unsupported" in f.message]
    if refused:
        yield _for(_in_parts(record), *refused)


def _in_parts(record: CellRecord) -> Mend:
    """Return the mend of what `fullgraph` refuses: more graphs than one."""
    mend = _argument(record, "fullgraph", False, "")
    if not record.options.get("fullgraph"):
        return mend
    line = re.sub(r"\s+--fullgraph\b", "", record.source.partition("\n")[0])
    return replace(mend, paste=line, note=f"without --fullgraph; in a program: {mend.paste}")


def _argument(record: CellRecord, name: str, value: object, flag: str) -> Mend:
    line = f"torch.compile(..., {name}={value})"
    if record.mode == "as-is" or not flag:
        return Mend(paste=line, arguments={name: value})
    return Mend(paste=f"%%dynamo {flag}", note=f"in a program: {line}", arguments={name: value})


def marked_dimensions(record: CellRecord) -> Iterator[Mend]:
    """The very dimension that changed, marked dynamic, or static where it became dynamic."""
    for cause in recompile_causes(record):
        size, source = _SIZE.search(cause.name), cause.first.source
        if size and _SOURCE.fullmatch(source):
            findings = [f for f in _of(record, *_CHANGES) if f"`{cause.name}`" in f.message]
            yield _for(_marked("dynamic", cause, int(size[1])), *findings)
            if cause.symbol is not None:
                yield _for(_marked("static", cause, int(size[1])), *findings)


def _marked(kind: str, cause: RecompileCause, dim: int) -> Mend:
    compiled = cause.changes[0].compiled
    tensor = _SIZE.sub("", cause.name)
    return Mend(
        paste=f"torch._dynamo.mark_{kind}({tensor}, {dim})",
        note=f"before `{compiled.name}` is called with {tensor}",
        marks=[
            Mark(
                kind=kind,
                function=compiled.name,
                first_line=compiled.first_line,
                source=cause.first.source,
                dim=dim,
            )
        ],
    )


def more_entries(record: CellRecord) -> Iterator[Mend]:
    """A limit that all entries fit under."""
    limited = _of(record, "recompile-limit")
    if limited:
        entries = len(own_compiles(record)) + sum(call.eager for call in record.calls)
        limit = -(-(entries + 1) // _LIMIT_STEP) * _LIMIT_STEP
        line = f"torch._dynamo.config.recompile_limit = {limit}"
        note = f"for one cell: %%dynamo --config recompile_limit={limit}"
        yield _for(Mend(paste=line, note=note, code=[line]), *limited)


def ignored_marks(record: CellRecord) -> Iterator[Mend]:
    """A dimension that is marked dynamic and is a constant: the mark gives way."""
    specialized = _of(record, "specialized-dim")
    if specialized:
        line = "torch._dynamo.config.allow_ignore_mark_dynamic = True"
        note = "the dimension is specialized all the same: one entry for each size"
        yield _for(Mend(paste=line, note=note, code=[line]), *specialized)


RULES: tuple[Rule, ...] = (
    hinted_switches,
    logging_functions,
    marked_dimensions,
    compile_arguments,
    more_entries,
    ignored_marks,
)
