"""`%dynamo would f(x)` and `dynamo_nb.would(f, x)`: what a call would do, told without it."""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dynamo_nb.options import UsageError
from dynamo_nb.record.guards import reader, shape_reader
from dynamo_nb.record.naming import of_cell, readable
from dynamo_nb.record.types import (
    Compile,
    EntryCheck,
    GuardCost,
    GuardCosts,
    RecompileReason,
    StackFrame,
    Would,
)
from dynamo_nb.session import Session

__all__ = ["call_in", "guard_costs", "would"]


def would(
    session: Session, f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Would:
    """Return what `f(*args, **kwargs)` would do; see `dynamo_nb.would`."""
    from dynamo_nb.capture.would import would as look_up

    with _as_in_the_cell(session) as notes:
        answer = look_up(f, args, kwargs)
    entries = [_check(session, check) for check in answer["entries"]]
    return Would(**{**answer, "entries": entries, "notes": [*answer.get("notes", []), *notes]})


@contextmanager
def _as_in_the_cell(session: Session) -> Iterator[list[str]]:
    """Set what the last cell's `--config` asked for; yield a note that says so."""
    from dynamo_nb.capture import compiler
    from dynamo_nb.runner.arguments import settings

    last = session.last()
    config = last.options.get("config", {}) if last is not None else {}
    try:
        asked = settings(config, vars(sys.modules["__main__"]))
    except UsageError:  # a report of another torch or notebook, which had other settings and names
        config, asked = {}, {}
    flags = " ".join(f"--config {name}={value}" for name, value in config.items())
    with compiler.settings(asked):
        yield [f"told as for the last cell: {flags}"] if flags else []


def guard_costs(
    session: Session, f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> GuardCosts:
    """Return what checking the guards of a call costs; see `dynamo_nb.guard_costs`."""
    from dynamo_nb.capture.would import measured

    with _as_in_the_cell(session):
        found = measured(f, args, kwargs)
    parts = [
        GuardCost(source=source, microseconds=cost, managers=managers)
        for source, cost, managers in found["parts"]
    ]
    return GuardCosts(**{**found, "parts": parts})


def _check(session: Session, check: dict[str, Any]) -> EntryCheck:
    compiled = session.compiled(check["generation"], check["entry"])
    return EntryCheck(
        entry=check["entry"],
        cell=compiled.cell if compiled is not None else None,
        fits=check["fits"],
        invalidated=check["invalidated"],
        failed=[_reason(compiled, check["entry"], failed) for failed in check["failed"]],
    )


def _reason(compiled: Compile | None, entry: str, failed: dict[str, Any]) -> RecompileReason:
    name = readable(failed["name"] or failed["source"])
    frame = _reader(compiled, failed["source"]) if compiled is not None else None
    if compiled is not None:  # the cell that compiled it is not this one
        frame = of_cell(frame, compiled.cell)
    return RecompileReason(**{**failed, "entry": entry, "name": name, "frame": frame})


def _reader(compiled: Compile, source: str) -> StackFrame | None:
    own = reader(compiled.guards, source)
    return own or shape_reader(compiled.symbols, compiled.shape_guards, source)


def call_in(text: str, namespace: dict[str, Any], command: str) -> tuple[Any, Any, Any]:
    """Evaluate the callee and arguments of a call, without calling: `(f, args, kwargs)`.

    Text that is no call is a `UsageError`, and so is what evaluating it raises.
    """
    usage = f"Write a call: %dynamo {command} f(x)"
    if not text.strip():
        raise UsageError(f"%dynamo {command}: a call is expected. {usage}")
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as exc:
        raise UsageError(f"%dynamo {command}: {exc.msg} in {text.strip()!r}. {usage}") from exc
    if not isinstance(call, ast.Call):
        raise UsageError(f"%dynamo {command}: {text.strip()!r} is no call. {usage}")
    taken = ast.parse("(lambda *args, **kwargs: (args, kwargs))()", mode="eval")
    assert isinstance(taken.body, ast.Call)
    taken.body.args, taken.body.keywords = call.args, call.keywords
    try:
        callee = _evaluated(ast.Expression(call.func), namespace)
        args, kwargs = _evaluated(taken, namespace)
    except Exception as exc:
        why = "".join(traceback.format_exception_only(exc)).strip()
        raise UsageError(f"%dynamo {command}: {text.strip()} can't be evaluated: {why}") from exc
    return callee, args, kwargs


def _evaluated(expression: ast.Expression, namespace: dict[str, Any]) -> Any:
    return eval(compile(expression, "<%dynamo>", "eval"), namespace)
