"""Guard sources in the user's own terms."""

from __future__ import annotations

import re

__all__ = ["readable"]

_SCOPES = re.compile(r"\b[LG]\['([^']*)'\]")
_MEMBERS = re.compile(r"\.(?:_modules|_parameters|_buffers|__dict__)\['([^']*)'\]")


def readable(source: str) -> str:
    """Return a guard source as the user's code has it: `L['self'].counter` is `self.counter`."""
    text = _SCOPES.sub(r"\1", source)
    text = _MEMBERS.sub(r".\1", text)
    return text.replace(".__func__", "").replace(".__defaults__", " default")
