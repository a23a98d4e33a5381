"""What the notebook's process and the worker tell each other. Imports no torch."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

__all__ = ["COMPILE", "INTERPRET", "Answer", "Job"]

#: What a worker does with its jobs.
COMPILE, INTERPRET = "compile", "interpret"


class Job(Struct, kw_only=True):
    """One graph for the worker: packed by `capture.graph_text`, with what torch was set to.

    `settings` are the options that torch.compile was given for Inductor. `sass` asks for the
    disassembly, `inputs` are packed tensors on which the kernels are interpreted.
    """

    graph: bytes
    ambient: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    sass: bool = False
    inputs: bytes | None = None


class Answer(Struct, kw_only=True):
    """What came of a job, or why nothing did; `detail` is the traceback.

    `node` is the one at which it went wrong, `places` where that comes from.
    """

    data: dict[str, Any] | None = None
    error: str = ""
    detail: str = ""
    node: str = ""
    places: list[Any] = []
