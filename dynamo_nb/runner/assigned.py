"""Names that a cell may read before it binds them, told from its statements alone."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable

from dynamo_nb.runner.names import stored_names

__all__ = ["maybe_unbound"]

TRY = (ast.Try, getattr(ast, "TryStar", ast.Try))


class _UnboundError(Exception):
    """Ends the walk; carries the name that was found."""


def maybe_unbound(before: list[ast.stmt], body: list[ast.stmt], namespace: Container[str]) -> str:
    """Return a name that `body` binds but may read before it does; else nothing.

    `before` are the statements that run first; names in `namespace` exist anyway. The answer errs
    on the side of caution: of branches and loops, the way through that binds least counts.
    """
    there = stored_names(ast.Module(before, []))
    watched = {name for name in stored_names(ast.Module(body, [])) if name not in namespace}
    try:
        _Walk(watched - there).statements(body, set())
    except _UnboundError as found:
        return str(found)
    return ""


class _Walk:
    """Follows statements; each method takes the names bound before and returns those after."""

    def __init__(self, watched: set[str]) -> None:
        self._watched = watched

    def statements(self, body: Iterable[ast.stmt], bound: set[str]) -> set[str]:
        for node in body:
            bound = self._statement(node, bound)
        return bound

    def _statement(self, node: ast.stmt, bound: set[str]) -> set[str]:
        if isinstance(node, ast.If):
            bound = self._expression(node.test, bound)
            return self.statements(node.body, bound) & self.statements(node.orelse, bound)
        if isinstance(node, ast.For):
            return self._for(node, bound)
        if isinstance(node, ast.While):
            bound = self._expression(node.test, bound)
            self.statements([*node.body, *node.orelse], bound)
            return bound
        if isinstance(node, ast.With):
            return self._with(node, bound)
        if isinstance(node, TRY):
            return self._try(node, bound)
        if isinstance(node, ast.Match):
            self._expression(node, bound)
            return bound
        if isinstance(node, ast.Delete):
            return self._expression(node, bound) - {
                child.id for child in ast.walk(node) if isinstance(child, ast.Name)
            }
        if isinstance(node, ast.AugAssign):
            self._read(node.target, bound)
        return self._expression(node, bound)

    def _for(self, node: ast.For, bound: set[str]) -> set[str]:
        bound = self._expression(node.iter, bound)
        inside = self.statements(node.body, bound | stored_names(node.target))
        self.statements(node.orelse, bound)
        leaves_early = any(isinstance(child, (ast.Break, ast.Continue)) for child in ast.walk(node))
        return inside if _runs(node.iter) and not leaves_early else bound

    def _with(self, node: ast.With, bound: set[str]) -> set[str]:
        for item in node.items:
            bound = self._expression(item.context_expr, bound)
            if item.optional_vars is not None:
                bound = bound | stored_names(item.optional_vars)
        after = self.statements(node.body, bound)
        swallows = any("suppress" in ast.unparse(item.context_expr) for item in node.items)
        return bound if swallows else after

    def _try(self, node: ast.Try, bound: set[str]) -> set[str]:
        after = self.statements([*node.body, *node.orelse], bound)
        for handler in node.handlers:
            name = {handler.name} if handler.name else set()  # Python unbinds it after the handler
            after &= self.statements(handler.body, bound | name) - name
            after -= name
        return after | self.statements(node.finalbody, bound)

    def _expression(self, node: ast.AST, bound: set[str]) -> set[str]:
        """Check all that `node` reads, nested scopes included, and return what it binds besides."""
        own = {
            name
            for child in ast.walk(node)
            if isinstance(child, ast.comprehension)
            for name in stored_names(child.target)
        }
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Store):
                self._read(child, bound | own)
        return bound | (stored_names(node) - own)

    def _read(self, node: ast.AST, bound: set[str]) -> None:
        if isinstance(node, ast.Name) and node.id in self._watched - bound:
            raise _UnboundError(node.id)


def _runs(iterable: ast.expr) -> bool:
    """Say whether a `for` over this runs at least once: a filled literal, or `range(3)`."""
    if isinstance(iterable, (ast.List, ast.Tuple)):
        return bool(iterable.elts)
    if isinstance(iterable, ast.Call) and ast.unparse(iterable.func) == "range":
        match iterable.args:
            case [ast.Constant(value=int(stop))]:
                return stop > 0
            case [ast.Constant(value=int(start)), ast.Constant(value=int(stop))]:
                return stop > start
    return False
