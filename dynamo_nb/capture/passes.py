"""Graph passes: what each custom pass, and each group of Inductor's own, did to its graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from torch import fx

from dynamo_nb.capture.identities import without_addresses
from dynamo_nb.capture.plain import Place, brief, node_target, parse_stack_trace
from dynamo_nb.capture.recorder import Hooked, Recorder
from dynamo_nb.capture.stacks import code_name

__all__ = ["install_passes"]

#: Inductor's groups of passes, as `torch/_inductor/compile_fx.py` (2.13) names them.
_GROUPS = {
    "pre_grad": "pre_grad_passes",
    "joint": "joint_graph_passes",
    "post_grad": "post_grad_passes",
}

#: How the names begin under which Inductor runs passes that are not its own.
_CUSTOM = ("pre_grad_custom", "joint_custom", "post_grad_custom", "custom_backend_pass")


class _Line(NamedTuple):
    """A node as it was: FX replaces a node's arguments, and never changes them."""

    name: str
    op: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Any
    stack_trace: str | None

    def is_same(self, other: _Line) -> bool:
        """Tell whether two states of a node are alike; texts are only made where parts differ."""
        parts = zip(self[1:], other[1:], strict=True)
        return all(mine is theirs for mine, theirs in parts) or self.text == other.text

    @property
    def text(self) -> str:
        """What the node computes, and the kind of value that it gives, on one line."""
        arguments = [repr(argument) for argument in self.args]
        arguments += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        has_kind = self.value is not None and self.op != "output"
        kind = f" -> {brief(self.value)}" if has_kind else ""
        return without_addresses(f"{node_target(self.target)}({', '.join(arguments)}){kind}")

    @property
    def places(self) -> list[Place]:
        """Where the node comes from, outermost first."""
        return parse_stack_trace(self.stack_trace)


class _Watched(NamedTuple):
    """A pass under way, and the graph that it was given."""

    name: str
    function: Any
    lines: list[_Line]


def install_passes(hooked: Hooked) -> None:
    """Watch the three groups of passes, and each custom pass.

    Inductor runs every pass through `GraphTransformObserver.apply_graph_pass` or `apply_gm_pass`
    (`torch/fx/passes/graph_transform_observer.py`, 2.13).
    """
    from torch._inductor import compile_fx
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver

    for group, name in _GROUPS.items():
        _watch_group(hooked, compile_fx, group, name)
    for name in ("apply_graph_pass", "apply_gm_pass"):
        _watch_custom(hooked, GraphTransformObserver, name)


def _watch_group(hooked: Hooked, owner: Any, group: str, name: str) -> None:
    """Emit what a whole group of passes changed, if anything."""
    watched: list[_Watched] = []

    def before(module: fx.GraphModule, *_: Any, **__: Any) -> None:
        watched.append(_Watched(group, None, []))
        watched[-1] = _Watched(group, None, _lines(module.graph))

    def after(result: Any, module: fx.GraphModule, *_: Any, **__: Any) -> None:
        _emit(hooked.recorder, watched.pop(), getattr(result, "graph", module.graph))

    def failed(error: BaseException, *_: Any, **__: Any) -> None:
        watched.pop()

    hooked.around(owner, name, before=before, after=after, failed=failed)


def _watch_custom(hooked: Hooked, owner: Any, name: str) -> None:
    """Emit what each pass changed that Inductor was given, also when it raised."""
    watched: list[_Watched | None] = []

    def before(observer: Any, function: Callable[..., Any]) -> None:
        watched.append(None)
        if _is_custom(observer.passname, function):
            lines = _lines(observer.gm.graph)
            watched[-1] = _Watched(observer.passname, function, lines)

    def after(_: Any, observer: Any, function: Callable[..., Any]) -> None:
        one = watched.pop()
        if one is not None:
            _emit(hooked.recorder, one, observer.gm.graph, _broken(observer.gm.graph))

    def failed(error: BaseException, observer: Any, function: Callable[..., Any]) -> None:
        one = watched.pop()
        if one is not None:
            text = f"raised {type(error).__name__}: {_first_line(error)}"
            _emit(hooked.recorder, one, observer.gm.graph, text)

    hooked.around(owner, name, before=before, after=after, failed=failed)


def _is_custom(name: str, function: Any) -> bool:
    """Tell whether a pass is the user's: Inductor also runs some of its own under these names."""
    module = getattr(_plain(function), "__module__", None) or ""
    return name.startswith(_CUSTOM) and module.partition(".")[0] != "torch"


def _plain(function: Any) -> Any:
    """Return the function or object behind partial applications."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _broken(graph: fx.Graph) -> str:
    """Say what is wrong with the graph that a pass has left, by FX's own check."""
    try:
        graph.lint()
    except Exception as error:
        return f"left a broken graph: {_first_line(error)}"
    return ""


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]  # what follows is the whole graph


def _lines(graph: fx.Graph) -> list[_Line]:
    return [
        _Line(
            node.name,
            node.op,
            node.target,
            node.args,
            node.kwargs,
            node.meta.get("val", node.meta.get("example_value")),
            node.meta.get("stack_trace"),
        )
        for node in graph.nodes
    ]


def _emit(recorder: Recorder, watched: _Watched, graph: fx.Graph, error: str = "") -> None:
    """Emit the rows by which two states of a graph differ."""
    rows, same = _difference(watched.lines, _lines(graph))
    if not rows and watched.function is None:
        return
    recorder.emit(
        "pass",
        {
            "name": watched.name,
            "direction": recorder.graph,
            **_definition(watched.function),
            "rows": rows,
            "same": same,
            "error": error,
        },
    )


def _definition(function: Any) -> dict[str, Any]:
    """Return the name and the place of a custom pass: a function, or an object that is called."""
    if function is None:
        return {"function": "", "places": []}
    function = _plain(function)
    call = function if hasattr(function, "__code__") else type(function).__call__
    code = getattr(call, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    if code is None:
        return {"function": name, "places": []}
    name = code_name(code) if hasattr(function, "__code__") else type(function).__name__
    place = (code.co_filename, code.co_firstlineno, code.co_name, None, None, None)
    return {"function": name, "places": [place]}


def _difference(before: list[_Line], after: list[_Line]) -> tuple[list[dict[str, Any]], int]:
    """Return the rows that differ, in order, and the number of those that do not."""
    old = {line.name: line for line in before}
    new = {line.name: line for line in after}
    rows: list[dict[str, Any]] = []
    same = 0
    matcher = SequenceMatcher(None, list(old), list(new), autojunk=False)
    for _, first, last, begin, end in matcher.get_opcodes():
        gone = [line for line in before[first:last] if line.name not in new]
        rows += [_row("removed", line, None) for line in gone]
        for line in after[begin:end]:
            was = old.get(line.name)
            if was is not None and was.is_same(line):
                same += 1
            else:
                rows.append(_row("added" if was is None else "changed", was, line))
    return rows, same


def _row(kind: str, before: _Line | None, after: _Line | None) -> dict[str, Any]:
    line = after or before
    assert line is not None
    return {
        "kind": kind,
        "node": line.name,
        "before": before.text if before else "",
        "after": after.text if after else "",
        "places": line.places or (before.places if before else []),
    }
