"""A job, done: a graph's kernels for the absent GPU, compiled to binaries. In the worker only."""

from __future__ import annotations

import traceback
from typing import Any

import torch

from dynamo_nb.target import pretence
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
        self._sources: dict[str, str] = {}
        self._compiled: dict[tuple[str, str, bool], dict[str, Any]] = {}
        pretence.pretend(self._device, self._on_kernel)

    def _on_kernel(self, name: str, source: str) -> _Kernel:
        self._sources[name] = source
        return _Kernel()

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
        from dynamo_nb.capture import graph_text, portable
        from dynamo_nb.target.lower import lower

        portable.apply(job.ambient)
        self._sources.clear()
        lowered = lower(graph_text.unpack(job.graph), job.settings)
        return {
            "events": [(event.name, event.data) for event in lowered.events],
            "notes": [(note.hook, note.panel, note.message) for note in lowered.notes],
            "output_code": lowered.output_code,
            "kernels": {
                name: self._binary(name, source, job.sass) for name, source in self._sources.items()
            },
        }

    def _binary(self, name: str, source: str, sass: bool) -> dict[str, Any]:
        from dynamo_nb.target.binary import compiled

        key = name, source, sass
        if key not in self._compiled:
            try:
                self._compiled[key] = compiled(name, source, self._device, sass=sass)
            except Exception as exc:
                said = "".join(traceback.format_exception_only(exc)).strip()
                return {"error": said.splitlines()[0]}
        return self._compiled[key]
