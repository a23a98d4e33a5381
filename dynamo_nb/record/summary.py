"""The record in one small dict: what a test or a script compares."""

from __future__ import annotations

from typing import Any

from dynamo_nb.record.break_places import break_places
from dynamo_nb.record.causes import recompile_causes
from dynamo_nb.record.counts import counts
from dynamo_nb.record.types import CellRecord

__all__ = ["summary"]


def summary(record: CellRecord) -> dict[str, Any]:
    """Return how the cell ran, in counts and causes.

    `graphs` are those that Dynamo captured while the cell ran, `graph_breaks` the distinct places,
    `recompiles` the compiles of a code object beyond its first. Lines are the cell's; None stands
    for a place outside it.
    """
    numbers = counts(record)
    return {
        "mode": record.mode,
        "graphs": numbers["graph"],
        "graph_breaks": [
            {"line": place.line, "count": place.count} for place in break_places(record)
        ],
        "recompiles": numbers["recompile"],
        "recompile_causes": [
            {
                "line": cause.line,
                "call_line": cause.first.call_line,
                "source": cause.name,
                "was": cause.first.was,
                "now": cause.first.now,
                "count": len(cause.changes),
            }
            for cause in recompile_causes(record)
        ],
        "findings": [
            {
                "code": finding.code,
                "line": finding.line,
                "lines": list(finding.lines),
                "count": finding.count,
                "message": finding.message,
                "advice": finding.advice,
            }
            for finding in record.findings
        ],
        "error": record.error.type if record.error else None,
    }
