"""The frames that Dynamo was asked about, the same ones counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

from dynamo_nb.record.places import Places
from dynamo_nb.record.types import Frame

__all__ = ["FrameBook", "brief_reason"]


class _Key(NamedTuple):
    name: str
    file: str
    first_line: int
    outcome: str
    reason: str
    compile_id: str
    call_line: int | None


class FrameBook:
    """Counts frames by code, outcome and call line; keeps the modules that ran eagerly."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._counts: Counter[_Key] = Counter()
        self._modules: dict[int | None, dict[str, bool]] = {}

    def add(self, data: dict[str, Any]) -> None:
        """Take in one `frame` event."""
        call_line = self._places.call_line(data["user_stack"], data.get("resume_of", ""))
        key = _Key(
            data["name"],
            self._places.label(data["file"]),
            data["first_line"],
            data["outcome"],
            brief_reason(data["reason"]),
            data["compile_id"],
            call_line,
        )
        self._counts[key] += 1
        has_work = not key.reason.startswith("No ops traced")
        for number, module in enumerate(data["modules"] if has_work else ()):
            modules = self._modules.setdefault(call_line, {})
            modules[module] = modules.get(module, False) or number == 0

    def eager_modules(self, call_line: int | None, compiled: Collection[str]) -> list[str]:
        """Return the leaf modules that ran outside every graph under a call.

        Dynamo was asked about some; the others have the same code, and those among them that are
        in a graph ran there. `compiled` are endings of the names of modules in graphs.
        """
        return [
            module
            for module, asked in self._modules.get(call_line, {}).items()
            if asked or not f".{module}".endswith(tuple(compiled))
        ]

    def eager_lines(self) -> list[int]:
        """Return the call lines under which modules ran outside every graph."""
        return sorted(line for line in self._modules if line is not None)

    def finish(self) -> list[Frame]:
        """Return the frames in the order in which they were first seen."""
        return [Frame(**key._asdict(), count=count) for key, count in self._counts.items()]


def brief_reason(reason: str) -> str:
    """Return why a frame was skipped, without what every such reason of torch's says."""
    first = reason.split("\n", 1)[0].strip()
    first = first.removeprefix("Dynamo decided to skip the frame while tracing: ")
    return first.split(" `torch.compile` will skip the frame", 1)[0]
