"""Dynamo's cache after the cell: each code object's entries in the order of the look-up."""

from __future__ import annotations

from types import CodeType
from typing import Any

from dynamo_nb.capture.guards import invalidation
from dynamo_nb.capture.memory import MEMORY
from dynamo_nb.capture.recorder import Hooked
from dynamo_nb.capture.stacks import code_name, resume_origin

__all__ = ["install_cache"]


def install_cache(hooked: Hooked) -> None:
    """Read the cache when the capture ends, for all code that Dynamo was asked about.

    Entries stand in the order of the look-up: one that is hit moves to the front, and torch moves
    one that it has given up to the end (`torch/csrc/dynamo/extra_state.cpp`, 2.13).
    """
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    recorder = hooked.recorder

    def hand_over() -> None:
        for known in list(recorder.codes.values()):
            code = known()
            entries = _debug_get_cache_entry_list(code) if code is not None else []
            if code is not None and entries:
                recorder.emit("cache", _cache(code, entries, recorder.generation), attempt=0)

    hooked.undo.callback(hand_over)


def _cache(code: CodeType, entries: list[Any], generation: int) -> dict[str, Any]:
    return {
        "name": code_name(code),
        "file": code.co_filename,
        "first_line": code.co_firstlineno,
        "resume_of": resume_origin(code),
        "entries": [_entry(entry, generation) for entry in entries],
    }


def _entry(entry: Any, generation: int) -> dict[str, Any]:
    known = MEMORY.entry(entry.guard_manager)
    return {
        "entry": str(entry.compile_id),
        "generation": known.generation if known is not None else generation,
        "invalidated": invalidation(entry.guard_manager),
    }
