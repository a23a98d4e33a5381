"""Dynamo's walk over the bytecode as text and as a table: one row for each instruction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from markupsafe import Markup

from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import Instruction, Step, Steps
from dynamo_nb.views.plain import brief, clean, clip, place, plural, scrub

__all__ = ["StepRow", "own_rows", "rows", "steps_text", "to_html", "to_text"]

_SHOWN = 200  # steps, in what a notebook shows
_WIDTH = 110
_TOP = 3  # values of the stack, the topmost
_VALUE = 40


class StepRow(NamedTuple):
    """One interpreted instruction: how deep it is inlined, what it met, changed and added."""

    instruction: Instruction
    depth: int
    stack: list[str]
    changed: dict[str, str]
    added: list[str]

    @property
    def name(self) -> str:
        """The instruction with its argument, behind a mark for each call that it is inside of."""
        return f"{'> ' * self.depth}{self.instruction.opname} {self.instruction.argument}".rstrip()

    @property
    def where(self) -> str:
        """The instruction's place, outside the cell without the file's folder."""
        frame = self.instruction.frame
        return place(frame).rpartition("/")[2] if frame else ""

    @property
    def effect(self) -> str:
        """What the instruction did, in words."""
        values = [f"{name} = {value or 'deleted'}" for name, value in self.changed.items()]
        return "; ".join([*values, *self.added])

    @property
    def top(self) -> str:
        """The stack ahead of the instruction, its top at the right."""
        more = "… " if len(self.stack) > _TOP else ""
        return more + ", ".join(brief(readable(value), _VALUE) for value in self.stack[-_TOP:])


def rows(steps: Steps) -> Iterator[StepRow]:
    """Yield the steps in the order in which Dynamo took them."""
    depths: list[int] = []
    for frame in steps.frames:
        parent = None if frame.parent is None else steps.steps[frame.parent].frame
        depths.append(0 if parent is None else depths[parent] + 1)
    following = _following(steps)
    for index, step in enumerate(steps.steps):
        after = following.get(index)
        yield StepRow(
            instruction=steps.codes[steps.frames[step.frame].code].instructions[step.instruction],
            depth=depths[step.frame],
            stack=[steps.values[value] for value in step.stack],
            changed={
                name: brief(readable(steps.values[value]), _VALUE) if value >= 0 else ""
                for name, value in (after.locals if after else {}).items()
            },
            added=list(_added(step)),
        )


def own_rows(steps: Steps) -> list[StepRow]:
    """Return the steps in the file that the compiled function is in: it and its helpers.

    How many instructions a library's code has also depends on Python's patch release.
    """
    files = [steps.codes[frame.code].file for frame in steps.frames]
    pairs = zip(rows(steps), steps.steps, strict=True)
    return [row for row, step in pairs if files[step.frame] == files[0]]


def _following(steps: Steps) -> dict[int, Step]:
    """Return the next step of the same frame, by step: it has what this one left."""
    last: dict[int, int] = {}
    found: dict[int, Step] = {}
    for index, step in enumerate(steps.steps):
        if step.frame in last:
            found[last[step.frame]] = step
        last[step.frame] = index
    return found


def _added(step: Step) -> Iterator[str]:
    if step.nodes:
        yield f"adds {', '.join(step.nodes)}"
    if step.guards:
        yield plural(len(step.guards), "guard")
    if step.raised:
        yield f"raised {step.raised}"


def steps_text(steps: Steps) -> str:
    """Return how many steps there are: `71 instructions, 4 inlined calls`."""
    inlined = len(steps.frames) - 1
    cut = "more than " if steps.is_cut else ""
    calls = f", {plural(inlined, 'inlined call')}" if inlined > 0 else ""
    return f"{cut}{plural(len(steps.steps), 'instruction')}{calls}"


def to_text(steps: Steps) -> str:
    """Return the walk as plain text."""
    lines = [f"{steps_text(steps)}, as Dynamo interpreted them"]
    before = ""
    for _, row in zip(range(_SHOWN), rows(steps), strict=False):
        where = "" if row.where == before else row.where
        before = row.where
        offset = row.instruction.offset if row.instruction.offset >= 0 else ""
        lines.append(
            clip(f"  {where:<18}{offset:>5}  {row.name:<26}  {row.effect:<24}  [{row.top}]", _WIDTH)
        )
    return scrub(clean("\n".join([*lines, *_more(steps)])))


def to_html(steps: Steps) -> str:
    """Return the walk as a table that needs neither script nor style sheet."""
    cell = Markup('<td style="text-align:left">{}</td>')
    line = Markup("<tr>{}</tr>")
    head = ("line", "offset", "instruction", "stack", "did")
    heads = line.format(Markup("").join(Markup("<th>{}</th>").format(name) for name in head))
    body = Markup("").join(
        line.format(Markup("").join(cell.format(scrub(clean(str(text)))) for text in texts))
        for _, row in zip(range(_SHOWN), rows(steps), strict=False)
        for texts in [(row.where, row.instruction.offset, row.name, row.top, row.effect)]
    )
    more = Markup("").join(Markup("<p>{}</p>").format(text) for text in _more(steps))
    return str(
        Markup("<div><p><b>{}</b></p><table>{}{}</table>{}</div>").format(
            steps_text(steps), heads, body, more
        )
    )


def _more(steps: Steps) -> Iterator[str]:
    left = len(steps.steps) - _SHOWN
    if left > 0:
        yield f"… {plural(left, 'more instruction')}"
