"""`%dynamo try`: mends for what the last report found are run on copies, and compared.

The trials run in a process of their own, on copies of the notebook's values as they are now. So
neither the namespace nor what was compiled nor torch's configuration is touched, and every trial
starts with empty caches. The cell as it is is run again in the same way: to it all are compared.
A cell that does what can't be taken back, like writing a file, is not run a second time.
"""

from __future__ import annotations

import argparse
import ast
import dis
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

from msgspec.structs import replace

from dynamo_nb.findings.mends import mends
from dynamo_nb.findings.patterns import patterns
from dynamo_nb.options import UsageError
from dynamo_nb.record.counts import counts
from dynamo_nb.record.trials import Mend, Trial, Trials
from dynamo_nb.record.types import CellRecord
from dynamo_nb.runner.names import stored_names
from dynamo_nb.runner.report import Reporter
from dynamo_nb.runner.trial_client import Progress, Worker
from dynamo_nb.runner.trial_worker import Job

__all__ = ["show", "try_mends"]

#: Counts of which less is better, the dearest first.
_COSTS = ("eager run", "graph break", "recompile")

#: Options of a record, and the flags that ask for them.
_FLAGS: dict[str, Callable[[Any], list[str]]] = {
    "fullgraph": lambda value: ["--fullgraph"],
    "backend": lambda value: ["--backend", value],
    "mode": lambda value: ["--mode", value],
    "dynamic": lambda value: ["--dynamic", str(value).lower()],
    "compile": lambda value: ["--compile", value],
    "device": lambda value: ["--device", value],
    "options": lambda value: [w for k, v in value.items() for w in ("--options", f"{k}={v!r}")],
}

USAGE = "%dynamo try [--timeout SECONDS]"

#: Seconds for one run: so many, and so many times what the cell itself took.
_TIMEOUT, _TIMES_THE_CELL = 60.0, 5.0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%dynamo try: {message}. Usage: {USAGE}")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds


def show(record: CellRecord, reporter: Reporter, words: list[str]) -> None:
    """Carry out `%dynamo try` followed by `words`, and say meanwhile what is being tried."""
    parser = _Parser(prog="%dynamo try", add_help=False, allow_abbrev=False)
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS")
    timeout = parser.parse_args(words).timeout
    with reporter.progress() as say:
        try:
            found = try_mends(record, reporter.namespace, reporter.transform, say, timeout)
        except ValueError as exc:
            raise UsageError(f"%dynamo try: {exc}") from exc
    reporter.display(str(found), found._repr_html_())


def try_mends(
    record: CellRecord,
    namespace: dict[str, Any],
    transform: Callable[[str], str],
    say: Progress = lambda _: None,
    timeout: float | None = None,
) -> Trials:
    """Return what came of the mends for a record's findings, each of them run.

    A run that takes longer than `timeout` seconds is cut off.

    Raises
    ------
    ValueError
        When there is nothing to mend, or the cell can't be run again; the message says why.
    """
    if not record.findings:
        raise ValueError("the last report has no findings: there is nothing to mend.")
    if not record.source.startswith("%%dynamo"):
        raise ValueError("the last report is of a script: only a cell can be run again.")
    wanted = mends(record)
    answer = Trials(cell=record.cell, name=record.name, patterns=patterns(record))
    if not wanted:
        return replace(answer, notes=["No mend without a change of code is known for these."])
    with tempfile.TemporaryDirectory() as folder:
        job, notes = _job(record, namespace, transform)
        worker = Worker(job, Path(folder), say, timeout or _timeout(record))
        try:
            answer = _tried(worker, wanted, answer)
        finally:
            worker.close()
    return replace(answer, notes=[*notes, *_drift(record, answer), *answer.notes])


def _timeout(record: CellRecord) -> float:
    seconds: float = record.metrics.get("seconds", 0.0)
    return float(round(_TIMEOUT + _TIMES_THE_CELL * seconds))


def _tried(worker: Worker, wanted: list[Mend], answer: Trials) -> Trials:
    baseline = worker.run([])
    if baseline.was_cut_off:
        note = f"The cell as it is was {baseline.error}: give more with --timeout SECONDS."
        return replace(answer, baseline=baseline, notes=[note])
    if baseline.prevented:
        note = f"The cell {' and '.join(baseline.prevented)}: that is not done a second time."
        return replace(answer, baseline=baseline, notes=[note])
    trials = [_judged(worker.run([mend]), baseline) for mend in wanted]
    winners = [trial for trial in trials if trial.verdict == "helps"]
    together = None
    combined = _combined(winners)
    if len(combined) > 1:
        together = _judged(worker.run(combined), baseline)
    ranked = sorted(trials, key=lambda trial: (_VERDICTS.index(trial.verdict), *_cost(trial)))
    return replace(answer, baseline=baseline, trials=ranked, together=together)


_VERDICTS = ("helps", "changes", "mixed", "same", "worse", "failed", "cut off")


def _cost(trial: Trial) -> tuple[Any, ...]:
    return (
        *(trial.counts.get(name, 0) for name in _COSTS),
        len(trial.differs),
        trial.counts.get("graph", 0),
    )


