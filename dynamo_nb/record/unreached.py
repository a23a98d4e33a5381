"""What a traced call did not come to: the work that Dynamo has never seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dynamo_nb.record.naming import cell_file, of_cell
from dynamo_nb.record.types import CELL, Compile, Instruction, StackFrame, StepCode, Steps

__all__ = ["code_key", "first_unreached"]

#: Instructions that may be work on a tensor: calls and operators.
_WORK = ("CALL", "BINARY_", "INPLACE_", "UNARY_")
_NO_WORK = ("UNARY_NOT", "CALL_INTRINSIC_1")

_CodeKey = tuple[str, str, int]


def code_key(compiled: Compile) -> _CodeKey:
    """Return what tells a compile's code object from others, as a later cell names it."""
    is_other = compiled.file == CELL and compiled.cell is not None
    file = cell_file(compiled.cell) if is_other else compiled.file
    return compiled.name, file, compiled.first_line


def first_unreached(compiles: Iterable[Compile], key: _CodeKey) -> StackFrame | None:
    """Return the first work of a skipped function that the traced call did not come to.

    Code that only raises is none. None, too, where nothing is known of the function.
    """
    known = [c for c in compiles if c.status == "skipped" and c.steps and code_key(c) == key]
    if not known or known[-1].steps is None:
        return None
    frame = min(_unreached(known[-1].steps), key=lambda frame: frame.line, default=None)
    return frame if known[-1].cell is None else of_cell(frame, known[-1].cell)


def _unreached(steps: Steps) -> Iterator[StackFrame]:
    if steps.is_cut or not steps.codes:
        return
    reached = {(steps.frames[step.frame].code, step.instruction) for step in steps.steps}
    for number, code in enumerate(steps.codes):
        if code.file == steps.codes[0].file:
            missing = [
                instruction
                for index, instruction in enumerate(code.instructions)
                if (number, index) not in reached
            ]
            yield from _work(code, missing)


def _work(code: StepCode, missing: list[Instruction]) -> Iterator[StackFrame]:
    raising = {
        line
        for instruction in missing
        if instruction.opname == "RAISE_VARARGS" and instruction.frame is not None
        for line in range(
            instruction.frame.line, (instruction.frame.end_line or instruction.frame.line) + 1
        )
    }
    for instruction in missing:
        frame = instruction.frame
        if frame is None or frame.line in raising or instruction.opname in _NO_WORK:
            continue
        if instruction.opname.startswith(_WORK) and frame.line >= code.first_line:
            yield frame
