"""The source that a record refers to, parsed: where functions and loops begin, what they change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dynamo_nb.record.types import CELL, CellRecord, Compile, Frame

__all__ = [
    "assigned_only_in_init",
    "def_line",
    "enclosing_function",
    "enclosing_handler",
    "enclosing_loop",
    "is_test",
    "mutation_line",
    "parse",
    "reading_line",
]

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.While | ast.AsyncFor

_IDENTITY = (ast.Is, ast.IsNot)

#: Methods of Python's containers that change them.
_MUTATORS = frozenset(
    [
        "add",
        "append",
        "appendleft",
        "clear",
        "discard",
        "extend",
        "insert",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "reverse",
        "setdefault",
        "sort",
        "update",
    ]
)


def parse(record: CellRecord, file: str) -> ast.Module | None:
    """Return a file's tree, None when its text is not at hand or not Python.

    Lines with magics are emptied, so that line numbers stay.
    """
    text = record.source if file == CELL else record.files.get(file, "")
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in text.splitlines()]
    try:
        return ast.parse("\n".join(lines)) if text else None
    except SyntaxError:
        return None


def def_line(record: CellRecord, item: Compile | Frame) -> int | None:
    """Return the cell's line with a function's `def`, None when it lies elsewhere.

    A code object begins at its first decorator.
    """
    if item.file != CELL:
        return None
    tree = parse(record, CELL)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, Function) and item.first_line in _head(node):
            return node.lineno
    return item.first_line


def _head(node: Function) -> range:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return range(first, node.lineno + 1)


def _around(tree: ast.AST, kinds: tuple[type[ast.AST], ...], line: int) -> Iterator[ast.stmt]:
    """Yield the statements of these kinds that a line is inside of, outermost first."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or not isinstance(node, kinds):
            continue
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            yield node


def enclosing_function(tree: ast.AST, line: int) -> Function | None:
    """Return the innermost function that a line is in."""
    found = None
    for node in _around(tree, (ast.FunctionDef, ast.AsyncFunctionDef), line):
        found = node
    return found if isinstance(found, Function) else None


def enclosing_loop(tree: ast.AST, line: int) -> Loop | None:
    """Return the innermost loop of a line's own function whose body the line is in."""
    scope = enclosing_function(tree, line) or tree
    found = None
    for node in _around(scope, (ast.For, ast.While, ast.AsyncFor), line):
        if isinstance(node, Loop) and line >= node.body[0].lineno:
            found = node
    return found


def enclosing_handler(tree: ast.AST, line: int) -> ast.ExceptHandler | None:
    """Return the first `except` of the innermost `try` whose body a line is in."""
    scope = enclosing_function(tree, line) or tree
    found = None
    for node in _around(scope, (ast.Try,), line):
        if isinstance(node, ast.Try) and node.handlers and line < node.handlers[0].lineno:
            found = node.handlers[0]
    return found


def is_test(tree: ast.AST, line: int) -> bool:
    """Tell whether the condition of an `if`, a `while` or an `assert` is on a line."""
    return any(
        isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert)
        and node.test.lineno <= line <= (node.test.end_lineno or node.test.lineno)
        for node in ast.walk(tree)
    )


def mutation_line(function: Function, expression: str) -> int | None:
    """Return the first line on which a function changes what an expression stands for."""
    lines = [
        node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.expr | ast.stmt) and expression in map(ast.unparse, _changed(node))
    ]
    return min(lines) if lines else None


def _changed(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node stores into, deletes from, or calls a changing method of."""
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        yield from _owners(node.target)
    elif isinstance(node, ast.Assign | ast.Delete):
        for target in node.targets:
            yield from _owners(target)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from [node.func.value] if node.func.attr in _MUTATORS else []


def _owners(target: ast.expr) -> Iterator[ast.expr]:
    """Yield a target and, for `x[i] = ...`, the container that it changes."""
    yield target
    if isinstance(target, ast.Subscript):
        yield target.value


def reading_line(function: Function, expression: str, line: int) -> int | None:
    """Return the line that reads a value, where a line only asks whether it is None.

    Torch notes the first line that comes across a value, and that may be such a question.
    """
    asked = {
        id(part)
        for node in ast.walk(function)
        if isinstance(node, ast.Compare) and all(isinstance(op, _IDENTITY) for op in node.ops)
        for part in ast.walk(node)
    }
    reads = [
        (node.lineno, id(node) in asked)
        for node in ast.walk(function)
        if isinstance(node, ast.expr)
        and isinstance(getattr(node, "ctx", None), ast.Load)
        and ast.unparse(node) == expression
    ]
    if not any(at == line for at, _ in reads) or (line, False) in reads:
        return None
    return min((at for at, is_asked in reads if at > line and not is_asked), default=None)


def assigned_only_in_init(tree: ast.AST, line: int, attribute: str) -> bool:
    """Tell whether only the `__init__` of the class around a line sets an attribute."""
    classes = list(_around(tree, (ast.ClassDef,), line))
    makers = [
        node
        for node in ast.walk(classes[-1] if classes else ast.Module([], []))
        if isinstance(node, Function) and node.name == "__init__"
    ]
    inside = {id(node) for maker in makers for node in ast.walk(maker)}
    stores = {
        id(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == attribute
        and isinstance(node.ctx, ast.Store)
    }
    return bool(stores) and stores <= inside
