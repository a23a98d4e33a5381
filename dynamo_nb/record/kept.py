"""Values that a graph break leaves on the stack, named by the code that they came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from dynamo_nb.record.naming import KEPT_VALUE
from dynamo_nb.record.types import CELL, Compile, StackFrame

__all__ = ["with_kept_named"]

_STACK = re.compile(r"\b___stack(\d+)\b")
_RESUMED = re.compile(r"torch_dynamo_resume_in_.+_at_(\d+)$")
#: A longer piece of code names nothing at a glance.
_LONGEST = 60


def with_kept_named(compiles: Sequence[Compile], source: str) -> list[Compile]:
    """Return compiles whose recompiles name the value behind a break by the code that made it.

    A resume function takes what was on the stack as arguments. The last one is what the call that
    broke the graph gave; the others are parts of the same line.
    """
    named = []
    for index, compiled in enumerate(compiles):
        reasons = compiled.recompile_reasons
        if any(KEPT_VALUE in reason.name for reason in reasons):
            frame = _broken_call(compiled, compiles[:index])
            text = _quoted(frame, source) if frame else ""
            line = f"a value of line {frame.line}" if frame else KEPT_VALUE
            last = _last_kept(compiled)
            reasons = [
                replace(
                    reason,
                    name=reason.name.replace(
                        KEPT_VALUE, text if text and _kept(reason.source) == {last} else line
                    ),
                )
                for reason in reasons
            ]
            compiled = replace(compiled, recompile_reasons=reasons)
        named.append(compiled)
    return named


def _broken_call(compiled: Compile, before: Sequence[Compile]) -> StackFrame | None:
    """Return the place of the graph break behind which a function resumes."""
    resumed = _RESUMED.search(compiled.name)
    if not resumed:
        return None
    code = _code(compiled)
    first = next((i for i, entry in enumerate(before) if _code(entry) == code), len(before))
    for entry in reversed(before[:first]):
        for item in reversed(entry.graph_breaks):
            frame = item.user_stack[0] if item.user_stack else item.frame
            is_there = frame is not None and frame.line == int(resumed[1])
            if is_there and (entry.resume_of or entry.name) == compiled.resume_of:
                return frame
    return None


def _code(compiled: Compile) -> tuple[int, str]:
    """Return the number under which Dynamo knows a code object."""
    return compiled.generation, compiled.compile_id.partition("/")[0]


def _quoted(frame: StackFrame, source: str) -> str:
    """Return the code at a place of the cell, where it is short and on one line."""
    lines = source.splitlines()
    if frame.file != CELL or frame.column is None or frame.end_line not in (None, frame.line):
        return ""
    text = lines[frame.line - 1][frame.column : frame.end_column] if frame.line else ""
    return text if len(text) <= _LONGEST else ""


def _last_kept(compiled: Compile) -> int:
    """Return the number of the topmost value that the resume function takes from the stack."""
    return max(
        (number for text in _texts(compiled) for number in _kept(text)),
        default=-1,
    )


def _texts(compiled: Compile) -> Iterator[str]:
    yield from (guard.source for guard in compiled.guards)
    yield from (reason.source for reason in compiled.recompile_reasons)
    codes = compiled.steps.codes[:1] if compiled.steps else []
    yield from (item.argument for code in codes for item in code.instructions)
    if compiled.bytecode:
        yield from (item.argument for item in compiled.bytecode.before)


def _kept(text: str) -> set[int]:
    return {int(number) for number in _STACK.findall(text)}
