"""Hooks that were registered too late for the entry that runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dynamo_nb.findings.sources import parse
from dynamo_nb.findings.wording import cell_lines
from dynamo_nb.record.types import CELL, Call, CellRecord, Compile, Finding, Ref

__all__ = ["unguarded_hook"]

_REGISTER = frozenset(
    (
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
        "register_backward_hook",
    )
)

#: A module whose `forward` is torch's own is compiled through this file's wrapper, hooks and all.
_WRAPPER = "external_utils.py"


def unguarded_hook(record: CellRecord) -> Iterator[Finding]:
    """A hook is registered on a module that is compiled already, and the entry is used again.

    Torch neither guards on hooks nor says anything: what was traced without the hook runs on.
    """
    tree = parse(record, CELL)
    if tree is None:
        return
    for registration in _registrations(tree):
        for call, entry in _stale_calls(record, tree, registration):
            yield _finding(registration, call, entry)
            break


def _registrations(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the called methods that register a hook."""
    for node in ast.walk(tree):
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in _REGISTER:
            yield function


def _stale_calls(
    record: CellRecord, tree: ast.AST, registration: ast.Attribute
) -> Iterator[tuple[Call, Compile]]:
    """Yield later calls of the model that only reused what was compiled before the hook."""
    line, module = registration.lineno, registration.value
    names = _names_of_model(tree, _root(module))
    compiles = {compiled.key: compiled for compiled in record.compiles}
    for call in record.calls:
        if call.line <= line or call.compiles:
            continue
        is_called = _is_called(tree, call.line, names)
        for entry in (compiles[key] for key in call.hits if key in compiles):
            before = entry.cell is not None or (entry.call_line or line) < line
            own = not isinstance(module, ast.Name) or entry.file.endswith(_WRAPPER)
            inlined = (is_called and own) or _is_inlined(entry, _root(module))
            if before and inlined and not entry.graph_breaks:
                yield call, entry


def _is_inlined(entry: Compile, name: str) -> bool:
    """Tell whether a function that was compiled reads the model from a variable of that name."""
    sources = (guard.source for guard in entry.guards)
    return bool(name) and any(source.startswith(f"G['{name}']") for source in sources)


def _root(expression: ast.expr) -> str:
    """Return the variable that an expression starts from: `net` of `net.layers[0]`."""
    while isinstance(expression, ast.Attribute | ast.Subscript):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else ""


def _names_of_model(tree: ast.AST, name: str) -> set[str]:
    """Return the variables that hold a model or what `torch.compile` made of it."""
    names = {name} - {""}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        arguments = {argument.id for argument in node.value.args if isinstance(argument, ast.Name)}
        targets = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if ast.unparse(node.value.func).endswith("compile") and (arguments | targets) & names:
            names |= arguments | targets
    return names


def _is_called(tree: ast.AST, line: int, names: set[str]) -> bool:
    return any(
        isinstance(node, ast.Call)
        and node.lineno == line
        and isinstance(node.func, ast.Name)
        and node.func.id in names
        for node in ast.walk(tree)
    )


def _finding(registration: ast.Attribute, call: Call, entry: Compile) -> Finding:
    module = ast.unparse(registration.value)
    return Finding(
        code="unguarded-hook",
        severity="warning",
        message=(
            f"The hook on `{module}` never runs: line {call.line} reuses the entry {entry.key}, "
            f"which was compiled without it, and torch does not guard on hooks."
        ),
        advice=(
            "Register hooks before the first compiled call, or call torch._dynamo.reset() after "
            "registering. torch._dynamo.config.skip_nnmodule_hook_guards = False makes torch guard "
            "on them."
        ),
        line=registration.lineno,
        lines=cell_lines(registration.lineno, call.line),
        refs=[Ref(entry.key, "compile", "")],
    )
