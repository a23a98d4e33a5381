"""Python code that stands as text in a magic's arguments: `%time f(x)`, `%%capture` and a body."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

__all__ = ["body_offset", "is_wrapped", "timed_file", "with_embedded"]

#: Magics that run Python code of the notebook.
RUN_PYTHON = {"time", "timeit", "prun", "capture"}
MAGIC_CALLS = {"run_line_magic", "run_cell_magic"}


#: Options of these magics, before the statement: `-n2 -r 1`, `--no-raise-error`.
_OPTIONS = re.compile(r"^(?:\s*(?:--[\w-]+|-[nrplsTDV]\s*\S+|-[a-zA-Z]+)(?=\s|$))*\s*")


def _magic_calls(tree: ast.AST) -> Iterator[tuple[str, list[str], int]]:
    """Yield each magic that the cell's code calls: its arguments, and the line of its code."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        constants = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        texts = [value for value in constants if isinstance(value, str)]
        if node.func.attr in MAGIC_CALLS and texts:
            is_cell = node.func.attr == "run_cell_magic"
            yield texts[0], texts[1:], node.lineno + is_cell


def is_wrapped(tree: ast.Module) -> bool:
    """Say whether the cell is nothing but a cell magic with its body."""
    text = [ast.unparse(node) for node in tree.body]
    return len(text) == 1 and text[0].startswith("get_ipython().run_cell_magic(")


def body_offset(source: str) -> int:
    """Return how many lines of a cell stand above the body of the cell magic below `%%dynamo`."""
    lines = source.splitlines()
    return next((i for i, line in enumerate(lines[1:], 2) if line.startswith("%%")), 0)


def timed_file(tree: ast.Module) -> str:
    """Return the file name that `%%time` gives to the code it runs."""
    single = len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr)
    return "<timed eval>" if single else "<timed exec>"


def with_embedded(tree: ast.Module, transform: Callable[[str], str]) -> ast.Module:
    """Return the cell's statements followed by those that its magics run, where these parse.

    They stand on the lines that they have in the editor.
    """
    found: list[ast.stmt] = []
    for name, texts, line in _magic_calls(tree):
        if name in RUN_PYTHON and texts:
            text = texts[-1] if len(texts) > 1 else _OPTIONS.sub("", texts[-1])
            try:
                code = ast.parse(transform(text))
            except (SyntaxError, ValueError):
                continue
            found.extend(ast.increment_lineno(code, line - 1).body)
    return ast.Module([*tree.body, *found], [])
