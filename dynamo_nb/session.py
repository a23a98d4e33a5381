"""What a session knows: the notebook's cells, the reports so far, what was compiled before."""

from __future__ import annotations

import linecache
import re
import traceback

from msgspec.structs import replace

from dynamo_nb.events import Event
from dynamo_nb.record.run import Run, SourceCell
from dynamo_nb.record.types import CellRecord, Compile, Note

__all__ = ["Session", "current"]

#: File names under which IPython's shells keep cells in `linecache`.
CELL_FILE = re.compile(r"<ipython-input-(\d+)-|[/\\]ipykernel_\d+[/\\]")

#: A session lasts for days, and the record of a large model takes many megabytes.
RECORDS_KEPT = 32
COMPILES_KEPT = 128


class Session:
    """The state behind the magic. There is one per process: see `current`."""

    def __init__(self) -> None:
        self.cells: dict[str, SourceCell] = {}
        self.records: list[CellRecord] = []
        self.earlier: list[Compile] = []
        self.unbuilt: tuple[list[Event], Run] | None = None

    def remember(self, cell: SourceCell) -> None:
        """Keep a cell's source by the file name of its code."""
        self.cells[cell.file] = cell

    def others(self, cell: SourceCell) -> list[SourceCell]:
        """Return the notebook's other cells; those run before the extension was loaded, too."""
        old = (_from_linecache(file) for file in list(linecache.cache))
        known = {known.file: known for known in old if known is not None} | self.cells
        return [other for file, other in known.items() if file != cell.file]

    def last(self, name: str = "") -> CellRecord | None:
        """Return the last record, or the last of that name."""
        return next((r for r in reversed(self.records) if not name or r.name == name), None)

    def before(self, record: CellRecord) -> CellRecord | None:
        """Return the record that was made before another one, None when there is none."""
        earlier = [None, *self.records]
        at = next((at for at, known in enumerate(self.records) if known is record), 0)
        return earlier[at]

    def compiled(self, generation: int, compile_id: str) -> Compile | None:
        """Return the compile of an earlier cell by its id and its count of Dynamo's resets."""
        known = (c for c in reversed(self.earlier) if c.generation == generation)
        return next((c for c in known if c.compile_id == compile_id), None)

    def add(self, record: CellRecord) -> None:
        """Make the record of a run the last one, and its compiles known to later runs."""
        self.keep(record)
        self.earlier.extend(
            replace(compile_, cell=record.cell)
            for compile_ in record.compiles
            if compile_.cell is None
        )

        del self.earlier[:-COMPILES_KEPT]

    def keep(self, record: CellRecord) -> None:
        """Make a record the last one, whoever made it; the oldest goes in the end."""
        self.records.append(record)
        del self.records[:-RECORDS_KEPT]

    def forget_compiles(self) -> None:
        """Forget what was compiled before: torch has."""
        self.earlier.clear()

    def reset(self) -> None:
        """Forget all records."""
        self.records.clear()
        self.unbuilt = None
        self.forget_compiles()

    def build(self, events: list[Event], run: Run) -> CellRecord:
        """Return the record of a run, with its findings, and keep it.

        What can't be built is kept as `unbuilt`, so that nothing that was seen is lost.
        """
        from dynamo_nb.record.build import build_record

        self.unbuilt = (events, run)
        run.others, run.earlier = self.others(run.cell), list(self.earlier)
        record = _with_findings(build_record(events, run))
        self.add(record)
        self.unbuilt = None
        return record


def _with_findings(record: CellRecord) -> CellRecord:
    try:
        from dynamo_nb.findings import find

        return replace(record, findings=find(record))
    except Exception as exc:
        message = "".join(traceback.format_exception_only(exc)).strip()
        note = Note(hook="findings", panel="the findings", message=message)
        return replace(record, notes=[*record.notes, note])


def _from_linecache(file: str) -> SourceCell | None:
    match = CELL_FILE.search(file)
    if not match:
        return None
    lines = linecache.getlines(file)
    number = int(match[1]) if match[1] else None
    return SourceCell(file=file, source="".join(lines), number=number)


_session: list[Session] = []


def current() -> Session:
    """Return the process's session."""
    if not _session:
        _session.append(Session())
    return _session[0]
