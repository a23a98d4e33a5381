"""The IPython side: how `%%dynamo` gets hold of a cell without taking it from IPython.

The cell stays IPython's own. Its magic line becomes an empty line, an AST transformer rewrites what
is left, and two events begin and end the watching: so line numbers, the last value's display,
`await`, tracebacks and "Run All" are those of a plain cell.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

from IPython.core.inputtransformer2 import leading_empty_lines, leading_indent

from dynamo_nb.options import Options, UsageError, help_text, parse
from dynamo_nb.record.run import SourceCell
from dynamo_nb.runner.execution import Execution, error_of
from dynamo_nb.session import Report, Session, current, problems

__all__ = ["Extension"]

NAME = "dynamo"
MAGIC = f"%%{NAME}"


class CellFailedError(Exception):
    """Stands for an exception that was shown already, so that the caller still stops."""

    def _render_traceback_(self) -> list[str]:
        return []


def magic_line(lines: list[str]) -> str | None:
    """Return what follows `%%dynamo` on the first line, or None if it is not there."""
    words = lines[0].split(None, 1) if lines else []
    if not words or words[0] != MAGIC:
        return None
    return words[1].rstrip("\n") if len(words) > 1 else ""


def blank_magic_line(lines: list[str]) -> list[str]:
    """Replace the `%%dynamo` line by an empty one, which keeps every line number."""
    return lines if magic_line(lines) is None else ["\n", *lines[1:]]


def cell_source(raw: str) -> str:
    """Return a cell's text with the line numbers that IPython gives it."""
    return "".join(leading_indent(leading_empty_lines(raw.splitlines(keepends=True))))


