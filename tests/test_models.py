"""Real models through the magic: every stage is captured, and its nodes know their lines."""

from __future__ import annotations

from collections import defaultdict

import pytest

from dynamo_nb.record.types import CellRecord, Compile, Graph, Node
from tests.models import MODELS, build_cell, inference_cell, training_cell

#: One worker runs these and the models of test_sameness, so that kernels are compiled once.
pytestmark = pytest.mark.xdist_group("models")

INFERENCE = {"dynamo", "inference", "post_grad"}
TRAINING = {"dynamo", "joint", "forward", "backward", "post_grad"}
#: At least this share of a stage's call nodes carries a source line.
WITH_LINES = 0.95

CELLS = [
    pytest.param(model, cell, stages, id=f"{model}-{kind}")
    for model in MODELS
    for kind, cell, stages in (
        ("inference", inference_cell, INFERENCE),
        ("training", training_cell, TRAINING),
    )
]


def graphs_by_stage(record: CellRecord) -> dict[str, list[Graph]]:
    """Return the graphs of all compiles, by stage; post-grad ones also by direction."""
    found: dict[str, list[Graph]] = defaultdict(list)
    for compile_ in record.compiles:
        for graph in compile_.graphs:
            found[graph.stage].append(graph)
            if graph.direction:
                found[f"{graph.stage}.{graph.direction}"].append(graph)
    return found


def share_with_lines(graphs: list[Graph]) -> float:
    """Return which part of the call nodes has source frames."""
    calls = [node for graph in graphs for node in graph.nodes if node.op.startswith("call")]
    assert calls
    return sum(bool(node.frames) for node in calls) / len(calls)


@pytest.mark.parametrize(("model", "cell", "stages"), CELLS)
def test_a_real_model_is_captured_whole(shell, model, cell, stages):
    assert shell.run(build_cell(model)).error is None
    source = "%%dynamo\n" + cell(model)
    ran = shell.run(source)
    assert ran.error is None
    assert isinstance(ran.value, float)
    record = shell.record
    assert record.source.rstrip() == source.rstrip()
    assert record.mode == "calls"
    assert not record.notes
    assert not record.unparsed

    graphs = graphs_by_stage(record)
    assert stages <= graphs.keys()
    if "backward" in stages:
        assert {"post_grad.forward", "post_grad.backward"} <= graphs.keys()
    shares = {stage: share_with_lines(found) for stage, found in graphs.items()}
    assert all(share >= WITH_LINES for share in shares.values()), shares

    check_kernels(record)
    check_work(record)
    check_links(record)
    assert CellRecord.from_json(record.to_json()) == record


def check_kernels(record: CellRecord) -> None:
    """Hold that every kernel has code and names nodes that its graph has."""
    kernels = [(compile_, kernel) for compile_ in record.compiles for kernel in compile_.kernels]
    assert kernels
    for compile_, kernel in kernels:
        graph = compile_.graph(kernel.graph)
        assert graph is not None, kernel.name
        assert set(kernel.nodes) <= {node.name for node in graph.nodes}
        if kernel.language != "extern":
            assert kernel.nodes, kernel.name
            assert kernel.code, kernel.name


def check_work(record: CellRecord) -> None:
    """Hold that fused kernels have lines, and that each post-grad call node is accounted for."""
    for compile_ in record.compiles:
        graphs = {graph.name: graph for graph in compile_.graphs if graph.stage == "post_grad"}
        done = {(item.graph, item.node) for item in compile_.folded}
        for kernel in compile_.kernels:
            done |= {(kernel.graph, name) for name in kernel.nodes}
            nodes = [node for node in graphs[kernel.graph].nodes if node.name in kernel.nodes]
            assert any(node.frames for node in nodes) or is_layout(nodes), kernel.name
            assert kernel.reads, kernel.name
            assert kernel.writes, kernel.name
        calls = {
            (graph.name, node.name)
            for graph in graphs.values()
            for node in graph.nodes
            if node.op.startswith("call")
        }
        assert calls <= done
        assert not [item for item in compile_.folded if not item.why]
        written = {name for kernel in compile_.kernels for name in kernel.writes}
        assert {buffer.name for buffer in compile_.buffers} >= written - removed(compile_)


def is_layout(nodes: list[Node]) -> bool:
    """Tell whether a kernel computes nothing: it copies inputs into another layout."""
    return all(node.op == "placeholder" for node in nodes)


def removed(compile_: Compile) -> set[str]:
    """Return the buffers that have no layout of their own: calls with several results."""
    made = {buffer.name for buffer in compile_.buffers}
    return {
        name
        for kernel in compile_.kernels
        if kernel.language == "extern"
        for name in kernel.writes
        if name not in made
    }


def check_links(record: CellRecord) -> None:
    """Hold that links join lines, nodes and kernels, and that the cell's call has its compiles."""
    kinds = {link.kind for link in record.links}
    assert kinds >= {"node-line", "node-node", "kernel-node"}
    call = next(
        number
        for number, line in enumerate(record.source.splitlines(), 1)
        if "model(**inputs)" in line
    )
    assert call in {compile_.call_line for compile_ in record.compiles}
