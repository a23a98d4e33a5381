"""What happened in a cell, in numbers: the one place where they are counted."""

from __future__ import annotations

from dynamo_nb.record.break_places import break_places
from dynamo_nb.record.causes import own_compiles, recompiles
from dynamo_nb.record.types import CellRecord

__all__ = ["counts"]


def counts(record: CellRecord) -> dict[str, int]:
    """Return what happened in a cell, in numbers, by noun.

    Graph breaks are those of `break_places`, each as often as it happened; recompiles are the
    compiles of a code object beyond its first.
    """
    own = own_compiles(record)
    return {
        "graph": sum(graph.stage == "dynamo" for entry in own for graph in entry.graphs),
        "graph break": sum(place.count for place in break_places(record)),
        "recompile": len(recompiles(record)),
        "kernel": sum(len(entry.kernels) for entry in own),
        "guard": sum(len(entry.guards) for entry in own),
        "eager run": sum(call.eager for call in record.calls),
    }
