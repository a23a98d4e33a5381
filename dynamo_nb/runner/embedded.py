"""Python code that stands as text in a magic's arguments: `%time f(x)`, `%%capture` and a body."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

__all__ = ["body_offset", "is_wrapped", "timed_file", "with_embedded"]

#: Magics that run Python code of the notebook.
RUN_PYTHON = {"time", "timeit", "prun", "capture"}
MAGIC_CALLS = {"run_line_magic", "run_cell_magic"}


def _magic_calls(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield each magic that the cell's code calls, with its arguments."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        constants = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        texts = [value for value in constants if isinstance(value, str)]
        if node.func.attr in MAGIC_CALLS and texts:
            yield texts[0], texts[1:]


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
    """Return the cell's statements followed by those that its magics run, where these parse."""
    found: list[ast.stmt] = []
    for name, texts in _magic_calls(tree):
        if name in RUN_PYTHON and texts:
            try:
                found.extend(ast.parse(transform(texts[-1])).body)
            except (SyntaxError, ValueError):
                continue
    return ast.Module([*tree.body, *found], [])
