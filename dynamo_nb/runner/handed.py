"""Functions of the user's that a cell hands to others, which call them out of `calls` mode's reach.

`Thread(target=f)`, `pool.map(f, xs)`, `map(f, xs)`: the cell has no call of `f` to compile.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Mapping
from typing import Any

from dynamo_nb.record.run import Called
from dynamo_nb.runner.callee import is_compilable
from dynamo_nb.runner.names import UNKNOWN, Names, outside_definitions

__all__ = ["handed_over"]


def handed_over(tree: ast.AST, namespace: Mapping[str, Any]) -> list[Called]:
    """Return the functions that a cell passes to what the user did not write, in order."""
    names = Names(tree, namespace)
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return [
        Called(
            line=node.lineno,
            name=ast.unparse(given),
            file="",
            first_line=0,
            count=0,
            uncompiled=f"it is handed to `{ast.unparse(node.func)}`, which calls it",
        )
        for node in outside_definitions(tree)
        if isinstance(node, ast.Call) and _is_anothers(node.func, names, defined)
        for given in _arguments(node)
        if _is_users(given, names, defined)
    ]


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


#: Of torch: what these are given they compile, leave alone, or keep as a setting.
_NO_CALLERS = ("compile", "disable", "allow_in_graph", "patch")


def _is_anothers(callee: ast.expr, names: Names, defined: set[str]) -> bool:
    is_known = isinstance(callee, ast.Attribute) and callee.attr in _NO_CALLERS
    return not is_known and not _is_users(callee, names, defined)


def _is_users(node: ast.expr, names: Names, defined: set[str]) -> bool:
    """Say whether an expression names a function of the user's, as far as can be told."""
    if isinstance(node, ast.Name) and node.id in defined:
        return True
    value = names.value(node)
    is_function = isinstance(value, (types.FunctionType, types.MethodType))
    return value is not UNKNOWN and is_function and is_compilable(value)
