"""Guards on identity in words: the object's or type's name where torch writes an id."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["without_addresses"]

#: `torch/_dynamo/guards.py: GuardBuilder.ID_MATCH` and `TYPE_MATCH` (2.13).
_IDENTITY = re.compile(
    r"(?P<check>___check_(?P<what>obj|type)_id)\((?P<source>.+?), (?P<id>\d+)\)"
    r"(?:, type=<class '(?P<type>.*?)'>)?"
)
#: `OutputGraph.install_global_by_id` names a global by its value's id: `Foo_140212_c0`.
_GLOBAL_BY_ID = re.compile(r"_\d{9,}_c(\d+)\b")
_HEX = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")


def without_addresses(text: str, name_of: Callable[[str], str] | None = None) -> str:
    """Return a guard's code or source with names in place of ids and addresses.

    `name_of` gives the text of the object that a source held at compile time, empty where that is
    not known; then an object goes by its type.
    """

    def named(match: re.Match[str]) -> str:
        kind = match["type"] or ""
        if match["what"] == "type":
            name = kind.removeprefix("__main__.").removeprefix("builtins.") or "another type"
        else:
            known = name_of(match["source"]) if name_of is not None else ""
            name = known or (f"{kind.rsplit('.', 1)[-1]} object" if kind else "another object")
        return f"{match['check']}({match['source']}, {name})"

    text = _IDENTITY.sub(named, text)
    return _HEX.sub("0x…", _GLOBAL_BY_ID.sub(r"_c\1", text))
