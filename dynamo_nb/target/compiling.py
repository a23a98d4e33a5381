"""A job, done: a graph's kernels for the absent GPU, compiled to binaries. In the worker only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from dynamo_nb.events import Event
from dynamo_nb.target import pretence, trouble
from dynamo_nb.target.choices import Choices
from dynamo_nb.target.devices import DEVICES
from dynamo_nb.target.jobs import Job

__all__ = ["Compiling"]


class _Kernel:
    """Stands in the output code for a kernel; the code is imported, never called."""

    def run(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("a kernel for an absent GPU can't be launched")


class Compiling:
    """Does jobs for one target."""

    def __init__(self, spec: str) -> None:
        self._device = DEVICES[spec]
        if self._device.backend == "hip":
            pretence.as_amd()
        self._compiled: dict[tuple[str, bool], dict[str, Any]] = {}
        pretence.pretend(self._device, lambda *_: _Kernel())
        self._choices = Choices(self._device)
        self._choices.install()

    def warm_up(self) -> None:
        """Compile something small: torch and triton import and set up much at their first use."""
        from torch import fx

        from dynamo_nb.capture import graph_text

        def doubled(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        module = fx.symbolic_trace(doubled)
        for node in module.graph.nodes:
            node.meta["example_value"] = torch.empty(8)
        text = graph_text.pack(module)
        self(Job(graph=text))

    def __call__(self, job: Job) -> dict[str, Any]:
        """Return all that became of a graph, as plain data."""
        from dynamo_nb.capture import arrived_operators, graph_text, portable
        from dynamo_nb.target import variables
        from dynamo_nb.target.lower import lower

        portable.apply(job.ambient)
        self._choices.made.clear()
        taken = graph_text.unpack(job.graph)
        lowered = lower(taken, job.settings, [variables.HOOK])
        calls = arrived_operators.unknown_calls(taken.outcomes)
        return {
            "operators": [(call.name, call.node, call.places) for call in calls],
            "untrained": lowered.untrained,
            "events": [(event.name, event.data) for event in lowered.events],
            "notes": [(note.hook, note.panel, note.message) for note in lowered.notes],
            "unknown": list(self._choices.made),
            "output_code": lowered.output_code,
            "binaries": list(self._binaries(lowered.events, job.sass)),
        }

    def _binaries(self, events: list[Event], sass: bool) -> Iterator[dict[str, Any]]:
        for event in events:
            defined = _triton_source(event.data["code"]) if event.name == "kernel" else None
            if defined is not None:
                place = {"name": event.data["name"], "direction": event.data["direction"]}
                yield {**place, **self._binary(*defined, sass)}

    def _binary(self, function: str, source: str, sass: bool) -> dict[str, Any]:
        from dynamo_nb.target.binary import compiled

        key = source, sass
        if key not in self._compiled:
            try:
                self._compiled[key] = compiled(function, source, self._device, sass=sass)
            except Exception as exc:
                return {"error": trouble.of_a_kernel(exc)}
        return self._compiled[key]


def _triton_source(code: str) -> tuple[str, str] | None:
    """Return a kernel's function and source from `async_compile.triton('name', '''source''')`."""
    try:
        call = ast.parse(code.strip(), mode="eval").body
    except SyntaxError:
        return None
    if isinstance(call, ast.Call) and ast.unparse(call.func) == "async_compile.triton":
        function, source = (ast.literal_eval(argument) for argument in call.args[:2])
        return function, source.strip("\n")  # the lines of the record's kernel code
    return None
