"""Torch's structured trace, read in the process that makes it."""

from __future__ import annotations

import json
import logging
from typing import Any

from dynamo_nb.capture.recorder import Hooked, Recorder

__all__ = ["install_trace"]

#: Keys of a trace record that place it; the one other key is the event's name.
_CONTEXT = {
    "rank",
    "compiled_autograd_id",
    "frame_id",
    "frame_compile_id",
    "attempt",
    "has_payload",
    "stack",
    "subgraph_name",
    "process",
    "thread",
    "pathname",
    "lineno",
    "timestamp",
}


class _TraceHandler(logging.Handler):
    """Hands each record on as an event; never filters, formats or locks."""

    def __init__(self, hooked: Hooked) -> None:
        super().__init__(logging.DEBUG)
        self._hooked = hooked

    def handle(self, record: logging.LogRecord) -> bool:
        with self._hooked.recorder.apart(self._hooked.hook):
            emit_record(self._hooked.recorder, record)
        return True


def install_trace(hooked: Hooked) -> None:
    """Add a handler to `torch.__trace` (`torch/_logging/_internal.py: trace_structured`, 2.13).

    It goes first: torch's lazy handler takes itself out of the list while the list is walked, and
    the one behind it would miss that record. File names in records are numbers; torch's table of
    them comes along at the end.
    """
    logger = logging.getLogger("torch.__trace")
    handler = _TraceHandler(hooked)

    def remove() -> None:
        if handler in logger.handlers:
            logger.handlers.remove(handler)

    def hand_over_names() -> None:
        from torch._logging.structured import INTERN_TABLE

        for text, number in INTERN_TABLE.items():
            hooked.recorder.emit("str", [text, number], compile_id="", attempt=0)

    hooked.undo.callback(hand_over_names)
    logger.handlers.insert(0, handler)
    hooked.undo.callback(remove)


def emit_record(recorder: Recorder, record: logging.LogRecord) -> None:
    """Emit one trace record: its only key that is no context is the event's name."""
    metadata: dict[str, Any] = record.metadata  # type: ignore[attr-defined]
    name = next((key for key in metadata if key not in _CONTEXT), "")
    data: Any = metadata.get(name)
    if name == "str" or not name:
        return
    if name == "artifact":
        name = f"artifact:{data['name']}"
    if name == "inductor_output_code":
        data = {**(data or {}), "direction": recorder.graph}
    payload = record.payload  # type: ignore[attr-defined]
    if name == "chromium_event":  # its metadata is empty, the event is in the payload
        data, payload = json.loads(payload), None
    compile_id = _compile_id(metadata)
    recorder.emit(
        name, data, compile_id=compile_id, attempt=metadata.get("attempt", 0), payload=payload
    )
    if name == "chromium_event" and data.get("ph") == "B":
        recorder.progress(compile_id, "", str(data.get("name", "")))


def _compile_id(metadata: dict[str, Any]) -> str:
    if metadata.get("frame_id") is None:
        return ""
    compile_id = f"{metadata['frame_id']}/{metadata.get('frame_compile_id', 0)}"
    autograd = metadata.get("compiled_autograd_id")
    return f"!{autograd}/{compile_id}" if autograd is not None else compile_id
