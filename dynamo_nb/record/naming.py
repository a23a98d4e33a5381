"""Guard sources in the user's own terms."""

from __future__ import annotations

import re

__all__ = ["guarded_through", "readable"]

_SCOPES = re.compile(r"\b[LG]\['([^']*)'\]")
_MEMBERS = re.compile(r"\.(?:_modules|_parameters|_buffers|__dict__)\['([^']*)'\]")
#: How Dynamo names a module whose globals it guards on from another one.
_MODULE = re.compile(r"\b__import_(\w+)\.")
#: What a graph break leaves on the stack for its resume function.
_STACK = re.compile(r"\b___stack\d+\b")
_KEYS = re.compile(r"list\(dict\.keys\((.+?)\)\)")


def readable(source: str) -> str:
    """Return a guard source as the user's code has it: `L['self'].counter` is `self.counter`."""
    text = _SCOPES.sub(r"\1", source)
    text = _MODULE.sub(lambda module: _module(module[1]), text)
    text = _MEMBERS.sub(lambda member: _member(member[1]), text)
    text = _KEYS.sub(r"list(\1)", text)
    text = _STACK.sub("value kept across the graph break", text)
    for plumbing in (".__func__", ".__code__"):
        text = text.replace(plumbing, "")
    return text.replace(".__defaults__", " default")


def guarded_through(source: str) -> str:
    """Return the source that a part of it stands for: a function for its code, a dict for a key."""
    key = _KEYS.match(source)
    return key[1] if key else source.removesuffix(".__code__")


def _module(name: str) -> str:
    return "" if name == "__main__" else f"{name.replace('_dot_', '.')}."


def _member(name: str) -> str:
    return f".{name}" if name.isidentifier() else f"[{name}]"
