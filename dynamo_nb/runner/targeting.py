"""`--target`: what the runner does for it, around the cell and after it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from dynamo_nb.events import Event
from dynamo_nb.options import Options
from dynamo_nb.record.types import Note
from dynamo_nb.target import client
from dynamo_nb.target.devices import DEVICES
from dynamo_nb.target.jobs import Answer, Job

__all__ = ["Targeting"]

#: What no worker can know, whatever the graph.
_UNKNOWN = (
    "run times: nothing was run",
    "which configuration an autotuner would choose: the first that fits was compiled",
    "what cuBLAS, cuDNN and the like would launch for an extern call",
)
_NOTHING = "the cell compiled no graph anew: run it with --fresh to take its graphs to the target"


class Targeting:
    """Sends a cell's graphs to the workers as Dynamo makes them, and collects their answers."""

    def __init__(self, specs: list[str], *, sass: bool) -> None:
        from dynamo_nb.capture.target_graphs import TargetGraphs

        self._specs = specs
        self._sass = sass
        self._jobs: list[tuple[Any, str, Future[Answer] | None]] = []
        self.hook = TargetGraphs(self._take).hook
        for spec in specs:
            client.worker_for(spec).start()

    @classmethod
    def asked(cls, options: Options) -> Targeting | None:
        """Return what the magic's line asks for, with its workers under way."""
        return cls(options.target, sass=options.sass) if options.target else None

    def _take(self, graph: Any) -> None:
        job = Job(
            graph=graph.graph, ambient=graph.ambient, settings=graph.settings, sass=self._sass
        )
        for spec in self._specs:
            future = None if graph.problem else client.worker_for(spec).submit(job)
            self._jobs.append((graph, spec, future))

    def events(self, say: Callable[[str], None]) -> list[Event]:
        """Return what came of each graph; `say` is told what is waited for."""
        return [
            Event(
                name="target",
                compile_id=graph.compile_id,
                generation=graph.generation,
                data=_data(spec, graph, self._outcome(spec, future, say)),
            )
            for graph, spec, future in self._jobs
        ]

    @property
    def notes(self) -> list[Note]:
        """What the report lacks: there was no graph to take anywhere."""
        if self._jobs:
            return []
        panel = f"kernels for {', '.join(self._specs)}"
        return [Note(hook="target-graphs", panel=panel, message=_NOTHING)]

    def _outcome(
        self, spec: str, future: Future[Answer] | None, say: Callable[[str], None]
    ) -> Answer:
        if future is None:
            return Answer()
        try:
            if not future.done():
                say(f"compiling for {spec}")
            return future.result()
        except KeyboardInterrupt:
            client.worker_for(spec).stop()
            return Answer(error="it was interrupted")
        except Exception as exc:
            return Answer(error="".join(traceback.format_exception_only(exc)).strip())


def _data(spec: str, graph: Any, answer: Answer) -> dict[str, Any]:
    device = DEVICES[spec]
    return {
        "spec": spec,
        "device": device.name,
        "properties": {**device.properties(), "bandwidth": device.bandwidth, "flops": device.flops},
        "sources": device.sources,
        "unknown": list(_UNKNOWN),
        "answer": answer.data,
        "error": graph.problem or answer.error,
    }
