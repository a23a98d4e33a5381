"""The record of a cell."""

from __future__ import annotations

from typing import Any

from dynamo_nb.record.types.base import SCHEMA_VERSION, Data, Link, Ref, StackFrame
from dynamo_nb.record.types.calls import CacheState, Call, CompiledObject
from dynamo_nb.record.types.compiles import Compile, Frame
from dynamo_nb.record.types.guards import Guard
from dynamo_nb.record.types.kernels import Kernel
from dynamo_nb.record.types.repeats import Check, Machine, Timing

__all__ = ["COMPILER", "OPERATOR", "CellError", "CellRecord", "Finding", "Note", "Versions"]

#: What raises while a graph runs, for `CellError.raised_by`.
OPERATOR, COMPILER = "operator", "compiler"


class Finding(Data, frozen=True):
    """A plain answer: what happened, where, and what to do about it.

    `severity` is `error`, `warning` or `info`. `line` is where to look first in the cell (None when
    the place lies outside it, then `frame` has it), `lines` are all cell lines that are named.
    `measured` says that it rests on a measured time, so that the next run may lack it: the output
    that is compared from run to run leaves it out.
    """

    code: str
    severity: str
    message: str
    advice: str = ""
    line: int | None = None
    lines: list[int] = []
    count: int = 1
    frame: StackFrame | None = None
    refs: list[Ref] = []
    measured: bool = False


class Note(Data, frozen=True):
    """Something the report lacks: which hook failed, if any did, and which panel it costs."""

    hook: str
    panel: str
    message: str


class Versions(Data, frozen=True):
    """Versions of what made the record; empty where absent."""

    dynamo_nb: str = ""
    torch: str = ""
    python: str = ""
    triton: str = ""


class CellError(Data, frozen=True):
    """The exception that the cell raised.

    `raised_by` is what raised it while a graph ran: `operator`, or `compiler` where it is torch's
    own code around operators, by its file and line where these are known; empty elsewhere.
    """

    type: str
    message: str = ""
    line: int | None = None
    raised_by: str = ""


class CellRecord(Data, frozen=True):
    """What torch.compile did to one cell, whole.

    `mode` is `as-is`, `calls` or `cell` and `mode_reason` says why it was chosen. `source` is the
    cell with its `%%dynamo` line as line 1. `files` holds the text of the other files that frames
    refer to, by their short name. `unparsed` counts, by name, what torch said and nobody here
    understands.
    """

    schema: int = SCHEMA_VERSION
    name: str = ""
    cell: int | None = None
    source: str = ""
    mode: str = "as-is"
    mode_reason: str = ""
    options: dict[str, Any] = {}
    device: str = "cpu"
    versions: Versions = Versions()
    files: dict[str, str] = {}
    compiles: list[Compile] = []
    frames: list[Frame] = []
    calls: list[Call] = []
    compiled_objects: list[CompiledObject] = []
    links: list[Link] = []
    findings: list[Finding] = []
    notes: list[Note] = []
    error: CellError | None = None
    unparsed: dict[str, int] = {}
    metrics: dict[str, Any] = {}
    cache: list[CacheState] = []
    checks: list[Check] = []
    timings: list[Timing] = []
    machines: list[Machine] = []

    def __repr__(self) -> str:
        """Return the record on one line: all of it would be hundreds of pages."""
        from dynamo_nb.views.brief import to_line

        return to_line(self)

    def __str__(self) -> str:
        """Return the report as text."""
        from dynamo_nb.views.text import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it."""
        from dynamo_nb.views.html import to_html

        return to_html(self)

    def compile(self, compile_id: str) -> Compile:
        """Return the compile with that id, e.g. `0/1`.

        Raises
        ------
        KeyError
            When there is none; the message lists those that exist.
        """
        for compile_ in self.compiles:
            if compile_id in (compile_.key, compile_.compile_id):
                return compile_
        have = ", ".join(compile_.key for compile_ in self.compiles) or "none"
        msg = f"No compile {compile_id!r}; this cell has: {have}."
        raise KeyError(msg)

    def guards(self, source: str | None = None, line: int | None = None) -> list[tuple[str, Guard]]:
        """Return guards of all compiles, each with the key of its compile.

        Parameters
        ----------
        source
            Only guards on this and on what is reached through it, as torch writes it (`L['x']`) or
            as the cell does (`x`, `self.layers`).
        line
            Only guards that this line of the cell caused.
        """
        from dynamo_nb.record.guards import guards

        return guards(self, source, line)

    def kernels(self, line: int | None = None, target: str = "") -> list[tuple[str, Kernel]]:
        """Return kernels of all compiles, each with the key of its compile.

        Parameters
        ----------
        line
            Only kernels that compute something of this line of the cell.
        target
            Those for a GPU that is not there (`cuda:90`) in place of this machine's.
        """
        from dynamo_nb.record.kernels import kernels

        return kernels(self, line, target)

    def summary(self) -> dict[str, Any]:
        """Return the record in short, as plain data: counts, causes and findings."""
        from dynamo_nb.record.summary import summary

        return summary(self)

    def to_dot(self, compile_id: str, stage: str = "dynamo") -> Any:
        """Return one graph as a `graphviz.Digraph`, nodes within their modules.

        Raises
        ------
        ValueError
            When there is no such compile or stage; the message lists those that exist.
        """
        from dynamo_nb.views.dot import to_dot

        return to_dot(self, compile_id, stage)

    def to_json(self) -> bytes:
        """Return the record as JSON; `from_json` gives an equal one back."""
        from dynamo_nb.record.io import to_json

        return to_json(self)

    @staticmethod
    def from_json(data: bytes | str) -> CellRecord:
        """Return the record that `to_json` wrote; `RecordError` says what is wrong with others."""
        from dynamo_nb.record.io import from_json

        return from_json(data.encode() if isinstance(data, str) else data)
