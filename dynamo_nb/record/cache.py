"""The cache as it works: each code object's entries, which calls they served, who compiled them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_nb.record.places import Places
from dynamo_nb.record.types import CacheEntry, CacheState, Call, Compile

__all__ = ["cache_states"]


def cache_states(
    caches: list[dict[str, Any]],
    known: Mapping[tuple[int, str], Compile],
    calls: list[Call],
    places: Places,
) -> list[CacheState]:
    """Return the caches that the capture read, in the terms of the record.

    `known` holds the compiles of this run and of earlier cells, by generation and id.
    """
    return [
        CacheState(
            name=_name(cache, known),
            file=places.label(cache["file"]),
            first_line=cache["first_line"],
            resume_of=cache["resume_of"],
            entries=[_entry(entry, known, calls) for entry in cache["entries"]],
        )
        for cache in caches
    ]


def _name(cache: dict[str, Any], known: Mapping[tuple[int, str], Compile]) -> str:
    """Return what the entries were compiled for: torch's wrapper around its modules serves many."""
    compiles = (known.get((entry["generation"], entry["entry"])) for entry in cache["entries"])
    names = dict.fromkeys(compiled.name for compiled in compiles if compiled is not None)
    return ", ".join(sorted(names)) or str(cache["name"])


def _entry(
    entry: dict[str, Any], known: Mapping[tuple[int, str], Compile], calls: list[Call]
) -> CacheEntry:
    compiled = known.get((entry["generation"], entry["entry"]))
    key = compiled.key if compiled is not None else entry["entry"]
    served = [call for call in calls if key in call.hits]
    return CacheEntry(
        entry=key,
        cell=compiled.cell if compiled is not None else None,
        hits=sum(call.hits[key] for call in served),
        lines=sorted({call.line for call in served}),
        invalidated=entry["invalidated"],
    )
