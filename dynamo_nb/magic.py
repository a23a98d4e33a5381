"""The IPython side: how `%%dynamo` gets hold of a cell without taking it from IPython.

The cell stays IPython's own. Its magic line becomes an empty line, an AST transformer rewrites what
is left, and two events begin and end the watching: so line numbers, the last value's display,
`await`, tracebacks and "Run All" are those of a plain cell.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from IPython.core.inputtransformer2 import cell_magic, leading_empty_lines, leading_indent

from dynamo_nb.options import UsageError, help_text, parse, wants_help
from dynamo_nb.record.run import SourceCell
from dynamo_nb.runner.commands import Commands
from dynamo_nb.runner.execution import Execution
from dynamo_nb.runner.report import Reporter, say
from dynamo_nb.session import Session, current
from dynamo_nb.target.client import stop_all

__all__ = ["Extension"]

NAME = "dynamo"
MAGIC = f"%%{NAME}"
NOT_FIRST = f"{MAGIC} must be the first line of its cell; other cell magics go below it."


class CellFailedError(Exception):
    """Stands for an exception that was shown already, so that whoever called still stops."""

    def _render_traceback_(self) -> list[str]:
        return []


def magic_line(lines: list[str]) -> str | None:
    """Return what follows `%%dynamo` on the first line, or None if it is not there."""
    first, _, rest = lines[0].partition(" ") if lines else ("", "", "")
    return rest.rstrip("\n") if first.rstrip("\n") == MAGIC else None


def without_magic_line(lines: list[str]) -> list[str]:
    """Replace the `%%dynamo` line by an empty one, which keeps every line number.

    A cell magic that stands below it is now the first one, and IPython is told to run it.
    """
    rest = lines[1:]
    start = next((i for i, line in enumerate(rest) if line.strip()), len(rest))
    if start < len(rest) and rest[start].startswith("%%"):
        rest = [*rest[:start], *cell_magic(rest[start:])]
    return ["\n", *rest]


def cell_source(raw: str) -> str:
    """Return a cell's text with the line numbers that IPython gives it."""
    return "".join(leading_indent(leading_empty_lines(raw.splitlines(keepends=True))))


class Running:
    """A cell under way; cells that it runs through `run_cell` lie on top of it."""

    def __init__(self, info: Any, file: str) -> None:
        self.info = info
        self.file = file
        self.execution: Execution | None = None
        self.refused: UsageError | None = None
        self.helps = False

    def ended_by(self, info: Any) -> bool:
        """Say whether `info` is this cell's: IPython makes a new one when it is interrupted."""
        return info is None or info is self.info or info.raw_cell == self.info.raw_cell


