"""The process in which trials run: `python -m dynamo_nb.runner.trial_worker JOB`.

It runs the cell once for each set of mends, through the magic, in an IPython shell of its own, and
writes one line of JSON for each run. What the cell prints goes nowhere, and what would outlast the
process (a file written, a connection opened) is prevented: the cell has done it once.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import msgspec
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from msgspec.structs import astuple, replace

from dynamo_nb.magic import Extension
from dynamo_nb.record.causes import own_compiles
from dynamo_nb.record.counts import counts
from dynamo_nb.record.trials import Mend, Trial
from dynamo_nb.record.types import CellRecord
from dynamo_nb.runner.arguments import settings
from dynamo_nb.session import Session

__all__ = ["READY", "Job", "main", "run"]

#: The first line that the process says.
READY = "ready"

#: The stages that cover a compile as a whole; the backward graph is compiled when it is first run.
_WHOLE = ("entire_frame_compile", "entire_backward_compile")


class Job(msgspec.Struct, kw_only=True):
    """What the worker is given: the cell with its magic line, and what the notebook holds.

    `config` is the cell's `--config`, which may name what `state` holds. It is set before a mend
    is: that may change it.
    """

    cell: str
    state: bytes
    ambient: dict[str, Any]
    config: dict[str, Any]
    backend: Any
    path: list[str]


def main() -> None:
    """Read the job, then sets of mends as lines of JSON from stdin; answer each on stdout."""
    answers = os.fdopen(os.dup(1), "w")
    _silence()
    job = pickle.loads(Path(sys.argv[1]).read_bytes())
    sys.path[:] = job.path
    from dynamo_nb.capture import portable, trial

    portable.apply(job.ambient)
    trial.warm_up(job.backend)
    answers.write(f"{READY}\n")
    answers.flush()
    first: _Seen | None = None
    for line in sys.stdin:
        asked = msgspec.json.decode(line, type=list[Mend])
        found, seen = run(job, asked)
        if not asked:
            first = None if found.error else seen
        elif first is not None and not found.error:
            found = replace(found, differs=_differs(first, seen))
        _say(answers, found)


def _say(answers: IO[str], found: Trial) -> None:
    answers.write(msgspec.json.encode(found).decode() + "\n")
    answers.flush()


def _silence() -> None:
    """Send what is written to the process's own outputs nowhere, by C code too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)


class _Seen(msgspec.Struct):
    """What a person sees of a run: the last value, and what was printed."""

    value: Any = None
    output: str = ""


def _differs(first: _Seen, seen: _Seen) -> list[str]:
    from dynamo_nb.capture import trial

    same = {
        "value": trial.alike(first.value, seen.value),
        "output": first.output == seen.output,
    }
    return [what for what, is_same in same.items() if not is_same]


def run(job: Job, mends: list[Mend]) -> tuple[Trial, _Seen]:
    """Run the cell with these mends; return what came of it, and what a person would have seen."""
    from dynamo_nb.capture import check_effects, compiler, portable, trial

    arguments = {name: value for mend in mends for name, value in mend.arguments.items()}
    marks = [trial.Mark(*astuple(mark)) for mend in mends for mark in mend.marks]
    session = Session()
    try:
        with trial.apart(job.ambient, arguments, marks):
            shell = _shell()
            extension = Extension(shell, session)
            extension.install()
            try:
                shell.user_ns.update(portable.unpack(job.state, shell.user_ns))
                with compiler.settings(settings(job.config, shell.user_ns)):
                    _execute([statement for mend in mends for statement in mend.code])
                    with check_effects.no_effects_outside() as effects:
                        result, output = _run_cell(shell, job.cell)
            finally:
                extension.uninstall()
    except Exception as exc:
        return Trial(mends=mends, error=_short(exc)), _Seen()
    if effects:
        prevented = list(dict.fromkeys(effects))
        return Trial(
            mends=mends, error=f"it {' and '.join(prevented)}", prevented=prevented
        ), _Seen()
    error = result.error_before_exec or result.error_in_exec
    record = session.last()
    if record is None:
        return Trial(mends=mends, error=_short(error) or "there is no report of the run"), _Seen()
    seen = _Seen(trial.plain(result.result), output)
    return _outcome(record, mends, _short(error)), seen


def _shell() -> Any:
    """Make a shell that shows nothing and keeps no history."""
    shell: Any = InteractiveShell(
        ipython_dir=tempfile.gettempdir(),
        display_pub_class=CapturingDisplayPublisher,
        colors="nocolor",
    )
    shell.display_pub = CapturingDisplayPublisher()
    shell.history_manager.enabled = False
    for name in ("write_output_prompt", "write_format_data", "finish_displayhook"):
        setattr(shell.displayhook, name, lambda *_, **__: None)
    return shell


def _execute(statements: list[str]) -> None:
    scope: dict[str, Any] = {}
    exec("import torch, torch._dynamo", scope)
    for statement in statements:
        exec(statement, scope)


def _run_cell(shell: Any, cell: str) -> tuple[Any, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        result = shell.run_cell(cell, store_history=True)
    return result, out.getvalue() if result.success else ""


def _outcome(record: CellRecord, mends: list[Mend], error: str) -> Trial:
    stages = [stage for entry in own_compiles(record) for stage in entry.stages]
    compiling = sum(stage.seconds for stage in stages if stage.name in _WHOLE)
    whole: float = record.metrics.get("seconds", 0.0)
    return Trial(
        mends=mends,
        counts=counts(record),
        compile_seconds=compiling,
        run_seconds=max(whole - compiling, 0.0),
        error=error,
    )


def _short(error: BaseException | None) -> str:
    if error is None:
        return ""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


if __name__ == "__main__":
    from dynamo_nb.runner import trial_worker

    trial_worker.main()
