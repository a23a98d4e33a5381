"""Compiled objects of the notebook, and whether the cell entered them or went around them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch._dynamo.eval_frame import OptimizedModule, innermost_fn

from dynamo_nb.capture.memory import MEMORY
from dynamo_nb.capture.stacks import code_name, is_internal
from dynamo_nb.events import Event
from dynamo_nb.record.types import Bypass, CompiledObject

__all__ = ["compiled_objects"]

_ENTERING_METHODS = ("forward", "__call__")

#: Code that does not run where it is written, and code that runs only if something holds.
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_CONDITIONS = (
    *(ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.Try, ast.Match, ast.For, ast.AsyncFor),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.With, ast.AsyncWith),
)


def compiled_objects(
    namespace: Mapping[str, Any], source: str, events: Iterable[Event]
) -> list[CompiledObject]:
    """Return the variables that the cell names and that hold something torch.compile returned.

    Parameters
    ----------
    namespace
        The notebook's variables after the run.
    source
        The cell's text; one that does not parse has none.
    events
        What the capture saw: an object was entered when a frame of its code was.
    """
    try:
        tree = ast.parse(_without_magics(source))
    except SyntaxError:
        return []
    entered = _entered_codes(events)
    calls = list(_top_level_calls(tree))
    certain = list(_top_level_calls(tree, (*_SCOPES, *_CONDITIONS)))
    lines = _assignment_lines(tree)
    found = []
    for name in _names(tree):
        original = _original(namespace.get(name))
        if original is None:
            continue
        callee = _callee(original)
        found.append(
            CompiledObject(
                name=name,
                callee=callee.name,
                line=lines.get(name),
                entered=sum(entered.get(key, 0) for key in callee.keys),
                bypasses=[
                    Bypass(line=call.lineno, callee=ast.unparse(call.func))
                    for call in calls
                    if _goes_around(call, name, original, namespace)
                ],
                calls=sorted({c.lineno for c in certain if _is_name(c.func, name)}),
                given_up=MEMORY.left_alone(callee.code) if callee.code is not None else "",
            )
        )
    return found


class _Callee(NamedTuple):
    """What is compiled: its name for a person, and `(file, first line)` or name of its frames."""

    name: str
    keys: tuple[Any, ...]
    code: CodeType | None


def _original(item: Any) -> Any:
    """Return what a compiled object was made from, None for anything else."""
    if isinstance(item, OptimizedModule):
        return item._orig_mod
    if isinstance(item, torch.nn.Module):
        return item if getattr(item, "_compiled_call_impl", None) is not None else None
    marks = getattr(item, "__dict__", {})
    if "_torchdynamo_orig_callable" in marks and "_torchdynamo_disable" not in marks:
        return innermost_fn(item)
    return None


def _callee(original: Any) -> _Callee:
    if isinstance(original, torch.nn.Module):
        kind = type(original)
        code: CodeType | None = getattr(kind.forward, "__code__", None)
        name = f"{kind.__name__}.forward"
        return _Callee(name, (kind.__name__, *_code_key(code)), code)
    function = getattr(original, "__func__", original)
    code = getattr(function, "__code__", None)
    return _Callee(code_name(code) if code else type(original).__name__, _code_key(code), code)


def _code_key(code: CodeType | None) -> tuple[Any, ...]:
    return ((code.co_filename, code.co_firstlineno),) if code is not None else ()


def _entered_codes(events: Iterable[Event]) -> dict[Any, int]:
    """Count entries by `(file, first line)` and by name: compiles, refused frames, look-ups."""
    counts: dict[Any, int] = {}
    for event in events:
        if event.name not in ("compile_start", "frame", "lookup"):
            continue
        weight = event.data.get("count", 1)
        for key in ((event.data["file"], event.data["first_line"]), event.data["name"]):
            counts[key] = counts.get(key, 0) + weight
    return counts


def _without_magics(source: str) -> str:
    """Return the cell with its magic and shell lines emptied, line numbers kept."""
    lines = source.split("\n")
    return "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)


def _names(tree: ast.AST) -> list[str]:
    names = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    defined = (node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return list(dict.fromkeys([*names, *defined]))


def _top_level_calls(
    tree: ast.AST, without: tuple[type[ast.AST], ...] = _SCOPES
) -> Iterator[ast.Call]:
    """Yield the calls outside `def`, `class` and `lambda`, or outside other kinds of node."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, without):
            continue
        if isinstance(node, ast.Call):
            yield node
        yield from _top_level_calls(node, without)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _assignment_lines(tree: ast.Module) -> dict[str, int]:
    lines: dict[str, int] = {}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    lines[target.id] = statement.lineno
        elif isinstance(statement, ast.FunctionDef) and statement.decorator_list:
            lines[statement.name] = statement.lineno
    return lines


def _goes_around(call: ast.Call, name: str, original: Any, namespace: Mapping[str, Any]) -> bool:
    """Tell whether a call runs what was compiled, or a method beside it, uncompiled."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id != name and namespace.get(function.id) is original
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    owner = namespace.get(function.value.id)
    if function.value.id != name and owner is not original:
        return False
    in_place = owner is original and function.value.id == name  # compiled by `module.compile()`
    if function.attr in _ENTERING_METHODS:
        return function.value.id != name or (in_place and function.attr == "forward")
    method = getattr(type(original), function.attr, None)
    code = getattr(method, "__code__", None)
    return code is not None and not is_internal(code.co_filename)
