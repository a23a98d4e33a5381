"""DOT: every text is accepted by the real `dot`, whatever the record holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import graphviz
import pytest

from dynamo_nb.record.types import CellRecord, Compile, Graph, Node
from dynamo_nb.views.dot import to_dot
from tests import samples


def drawn(source: str) -> str:
    """Return the plain layout that `dot` makes of a DOT text."""
    done = subprocess.run(
        ["dot", "-Tsvg"],
        input=source,
        text=True,
        encoding="utf-8",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def every_graph() -> list[tuple[str, str, str]]:
    return [
        (name, entry.key, graph.name)
        for name, sample in samples.SAMPLES.items()
        if name != "huge"
        for entry in sample().compiles
        for graph in entry.graphs
    ]


@pytest.mark.parametrize(("name", "compile_id", "graph"), every_graph())
def test_dot_accepts_every_graph(name: str, compile_id: str, graph: str):
    record = samples.SAMPLES[name]()
    svg = drawn(to_dot(record, compile_id, graph).source)
    entry = next(entry for entry in record.compiles if entry.key == compile_id)
    assert svg.count('class="node"') == len(entry.graph(graph).nodes)


def test_nodes_stand_in_their_modules_and_name_their_lines():
    dot = to_dot(samples.training_step(), "0/0", "forward")
    assert "lin (Linear)" in dot.source
    assert "line 8: return (h * h).sum()" in dot.source
    assert "n3 -> n4" in dot.source
    assert "ortho" not in dot.source


def test_backward_nodes_are_told_apart():
    assert to_dot(samples.training_step(), "0/0", "post_grad.backward").source.count("#9a5b00") == 4


@pytest.mark.parametrize(
    ("compile_id", "stage", "message"),
    [
        ("0/7", "dynamo", "No compile '0/7'; this cell has: 0/0."),
        (
            "0/0",
            "inference",
            "No graph 'inference'; compile 0/0 has: dynamo, joint, forward, backward",
        ),
        (
            "0/0",
            "post_grad",
            "Several graphs of stage 'post_grad'; compile 0/0 has: post_grad.forward",
        ),
    ],
)
def test_what_does_not_exist_is_answered_with_what_does(compile_id: str, stage: str, message: str):
    with pytest.raises(ValueError) as caught:
        to_dot(samples.training_step(), compile_id, stage)
    assert str(caught.value).startswith(message)


def test_a_wide_output_has_no_edges():
    nodes = [Node(name=f"a{i}", op="call_function", target="t") for i in range(30)]
    output = Node(name="output", op="output", target="output", inputs=[node.name for node in nodes])
    graph = Graph(name="backward", stage="backward", nodes=[*nodes, output])
    record = CellRecord(compiles=[Compile(compile_id="0/0", graphs=[graph])])
    source = to_dot(record, "0/0", "backward").source
    assert "->" not in source
    assert source.count("peripheries=2") == 30


def test_text_is_shown_as_it_is():
    node = Node(name=r"\N <b>&amp;", op="call_function", target='"\\')
    record = CellRecord(
        compiles=[
            Compile(compile_id="0/0", graphs=[Graph(name="dynamo", stage="dynamo", nodes=[node])])
        ]
    )
    svg = drawn(to_dot(record, "0/0").source)
    assert r"\N &lt;b&gt;&amp;amp;" in svg
    assert "<b>" not in svg


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "dynamo_nb.views.digraph", None)
    with pytest.raises(ImportError, match="pip install graphviz"):
        to_dot(samples.graph_breaks(), "0/0")


def test_without_the_program_only_drawing_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    dot = to_dot(samples.graph_breaks(), "0/0")
    monkeypatch.setenv("PATH", "")
    assert "abs_1" in dot.source
    with pytest.raises(RuntimeError, match="apt install graphviz"):
        dot.pipe(format="svg")
    with pytest.raises(RuntimeError, match="apt install graphviz"):
        dot.render(directory=tmp_path)


def test_the_file_name_of_a_drawing_is_plain():
    dot = to_dot(samples.graph_breaks(), "0/0")
    assert isinstance(dot, graphviz.Digraph)
    assert dot.filename == "0-0-dynamo.gv"
