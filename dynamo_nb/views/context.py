"""What the makers of sections are given besides the thing itself."""

from __future__ import annotations

from dynamo_nb.record.types import CELL, StackFrame
from dynamo_nb.views.limits import Limits
from dynamo_nb.views.marks import Marks
from dynamo_nb.views.model import Report
from dynamo_nb.views.plain import place

__all__ = ["Context", "inner", "where"]


class Context:
    """The record with its answers, the classes of its lines, and how much to show."""

    def __init__(self, report: Report, marks: Marks, limits: Limits) -> None:
        self.report = report
        self.record = report.record
        self.marks = marks
        self.limits = limits


def where(frame: StackFrame | None) -> str:
    """Return a place, or nothing."""
    return place(frame) if frame else ""


def inner(frames: list[StackFrame]) -> str:
    """Return the innermost line of the cell; without one, the innermost place."""
    cell = [frame for frame in frames if frame.file == CELL] or frames
    return place(cell[-1]) if cell else ""
