"""Frames that Dynamo was asked about, and what the calls of compiled code did."""

from __future__ import annotations

import dis
import sys
from collections import Counter
from types import CodeType, FrameType
from typing import Any, NamedTuple

from dynamo_nb.capture.guards import guard_tree
from dynamo_nb.capture.leaves import eager_leaves
from dynamo_nb.capture.machinery import is_machinery
from dynamo_nb.capture.memory import MEMORY, Entry
from dynamo_nb.capture.plain import Place
from dynamo_nb.capture.recorder import Hooked, Recorder
from dynamo_nb.capture.stacks import (
    callable_name,
    code_name,
    resume_origin,
    user_stack,
    wrapped_by,
)
from dynamo_nb.capture.wrapping import learn_name

__all__ = ["install_calls", "install_frames"]

_RESUME_PREFIXES = ("__resume_at", "torch_dynamo_resume_in")


def install_frames(hooked: Hooked) -> None:
    """Watch what becomes of each frame.

    `CatchErrorsWrapper._handle_skip` sees every outcome (2.13 and newer). A frame refused before
    it gets a compile id (a generator) leaves its reason in the exception that Dynamo suppresses:
    `format_error_msg` is where it passes.
    """
    from torch._dynamo import convert_frame

    recorder = hooked.recorder
    suppressed: dict[CodeType, str] = {}

    def on_suppressed(error: Exception, code: CodeType, *_: Any, **__: Any) -> None:
        suppressed[code] = getattr(error, "gb_type", None) or type(error).__name__

    def on_outcome(result: Any, _self: Any, outcome: Any, frame: Any) -> None:
        code = frame.f_code
        learn_name(code, getattr(frame, "closure", None))
        compiled = outcome.guarded_code is not None
        reason = suppressed.pop(code, "") or outcome.skip_reason or ""
        MEMORY.leave_alone(code, "" if compiled else reason)
        if is_machinery(code, sys._getframe(), compiled=compiled):
            return
        recorder.emit(
            "frame",
            {
                "name": code_name(code),
                "file": code.co_filename,
                "first_line": code.co_firstlineno,
                "resume_of": resume_origin(code),
                "outcome": "compiled" if compiled else "skipped",
                "reason": "" if compiled else reason,
                "compile_id": str(outcome.guarded_code.compile_id) if compiled else "",
                "user_stack": user_stack(sys._getframe()),
                "modules": [] if compiled else eager_leaves(frame),
            },
            attempt=0,
        )

    hooked.around(convert_frame, "format_error_msg", before=on_suppressed)
    hooked.around(convert_frame.CatchErrorsWrapper, "_handle_skip", after=on_outcome)


def install_calls(hooked: Hooked) -> None:
    """Watch cache look-ups: which entry a call hit, and which calls found none.

    Torch's guard-complete hook (`torch/_C/_dynamo/eval_frame.pyi`, 2.13) tells hit from miss only.
    The code object is found from the calling frame, and the entry because a look-up moves the one
    that it finds to the front of the list.
    """
    from torch._C._dynamo.eval_frame import set_guard_complete_hook

    recorder = hooked.recorder
    counts: Counter[_Lookup] = Counter()

    def on_lookup(hit: bool, caller: FrameType) -> None:
        callee = _callee(caller)
        code = getattr(callee, "__code__", None)
        if code is not None:
            recorder.meet(code)
            learn_name(code, callee.__closure__)
        entry = _front_entry(code) if hit and code is not None else None
        known = MEMORY.entry(entry.guard_manager) if entry is not None else None
        if entry is not None and known is None:
            known = _unseen(recorder, code, entry)
        lookup = _Lookup(
            compile_id=str(entry.compile_id) if entry is not None else "",
            generation=known.generation if known is not None else recorder.generation,
            hit=hit,
            name=callable_name(wrapped_by(callee), code) if code is not None else "",
            file=code.co_filename if code is not None else "",
            first_line=code.co_firstlineno if code is not None else 0,
            resume_of=resume_origin(code) if code is not None else "",
            user_stack=tuple(user_stack(caller)),
        )
        counts[lookup] += 1

    def on_complete(hit: bool) -> bool:
        with recorder.apart(hooked.hook):
            on_lookup(hit, sys._getframe(1))
        return previous(hit) if previous is not None else hit

    def hand_over() -> None:
        for lookup, count in counts.items():
            data = {**lookup._asdict(), "count": count}
            recorder.emit("lookup", data, compile_id=lookup.compile_id, attempt=0)

    previous = set_guard_complete_hook(on_complete)
    hooked.undo.callback(hand_over)
    hooked.undo.callback(set_guard_complete_hook, previous)


class _Lookup(NamedTuple):
    """A look-up in Dynamo's cache; those that are alike are counted."""

    compile_id: str
    generation: int
    hit: bool
    name: str
    file: str
    first_line: int
    resume_of: str
    user_stack: tuple[Place, ...]


def _unseen(recorder: Recorder, code: Any, entry: Any) -> Entry:
    """Tell of an entry that was compiled out of sight, and know it from now on."""
    recorder.emit(
        "unseen_entry",
        {
            "name": code_name(code),
            "file": code.co_filename,
            "first_line": code.co_firstlineno,
            "guard_tree": guard_tree(entry.guard_manager),
        },
        compile_id=str(entry.compile_id),
        attempt=0,
    )
    known = Entry(str(entry.compile_id), recorder.generation, {}, {})
    MEMORY.keep(entry.guard_manager, known)
    return known


def _front_entry(code: CodeType) -> Any:
    """Return the cache entry at the front of a code object's list, None when it has none."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    entries = _debug_get_cache_entry_list(code)
    return entries[0] if entries else None


def _callee(caller: FrameType) -> Any:
    """Return the function that a frame is calling into, None where it can't be told."""
    local = caller.f_locals
    callee = {
        "compile_wrapper": lambda: local.get("fn"),
        "_fn": lambda: local.get("fn"),
        "_call_impl": lambda: local.get("forward_call"),
    }.get(caller.f_code.co_name, lambda: _resume_function(caller))()
    return getattr(callee, "__func__", callee)


def _resume_function(caller: FrameType) -> Any:
    """Return the resume function that modified bytecode has loaded for the call under way."""
    name = ""
    for instruction in dis.get_instructions(caller.f_code):
        if instruction.offset > caller.f_lasti:
            break
        if str(instruction.argval).startswith(_RESUME_PREFIXES):
            name = str(instruction.argval)
    return caller.f_globals.get(name)