class Extension:
    """All that `%load_ext` adds to a shell, and takes away again."""

    def __init__(self, shell: Any, session: Session | None = None) -> None:
        self.shell = shell
        self.session = session or current()
        self._execution: Execution | None = None
        self._info: Any = None
        self._usage_error: UsageError | None = None
        self._nested: list[Any] = []

    # --- loading ---------------------------------------------------------------------------------

    def install(self) -> None:
        """Add the transformers, events and magics to the shell."""
        self.shell.input_transformers_cleanup.append(blank_magic_line)
        self.shell.ast_transformers.append(self)
        self.shell.events.register("pre_run_cell", self._before_cell)
        self.shell.events.register("post_run_cell", self._after_cell)
        for kind, magic in (("cell", self.cell_magic), ("line", self.line_magic)):
            self.shell.register_magic_function(magic, kind, NAME)

    def uninstall(self) -> None:
        """Leave the shell as it was before `install`."""
        self.shell.input_transformers_cleanup.remove(blank_magic_line)
        self.shell.ast_transformers.remove(self)
        self.shell.events.unregister("pre_run_cell", self._before_cell)
        self.shell.events.unregister("post_run_cell", self._after_cell)
        for kind in ("cell", "line"):
            self.shell.magics_manager.magics[kind].pop(NAME, None)

    # --- a cell's way through --------------------------------------------------------------------

    def _before_cell(self, info: Any) -> None:
        if self._info is not None:
            self._nested.append(info)
            return
        self._info = info
        cell = self._source_cell(info)
        self.session.remember(cell)
        line = magic_line(cell.source.splitlines(keepends=True))
        if line is None:
            return
        try:
            self._execution = Execution(cell, parse(line), self.shell)
        except UsageError as error:
            self._usage_error = error

    def _source_cell(self, info: Any) -> SourceCell:
        counted = info.store_history and not info.silent
        number = self.shell.execution_count - (1 if counted else 0)
        file = self.shell.compile.get_code_name(info.raw_cell, info.transformed_cell, number)
        return SourceCell(file=file, source=cell_source(info.raw_cell), number=number)

    def visit(self, tree: ast.AST) -> ast.AST:
        """Rewrite a cell's AST. IPython calls this once per cell, `%time` for its statement."""
        if self._usage_error is not None:
            raise self._usage_error
        execution = self._execution
        if execution is None or self._nested or not isinstance(tree, ast.Module):
            return tree
        if execution.started:
            return execution.rewrite_nested(tree)
        return execution.start(tree)

    def _after_cell(self, result: Any) -> None:
        if not self._ends_this_cell(result):
            return
        execution, self._execution = self._execution, None
        self._info = self._usage_error = None
        self._nested.clear()
        if execution is None:
            return
        execution.finish()
        error = _error(result)
        if isinstance(error, UsageError):
            return
        execution.run.error = error_of(error, execution.run.cell.file)
        self._report(execution)

    def _ends_this_cell(self, result: Any) -> bool:
        """Tell the end of the cell from that of one that it ran itself, through `run_cell`."""
        info = getattr(result, "info", None)
        if self._info is None or info is self._info:
            return self._info is not None
        begun = (self._info, *self._nested)
        if info is not None and not any(_same(info, known) for known in begun):
            return False  # an empty cell: it ends without having begun
        if not self._nested:
            return True
        self._nested.pop()
        return False

    # --- the report ------------------------------------------------------------------------------

    def _report(self, execution: Execution) -> None:
        try:
            if execution.options.fresh:
                self.session.forget_compiles()
            report = Report(self.session.build(execution.events, execution.run))
        except Exception as exc:
            self._say(problems(exc, "building the report"))
            return
        self._show(report, execution.options)
        if execution.options.save:
            self._save(report, execution.options.save)

    def _show(self, report: Report, options: Options) -> None:
        try:
            self._publish(report.bundle(options.view))
        except Exception as exc:
            self._say(problems(exc, "showing the report"))

    def _save(self, report: Report, path: str) -> None:
        try:
            report.save(path)
        except Exception as exc:
            self._say(problems(exc, f"saving the report to {path}"))

    def _say(self, text: str) -> None:
        self._publish({"text/plain": text})

    def _publish(self, bundle: dict[str, str]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.shell.display_pub.publish(bundle)

    # --- the magics ------------------------------------------------------------------------------

    def cell_magic(self, line: str, cell: str) -> None:
        """Run a cell whose magic was called directly; usually the transformers do it all."""
        result = self.shell.run_cell(f"{MAGIC} {line}\n{cell}")
        if not result.success:
            raise CellFailedError from _error(result)

    def line_magic(self, line: str) -> None:
        """Show the last report again; or `save FILE`, `load FILE`, `reset`."""
        verb, _, rest = line.strip().partition(" ")
        acts = {"": self._again, "save": self._save_last, "load": self._load, "reset": self._reset}
        if verb not in acts:
            raise UsageError(f"%dynamo: no command {verb!r}. There are: save, load, reset.")
        acts[verb](rest.strip())

    cell_magic.__doc__ = line_magic.__doc__ = help_text()

    def _again(self, _: str) -> None:
        self._show(self._last(), Options())

    def _save_last(self, path: str) -> None:
        if not path:
            raise UsageError("%dynamo save: to which file? %dynamo save FILE")
        try:
            self._last().save(path)
        except (OSError, ValueError) as exc:
            raise UsageError(f"%dynamo save: {exc}") from exc

    def _load(self, path: str) -> None:
        from dynamo_nb.record.io import load

        if not path:
            raise UsageError("%dynamo load: which file? %dynamo load FILE")
        try:
            record = load(path)
        except (OSError, ValueError) as exc:
            raise UsageError(f"%dynamo load: {exc}") from exc
        self.session.records.append(record)
        self._show(Report(record), Options())

    def _reset(self, _: str) -> None:
        if "torch" in sys.modules:
            from dynamo_nb.capture import compiler

            compiler.reset()
        self.session.reset()

    def _last(self) -> Report:
        record = self.session.last()
        if record is None:
            raise UsageError("%dynamo: there is no report yet. Put %%dynamo on top of a cell.")
        return Report(record)


def _same(info: Any, other: Any) -> bool:
    """Say whether two infos are of one cell: IPython makes a second one when it is interrupted."""
    return info is other or info.raw_cell == other.raw_cell


def _error(result: Any) -> BaseException | None:
    if result is None:
        return KeyboardInterrupt()
    return result.error_before_exec or result.error_in_exec  # type: ignore[no-any-return]
