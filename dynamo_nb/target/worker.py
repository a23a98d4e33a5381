"""The process that stands for an absent GPU: `python -m dynamo_nb.target.worker SPEC KIND`.

It reads jobs from stdin, one pickle each. On what was stdout it says that it has taken one, and
then answers it. What torch prints goes nowhere.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import traceback
from typing import IO, Any

from dynamo_nb.target import trouble
from dynamo_nb.target.jobs import INTERPRET, Answer, Job

__all__ = ["main"]


def main() -> None:
    """Load what the target needs, say so, then do one job after the other."""
    answers = os.fdopen(os.dup(1), "wb")
    _silence()
    with tempfile.TemporaryDirectory(prefix="dynamo_nb-") as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        os.environ["TRITON_CACHE_DIR"] = f"{folder}/triton"
        try:
            do = _ready(*sys.argv[1:3])
        except Exception as exc:
            _say(answers, Answer(error=trouble.of_a_graph(exc)))
            return
        _say(answers, Answer())
        while (job := _next()) is not None:
            _say(answers, Answer())  # taken
            _say(answers, _answered(do, job))


def _ready(spec: str, kind: str) -> Any:
    """Return what does a job, with torch and triton loaded and warm."""
    from dynamo_nb.target import shim

    if kind == INTERPRET:
        os.environ["TRITON_INTERPRET"] = "1"  # triton asks once, at its import
    shim.load()
    return _interpreting(spec) if kind == INTERPRET else _compiling(spec)


def _compiling(spec: str) -> Any:
    from dynamo_nb.target.compiling import Compiling

    compiling = Compiling(spec)
    compiling.warm_up()
    return compiling


def _interpreting(spec: str) -> Any:
    from dynamo_nb.target.interpreting import Interpreting

    return Interpreting(spec)


def _next() -> bytes | None:
    """Return the next job, still packed: it may hold what can't be unpacked here."""
    try:
        packed: bytes = pickle.load(sys.stdin.buffer)
    except EOFError:
        return None
    return packed


def _answered(do: Any, packed: bytes) -> Answer:
    try:
        job: Job = pickle.loads(packed)
        return Answer(data=do(job))
    except Exception as exc:
        return Answer(
            error=trouble.of_a_graph(exc),
            detail=traceback.format_exc(),
            node=trouble.node_of(exc),
            places=trouble.places_of(exc),
        )


def _say(answers: IO[bytes], answer: Answer) -> None:
    pickle.dump(answer, answers)
    answers.flush()


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)


if __name__ == "__main__":
    from dynamo_nb.target import worker

    worker.main()
