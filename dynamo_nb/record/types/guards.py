"""Guards, the symbols they speak of, and what they cost."""

from __future__ import annotations

from dynamo_nb.record.types.base import Data, StackFrame

__all__ = [
    "Guard",
    "GuardCost",
    "GuardCosts",
    "GuardTree",
    "LeafGuard",
    "ShapeGuard",
    "Specialization",
    "Symbol",
]


class Guard(Data, frozen=True):
    """One guard that Dynamo made while it traced a frame.

    `kind` is torch's name (`TENSOR_MATCH`), `source` the guarded expression (`L['x']`), `code` the
    conditions that are checked, `frame` the user line that caused it, `value` what it saw.
    """

    kind: str
    source: str = ""
    origin: str = ""
    code: list[str] = []
    frame: StackFrame | None = None
    user_stack: list[StackFrame] = []
    value: str = ""


class LeafGuard(Data, frozen=True):
    """One check at a place of the guard tree."""

    kind: str
    code: list[str] = []


class GuardTree(Data, frozen=True):
    """The guard manager tree that is run at each call, in the order of its checks."""

    source: str = ""
    manager: str = ""
    accessor: str = ""
    value_type: str = ""
    leaf_guards: list[LeafGuard] = []
    children: list[GuardTree] = []


class GuardCost(Data, frozen=True):
    """What checking one source costs at each look-up, measured with warm CPU caches.

    `managers` counts the guard managers in it: 1 when it is the source alone, more when the time is
    that of all that is reached through it.
    """

    source: str
    microseconds: float
    managers: int = 1


class GuardCosts(Data, frozen=True):
    """What checking the guards of one entry costs, measured: `parts` have the dearest first.

    `microseconds` is one whole check, `call_microseconds` one whole call that hits the entry.
    """

    callee: str
    entry: str
    microseconds: float
    call_microseconds: float
    parts: list[GuardCost] = []

    @property
    def share(self) -> float:
        """The part of a call that is spent in guards, from 0 to 1."""
        return min(1.0, self.microseconds / self.call_microseconds)

    def __str__(self) -> str:
        """Return the measurement as text."""
        from dynamo_nb.views.costs import to_text

        return to_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the measurement as a notebook shows it."""
        from dynamo_nb.views.costs import to_html

        return to_html(self)


class ShapeGuard(Data, frozen=True):
    """One condition on symbolic sizes, and the user line that asked for it."""

    expr: str
    frame: StackFrame | None = None
    user_stack: list[StackFrame] = []


class Symbol(Data, frozen=True):
    """One symbolic size or scalar: where it comes from, the value seen, its range."""

    name: str
    sources: list[str] = []
    hint: str = ""
    range: str = ""
    frame: StackFrame | None = None


class Specialization(Data, frozen=True):
    """A symbolic size or scalar that became a constant, and the user line that made it so."""

    symbol: str
    sources: list[str] = []
    value: str = ""
    reason: str = ""
    frame: StackFrame | None = None
