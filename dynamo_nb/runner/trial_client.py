"""The notebook's end of the trials: the process that runs them, and its time limit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from dynamo_nb.record.trials import Mend, Trial
from dynamo_nb.runner.trial_worker import READY, Job

__all__ = ["Progress", "Worker"]

#: Told what is tried next.
Progress = Callable[[str], None]

#: Seconds in which a new process must be ready: it imports torch and compiles something small.
_READY_WITHIN = 300.0


class Worker:
    """The process that runs the trials, one after the other, each within `timeout` seconds."""

    def __init__(self, job: Job, folder: Path, say: Progress, timeout: float) -> None:
        from dynamo_nb.capture import portable

        self._file = folder / "job"
        self._file.write_bytes(portable.dumps(job))  # settings may hold the notebook's functions
        self._say = say
        self._timeout = timeout
        self._process: subprocess.Popen[str] | None = None
        self._has_baseline = False

    def run(self, wanted: list[Mend]) -> Trial:
        """Run the cell with these mends. One that takes too long, or kills the process, fails.

        The next run then begins in a new process, which runs the cell as it is first: to that run
        it compares.
        """
        if self._process is None:
            if problem := self._start():
                return Trial(mends=wanted, error=problem)
            if self._has_baseline and wanted:
                self._asked([])
        self._say(" and ".join(mend.paste for mend in wanted) or "the cell as it is")
        trial = self._asked(wanted)
        self._has_baseline |= not wanted and not trial.error
        return trial

    def close(self) -> None:
        """End the process, whatever it is at."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> str:
        """Start a process; return what is wrong with it, or nothing."""
        self._say("getting ready")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dynamo_nb.runner.trial_worker", str(self._file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            text=True,
        )
        answer, was_late = self._answer(_READY_WITHIN)
        return "" if answer.strip() == READY else self._ended(was_late, _READY_WITHIN)

    def _asked(self, wanted: list[Mend]) -> Trial:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(wanted).decode() + "\n")
            self._process.stdin.flush()
            answer, was_late = self._answer(self._timeout)
        except BrokenPipeError:
            answer, was_late = "", False
        if answer:
            return msgspec.json.decode(answer, type=Trial)
        error = self._ended(was_late, self._timeout)
        return Trial(mends=wanted, error=error, was_cut_off=was_late)

    def _answer(self, seconds: float) -> tuple[str, bool]:
        """Return the process's next line, empty when it ended, and whether it was for its time."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            return process.stdout.readline(), late.is_set()
        finally:
            timer.cancel()

    def _ended(self, was_late: bool, seconds: float) -> str:
        """Say how the process ended, and let go of it."""
        assert self._process is not None
        code = self._process.wait()
        self.close()
        if was_late:
            return f"cut off after {seconds:g} s"
        return f"the process of the trials ended (code {code})"
