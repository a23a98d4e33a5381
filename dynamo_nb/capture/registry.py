"""Torch's registry of graph breaks, which ships in the wheel: explanations and hints, offline."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import torch._dynamo
from msgspec import Struct

__all__ = ["Explained", "by_id", "by_kind", "kinds"]

#: What the registry has in place of values that are only known at a break.
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


class Explained(Struct, frozen=True):
    """One kind of graph break: torch's number and name for it, what it says in general."""

    id: str
    kind: str
    explanation: str
    hints: list[str]


def by_kind(kind: str) -> Explained | None:
    """Return what the registry says of a kind (`gb_type`), None when it has none of that name."""
    return _table().get(kind)


def by_id(number: str) -> Explained | None:
    """Return what the registry says of a number such as `GB0059`, None when there is none."""
    found = [item for item in _table().values() if item.id == number.upper()]
    return found[-1] if found else None


def kinds() -> list[str]:
    """Return the names of all kinds."""
    return list(_table())


@functools.cache
def _table() -> dict[str, Explained]:
    """Read `torch/_dynamo/graph_break_registry.json` (2.13); without it there is no entry.

    An entry lists its versions, the newest last; earlier ones may bear another name.
    """
    path = Path(torch._dynamo.__file__).with_name("graph_break_registry.json")
    try:
        registry: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    table: dict[str, Explained] = {}
    for number, versions in registry.items():
        for version in versions:
            item = _explained(number, version)
            if item.explanation or item.kind not in table:
                table[item.kind] = item
    return table


def _explained(number: str, version: dict[str, Any]) -> Explained:
    return Explained(
        id=number,
        kind=version["Gb_type"],
        explanation=_general(version.get("Explanation", "")),
        hints=list(filter(None, map(_general, version.get("Hints", ())))),
    )


def _general(text: str) -> str:
    """Return a text without the values of one break; what is still source code is no text."""
    if text.startswith(('"', "f'", 'f"')) or " " not in text:
        return ""
    while (general := _PLACEHOLDER.sub("…", text)) != text:
        text = general
    return " ".join(text.split())
