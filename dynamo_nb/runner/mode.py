"""Which of the three modes fits a cell, and the sentence that says why."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from dynamo_nb.options import Options
from dynamo_nb.runner.callee import is_compilable
from dynamo_nb.runner.cell import obstacle
from dynamo_nb.runner.handed import handed_over
from dynamo_nb.runner.names import DEFINITIONS, UNKNOWN, Names, outside_definitions

__all__ = ["Mode", "choose"]

#: Flags that speak of what the magic compiles, and so mean nothing where it compiles nothing.
COMPILE_FLAGS = ("--fullgraph", "--backend", "--mode", "--dynamic", "--options")

#: Functions of torch that change what tensors become.
_STATE = ("inference_mode", "set_default_dtype", "set_default_tensor_type")

_DEFINES = "the cell only defines things: there is no call to compile"


class Mode(NamedTuple):
    """How the cell runs (`as-is`, `calls`, `cell`), and why."""

    name: str
    reason: str


def choose(tree: ast.Module, namespace: Mapping[str, Any], options: Options) -> Mode:
    """Return the mode for a cell: the one that was asked for, or the one that fits."""
    if options.compile == "auto":
        mode = _fitting(tree, namespace)
    else:
        mode = _asked(tree, namespace, options)
    idle = [flag for flag in options.given if flag in COMPILE_FLAGS]
    if mode.name == "as-is" and idle and (why := _why_idle(tree, namespace, options)):
        verb = "has" if len(idle) == 1 else "have"
        return Mode(mode.name, f"{mode.reason}; {', '.join(idle)} {verb} no effect {why}")
    return mode


def _why_idle(tree: ast.Module, namespace: Mapping[str, Any], options: Options) -> str:
    """Return why flags of torch.compile mean nothing; nothing for a cell that compiles nothing."""
    if _compiles_itself(tree, Names(tree, namespace)):
        return "on what the cell compiles itself"
    return "where nothing is added" if options.compile == "as-is" else ""


def _asked(tree: ast.Module, namespace: Mapping[str, Any], options: Options) -> Mode:
    reason = f"asked for with --compile {options.compile}"
    if options.compile == "cell" and (why_not := obstacle(tree, namespace)):
        return Mode("as-is", f"--compile cell is not possible here: {why_not}")
    return Mode(options.compile, reason)


def _fitting(tree: ast.Module, namespace: Mapping[str, Any]) -> Mode:
    names = Names(tree, namespace)
    if reason := _compiles_itself(tree, names):
        return Mode("as-is", reason)
    if reason := _calls(tree, names):
        return Mode("calls", reason)
    if any(isinstance(node, DEFINITIONS) for node in ast.walk(tree)):
        handed = next(iter(handed_over(tree, namespace)), None)
        why = f"`{handed.name}` is handed on (line {handed.line})" if handed else ""
        return Mode("as-is", f"the cell calls nothing that it defines: {why}" if why else _DEFINES)
    if not _works_with_tensors(tree, names):
        return Mode("as-is", "the cell uses no tensor and calls nothing of torch")
    if reason := _runs_backward(tree):
        return Mode("as-is", reason)
    if reason := _sets_state(tree, names):
        return Mode("as-is", reason)
    if why_not := obstacle(tree, namespace):
        return Mode("as-is", f"the cell's body cannot be compiled as one function: {why_not}")
    return Mode("cell", "the cell calls no module and no function of yours: its body is compiled")


def _compiles_itself(tree: ast.AST, names: Names) -> str:
    from dynamo_nb.capture import compiler

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "compile":
            if _is_torchs_compile(names.value(node.value)):
                return f"the cell names {ast.unparse(node)} (line {node.lineno})"
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            value = names.value(node)
            if value is not UNKNOWN and compiler.is_compiled(value):
                return f"`{ast.unparse(node)}` is compiled already (line {node.lineno})"
            if _is_torchs_compile_function(value):
                return f"the cell names torch.compile as `{ast.unparse(node)}` (line {node.lineno})"
    return ""


def _is_torchs_compile(owner: Any) -> bool:
    """Say whether `owner.compile` may be torch's: not `re.compile`, nor another module's."""
    name = getattr(owner, "__name__", "")
    is_module = inspect.ismodule(owner)
    return not is_module or name == "torch" or name.startswith("torch.")


def _is_torchs_compile_function(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    return module == "torch" and getattr(value, "__name__", "") == "compile"


def _calls(tree: ast.Module, names: Names) -> str:
    """Return why `calls` fits: the first call whose callee is, or may turn out to be, compiled.

    Where that is only possible, because nothing is known of the callee, a later one is told of.
    """
    defined = {node.name: node for node in ast.walk(tree) if isinstance(node, DEFINITIONS)}
    possible = ""
    for node in outside_definitions(tree):
        if not isinstance(node, ast.Call):
            continue
        call = _first_call(node)
        callee, where = ast.unparse(call.func), f"(line {call.lineno})"
        value, owner = names.value(call.func), defined.get(_root(call.func))
        if value is not UNKNOWN:
            if is_compilable(value):
                return f"the cell calls `{callee}` {where}"
        elif isinstance(owner, ast.ClassDef) or (
            owner and not isinstance(call.func, ast.Attribute)
        ):
            return f"the cell calls `{callee}`, which it defines {where}"
        elif owner:
            possible = possible or f"the cell calls `{callee}`, of what it defines {where}"
        elif _may_be_made_here(call.func, names):
            return f"the cell calls `{callee}`, which it makes {where}"
        elif defined and not _root(call.func):
            possible = possible or f"the cell calls `{callee}`, which it makes {where}"
    return possible


def _first_call(call: ast.Call) -> ast.Call:
    """Return the call that the owner of a method comes of: `f(x)` in `f(x).sum().backward()`."""
    owner = call.func
    while isinstance(owner, (ast.Attribute, ast.Subscript)):
        owner = owner.value
    if isinstance(owner, ast.Call) and owner is not call.func:
        return _first_call(owner)
    return call


def _runs_backward(tree: ast.Module) -> str:
    """Return why a cell that runs autograd is left alone: Dynamo does not trace `backward()`."""
    for node in outside_definitions(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "backward"
        ):
            where = f"(line {node.lineno})"
            return f"the cell runs `{ast.unparse(node.func)}` {where}, which is autograd's"
    return ""


def _sets_state(tree: ast.Module, names: Names) -> str:
    """Return why a cell is left alone whose tensors depend on a state that it sets.

    In one function with what they act on, these are lost on the way through AOTAutograd.
    """
    for node in outside_definitions(tree):
        if not isinstance(node, ast.Call):
            continue
        called = names.value(node.func)
        is_torchs = str(getattr(called, "__module__", "")).partition(".")[0] == "torch"
        if is_torchs and getattr(called, "__name__", "") in _STATE:
            where = f"`{ast.unparse(node.func)}` (line {node.lineno})"
            return f"the cell uses {where}: compiled code loses its effect on results"
    return ""


def _may_be_made_here(callee: ast.expr, names: Names) -> bool:
    """Say whether the callee of `net(x)`, `nets[0](x)`, `make(1)(x)` is the cell's own product."""
    direct = isinstance(callee, (ast.Name, ast.Call, ast.Subscript))
    return direct and _root(callee) in names.stored


def _root(node: ast.AST) -> str:
    """Return the name that an expression such as `a.b(c)[0]` starts with."""
    while not isinstance(node, ast.Name):
        following = getattr(node, "func", None) or getattr(node, "value", None)
        if not isinstance(following, ast.AST):
            return ""
        node = following
    return node.id


def _works_with_tensors(tree: ast.AST, names: Names) -> bool:
    return any(
        _is_tensor_work(names.value(node))
        for node in outside_definitions(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def _is_tensor_work(value: Any) -> bool:
    from dynamo_nb.capture import compiler

    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(compiler.is_tensor(item) for item in value[:100])
    if compiler.is_tensor(value):
        return True
    module = getattr(value, "__name__" if inspect.ismodule(value) else "__module__", None)
    return isinstance(module, str) and (module == "torch" or module.startswith("torch."))
