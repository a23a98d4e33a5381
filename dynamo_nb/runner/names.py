"""What a cell's expressions stand for before it runs, as far as that can be told."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["UNKNOWN", "Names", "outside_definitions", "stored_names"]

#: What can only be known when the cell runs.
UNKNOWN = object()

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def outside_definitions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run with the cell: definitions and lambdas, but not what they hold."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, (*DEFINITIONS, ast.Lambda)):
            yield from outside_definitions(node)


def stored_names(tree: ast.AST) -> set[str]:
    """Return the names that `tree` binds where it stands, comprehension variables included."""
    return {name for node in (tree, *outside_definitions(tree)) for name in _bound_by(node)}


def _bound_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, (*DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


class Names:
    """The notebook's names as a cell's code will see them.

    Names that the cell binds are unknown, except what it imports, when that module is loaded
    already: `import torch` on a cell's first line must not make all of torch unknown.
    """

    def __init__(self, tree: ast.AST, namespace: Mapping[str, Any]) -> None:
        self.stored = stored_names(tree)
        self._namespace = namespace
        self._imported = dict(_imports(tree))

    def value(self, node: ast.AST) -> Any:
        """Return what a name or dotted name stands for, or `UNKNOWN`."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            return _attribute(self.value(node.value), node.attr)
        return UNKNOWN

    def _name(self, name: str) -> Any:
        if name in self._imported:
            return self._imported[name]
        if name in self.stored:
            return UNKNOWN
        return self._namespace.get(name, getattr(builtins, name, UNKNOWN))


def _attribute(owner: Any, name: str) -> Any:
    """Return an attribute without running code of the user's: no properties, no `__getattr__`."""
    if owner is UNKNOWN:
        return UNKNOWN
    if inspect.ismodule(owner):
        return vars(owner).get(name, UNKNOWN)
    modules = getattr(owner, "__dict__", {}).get("_modules")
    if isinstance(modules, dict) and name in modules:
        return modules[name]
    found = _static(owner, name)
    return getattr(owner, name, UNKNOWN) if callable(found) and found is not UNKNOWN else found


def _static(owner: Any, name: str) -> Any:
    try:
        found = inspect.getattr_static(owner, name)
    except AttributeError:
        return UNKNOWN
    return UNKNOWN if isinstance(found, property) else found


def _imports(tree: ast.AST) -> Iterator[tuple[str, Any]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or whole, sys.modules.get(whole, UNKNOWN)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = sys.modules.get(node.module or "", UNKNOWN)
            for alias in node.names:
                yield alias.asname or alias.name, _attribute(module, alias.name)
