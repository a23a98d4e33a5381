"""One graph of a record as DOT: nodes within the modules that they come from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dynamo_nb.record.types import CellRecord, Compile, Graph, Node
from dynamo_nb.views.model import Report
from dynamo_nb.views.plain import clean, clip, one_line, place, some, source_line, value_text

if TYPE_CHECKING:
    from dynamo_nb.views.digraph import Digraph

__all__ = ["to_dot"]

_LABEL = 60
_LARGE = 400  # nodes; beyond, dot takes minutes unless it is told to be quick
_WIDE_OUTPUT = 12  # edges into `output`: many of them are what slows dot down most

_STYLES = {
    "placeholder": {"shape": "box", "style": "rounded,dashed"},
    "get_attr": {"shape": "box", "style": "rounded,dashed"},
    "output": {"shape": "box", "style": "rounded,bold"},
}
_BACKWARD = {"color": "#9a5b00"}


def to_dot(record: CellRecord, compile_id: str, stage: str = "dynamo") -> Digraph:
    """Return a graph of a compile as a `graphviz.Digraph`.

    Parameters
    ----------
    record
        The record of a cell.
    compile_id
        A compile id such as `0/1`.
    stage
        A graph's name (`post_grad.backward`), or its stage where only one graph has that stage.
    """
    graph = _graph(_compile(record, compile_id), stage)
    try:
        from dynamo_nb.views.digraph import Digraph
    except ImportError as error:
        msg = "to_dot needs the graphviz package: pip install graphviz"
        raise ImportError(msg) from error

    quick = {"nslimit": "1", "splines": "line"} if len(graph.nodes) > _LARGE else {}
    dot = Digraph(
        name=_text(f"{compile_id} {graph.name}"),
        filename=re.sub(r"[^\w.]+", "-", f"{compile_id}-{graph.name}") + ".gv",
        graph_attr={"rankdir": "TB", "fontname": "sans-serif", "fontsize": "11", **quick},
        node_attr={"shape": "box", "fontname": "monospace", "fontsize": "10", "height": "0.2"},
        edge_attr={"arrowsize": "0.6"},
    )
    _Drawing(record, graph).draw(dot)
    return dot


def _compile(record: CellRecord, compile_id: str) -> Compile:
    compiles = Report(record).compiles
    if compile_id not in compiles:
        known = some(compiles, 20) or "none"
        msg = f"No compile {compile_id!r}; this cell has: {known}."
        raise ValueError(msg)
    return compiles[compile_id]


def _graph(entry: Compile, stage: str) -> Graph:
    found = [graph for graph in entry.graphs if graph.name == stage]
    found = found or [graph for graph in entry.graphs if graph.stage == stage]
    if len(found) == 1:
        return found[0]
    names = some([graph.name for graph in found or entry.graphs], 20) or "none"
    what = f"Several graphs of stage {stage!r}" if found else f"No graph {stage!r}"
    msg = f"{what}; compile {entry.key} has: {names}."
    raise ValueError(msg)


class _Drawing:
    """The nodes of a graph under ids of our own: names may hold anything that DOT reads."""

    def __init__(self, record: CellRecord, graph: Graph) -> None:
        self._record = record
        self._nodes = graph.nodes
        self._ids = {node.name: f"n{index}" for index, node in enumerate(graph.nodes)}
        outputs = [node for node in graph.nodes if node.op == "output"]
        self._wide = {node.name for node in outputs if len(node.inputs) > _WIDE_OUTPUT}
        self._returned = {name for node in outputs for name in node.inputs}
        self._clusters = 0

    def draw(self, dot: Any) -> None:
        """Add all nodes, each in its module's cluster, and the edges between them."""
        self._level(dot, self._nodes, 0)
        for node in self._nodes:
            if node.name in self._wide:
                continue
            for name in dict.fromkeys(node.inputs):
                if name in self._ids:
                    dot.edge(self._ids[name], self._ids[node.name])

    def _level(self, dot: Any, nodes: list[Node], depth: int) -> None:
        """Add nodes that share their first `depth` modules; those deeper go into clusters."""
        inside: dict[tuple[str, ...], list[Node]] = {}
        for node in nodes:
            if len(node.module_stack) > depth:
                inside.setdefault(tuple(node.module_stack[depth]), []).append(node)
            else:
                self._node(dot, node)
        for module, members in inside.items():
            self._clusters += 1
            with dot.subgraph(name=f"cluster_{self._clusters}") as cluster:
                path, *kind = module
                label = " ".join([path, *(f"({name.rpartition('.')[2]})" for name in kind)])
                cluster.attr(label=_text(label), style="rounded", color="#888888")
                self._level(cluster, members, depth + 1)

    def _node(self, dot: Any, node: Node) -> None:
        lines = [node.name, *([node.target] if node.op not in _STYLES else [])]
        lines.append(value_text(node.value))
        style = {**_STYLES.get(node.op, {}), **(_BACKWARD if node.is_backward else {})}
        if self._wide and node.name in self._returned:
            style["peripheries"] = "2"
        dot.node(
            self._ids[node.name],
            label=_text(*(clip(line, _LABEL) for line in lines if line)),
            tooltip=_text(self._tooltip(node)),
            **style,
        )

    def _tooltip(self, node: Node) -> str:
        if not node.frames:
            return node.op
        frame = node.frames[-1]
        text = source_line(self._record, frame.file, frame.line) or ""
        return f"{place(frame)}: {text.strip()}".rstrip(": ")


def _text(*lines: str) -> str:
    r"""Return lines as one DOT string that shows just them: no HTML, entities or escapes."""
    import graphviz

    shown = (clean(one_line(line)).replace("&", "&amp;").replace("\\", "\\\\") for line in lines)
    text: str = graphviz.nohtml("\\n".join(shown))
    return text
