"""One run of one `%%dynamo` cell: set up, rewrite, watch, put everything back."""

from __future__ import annotations

import ast
import copy
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from dynamo_nb import progress
from dynamo_nb.events import Event
from dynamo_nb.options import Options, UsageError, close_matches
from dynamo_nb.record.run import Run, SourceCell
from dynamo_nb.record.types import CellError, Note
from dynamo_nb.runner import calls, cell, mode

__all__ = ["Execution", "compile_arguments", "error_of"]


class Execution:
    """A cell on its way through the magic.

    `start` gets the cell's AST and returns the one to run; whatever it changed is undone by
    `finish`, which is always called and may be called alone (the cell had a syntax error).
    """

    def __init__(self, source: SourceCell, options: Options, shell: Any) -> None:
        self.run = Run(cell=source, name=options.name, options=options.shown())
        self.options = options
        self.started = False
        self.capture: Any = None
        self._calls: calls.Calls | None = None
        self._shell = shell
        self._stack = ExitStack()

    @property
    def events(self) -> list[Event]:
        """What the capture saw."""
        return self.capture.events if self.capture is not None else []

    def start(self, tree: ast.Module) -> ast.Module:
        """Get everything ready and return the AST to run.

        Raises `UsageError` where the magic's line asks for what is not there. Anything else that
        goes wrong leaves the cell as it is, with a note.
        """
        self.started = True
        try:
            return self._start(copy.deepcopy(tree))
        except UsageError:
            raise
        except Exception as exc:
            self.run.mode, self.run.mode_reason = "as-is", "the cell could not be prepared"
            self.note("the magic", "the calls: nothing was compiled for the cell", exc)
            return tree

    def _start(self, tree: ast.Module) -> ast.Module:
        from dynamo_nb.capture import compiler

        self.run.versions = compiler.versions()
        namespace = self._shell.user_ns
        arguments = compile_arguments(self.options, namespace)
        settings = _settings(self.options)
        chosen = mode.choose(tree, namespace, self.options)
        self.run.mode, self.run.mode_reason = chosen
        tree = self._rewritten(tree, arguments)
        if self.options.fresh:
            compiler.reset()
        self._watch()
        if self.options.device:
            self._stack.enter_context(compiler.on_device(self.options.device))
        self._stack.enter_context(compiler.settings(settings))
        self.run.device = compiler.default_device()
        self.run.started = time.perf_counter()
        return tree

    def rewrite_nested(self, tree: ast.Module) -> ast.Module:
        """Rewrite what a line magic of the cell runs, such as the statement of `%time`."""
        return calls.rewrite(tree, self._calls.number) if self._calls is not None else tree

    def finish(self) -> None:
        """Put everything back as it was before `start`."""
        if self.run.started:
            self.run.seconds = time.perf_counter() - self.run.started
        try:
            self._stack.close()
        except Exception as exc:
            self.note("the magic", "nothing, but something was not put back", exc)
        if self.capture is not None:
            self.run.notes.extend(self.capture.notes)

    def note(self, hook: str, panel: str, exc: BaseException) -> None:
        """Keep for the report that something of ours failed."""
        message = "".join(traceback.format_exception_only(exc)).strip()
        self.run.notes.append(Note(hook=hook, panel=panel, message=message))

    def _rewritten(self, tree: ast.Module, arguments: dict[str, Any]) -> ast.Module:
        if self.run.mode == "calls":
            self._calls = self._stack.enter_context(calls.Calls(arguments))
            return calls.rewrite(tree, self._calls.number)
        if self.run.mode == "cell":
            return self._as_function(tree, arguments)
        return tree

    def _as_function(self, tree: ast.Module, arguments: dict[str, Any]) -> ast.Module:
        if self._shell.ast_node_interactivity not in ("last_expr", "last", "none"):
            shown = f"ast_node_interactivity is {self._shell.ast_node_interactivity!r}"
            return self._left_alone(tree, f"the shell displays more than the last value ({shown})")
        try:
            tree, body = cell.body_of(tree, self._compile)
        except SyntaxError as exc:
            return self._left_alone(tree, f"its body is no function's body ({exc.msg})")
        body.enter(self._shell.user_ns, arguments)
        self._stack.callback(body.leave)
        return tree

    def _left_alone(self, tree: ast.Module, why: str) -> ast.Module:
        self.run.mode, self.run.mode_reason = "as-is", f"the cell runs as it is: {why}"
        return tree

    def _compile(self, tree: ast.Module) -> Any:
        return self._shell.compile(tree, self.run.cell.file, "exec")

    def _watch(self) -> None:
        try:
            from dynamo_nb.capture import Capture

            shown = self._stack.enter_context(progress.shown(self._shell))
            self.capture = self._stack.enter_context(Capture(on_progress=shown))
        except Exception as exc:
            self.note("Capture", "everything", exc)


