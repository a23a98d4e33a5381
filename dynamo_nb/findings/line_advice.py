"""What a line of the cell tells about a break or an error that torch's own words leave out."""

from __future__ import annotations

import ast
import re

from dynamo_nb.findings.sources import enclosing_function, enclosing_handler, is_test, parse
from dynamo_nb.record.types import CellRecord, GraphBreak, StackFrame

__all__ = ["except_advice", "line_advice", "line_meaning"]

_ITEM = "Unsupported Tensor.item() call"
_ITEM_ADVICE = (
    "Leave the number out, because data-dependent control flow breaks the graph in any case: "
    "choose with torch.where on the tensor, or with torch.cond between functions. "
    "(capture_scalar_outputs only moves the break to the branch.)"
)

_OBSERVED = "Observed exception"
_RAISED = re.compile(r"raised exception (.+)", re.DOTALL)
_TRACING_ADVICE = (
    "If eager raises it, too, mend that. Else Dynamo cannot trace this line: move it out of the "
    "compiled function."
)
_ADDRESS_ADVICE = (
    "Keep `data_ptr()` out of the compiled function: it gives an address, and compiled code has "
    "no number for it."
)


def line_advice(record: CellRecord, frame: StackFrame | None, kind: str) -> str:
    """Return what to do about a break of this kind at this line, empty where torch's hints do."""
    tree = parse(record, frame.file) if frame is not None else None
    if tree is None or frame is None:
        return ""
    if kind.startswith(_ITEM) and _decides(tree, frame.line):
        return _ITEM_ADVICE
    if kind == _OBSERVED and not _raises(tree, frame.line):
        return _ADDRESS_ADVICE if _uses_address(tree, frame.line) else _TRACING_ADVICE
    return ""


def line_meaning(record: CellRecord, frame: StackFrame | None, found: GraphBreak | None) -> str:
    """Return what an exception that Dynamo met is, where the line does not raise it itself."""
    told = _RAISED.match(found.context) if found is not None and found.kind == _OBSERVED else None
    tree = parse(record, frame.file) if told and frame is not None else None
    if told is None or tree is None or frame is None or _raises(tree, frame.line):
        return ""
    what = " (`data_ptr()` gives no number there)" if _uses_address(tree, frame.line) else ""
    return f"tracing the line raises {' '.join(told[1].split())}{what}"


def except_advice(record: CellRecord, frame: StackFrame | None) -> str:
    """Return what to say of an `except` around a line that compiled code does not come to."""
    tree = parse(record, frame.file) if frame is not None else None
    handler = enclosing_handler(tree, frame.line) if tree is not None and frame else None
    if handler is None:
        return ""
    return (
        f"Compiled code does not come to the `except` in line {handler.lineno}, as eager may, "
        "because torch raises while it traces. Test for the condition before the line, or keep the "
        "`try` out of the compiled function with torch.compiler.disable."
    )


def _raises(tree: ast.AST, line: int) -> bool:
    return any(
        isinstance(node, ast.Raise | ast.Assert) and node.lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(tree)
    )


def _decides(tree: ast.AST, line: int) -> bool:
    """Tell whether a line is the condition of a branch, or sets a name that a branch tests."""
    if is_test(tree, line):
        return True
    scope = enclosing_function(tree, line) or tree
    stored = _stored(scope, line)
    tests = (n.test for n in ast.walk(scope) if isinstance(n, ast.If | ast.While | ast.IfExp))
    loaded = {n.id for test in tests for n in ast.walk(test) if isinstance(n, ast.Name)}
    return bool(stored & loaded)


def _stored(scope: ast.AST, line: int) -> set[str]:
    return {
        node.id
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno == line
    }


def _uses_address(tree: ast.AST, line: int) -> bool:
    """Tell whether a line asks for an address, or uses a name that was given one."""
    scope = enclosing_function(tree, line) or tree
    read = (node for node in ast.walk(scope) if isinstance(node, ast.Attribute))
    asks = [node.lineno for node in read if node.attr == "data_ptr"]
    names = {name for asked in asks for name in _stored(scope, asked)}
    here = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.lineno == line]
    return line in asks or any(node.id in names for node in here)