def _judged(trial: Trial, baseline: Trial) -> Trial:
    """Return a trial with its verdict: what is better, and what is worse, than as it is."""
    if trial.was_cut_off:
        return replace(trial, verdict="cut off")
    if trial.error and not baseline.error:
        return replace(trial, verdict="failed")
    if trial.error:
        return replace(trial, verdict="same" if trial.error == baseline.error else "failed")
    pairs = [(trial.counts.get(name, 0), baseline.counts.get(name, 0)) for name in _COSTS]
    better = any(now < was for now, was in pairs) or bool(baseline.error)
    worse = any(now > was for now, was in pairs) and not baseline.error
    verdict = {
        (True, False): "helps",
        (True, True): "mixed",
        (False, True): "worse",
        (False, False): "same",
    }[better, worse]
    if better and "output" in trial.differs:  # fewer breaks, because less is done
        verdict = "changes"
    return replace(trial, verdict=verdict)


def _combined(winners: list[Trial]) -> list[Mend]:
    """Return the mends to try together, the best first: each for more findings than those before.

    No two of them set the same thing.
    """
    taken: list[Mend] = []
    for trial in sorted(winners, key=_cost):
        mend = trial.mends[0]
        covered = {line for other in taken for line in other.lines}
        already = {what for other in taken for what in _sets(other)}
        if not taken or (set(mend.lines) - covered and not _sets(mend) & already):
            taken.append(mend)
    return taken


def _sets(mend: Mend) -> set[Any]:
    """Return what a mend sets: arguments of torch.compile, marks of dimensions."""
    marks = {(mark.function, mark.first_line, mark.source, mark.dim) for mark in mend.marks}
    return {*mend.arguments, *marks}


def _drift(record: CellRecord, answer: Trials) -> list[str]:
    """Say so when the cell did something else this time: the values are not those it began with."""
    if answer.baseline is None or answer.baseline.was_cut_off or answer.baseline.prevented:
        return []
    if answer.baseline.error:
        if record.error is not None:
            return []
        return [
            f"Run again, the cell raises {answer.baseline.error}: it can't begin from the values "
            "that it left. Make what it needs in the cell itself, and try again."
        ]
    before, now = counts(record), answer.baseline.counts
    changed = [
        f"{name}s {before[name]} -> {now.get(name)}"
        for name in before
        if name != "guard" and before[name] != now.get(name)
    ]
    if not changed:
        return []
    return [
        f"Run again, the cell itself does not do what it did in the report ({', '.join(changed)}): "
        "it starts from other values, or from empty caches."
    ]


# ------------------------------------------------------------------ what the worker is given


def _job(
    record: CellRecord, namespace: dict[str, Any], transform: Callable[[str], str]
) -> tuple[Job, list[str]]:
    from dynamo_nb.capture import portable

    body = record.source.partition("\n")[2]
    names = _names(body, transform)
    backend = record.options.get("backend")
    config = record.options.get("config", {})
    given = (backend, *config.values(), *record.options.get("options", {}).values())
    names |= {name for name in given if isinstance(name, str)}
    values = {name: namespace[name] for name in sorted(names) if name in namespace}
    state, problems = portable.pack(values, namespace)
    flags = [
        w for name, value in record.options.items() if name in _FLAGS for w in _FLAGS[name](value)
    ]
    line = " ".join(["%%dynamo", "--view", "text", *map(shlex.quote, flags)])
    job = Job(
        cell=f"{line}\n{body}",
        state=state,
        ambient=portable.ambient(),
        config=config,
        backend=_backend_to_warm(record),
        path=list(sys.path),
    )
    return job, list(_notes(body, values, problems))


def _backend_to_warm(record: CellRecord) -> str:
    """Return the backend that torch gets ready for: Inductor where the cell used it."""
    return "inductor" if any(entry.output_code for entry in record.compiles) else "eager"


def _names(body: str, transform: Callable[[str], str]) -> set[str]:
    """Return the names that a cell needs from the notebook: those it does not bind itself first.

    Only statements that are always reached count as binding; a name too many is copied in vain.
    """
    try:
        tree = ast.parse(transform(body))
    except SyntaxError:
        return set()
    needed: set[str] = set()
    bound: set[str] = set()
    for statement in tree.body:
        needed |= set(_globals_read(_code(statement))) - bound - _set_at_once(statement)
        if isinstance(statement, _BINDING):
            bound |= stored_names(statement)
    return needed


_BINDING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.Assign, ast.Import, ast.ImportFrom, ast.With),
)


def _set_at_once(statement: ast.stmt) -> set[str]:
    """Return the names that a `for` or `with` binds before its body reads them."""
    if isinstance(statement, ast.For):
        return stored_names(statement.target)
    if isinstance(statement, ast.With):
        given = [item.optional_vars for item in statement.items if item.optional_vars]
        return {name for target in given for name in stored_names(target)}
    return set()


def _code(statement: ast.stmt) -> CodeType:
    module = ast.Module([statement], [])
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: CodeType = compile(module, "<cell>", "exec", flags, dont_inherit=True)
    return code


def _globals_read(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL", "DELETE_NAME", "DELETE_GLOBAL"):
            yield step.argval
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _globals_read(const)


def _notes(body: str, values: dict[str, Any], problems: dict[str, str]) -> Iterator[str]:
    from dynamo_nb.capture import compiler

    own = [
        name
        for name, value in values.items()
        if name not in problems and (compiler.is_tensor(value) or compiler.is_module(value))
    ]
    if own:
        shown = ", ".join(f"`{name}`" for name in own)
        yield f"The trials began with copies of {shown} as they are now, after the cell."
    for name, why in problems.items():
        yield f"`{name}` can't be copied, so the trials ran without it ({why})."
