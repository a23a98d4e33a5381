"""Calls: what each call line of the cell did, over all its runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from dynamo_nb.record.draft import Draft
from dynamo_nb.record.frames import FrameBook, brief_reason
from dynamo_nb.record.places import Places
from dynamo_nb.record.run import Called
from dynamo_nb.record.types import Call, Compile, StackFrame

__all__ = ["CallBook"]

_EntryKey = tuple[int, str]
_Code = tuple[str, str, int]
_Unreached = Callable[[_Code], StackFrame | None]


@dataclass
class _Row:
    compiles: list[_EntryKey] = field(default_factory=list)
    hits: Counter[_EntryKey] = field(default_factory=Counter)
    misses: int = 0
    recompiles: int = 0
    unasked: int = 0
    reason: str = ""
    tensor_calls: int = 0
    uncompiled: str = ""
    code: _Code = ("", "", 0)


class CallBook:
    """Gathers compiles and cache look-ups by call line and function."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._rows: dict[tuple[int, str], _Row] = {}
        self._asked: set[tuple[int, str, int]] = set()

    def compiled(self, draft: Draft) -> None:
        """Note that a compile started."""
        if draft.call_line is None:
            return
        row = self._row(draft.call_line, draft.resume_of or draft.name)
        self._asked.add((draft.call_line, draft.file, draft.first_line))
        row.compiles.append((draft.generation, draft.compile_id))
        row.recompiles += not draft.compile_id.endswith("/0")

    def looked_up(self, compile_id: str, data: dict[str, Any]) -> None:
        """Note a look-up in Dynamo's cache, or many of the same."""
        line = self._places.call_line(data["user_stack"], data["resume_of"])
        if line is None:
            return
        self._asked.add((line, self._places.label(data["file"]), data["first_line"]))
        row = self._row(line, data["resume_of"] or data["name"])
        if data["hit"] and compile_id:
            row.hits[data["generation"], compile_id] += data["count"]
        elif not data["hit"]:
            row.misses += data["count"]

    def refused(self, data: dict[str, Any]) -> None:
        """Note that Dynamo was asked about a frame and did not compile it."""
        line = self._places.call_line(data["user_stack"], data["resume_of"])
        if line is not None:
            self._asked.add((line, self._places.label(data["file"]), data["first_line"]))

    def left_alone(self, data: dict[str, Any]) -> None:
        """Note calls of a function that Dynamo was not asked about, because it gave it up before.

        Those of one line may come in several parts: with tensors, and without.
        """
        line = self._places.call_line(data["user_stack"])
        if line is None:
            return
        row = self._row(line, data["name"])
        row.code = data["name"], self._places.label(data["file"]), data["first_line"]
        row.unasked += data["count"]
        row.tensor_calls += data["count"] if data["has_tensors"] else 0
        row.reason = _left_alone(data["given_up"])

    def called(self, calls: Iterable[Called]) -> None:
        """Find the calls that left no event, because Dynamo leaves their code alone already."""
        lines = {line for line, _ in self._rows}
        for call in calls:
            if call.uncompiled:
                passed = self._row(call.line, call.name)
                passed.unasked, passed.uncompiled = call.count, call.uncompiled
                continue
            asked = (call.line, self._places.label(call.file), call.first_line) in self._asked
            row = self._rows.get((call.line, call.name))
            if asked and row is not None and row.compiles:
                row.unasked = call.count - len(row.compiles)
            elif not asked and (call.given_up or call.line not in lines):
                row = self._row(call.line, call.name)
                row.unasked = call.count
                row.reason = _left_alone(call.given_up)

    def entries_hit(self) -> list[_EntryKey]:
        """Return the entries that were hit, in order of first sight."""
        return list(dict.fromkeys(key for row in self._rows.values() for key in row.hits))

    def finish(
        self, compiles: Mapping[_EntryKey, Compile], frames: FrameBook, unreached: _Unreached
    ) -> list[Call]:
        """Return the calls in the order of their lines.

        `unreached` gives the first work of a code object that Dynamo's trace of it did not come to.
        """
        for line in frames.eager_lines():
            if not any(row_line == line and name for row_line, name in self._rows):
                self._row(line, "")
        first_rows: set[int] = set()
        calls = []
        for (line, name), row in sorted(self._rows.items(), key=lambda item: item[0][0]):
            call = self._call(line, name, row, compiles, frames, line not in first_rows)
            if call.tensor_calls:
                call = msgspec.structs.replace(call, unreached=unreached(row.code))
            if call.name or call.eager_modules:
                calls.append(call)
                first_rows.add(line)
        return calls

    def _call(
        self,
        line: int,
        name: str,
        row: _Row,
        compiles: Mapping[_EntryKey, Compile],
        frames: FrameBook,
        is_first: bool,
    ) -> Call:
        def key_of(entry: _EntryKey) -> str:
            return compiles[entry].key if entry in compiles else entry[1]

        reused = [e for e in row.hits if e in compiles and compiles[e].cell is not None]
        own = [compiles[entry] for entry in row.compiles if entry in compiles]
        skipped = [c for c in own if c.status == "skipped"]
        is_silent = len(skipped) == len(own) and not row.hits and not row.misses
        unasked = row.unasked if is_silent else 0
        return Call(
            line=line,
            name=name,
            compiles=[key_of(entry) for entry in row.compiles],
            hits={key_of(entry): count for entry, count in row.hits.items()},
            hits_from={key_of(entry): compiles[entry].cell or 0 for entry in reused},
            eager=max(0, row.misses - row.recompiles) + len(skipped) + unasked,
            reason=skipped[-1].reason if skipped else row.reason,
            tensor_calls=row.tensor_calls,
            uncompiled=row.uncompiled,
            eager_modules=frames.eager_modules(line, _modules(line, compiles)) if is_first else [],
        )

    def _row(self, line: int, name: str) -> _Row:
        return self._rows.setdefault((line, name), _Row())


def _left_alone(given_up: str) -> str:
    """Say why Dynamo was not asked about a call."""
    if not given_up:
        return "Dynamo was not asked about it"
    return f"Dynamo leaves it alone since an earlier call: {brief_reason(given_up)}"


_SELF = re.compile(r"[LG]\['\w+'\]\.?")


def _modules(line: int, compiles: Mapping[_EntryKey, Compile]) -> set[str]:
    """Return how the names of the modules in the graphs under a call end: `.path (Class)`.

    Paths are known below the module of the function that was compiled, and of a leaf that was
    compiled by itself only the class.
    """
    found: set[str] = set()
    for compiled in compiles.values():
        if compiled.call_line != line or compiled.cell is not None or not compiled.graphs:
            continue
        if compiled.name.endswith(".forward"):
            found.add(f" ({compiled.name.removesuffix('.forward')})")
        nodes = [n for g in compiled.graphs if g.stage == "dynamo" for n in g.nodes]
        for path, kind in (pair for node in nodes for pair in node.module_stack):
            found.add(f".{_SELF.sub('', path, count=1)} ({kind})")
    return found