def compile_arguments(options: Options, namespace: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of torch.compile that the options ask for."""
    from dynamo_nb.capture import compiler

    _check_device(options)
    if options.mode is not None and options.mode not in compiler.modes():
        known = ", ".join(compiler.modes())
        raise UsageError(f"%%dynamo: no mode {options.mode!r}. There are: {known}.")
    arguments: dict[str, Any] = {
        "fullgraph": options.fullgraph,
        "dynamic": options.dynamic,
        "mode": options.mode,
        "options": options.options or None,
    }
    if options.backend is not None:
        arguments["backend"] = _backend(options.backend, namespace)
    if problem := compiler.check_compile(arguments):
        raise UsageError(f"%%dynamo: torch.compile does not take these arguments: {problem}")
    return arguments


def _backend(name: str, namespace: dict[str, Any]) -> str | Callable[..., Any]:
    from dynamo_nb.capture import compiler

    known = compiler.backends()
    if name in known:
        return name
    if name not in namespace:
        hint = close_matches(name, known)
        raise UsageError(
            f"%%dynamo: no backend {name!r}, and no name {name!r} in the notebook.{hint} "
            f"Backends: {', '.join(known)}."
        )
    value: Callable[..., Any] = namespace[name]
    if not callable(value):
        raise UsageError(
            f"%%dynamo: `{name}` is no backend: it holds {_article(type(value).__name__)}, which "
            f"cannot be called. A backend takes a GraphModule and example inputs."
        )
    return value


def _article(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def _check_device(options: Options) -> None:
    from dynamo_nb.capture import compiler

    if options.device and (problem := compiler.device_named(options.device)):
        raise UsageError(f"%%dynamo: no device {options.device!r}: {problem}")


def _settings(options: Options) -> dict[tuple[str, str], Any]:
    """Return `--config` as `(prefix, name) → value`, checked against what torch has."""
    from dynamo_nb.capture import compiler

    if not options.config:
        return {}
    names = compiler.config_names()
    return {_setting(name, value, names): value for name, value in options.config.items()}


def _setting(name: str, value: Any, names: dict[str, list[str]]) -> tuple[str, str]:
    from dynamo_nb.capture import compiler

    prefix, _, rest = name.partition(".")
    places = [(prefix, rest)] if prefix in names and rest else [(key, name) for key in names]
    place = next(((key, rest) for key, rest in places if rest in names[key]), None)
    if place is None:
        wanted = rest if prefix in names and rest else name
        every = [setting for key, _ in places for setting in names[key]]
        hint = close_matches(wanted, every) or " See torch._dynamo.config, torch._inductor.config."
        raise UsageError(f"%%dynamo: torch has no setting {name!r}.{hint}")
    now = compiler.setting(*place)
    if isinstance(now, (bool, int, float, str)) and not _fits(value, now):
        raise UsageError(
            f"%%dynamo: {name} is {_article(type(now).__name__)} (now {now!r}), not {value!r}."
        )
    return place


def _fits(value: Any, now: Any) -> bool:
    if value is None or type(value) is type(now):
        return True
    return type(now) is float and type(value) is int


def error_of(exc: BaseException | None, file: str) -> CellError | None:
    """Return the exception that ended a cell, with the innermost line of the cell it came from."""
    if exc is None:
        return None
    line = exc.lineno if isinstance(exc, SyntaxError) else None
    for frame in traceback.walk_tb(exc.__traceback__):
        if frame[0].f_code.co_filename == file:
            line = frame[1]
    return CellError(type=type(exc).__name__, message=str(exc), line=line)
