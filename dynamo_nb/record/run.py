"""What the runner knows of a run, apart from the events: the cell, the options, the outcome."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dynamo_nb.record.types import CellError, Compile, CompiledObject, Note, Versions

__all__ = ["Called", "Run", "SourceCell"]


class SourceCell(Struct, frozen=True, kw_only=True):
    """A notebook cell as IPython compiled it: `file` is its `co_filename`, `number` its `[n]`."""

    file: str
    source: str
    number: int | None = None


class Called(Struct, frozen=True, kw_only=True):
    """How often one line of the cell called a function through `torch.compile`.

    `file` is its code's `co_filename`. `given_up` is why Dynamo leaves that code alone, as far as
    this process saw: then it is not even asked any more. `uncompiled` is why the magic did not
    compile the call in the first place; its `count` is 0 where that can't be told.
    """

    line: int
    name: str
    file: str
    first_line: int
    count: int
    given_up: str = ""
    uncompiled: str = ""


class Run(Struct, kw_only=True):
    """One run of one cell.

    `others` are the notebook's other cells, for frames that lie in them. `earlier` are compiles
    that earlier cells made, each with its `cell` number. `started` is the `time.perf_counter()` at
    which the cell began. `body_line` is where the body begins that `cell` mode made a function of,
    whose call stands on the magic's own line. `called` are the calls that the magic made through
    `torch.compile`.
    """

    cell: SourceCell
    name: str = ""
    mode: str = "as-is"
    mode_reason: str = ""
    options: dict[str, Any] = {}
    device: str = "cpu"
    versions: Versions = Versions()
    others: list[SourceCell] = []
    earlier: list[Compile] = []
    compiled_objects: list[CompiledObject] = []
    notes: list[Note] = []
    error: CellError | None = None
    started: float = 0.0
    seconds: float = 0.0
    body_line: int | None = None
    called: list[Called] = []
