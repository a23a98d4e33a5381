"""Bytecode, and the steps in which Dynamo interpreted it."""

from __future__ import annotations

from msgspec import Struct

from dynamo_nb.record.types.base import Data, StackFrame

__all__ = ["Bytecode", "Instruction", "Step", "StepCode", "StepFrame", "Steps"]


class Instruction(Data, frozen=True):
    """One bytecode instruction. `argument` is `dis`'s text for its argument."""

    offset: int
    opname: str
    argument: str = ""
    frame: StackFrame | None = None


class Bytecode(Data, frozen=True):
    """A frame's instructions before Dynamo, and those that replace them."""

    before: list[Instruction] = []
    after: list[Instruction] = []


class StepCode(Data, frozen=True):
    """A code object whose instructions Dynamo interpreted, as Dynamo has them."""

    name: str
    file: str
    first_line: int
    instructions: list[Instruction] = []


class StepFrame(Data, frozen=True):
    """One interpreted call: `code` indexes `Steps.codes`, `parent` is the step that called it."""

    code: int
    parent: int | None = None


class Step(Struct, frozen=True, array_like=True):
    """One interpreted instruction and the state ahead of it.

    `frame` indexes `Steps.frames`, `instruction` that frame's code. `stack` and `locals` hold
    indices of `Steps.values`; `locals` has only what changed since the frame's step before, -1 for
    a deleted name. `nodes` and `guards` are what this instruction added: names of nodes of the
    Dynamo graph, indices of `Compile.guards`. `raised` names the exception that ended it.
    """

    frame: int
    instruction: int
    stack: list[int] = []
    locals: dict[str, int] = {}
    nodes: list[str] = []
    guards: list[int] = []
    raised: str = ""


class Steps(Data, frozen=True):
    """What Dynamo interpreted in the last attempt at a compile, in order.

    `values` are the words for what variable trackers stand for. `is_cut` says that there were more
    steps than are kept.
    """

    codes: list[StepCode] = []
    frames: list[StepFrame] = []
    values: list[str] = []
    steps: list[Step] = []
    is_cut: bool = False

    def __str__(self) -> str:
        """Return the walk as text."""
        from dynamo_nb.views.steps import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        """Return the walk as a notebook shows it."""
        from dynamo_nb.views.steps import to_html

        return to_html(self)
