"""`calls` mode: each call at the cell's top level is made through torch.compile.

The cell's AST changes in one place only: the callee `f` of a call becomes `…through(f, number)`,
which returns it compiled or as it is. Positions stay, so tracebacks are those of the plain cell,
and no name is added to the notebook's namespace.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections import Counter
from types import CodeType
from typing import Any

from dynamo_nb.record.run import Called
from dynamo_nb.runner import callee as callees

__all__ = ["Calls", "rewrite", "through"]

#: Callees that are written as such. What a literal or a lambda returns is not looked at.
CALLEES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.IfExp, ast.BoolOp, ast.NamedExpr)


class _Kept:
    """A compiled callable, and how many of the references to its owner are our own."""

    def __init__(self, owner: Any, target: Any, compiled: Any) -> None:
        self.owner = owner
        self.target = target
        self.compiled = compiled
        self.own = 0


class Calls:
    """The calls of one run: what was compiled for it. Only the run under way compiles anything."""

    current: Calls | None = None
    count = 0

    def __init__(self, arguments: dict[str, Any]) -> None:
        Calls.count += 1
        self.number = Calls.count
        self._arguments = arguments
        self._kept: dict[tuple[int, int], _Kept] = {}
        self._lock = threading.Lock()
        self._counts: Counter[tuple[int, int]] = Counter()
        self._codes: dict[int, CodeType] = {}  # by id: the hash of a code object is slow
        self._reasons: dict[int, str] = {}

    def __enter__(self) -> Calls:
        Calls.current = self
        return self

    def __exit__(self, *exc: object) -> None:
        Calls.current = None
        self._kept.clear()

    def through(self, callee: Any, line: int) -> Any:
        """Return `callee` compiled, the same object each time, or as it is."""

        def compiled(target: Any) -> Any:
            self._count(callees.code_of(target), line)
            return self._compile(target)

        result = callees.through(callee, compiled)
        if result is callee and (alone := callees.left_alone(callee)):
            code, self._reasons[id(alone[0])] = alone
            self._count(code, line)
        return result

    def _count(self, code: CodeType | None, line: int) -> None:
        if code is not None and line:
            self._codes[id(code)] = code
            self._counts[line, id(code)] += 1

    def called(self) -> list[Called]:
        """Return how often each line called what was compiled for it, or left alone as it is."""
        from dynamo_nb.capture import compiler

        return [
            Called(
                line=line,
                count=count,
                uncompiled=self._reasons.get(code, ""),
                **compiler.described(self._codes[code]),
            )
            for (line, code), count in self._counts.items()
        ]

    def _compile(self, target: Any) -> Any:
        from dynamo_nb.capture import compiler

        owner = getattr(target, "__self__", target)
        key = (id(owner), id(getattr(target, "__func__", target)))
        with self._lock:
            if key not in self._kept:
                self._let_go()
                before = sys.getrefcount(owner)
                kept = _Kept(owner, target, compiler.compiled(target, self._arguments))
                kept.own = sys.getrefcount(owner) - before + (target is not owner)
                self._kept[key] = kept
            return self._kept[key].compiled

    def _let_go(self) -> None:
        """Drop what nothing else refers to any more: a cell that makes model after model."""
        for key, kept in list(self._kept.items()):
            if sys.getrefcount(kept.owner) - kept.own <= 1:
                del self._kept[key]


def through(callee: Any, number: int) -> Any:
    """Return `callee`, compiled if the run of that number is under way and wants it compiled.

    Called from rewritten cells. A generator expression may be consumed long after its cell has
    ended, and nothing that goes wrong here may break the cell: then it is the plain callable.
    """
    calls = Calls.current
    if calls is None or calls.number != number:
        return callee
    try:
        caller = sys._getframe(1)
        is_timed = caller.f_code.co_filename.startswith(TIMED)
        return calls.through(callee, 0 if is_timed else caller.f_lineno)
    except Exception:
        return callee


#: Files of the code that `%time` and `%timeit` make: its lines are not the cell's.
TIMED = ("<timed ", "<magic-timeit>")


class _Rewrite(ast.NodeTransformer):
    def __init__(self, number: int) -> None:
        self._number = number

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _leave  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, CALLEES):
            _place_as_method(node)
            node.func = _through(node.func, self._number, node.lineno)
        return node


def _place_as_method(call: ast.Call) -> None:
    """Give a method call that spans lines the place that Python gives it: the attribute's name."""
    attribute = call.func
    if not isinstance(attribute, ast.Attribute) or attribute.end_lineno == call.lineno:
        return
    call.lineno = attribute.end_lineno or call.lineno
    call.col_offset = max(0, (attribute.end_col_offset or 0) - len(attribute.attr))


def _through(callee: ast.expr, number: int, line: int) -> ast.expr:
    """Return `__import__('dynamo_nb.runner.calls', …).through(callee, number)`, placed there.

    `line` is where Python says that the call is made.
    """
    template = f"__import__({__name__!r}, None, None, ('through',)).through(None, {number})"
    call = ast.parse(template, mode="eval").body
    assert isinstance(call, ast.Call)
    for node in ast.walk(call):
        if isinstance(node, ast.expr):
            ast.copy_location(node, callee)
    call.args[0] = callee
    if line != call.lineno:
        call.lineno, call.col_offset = line, 0
    return call


def rewrite(tree: ast.Module, number: int) -> ast.Module:
    """Make the top-level calls of `tree` go through the run of that number."""
    rewritten: ast.Module = _Rewrite(number).visit(tree)
    return rewritten
