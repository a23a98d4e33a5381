"""What the capture hands on: plain events, named as torch's structured trace names them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

__all__ = ["Event"]


class Event(Struct, kw_only=True):
    """One thing that torch did, as plain data.

    `name` is torch's own event name where its structured trace has one (`compilation_metrics`,
    `artifact:recompile_reasons`); `data` is the event's metadata and `payload` its text. What the
    trace lacks comes under the capture's own names, with `data` shaped like the record's structs.
    `compile_id` is empty for what happens outside a compile; `generation` counts the resets of
    Dynamo, after which compile ids start anew. `time` is `time.perf_counter()`.
    """

    name: str
    compile_id: str = ""
    generation: int = 0
    attempt: int = 0
    data: Any = None
    payload: str | None = None
    time: float = 0.0
