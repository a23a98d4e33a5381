"""Guard sources, places and files in the user's own terms."""

from __future__ import annotations

import re
from typing import overload

from msgspec.structs import replace

from dynamo_nb.record.types import CELL, StackFrame

__all__ = [
    "KEPT_VALUE",
    "cell_file",
    "file_text",
    "guarded_through",
    "of_cell",
    "place",
    "readable",
]

_SCOPES = re.compile(r"\b[LG]\['([^']*)'\]")
_MEMBERS = re.compile(r"\.(?:_modules|_parameters|_buffers|__dict__)\['([^']*)'\]")
#: How Dynamo names a module whose globals it guards on from another one.
_MODULE = re.compile(r"\b__import_(\w+)\.")
#: What a graph break leaves on the stack for its resume function.
KEPT_VALUE = "value kept across the graph break"
_STACK = re.compile(r"\b___stack\d+\b")
#: A NumPy array, which Dynamo wraps in a tensor; a tensor's words are said in NumPy's.
_ARRAY = re.compile(r"___from_numpy\(((?:[^()]|\(\))+)\)(\.size\(\)|\.dim\(\))?")
_OF_ARRAYS = {".size()": ".shape", ".dim()": ".ndim"}
_KEYS = re.compile(r"list\(dict\.keys\((.+?)\)\)")


def readable(source: str) -> str:
    """Return a guard source as the user's code has it: `L['self'].counter` is `self.counter`."""
    text = _SCOPES.sub(r"\1", source)
    text = _MODULE.sub(lambda module: _module(module[1]), text)
    text = _MEMBERS.sub(lambda member: _member(member[1]), text)
    text = _KEYS.sub(r"list(\1)", text)
    text = _ARRAY.sub(lambda array: array[1] + _OF_ARRAYS.get(array[2] or "", ""), text)
    text = _STACK.sub(KEPT_VALUE, text)
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


_OTHER_CELL = re.compile(r"<cell (\d+)>")


def cell_file(number: int | None) -> str:
    """Return the name under which another cell of the notebook appears in a record."""
    return f"<cell {number}>" if number else "<other cell>"


@overload
def of_cell(frame: StackFrame, number: int | None) -> StackFrame: ...
@overload
def of_cell(frame: StackFrame | None, number: int | None) -> StackFrame | None: ...
def of_cell(frame: StackFrame | None, number: int | None) -> StackFrame | None:
    """Return a place in the cell of that number as the record of another cell names it."""
    if frame is None or frame.file != CELL:
        return frame
    return replace(frame, file=cell_file(number))


def file_text(file: str) -> str:
    """Return a file's name for a person: `cell [3]`, `model.py`."""
    other = _OTHER_CELL.fullmatch(file)
    if other:
        return f"cell [{other[1]}]"
    return {CELL: "the cell", cell_file(None): "another cell"}.get(file, file)


def place(frame: StackFrame) -> str:
    """Return where a frame is: `line 6`, `line 6 of cell [3]`, or `model.py:6` outside cells."""
    if frame.file == CELL:
        return f"line {frame.line}"
    text = file_text(frame.file)
    if text != frame.file:
        return f"line {frame.line} of {text}" if frame.line else text
    return f"{text}:{frame.line}" if frame.line else text
