"""Steps: Dynamo's walk over the bytecode, with the nodes and guards that each step added."""

from __future__ import annotations

from collections import defaultdict

from dynamo_nb.record.draft import Draft
from dynamo_nb.record.places import Places
from dynamo_nb.record.types import Instruction, Step, StepCode, StepFrame, Steps

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
