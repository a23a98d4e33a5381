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
    """Return a place for a table: outside the cell without the file's folder; or nothing."""
    return place(frame).rpartition("/")[2] if frame else ""


def inner(frames: list[StackFrame]) -> str:
    """Return the innermost line of the cell; without one, the innermost place outside torch."""
    cell = [frame for frame in frames if frame.file == CELL]
    own = [frame for frame in frames if not frame.file.startswith("torch/")]
    return where(next((found[-1] for found in (cell, own, frames) if found), None))
