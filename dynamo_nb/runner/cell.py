"""`cell` mode: the cell's body becomes one function, which is compiled and called once.

Dynamo never compiles module-level code itself. In the function every name that the cell binds is
declared global, so that names, closures and other cells see what they see without the magic. Two
traps need care. Dynamo reads a global that the function binds only if the name exists before, so
such names hold a placeholder until the cell is done. And a name that may be read before it is bound
must go on raising `NameError`: such a cell is left alone.
"""

from __future__ import annotations

import ast
import dis
import inspect
import types
from collections.abc import Callable, Container, MutableMapping
from typing import Any

from dynamo_nb.runner.assigned import maybe_unbound
from dynamo_nb.runner.names import outside_definitions

__all__ = ["FUNCTION", "Body", "body_of", "obstacle", "run", "split"]

#: The name of the function that the body becomes, as Python itself says `<module>`.
FUNCTION = "<cell>"

#: Builtins that look at the calling frame, or at the namespace: not the same in a function.
LOOKS_AROUND = {"globals", "locals", "vars", "dir", "exec", "eval", "get_ipython", "super"}

STORES = {"STORE_NAME", "STORE_GLOBAL", "DELETE_NAME", "DELETE_GLOBAL"}
#: Statements that turn on which exception is raised.
RAISES: dict[type[ast.AST], str] = {
    ast.Try: "it has a `try`",
    ast.Assert: "it has an `assert`",
}
ASYNC = (ast.Await, ast.AsyncFor, ast.AsyncWith)
PLACEHOLDER = object()


class Body:
    """A cell's body as a function's code, and the names of the notebook that it binds."""

    current: Body | None = None

    def __init__(
        self,
        code: types.CodeType,
        stored: list[str],
        statements: list[ast.stmt],
        compile_tree: Callable[[ast.Module], types.CodeType],
    ) -> None:
        self.code = code
        self._stored = stored
        self._statements = statements
        self._compile_tree = compile_tree
        self._namespace: MutableMapping[str, Any] = {}
        self._arguments: dict[str, Any] = {}
        self._seeded: list[str] = []

    def enter(self, namespace: MutableMapping[str, Any], arguments: dict[str, Any]) -> None:
        """Make this the body that the rewritten cell calls."""
        self._namespace, self._arguments = namespace, arguments
        Body.current = self

    def leave(self) -> None:
        """Take the placeholders away that the cell did not replace."""
        Body.current = None
        for name in self._seeded:
            if self._namespace.get(name) is PLACEHOLDER:
                del self._namespace[name]

    def run(self) -> Any:
        """Call the compiled body, and return what it returns."""
        body = self._function()
        try:
            return body()
        except Exception as error:
            self._run_before(error)
            raise

    def _run_before(self, error: Exception) -> None:
        """Run, as they are, the statements above one at which Dynamo failed to trace the body.

        They have not run yet, and the plain cell would have bound their names.
        """
        from dynamo_nb.capture import compiler

        begun, failed = compiler.untraced_lines(error, self.code)
        before = [s for s in self._statements if (s.end_lineno or s.lineno) < failed]
        if begun:
            at = next((s for s in before if s.lineno <= begun <= (s.end_lineno or s.lineno)), None)
            if at is None or not _is_one_call(at):
                return  # the statement that broke the graph may have a rest to run
            before = before[before.index(at) + 1 :]
        exec(self._compile_tree(ast.Module(before, [])), self._namespace)  # type: ignore[arg-type]

    def _function(self) -> Callable[[], Any]:
        from dynamo_nb.capture import compiler

        function = types.FunctionType(self.code, self._namespace, FUNCTION)  # type: ignore[arg-type]
        run = compiler.compiled(function, self._arguments)
        self._seeded = [name for name in self._stored if name not in self._namespace]
        self._namespace.update(dict.fromkeys(self._seeded, PLACEHOLDER))
        return run


