"""Guards on what a value has: an attribute, a key, an item."""

from __future__ import annotations

import re

__all__ = ["changed_presence"]

#: How torch writes such a condition (`torch/_dynamo/guards.py`, 2.13), and how Python asks it.
_CONDITIONS = (
    (re.compile(r"(not )?hasattr\((?P<owner>.+), (?P<item>'\w+')\)"), "hasattr({owner}, {item})"),
    (re.compile(r"(not )?___dict_contains\((?P<item>.+), (?P<owner>.+)\)"), "{item} in {owner}"),
    (re.compile(r"(not )?set\.__contains__\((?P<owner>.+), (?P<item>.+)\)"), "{item} in {owner}"),
)


def changed_presence(condition: str, source: str, owner: str) -> tuple[str, str, str] | None:
    """Return the question that a failed condition asks and its answers, then and now.

    `owner` is what a person calls the source. None where the condition asks another question.
    """
    for pattern, question in _CONDITIONS:
        asked = pattern.fullmatch(condition)
        if asked and asked["owner"] == source:
            was = asked[1] is None
            return question.format(owner=owner, item=asked["item"]), str(was), str(not was)
    return None
