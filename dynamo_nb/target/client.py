"""The notebook's side of the workers: one process a target, started when it is first asked for."""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import Future

from dynamo_nb.target.devices import DEVICES
from dynamo_nb.target.jobs import COMPILE, INTERPRET, Answer, Job

__all__ = ["Worker", "problem", "stop_all", "triton_version", "worker_for"]

_WORKER = "dynamo_nb.target.worker"
_OLDEST = (3, 6)
_STOPPED = "the process was stopped"
_INSTALL = "pip install 'dynamo_nb[target]'"

#: Seconds without a job after which a process, which holds half a gigabyte, is ended.
IDLE = 1800.0

#: A GPU that is here is hidden from the process, which is to believe in another one.
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}


def problem(spec: str, kinds: Iterable[str] = (COMPILE,)) -> str:
    """Return why there can be no worker of these kinds for a target, or nothing."""
    if spec not in DEVICES:
        return f"unknown target {spec!r}; known: {', '.join(DEVICES)}"
    version = triton_version()
    if version is None:
        return f"--target needs triton, which is not installed: {_INSTALL}"
    if _numbers(version) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        return f"triton {version} is too old: --target needs {oldest} or newer: {_INSTALL}"
    if INTERPRET in kinds and importlib.util.find_spec("numpy") is None:
        return f"--interpret needs numpy, which is not installed: {_INSTALL}"
    return ""


def triton_version() -> str | None:
    """Return the version of triton that is installed, None where there is none."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


class Worker:
    """A process that compiles for one target. Jobs are done one after the other, in the background.

    A process that dies fails the job that it was at. One that is dead when a job comes is replaced
    first; it says when it has taken a job, because the system needs a moment to tell of a death.
    One that was idle for long is ended, and replaced in the same way.
    """

    def __init__(self, spec: str, kind: str = COMPILE, module: str = _WORKER) -> None:
        self.spec = spec
        self._command = [sys.executable, "-m", module, spec, kind]
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._jobs: queue.SimpleQueue[tuple[Job | None, Future[Answer]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        threading.Thread(target=self._work, name=f"target {spec}", daemon=True).start()

    def start(self) -> Future[Answer]:
        """Start the process if there is none; the future is done when it is ready."""
        return self._put(None)

    def submit(self, job: Job) -> Future[Answer]:
        """Have a job done."""
        return self._put(job)

    @property
    def pid(self) -> int | None:
        """The process's id, None where there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def stop(self) -> None:
        """End the process, whatever it is at."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process for good: what waits for it fails, and no other one is started."""
        with self._lock:
            self._closed = True
            self._jobs.put((None, Future()))  # wakes the thread, which ends
        self.stop()

    def _put(self, job: Job | None) -> Future[Answer]:
        future: Future[Answer] = Future()
        with self._lock:
            if self._closed:
                future.set_result(Answer(error=_STOPPED))
            else:
                self._jobs.put((job, future))
        return future

    def _work(self) -> None:
        while not (self._closed and self._jobs.empty()):
            try:
                job, future = self._jobs.get(timeout=IDLE)
            except queue.Empty:
                self.stop()
                continue
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._done(job))
            except Exception as exc:
                future.set_result(Answer(error=f"{type(exc).__name__}: {exc}"))

    def _done(self, job: Job | None) -> Answer:
        from dynamo_nb.capture import portable

        if job is None:
            return self._started()
        packed = portable.dumps(job)  # settings may hold functions of the notebook
        answer = Answer()
        for _ in range(2):
            answer = self._started()
            process = self._process
            if answer.error or process is None:
                return answer if answer.error else Answer(error=_STOPPED)
            if self._is_taken(packed, process):
                return self._read(process)
            answer = self._ended(process)
        return answer

    def _is_taken(self, packed: bytes, process: subprocess.Popen[bytes]) -> bool:
        """Hand a job over; tell whether the process lived to take it."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(packed, process.stdin)
            process.stdin.flush()
            pickle.load(process.stdout)
        except (EOFError, pickle.UnpicklingError, ValueError, OSError):
            return False
        return True

    def _started(self) -> Answer:
        process = self._process
        if process is not None and process.poll() is None:
            return Answer()
        with self._lock:
            if self._closed:
                return Answer(error=_STOPPED)
            process = self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={
                    **os.environ,
                    **_NO_GPU,
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                },
                start_new_session=True,  # an interrupt of the cell is not meant for it
            )
        answer = self._read(process)
        if answer.error:
            self.stop()
        return answer

    def _read(self, process: subprocess.Popen[bytes]) -> Answer:
        assert process.stdout is not None
        try:
            answer: Answer = pickle.load(process.stdout)
        except (EOFError, pickle.UnpicklingError, ValueError, OSError):
            return self._ended(process)
        return answer

    def _ended(self, process: subprocess.Popen[bytes]) -> Answer:
        """Return that a process ended in the midst of a job."""
        process.kill()
        code = process.wait()
        with self._lock:
            if self._process is process:
                self._process = None
        return Answer(error=f"its process ended in the midst of it (code {code})")


_workers: dict[tuple[str, str], Worker] = {}


def worker_for(spec: str, kind: str = COMPILE) -> Worker:
    """Return the session's worker for a target."""
    key = spec, kind
    if key not in _workers:
        _workers[key] = Worker(spec, kind)
    return _workers[key]


@atexit.register
def stop_all() -> None:
    """End all workers; those that are asked for later are new ones."""
    for worker in _workers.values():
        worker.close()
    _workers.clear()