def _is_one_call(statement: ast.stmt) -> bool:
    """Say whether a statement is one call of a name with names and constants, and no more."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return isinstance(call.func, (ast.Name, ast.Attribute)) and all(
        isinstance(value, (ast.Name, ast.Constant)) for value in given
    )


def run() -> Any:
    """Run the body of the run under way, compiled. Called from rewritten cells."""
    assert Body.current is not None
    return Body.current.run()


def split(tree: ast.Module) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return the imports and line magics that a cell begins with, and the rest: its body."""
    start = next((i for i, node in enumerate(tree.body) if not _is_preamble(node)), len(tree.body))
    return tree.body[:start], tree.body[start:]


def _is_preamble(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom)) or (
        isinstance(node, ast.Expr) and ast.unparse(node).startswith("get_ipython().")
    )


def obstacle(tree: ast.Module, namespace: Container[str]) -> str:
    """Return why the body of a cell cannot become a function, or nothing."""
    preamble, body = split(tree)
    if not body:
        return "it has no statements of its own"
    rest = ast.Module(body, [])
    for node in outside_definitions(rest):
        if reason := _node_obstacle(node):
            return f"{reason} (line {getattr(node, 'lineno', body[0].lineno)})"
    if name := maybe_unbound(preamble, body, namespace):
        return f"`{name}` may be read before it is assigned"
    return ""


def _shell_command(node: ast.Call) -> str:
    """Return the command that IPython made this call of (`!echo`, `files = !ls`), shortened."""
    function = ast.unparse(node.func)
    if function not in ("get_ipython().system", "get_ipython().getoutput") or not node.args:
        return ""
    text = node.args[0].value if isinstance(node.args[0], ast.Constant) else ""
    first, _, rest = str(text).strip().partition(" ")
    return f"{first} …" if rest else first


def _node_obstacle(node: ast.AST) -> str:
    if isinstance(node, ASYNC) or bool(getattr(node, "is_async", False)):
        return "`await` at the top level needs the notebook's event loop"
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        return "`import *` works only at the top level"
    if isinstance(node, ast.AnnAssign):
        return "an annotation is kept only at the top level"
    if isinstance(node, ast.Call) and (shell := _shell_command(node)):
        return f"`!{shell}` runs a shell command"
    if isinstance(node, ast.Name) and node.id in LOOKS_AROUND:
        return f"`{node.id}` means something else in a function"
    if isinstance(node, ast.Global):
        return "it has a `global` statement"
    if type(node) in RAISES:
        return f"{RAISES[type(node)]}, and compiled code raises torch's own exceptions"
    return ""


def body_of(
    tree: ast.Module, compile_tree: Callable[[ast.Module], types.CodeType]
) -> tuple[ast.Module, Body]:
    """Return the cell with its body replaced by one call, and that body.

    `compile_tree` compiles as the shell does. It raises `SyntaxError` where the cell is wrong; the
    caller then leaves the cell alone, so that the error is the plain cell's.
    """
    preamble, body = split(tree)
    if not body:
        raise SyntaxError("it has no statements of its own")
    stored = _bound_names(compile_tree(ast.Module(body, [])))
    module = compile_tree(ast.Module([_function(body, stored)], []))
    code = next(const for const in module.co_consts if inspect.iscode(const))
    call = ast.parse(f"__import__({__name__!r}, None, None, ('run',)).run()").body[0]
    return ast.Module([*preamble, call], []), Body(code, stored, body, compile_tree)


def _bound_names(code: types.CodeType) -> list[str]:
    """Return the global names that a cell's code binds; a nested function may bind some, too."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in STORES}
    return sorted(found - {"__annotations__"})


def _function(body: list[ast.stmt], stored: list[str]) -> ast.FunctionDef:
    first, last = body[0], body[-1]
    statements = list(body)
    if isinstance(last, ast.Expr):
        statements[-1] = ast.copy_location(ast.Return(last.value), last)
    if stored:
        statements.insert(0, ast.copy_location(ast.Global(stored), first))
    function = ast.parse("def f(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.name, function.body = FUNCTION, statements
    ast.copy_location(function, first)
    function.end_lineno, function.end_col_offset = last.end_lineno, last.end_col_offset
    return ast.fix_missing_locations(function)
