"""Torch's structured trace, read in the process that makes it."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

from dynamo_nb.capture.recorder import Hooked, Recorder
from dynamo_nb.events import is_ignored

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


class _Unread(set[str]):
    """Names of events that nobody reads: those given, and those that the record ignores."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and is_ignored(name))


class _TraceHandler(logging.Handler):
    """Hands each record on as an event; never filters, formats or locks."""

    def __init__(self, hooked: Hooked, unread: _Unread) -> None:
        super().__init__(logging.DEBUG)
        self._hooked = hooked
        self._unread = unread

    def handle(self, record: logging.LogRecord) -> bool:
        with self._hooked.recorder.apart(self._hooked.hook):
            _emit_record(self._hooked.recorder, record, self._unread)
        return True


class _Listeners:
    """Stands for the trace's logger where torch asks whether anybody listens to it.

    Torch formats, dumps and hashes a record's payload as soon as its logger has a handler. While
    ours is the only one, that work is spared for records that nobody reads.
    """

    def __init__(self, logger: logging.Logger, handler: logging.Handler, unread: _Unread) -> None:
        self.__dict__.update(_logger=logger, _only=[handler], _unread=unread)

    @property
    def handlers(self) -> list[logging.Handler]:
        """The logger's handlers; none for a record that only we would get, and do not read."""
        handlers: list[logging.Handler] = self._logger.handlers
        if handlers == self._only and _event_name(sys._getframe(1).f_locals) in self._unread:
            return []
        return handlers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._logger, name, value)


def _event_name(arguments: Mapping[str, Any]) -> str:
    """Return the event's name from the arguments of `trace_structured`; empty if unknown."""
    name = arguments.get("name")
    if name != "artifact":
        return name if isinstance(name, str) else ""
    try:
        return f"artifact:{arguments['metadata_fn']()['name']}"
    except Exception:
        return ""


def install_trace(hooked: Hooked) -> None:
    """Add a handler to `torch.__trace` (`torch/_logging/_internal.py: trace_structured`, 2.13).

    It goes first: torch's lazy handler takes itself out of the list while the list is walked, and
    the one behind it would miss that record. File names in records are numbers; torch's table of
    them comes along at the end. Stages are taken where torch times them
    (`torch/_dynamo/utils.py: ChromiumEventLogger`), before they become text.
    """
    import torch._logging._internal as internal

    logger = logging.getLogger("torch.__trace")
    unread = _Unread({"str"})
    handler = _TraceHandler(hooked, unread)

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
    if _install_stages(hooked):
        unread.add("chromium_event")
    if getattr(internal, "trace_log", None) is logger:
        hooked.replace(internal, "trace_log", _Listeners(logger, handler, unread))


def _install_stages(hooked: Hooked) -> bool:
    """Watch the events by which torch times its stages; tell whether that was possible."""
    import torch._dynamo.utils as utils

    owner = getattr(utils, "ChromiumEventLogger", None)
    if not hasattr(owner, "_log_timed_event"):
        return False

    def after(event: dict[str, Any], *_args: Any, **_kwargs: Any) -> None:
        _emit_stage(hooked.recorder, event)

    hooked.around(owner, "_log_timed_event", after=after)
    return True


def _emit_record(recorder: Recorder, record: logging.LogRecord, unread: _Unread) -> None:
    """Emit one trace record: its only key that is no context is the event's name."""
    metadata: dict[str, Any] = record.metadata  # type: ignore[attr-defined]
    name = next((key for key in metadata if key not in _CONTEXT), "")
    data: Any = metadata.get(name)
    if name == "artifact":
        name = f"artifact:{data['name']}"
    if not name or name in unread:
        return
    if name == "inductor_output_code":
        data = {**(data or {}), "direction": recorder.graph}
    payload = record.payload  # type: ignore[attr-defined]
    if name == "chromium_event":  # its metadata is empty, the event is in the payload
        _emit_stage(recorder, json.loads(payload), metadata)
        return
    recorder.emit(
        name,
        data,
        compile_id=_compile_id(metadata),
        attempt=metadata.get("attempt", 0),
        payload=payload,
    )


def _emit_stage(
    recorder: Recorder, event: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> None:
    """Emit the begin or end of a stage; `metadata` says of which compile, else the current one."""
    name, phase = str(event.get("name", "")), event.get("ph")
    compile_id = recorder.compile_id if metadata is None else _compile_id(metadata)
    attempt = None if metadata is None else metadata.get("attempt", 0)
    data = {"name": name, "ph": phase}
    recorder.emit("chromium_event", data, compile_id=compile_id, attempt=attempt)
    if phase == "B":
        recorder.progress(compile_id, "", name)


def _compile_id(metadata: Mapping[str, Any]) -> str:
    if metadata.get("frame_id") is None:
        return ""
    compile_id = f"{metadata['frame_id']}/{metadata.get('frame_compile_id', 0)}"
    autograd = metadata.get("compiled_autograd_id")
    return f"!{autograd}/{compile_id}" if autograd is not None else compile_id
