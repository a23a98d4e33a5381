"""Why a graph ended, a frame was compiled again, or a compile failed."""

from __future__ import annotations

from dynamo_nb.record.types.base import Data, StackFrame

__all__ = ["Attempt", "CompileError", "GraphBreak", "RecompileReason"]


class GraphBreak(Data, frozen=True):
    """One place where Dynamo had to end a graph.

    `kind` is torch's `gb_type`, `id` its number in torch's registry (`GB0059`), `frame` the exact
    instruction's place, `user_stack` the frames down to it, outermost first.
    """

    kind: str
    reason: str = ""
    explanation: str = ""
    hints: list[str] = []
    context: str = ""
    id: str = ""
    url: str = ""
    attempt: int = 0
    frame: StackFrame | None = None
    user_stack: list[StackFrame] = []


class RecompileReason(Data, frozen=True):
    """One guard of an existing entry that failed and so led to this compile.

    `entry` is the compile id of the entry that did not fit; `source` and `kind` name the failing
    guard, `guard` is its code. `name` says what changed in the user's terms (`x.dtype`,
    `len(history)`, `second (closure variable of inner)`): `was` is the value that the entry was
    compiled for, `now` the one of this call. `call_line` is the cell's line that made the call,
    `frame` the line that reads the value. `text` is torch's own wording.
    """

    entry: str
    source: str = ""
    kind: str = ""
    guard: str = ""
    was: str = ""
    now: str = ""
    call_line: int | None = None
    frame: StackFrame | None = None
    text: str = ""
    name: str = ""


class Attempt(Data, frozen=True):
    """One attempt at a compile; all but the last were restarted for `reason`."""

    attempt: int
    status: str
    reason: str = ""


class CompileError(Data, frozen=True):
    """The exception that ended a compile."""

    type: str
    message: str = ""
    kind: str = ""
    explanation: str = ""
    hints: list[str] = []
    frame: StackFrame | None = None
    user_stack: list[StackFrame] = []
