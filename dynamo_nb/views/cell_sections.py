"""The sections that belong to the whole cell: recompiles, calls, frames, other source files."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_nb.record.check_text import check_text, difference_text
from dynamo_nb.record.types import (
    CELL,
    CacheEntry,
    CacheState,
    Call,
    Check,
    Compile,
    CompiledObject,
    Frame,
    Mismatch,
    RecompileReason,
    StackFrame,
)
from dynamo_nb.views.blocks import Section, table
from dynamo_nb.views.context import Context, where
from dynamo_nb.views.model import main_reason, reason_name
from dynamo_nb.views.phrases import OWN_FILES, calls_text, entry_text, state_name
from dynamo_nb.views.plain import place, plural
from dynamo_nb.views.source import listing

__all__ = ["calls", "checks", "frames", "recompiles", "sources"]


def recompiles(context: Context) -> Iterator[Section]:
    """Yield every recompile: which entry did not fit, what changed, at which call."""

    def row(item: tuple[Compile, RecompileReason]) -> tuple[tuple[str, ...], str]:
        entry, reason = item
        at_call = context.marks.of_lines([reason.call_line])
        return (
            entry.key,
            reason.entry,
            reason_name(reason),
            reason.was,
            reason.now,
            f"line {reason.call_line}" if reason.call_line else "",
            where(reason.frame),
            reason.guard or reason.text,
        ), " ".join(filter(None, [context.marks.of(reason.frame), at_call]))

    items = [(entry, reason) for entry in context.report.own if (reason := main_reason(entry))]
    if items:
        columns = "new entry|did not fit|what changed|was|now|call|read at|guard"
        yield Section(
            title="recompiles",
            summary=str(len(items)),
            blocks=[table(columns, items, row, context.limits)],
            is_open=context.limits.exact,
        )


def calls(context: Context) -> Iterator[Section]:
    """Yield what each call of the cell did: compiled, hit an entry, ran eagerly."""

    def row(call: Call) -> tuple[tuple[object, ...], str]:
        return (
            call.line,
            call.name,
            "; ".join(calls_text(call)),
        ), context.marks.of_lines([call.line])

    def object_row(item: CompiledObject) -> tuple[tuple[object, ...], str]:
        bypasses = ", ".join(f"{bypass.callee} (line {bypass.line})" for bypass in item.bypasses)
        return (
            item.name,
            item.callee,
            item.line or "",
            item.entered,
            bypasses,
        ), context.marks.of_lines([item.line, *(bypass.line for bypass in item.bypasses)])

    def entry_row(item: tuple[CacheState, CacheEntry]) -> tuple[tuple[object, ...], str]:
        state, entry = item
        return (
            state_name(state),
            entry.entry,
            entry_text(entry),
        ), context.marks.of_lines(entry.lines)

    record = context.record
    entries = [(state, entry) for state in record.cache for entry in state.entries]
    if record.calls or record.compiled_objects or entries:
        yield Section(
            title="calls and cache",
            summary=str(len(record.calls)),
            blocks=[
                table("line|call|what it did", record.calls, row, context.limits),
                table("code object|next look-up tries|", entries, entry_row, context.limits),
                table(
                    "compiled object|callee|line|frames entered|calls that go around it",
                    record.compiled_objects,
                    object_row,
                    context.limits,
                ),
            ],
            is_open=context.limits.exact,
        )


def checks(context: Context) -> Iterator[Section]:
    """Yield whether compiled calls agree with eager ones, and all that differs."""

    def row(check: Check) -> tuple[tuple[object, ...], str]:
        return (
            check.line or "",
            check.name,
            check_text(check),
        ), context.marks.of_lines([check.line])

    def difference_row(item: tuple[Check, Mismatch]) -> tuple[tuple[object, ...], str]:
        check, mismatch = item
        return (
            check.name,
            difference_text(mismatch),
            mismatch.kernel,
            where(mismatch.frame),
        ), context.marks.of(mismatch.frame)

    record = context.record
    differing = [(check, mismatch) for check in record.checks for mismatch in check.mismatches]
    if record.checks:
        yield Section(
            title="check against eager",
            summary=plural(len(differing), "difference"),
            blocks=[
                table("line|call|outcome", record.checks, row, context.limits),
                table("call|what differs|kernel|line", differing, difference_row, context.limits),
            ],
            is_open=True,
        )


def frames(context: Context) -> Iterator[Section]:
    """Yield the frames that Dynamo looked at and did not compile, with its reasons."""

    def row(frame: Frame) -> tuple[tuple[object, ...], str]:
        at = StackFrame(file=frame.file, line=frame.first_line)
        return (frame.name, place(at), frame.outcome, frame.count, frame.reason), ""

    skipped = [
        frame
        for frame in context.record.frames
        if frame.outcome != "compiled" and (frame.file, frame.name) != (CELL, "<module>")
    ]
    if skipped:
        yield Section(
            title="frames not compiled",
            summary=str(len(skipped)),
            blocks=[table("frame|place|outcome|times|reason", skipped, row, context.limits)],
        )


def sources(context: Context) -> Iterator[Section]:
    """Yield the other source files that something belongs to, the user's before torch's."""
    files = [
        file
        for file in context.record.files
        if context.marks.lines.get(file) and not file.startswith(OWN_FILES)
    ]
    for file in sorted(files, key=lambda file: file.startswith("torch/"))[: context.limits.files]:
        lines = len(context.marks.lines[file])
        yield Section(
            title=f"source {file}",
            summary=plural(lines, "line"),
            blocks=[listing(context.report, file, context.marks, context.limits)],
        )
