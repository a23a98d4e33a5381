"""Steps: Dynamo's walk over the bytecode, with the nodes and guards that each step added."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from dynamo_nb.record.draft import Draft
from dynamo_nb.record.places import Places
from dynamo_nb.record.types import CELL, Frame, Instruction, Step, StepCode, StepFrame, Steps

__all__ = ["finish_steps"]


def finish_steps(draft: Draft, places: Places) -> None:
    """Turn a draft's raw steps into `Steps`; every node and every guard goes to one step."""
    raw = draft.raw_steps
    if raw is None or not raw["steps"]:
        return
    nodes, guards = _nodes_by_step(raw["nodes"]), _guards_by_step(draft, raw["guards"])
    draft.steps = Steps(
        codes=[
            StepCode(
                name=code["name"],
                file=places.label(code["file"]),
                first_line=code["first_line"],
                instructions=[
                    Instruction(**{**item, "frame": places.frame(item["frame"])})
                    for item in code["instructions"]
                ],
            )
            for code in raw["codes"]
        ],
        frames=[StepFrame(**frame) for frame in raw["frames"]],
        values=raw["values"],
        steps=[
            Step(**step, nodes=nodes.get(index, []), guards=guards.get(index, []))
            for index, step in enumerate(raw["steps"])
        ],
        is_cut=raw["is_cut"],
    )
    draft.inlined = list(_inlined(draft, draft.steps))


def _inlined(draft: Draft, steps: Steps) -> Iterator[Frame]:
    """Yield the calls that were traced into, those from the same line of the cell counted."""
    found = Counter(
        (frame.code, _call_line(steps, frame.parent) or draft.call_line)
        for frame in steps.frames
        if frame.parent is not None
    )
    for (index, line), count in found.items():
        code = steps.codes[index]
        yield Frame(
            name=code.name,
            file=code.file,
            first_line=code.first_line,
            outcome="inlined",
            compile_id=draft.compile_id,
            call_line=line,
            count=count,
        )


def _call_line(steps: Steps, caller: int | None) -> int | None:
    """Return the cell's line that led to a call: the innermost of those that are in the cell."""
    while caller is not None:
        step = steps.steps[caller]
        frame = steps.frames[step.frame]
        place = steps.codes[frame.code].instructions[step.instruction].frame
        if place is not None and place.file == CELL:
            return place.line
        caller = frame.parent
    return None


def _nodes_by_step(made: list[tuple[str, int]]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for name, step in made:
        found[step].append(name)
    return found


def _guards_by_step(draft: Draft, made: list[tuple[str, str, int]]) -> dict[int, list[int]]:
    """Return indices of the compile's guards by step.

    Guards that Dynamo makes before it begins (on global state) go to the first step.
    """
    steps: dict[tuple[str, str], int] = {}
    for source, kind, step in made:
        steps.setdefault((source, kind), step)
    found: dict[int, list[int]] = defaultdict(list)
    for index, guard in enumerate(draft.guards):
        found[steps.get((guard.source, guard.kind), 0)].append(index)
    return found