class Extension:
    """All that `%load_ext` adds to a shell, and takes away again."""

    def __init__(self, shell: Any, session: Session | None = None) -> None:
        self._shell = shell
        self._session = session or current()
        self._reporter = Reporter(shell, self._session)
        self._commands = Commands(self._session, self._reporter)
        self._running: list[Running] = []
        self._unclaimed = False
        self._events: dict[str, Callable[..., None]] = {
            "pre_execute": self._claim,
            "pre_run_cell": self._before_cell,
            "post_run_cell": self._after_cell,
        }
        self._magics: list[tuple[str, str, Callable[..., None]]] = [
            ("cell", NAME, self.cell_magic),
            ("line", NAME, self.line_magic),
            ("line", f"%{NAME}", self._not_first),
        ]
        self._replaced: list[tuple[str, str, Any]] = []

    def install(self) -> None:
        """Add the transformers, events and magics to the shell."""
        self._shell.input_transformers_cleanup.append(self._blank_magic_line)
        self._shell.ast_transformers.append(self)
        for event, callback in self._events.items():
            self._shell.events.register(event, callback)
        for kind, name, magic in self._magics:
            self._replaced.append((kind, name, self._known_magics(kind).get(name)))
            self._shell.register_magic_function(magic, kind, name)

    def uninstall(self) -> None:
        """Leave the shell as it was before `install`, and end the workers of targets.

        A cell that unloads the extension is under way still: it is ended as any other, and only
        then is nothing left.
        """
        self._shell.input_transformers_cleanup.remove(self._blank_magic_line)
        self._shell.ast_transformers.remove(self)
        for event, callback in self._events.items():
            self._shell.events.unregister(event, callback)
        if self._watching() is not None:
            self._shell.events.register("post_run_cell", self._end_unloaded)
        else:
            stop_all()
        for kind, name, before in self._replaced:
            del self._known_magics(kind)[name]
            if before is not None:
                self._known_magics(kind)[name] = before

    def _known_magics(self, kind: str) -> dict[str, Any]:
        return self._shell.magics_manager.magics[kind]

    # A cell's way through, in the order in which IPython calls these.

    def _blank_magic_line(self, lines: list[str]) -> list[str]:
        if magic_line(lines) is None:
            return lines
        self._unclaimed = bool(self._running)
        return without_magic_line(lines)

    def _claim(self) -> None:
        self._unclaimed = False

    def _before_cell(self, info: Any) -> None:
        cell = self._source_cell(info)
        running = Running(info, cell.file)
        self._running.append(running)
        self._session.remember(cell)
        line = magic_line(cell.source.splitlines(keepends=True))
        if line is None or self._watching() is not None:
            return  # a plain cell, or one that a `%%dynamo` cell runs and watches
        if wants_help(line):
            running.helps = True
            return
        try:
            running.execution = Execution(cell, parse(line), self._shell)
        except UsageError as error:
            running.refused = error

    def visit(self, tree: ast.AST) -> ast.AST:
        """Rewrite a cell's AST. IPython calls this for each cell, and `%time` for its statement."""
        if self._unclaimed:
            self._unclaimed = False
            raise UsageError(NOT_FIRST)
        running = self._running[-1] if self._running else None
        if running is None or not isinstance(tree, ast.Module):
            return tree
        if running.refused is not None:
            raise running.refused
        if running.helps:
            say(help_text())
            return ast.Module([], [])
        if running.execution is not None and not running.execution.started:
            return running.execution.start(tree)
        watching = self._watching()
        if watching is not None and running.execution is watching:
            return watching.rewrite_nested(tree, None)
        if watching is not None and watching.wraps:
            return watching.rewrite_nested(tree, running.file)
        return tree

    def _after_cell(self, result: Any) -> None:
        info = getattr(result, "info", None)
        if not self._running or not self._running[-1].ended_by(info):
            return  # an empty cell: IPython ends it without having begun it
        running = self._running.pop()
        if running.execution is None:
            return
        error = result.error_before_exec or result.error_in_exec if result else KeyboardInterrupt()
        running.execution.finish(error)
        if not isinstance(error, UsageError):
            self._reporter.report(running.execution)

    def _end_unloaded(self, result: Any) -> None:
        """End the cell that unloaded the extension, and take the last of it away."""
        try:
            self._after_cell(result)
        finally:
            if self._watching() is None:
                self._shell.events.unregister("post_run_cell", self._end_unloaded)
                stop_all()

    def _watching(self) -> Execution | None:
        return next((r.execution for r in self._running if r.execution is not None), None)

    def _source_cell(self, info: Any) -> SourceCell:
        counted = info.store_history and not info.silent
        number = self._shell.execution_count - (1 if counted else 0)
        file = self._shell.compile.get_code_name(info.raw_cell, info.transformed_cell, number)
        return SourceCell(file=file, source=cell_source(info.raw_cell), number=number)

    # The magics themselves.

    def cell_magic(self, line: str, cell: str) -> None:
        """Run a cell for a caller of the magic; a cell typed by hand does not come here."""
        result = self._shell.run_cell(f"{MAGIC} {line}\n{cell}")
        if not result.success:
            raise CellFailedError from result.error_before_exec or result.error_in_exec

    def line_magic(self, line: str) -> None:
        """Show the last report again, or do what the command says."""
        self._commands(line)

    def _not_first(self, _: str) -> None:
        raise UsageError(NOT_FIRST)

    #: IPython leaves the line as it is written: `%dynamo would f({"a": x})` is Python.
    line_magic._ipython_magic_no_var_expand = True  # type: ignore[attr-defined]
    cell_magic.__doc__ = line_magic.__doc__ = help_text()
