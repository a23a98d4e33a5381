"""`--target` and `--interpret`: what the runner does for them, around the cell and after it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from dynamo_nb.events import Event
from dynamo_nb.options import Options
from dynamo_nb.target import client
from dynamo_nb.target.devices import DEVICES
from dynamo_nb.target.jobs import COMPILE, INTERPRET, Answer, Job

__all__ = ["Targeting"]

#: What no worker can know, whatever the graph.
_UNKNOWN = (
    "run times: nothing was run",
    "which configuration an autotuner would choose: the first that fits was compiled",
    "what cuBLAS, cuDNN and the like would launch for an extern call",
)

#: Seconds after which an interpreter is given up: it is there for small inputs.
PATIENCE = 120


class _Sent(NamedTuple):
    """A graph on its way to a target: None where it can't travel, or nothing more was asked."""

    graph: Any
    spec: str
    compiled: Future[Answer] | None
    interpreted: Future[Answer] | None


class Targeting:
    """Sends a cell's graphs to the workers as Dynamo makes them, and collects their answers."""

    def __init__(self, options: Options) -> None:
        from dynamo_nb.capture.target_graphs import TargetGraphs

        self._options = options
        self._sent: list[_Sent] = []
        self.hook = TargetGraphs(self._take, with_inputs=options.interpret).hook
        kinds = [COMPILE, INTERPRET] if options.interpret else [COMPILE]
        for spec in options.target:
            for kind in kinds:
                client.worker_for(spec, kind).start()

    @classmethod
    def asked(cls, options: Options) -> Targeting | None:
        """Return what the magic's line asks for, with its workers under way."""
        return cls(options) if options.target else None

    def _take(self, graph: Any) -> None:
        job = Job(
            graph=graph.graph,
            ambient=graph.ambient,
            settings=graph.settings,
            sass=self._options.sass,
        )
        values = Job(graph=job.graph, ambient=job.ambient, inputs=graph.inputs)
        for spec in self._options.target:
            compiled = interpreted = None
            if not graph.problem:
                compiled = client.worker_for(spec, COMPILE).submit(job)
                if graph.inputs is not None:
                    interpreted = client.worker_for(spec, INTERPRET).submit(values)
            self._sent.append(_Sent(graph, spec, compiled, interpreted))

    def events(self, say: Callable[[str], None]) -> list[Event]:
        """Return what came of each graph; `say` is told what is waited for."""
        return [
            Event(
                name="target",
                compile_id=sent.graph.compile_id,
                generation=sent.graph.generation,
                data=self._data(sent, say),
            )
            for sent in self._sent
        ]

    def _data(self, sent: _Sent, say: Callable[[str], None]) -> dict[str, Any]:
        graph, device = sent.graph, DEVICES[sent.spec]
        figures = {"bandwidth": device.bandwidth, "flops": device.flops}
        answer = Answer()
        if sent.compiled is not None:
            say(f"compiling for {sent.spec}")
            answer = _awaited(sent.compiled, client.worker_for(sent.spec, COMPILE), None)
        return {
            "spec": sent.spec,
            "device": device.name,
            "properties": {**device.properties(), **figures},
            "sources": device.cited,
            "unknown": list(_UNKNOWN),
            "answer": answer.data,
            "error": graph.problem or answer.error,
            "node": graph.node or answer.node,
            "places": answer.places,
            "inputs": graph.sources,
            "interpreted": self._interpreted(sent, say) if self._options.interpret else None,
        }

    def _interpreted(self, sent: _Sent, say: Callable[[str], None]) -> dict[str, Any]:
        if sent.interpreted is None:
            return _uninterpreted(sent.graph.problem or sent.graph.unchecked)
        say(f"interpreting the kernels for {sent.spec}")
        worker = client.worker_for(sent.spec, INTERPRET)
        answer = _awaited(sent.interpreted, worker, PATIENCE)
        return answer.data or _uninterpreted(answer.error)


def _uninterpreted(reason: str) -> dict[str, Any]:
    return {"status": "not repeated", "reason": reason}


def _awaited(future: Future[Answer], worker: client.Worker, seconds: float | None) -> Answer:
    """Return a worker's answer; one that is interrupted, or takes too long, is ended."""
    try:
        return future.result(seconds)
    except KeyboardInterrupt:
        worker.stop()
        return Answer(error="it was interrupted")
    except TimeoutError:
        worker.stop()
        return Answer(error=f"it took more than {seconds:.0f} s")
    except Exception as exc:
        return Answer(error="".join(traceback.format_exception_only(exc)).strip())
