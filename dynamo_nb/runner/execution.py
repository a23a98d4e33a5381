"""One run of one `%%dynamo` cell: get ready, rewrite, watch, put everything back."""

from __future__ import annotations

import ast
import copy
import time
import traceback
from contextlib import ExitStack
from typing import Any

from msgspec.structs import replace

from dynamo_nb import progress
from dynamo_nb.events import Event
from dynamo_nb.options import Options, UsageError
from dynamo_nb.record.run import Called, Run, SourceCell
from dynamo_nb.record.types import Note
from dynamo_nb.runner import arguments, calls, cell, mode
from dynamo_nb.runner.checking import Checking
from dynamo_nb.runner.embedded import body_offset, is_wrapped, timed_file, with_embedded
from dynamo_nb.runner.handed import handed_over
from dynamo_nb.runner.raised import error_of
from dynamo_nb.runner.targeting import Targeting
from dynamo_nb.runner.tracebacks import plain_tracebacks

__all__ = ["Execution"]


class Execution:
    """A cell on its way through the magic.

    `start` gets the cell's AST and returns the one to run; whatever it changed is undone by
    `finish`, which is always called and may be called alone (the cell had a syntax error).
    """

    def __init__(self, source: SourceCell, options: Options, shell: Any) -> None:
        self.run = Run(cell=source, name=options.name, options=options.shown())
        self.run.mode_reason = "the cell was not run"
        self.options = options
        self.started = False
        self.wraps = False
        self._capture: Any = None
        self._checking: Checking | None = None
        self._targeting: Targeting | None = None
        self._calls: calls.Calls | None = None
        self._handed_over: list[Called] = []
        self._shell = shell
        self._stack = ExitStack()

    @property
    def events(self) -> list[Event]:
        """What the capture saw."""
        return self._capture.events if self._capture is not None else []

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
            self._note("the magic", "calls compiled by the magic", exc)
            return tree

    def _start(self, tree: ast.Module) -> ast.Module:
        from dynamo_nb.capture import compiler

        asked = arguments.checked(self.options, self._shell.user_ns)
        self.run.versions = compiler.versions()
        self._choose(tree)
        tree = self._rewritten(tree, asked.compile)
        if self.options.fresh:
            compiler.reset()
        self._checking = Checking.asked(self.options, asked.settings)
        self._targeting = Targeting.asked(self.options)
        self._watch()
        self._stack.enter_context(plain_tracebacks(self._shell, self.run.cell.file))
        if self.options.device:
            self._stack.enter_context(compiler.on_device(self.options.device))
        self._stack.enter_context(compiler.settings(asked.settings))
        self.run.device = compiler.default_device()
        self.run.started = time.perf_counter()
        return tree

    def rewrite_nested(self, tree: ast.Module, file: str | None) -> ast.Module:
        """Rewrite what a magic of the cell runs, such as the statement of `%time`.

        `file` is the code's file name, None for that of `%time`. The body of a cell magic gets the
        editor's line numbers, and stands for the cell from here on.
        """
        if self.wraps:
            ast.increment_lineno(tree, body_offset(self.run.cell.source))
            self.run.cell = replace(self.run.cell, file=file or timed_file(tree))
        return calls.rewrite(tree, self._calls.number) if self._calls is not None else tree

    def finish(self, error: BaseException | None) -> None:
        """Put everything back as it was before `start`; `error` is what ended the cell."""
        if self.run.started:
            self.run.seconds = time.perf_counter() - self.run.started
        try:
            self._stack.close()
        except Exception as exc:
            self._note("the magic", "nothing, but something was not put back", exc)
        if self._capture is not None:
            self.run.notes.extend(self._capture.notes)
        self.run.error = error_of(error, self.run.cell.file)
        self._find_calls()
        self._find_compiled_objects()
        self._say_what_is_replaced()
        if self._checking is not None:
            self.events.extend(self._checking.events(error))
            self._checking = None  # it holds copies of what the calls took
        if self._targeting is not None:
            self._collect(self._targeting)

    def _choose(self, tree: ast.Module) -> None:
        self.wraps = is_wrapped(tree)
        whole = with_embedded(tree, self._shell.transform_cell)
        chosen = mode.choose(whole, self._shell.user_ns, self.options)
        if self.wraps and chosen.name == "cell":
            chosen = mode.Mode("as-is", "the body is run by its cell magic: it stays as it is")
        self.run.mode, self.run.mode_reason = chosen
        if self.options.compile in ("auto", "calls"):
            self._handed_over = handed_over(whole, self._shell.user_ns)

    def _rewritten(self, tree: ast.Module, compile_arguments: dict[str, Any]) -> ast.Module:
        if self.run.mode == "calls":
            self._calls = self._stack.enter_context(calls.Calls(compile_arguments))
            return calls.rewrite(tree, self._calls.number)
        if self.run.mode == "cell":
            return self._as_function(tree, compile_arguments)
        return tree

    def _as_function(self, tree: ast.Module, compile_arguments: dict[str, Any]) -> ast.Module:
        shows = self._shell.ast_node_interactivity
        if shows not in ("last_expr", "last", "none"):
            return self._left_alone(tree, f"ast_node_interactivity is {shows!r}")
        try:
            tree, body = cell.body_of(tree, self._compile)
        except SyntaxError as exc:
            return self._left_alone(tree, f"its body is no function's body ({exc.msg})")
        self.run.body_line = body.code.co_firstlineno
        body.enter(self._shell.user_ns, compile_arguments)
        self._stack.callback(body.leave)
        return tree

    def _left_alone(self, tree: ast.Module, why: str) -> ast.Module:
        self.run.mode = "as-is"
        self.run.mode_reason = f"the cell's body cannot be compiled as one function: {why}"
        return tree

    def _compile(self, tree: ast.Module) -> Any:
        return self._shell.compile(tree, self.run.cell.file, "exec")

    def _watch(self) -> None:
        try:
            from dynamo_nb.capture import Capture

            shown = self._stack.enter_context(progress.shown(self._shell))
            asked = (self._checking, self._targeting)
            more = [item.hook for item in asked if item is not None]
            self._capture = self._stack.enter_context(Capture(on_progress=shown, more=more))
        except Exception as exc:
            self._note("Capture", "all that torch did", exc)

    def _collect(self, targeting: Targeting) -> None:
        with progress.saying(self._shell) as say:
            self.events.extend(targeting.events(say))

    def _find_compiled_objects(self) -> None:
        if not self.started:
            return
        try:
            from dynamo_nb.capture.compiled import compiled_objects

            namespace, source = self._shell.user_ns, self.run.cell.source
            self.run.compiled_objects = compiled_objects(namespace, source, self.events)
        except Exception as exc:
            self._note("compiled objects", "variables that hold compiled objects", exc)

    def _find_calls(self) -> None:
        try:
            made = self._calls.called() if self._calls is not None else []
            self.run.called = [*made, *self._handed_over]
        except Exception as exc:
            self._note("calls", "calls of functions that Dynamo left alone before", exc)

    def _say_what_is_replaced(self) -> None:
        """Say that torch.compile is the notebook's own: nobody knows what that does."""
        if self.run.started:
            from dynamo_nb.capture import compiler

            if name := compiler.replaced_by():
                self.run.mode_reason += f"; torch.compile itself is replaced by `{name}`"

    def _note(self, hook: str, panel: str, exc: BaseException) -> None:
        message = "".join(traceback.format_exception_only(exc)).strip()
        self.run.notes.append(Note(hook=hook, panel=panel, message=message))
