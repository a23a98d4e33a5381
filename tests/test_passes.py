"""Graph passes: what each did to its graph, and what is said of one that fails."""

from __future__ import annotations

import pytest

DEFINE = """\
import operator
import torch
import torch._inductor.config as inductor_config

def subtract_for_add(graph):
    for node in graph.nodes:
        if node.target is torch.ops.aten.add.Tensor:
            node.target = torch.ops.aten.sub.Tensor

def replace_sin(graph):
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.sin.default:
            with graph.inserting_after(node):
                cosine = graph.call_function(torch.ops.aten.cos.default, node.args)
            cosine.meta = dict(node.meta)
            node.replace_all_uses_with(cosine)
            graph.erase_node(node)

def look_only(graph):
    return None

class Failing:
    def __call__(self, graph):
        raise ValueError("this <b>graph</b> is not mine")

def disorder(graph):
    first = next(node for node in graph.nodes if node.op == "call_function")
    graph.output_node().prepend(first)

def f(x):
    return torch.sin(x) + 1.5

x = torch.ones(3)
"""


def run(shell, setting: str, function: str, call: str = "f(x)"):
    assert shell.run(DEFINE).error is None
    body = f"with inductor_config.patch({setting}={function}):\n    out = torch.compile(f)(x)"
    return shell.run(f"%%dynamo --as-is\n{body}")


def custom(record):
    (found,) = [p for entry in record.compiles for p in entry.passes if p.function]
    return found


@pytest.mark.parametrize(
    "setting",
    ["joint_custom_pre_pass", "joint_custom_post_pass", "post_grad_custom_pre_pass"],
)
def test_a_pass_that_replaces_a_node(shell, setting):
    ran = run(shell, setting, "replace_sin")
    assert ran.error is None
    found = custom(shell.record)
    assert (found.name, found.function, found.error) == (setting, "replace_sin", "")
    kinds = {row.node: row.kind for row in found.rows}
    assert kinds == {"sin": "removed", "cos_default": "added", "add": "changed"}
    changed = next(row for row in found.rows if row.kind == "changed")
    assert changed.before.startswith("aten.add.Tensor(sin, 1.5)")
    assert changed.after.startswith("aten.add.Tensor(cos_default, 1.5)")
    assert found.same == 2  # the input and the output
    assert "1 removed, 1 added, 1 changed" in " ".join(ran.report.split())


def test_a_pass_that_changes_a_node_in_place(shell):
    run(shell, "post_grad_custom_post_pass", "subtract_for_add")
    (row,) = custom(shell.record).rows
    assert (row.kind, row.node) == ("changed", "add")
    assert row.after.startswith("aten.sub.Tensor(")


def test_a_pass_that_changes_nothing(shell):
    ran = run(shell, "post_grad_custom_pre_pass", "look_only")
    assert custom(shell.record).rows == []
    assert "look_only" in ran.report
    assert "changed nothing" in ran.report


def test_a_pass_on_torchs_own_operations(shell):
    """Before AOTAutograd the graph is Dynamo's: its targets are torch's functions."""
    assert shell.run(DEFINE).error is None
    shell.run(
        "def to_mul(graph):\n"
        "    for node in graph.nodes:\n"
        "        if node.target is operator.add:\n"
        "            node.target = operator.mul"
    )
    shell.run(
        "%%dynamo --as-is\nwith inductor_config.patch(pre_grad_custom_pass=to_mul):\n"
        "    out = torch.compile(f)(x)"
    )
    (row,) = custom(shell.record).rows
    assert row.before.startswith("_operator.add(sin, 1.5)")
    assert row.after.startswith("_operator.mul(sin, 1.5)")


def test_a_pass_that_raises_is_named(shell):
    ran = run(shell, "joint_custom_post_pass", "Failing()")
    assert type(ran.error).__name__ == "BackendCompilerFailed"
    assert custom(shell.record).error == "raised ValueError: this <b>graph</b> is not mine"
    (finding,) = [f for f in shell.record.findings if f.code == "compile-error"]
    assert "the graph pass `Failing` (joint_custom_post_pass) raised ValueError" in finding.message
    assert "joint_custom_post_pass" in finding.advice


def test_a_pass_that_breaks_the_graph_is_named(shell):
    ran = run(shell, "joint_custom_post_pass", "disorder")
    assert custom(shell.record).error.startswith(
        "left a broken graph: Argument 'sin' of Node 'add'"
    )
    assert "disorder" in ran.report


def test_inductors_own_passes_are_told_where_they_change_something(shell):
    define = "import torch\ndef g(x):\n    return x.view(2, 2) + 1\nx = torch.ones(2, 2)"
    assert shell.run(define).error is None
    shell.run("%%dynamo\ng(x)")
    groups = {p.name for entry in shell.record.compiles for p in entry.passes}
    assert groups <= {"pre_grad", "joint", "post_grad"}
    assert groups
    assert all(p.rows for entry in shell.record.compiles for p in entry.passes)


def test_a_failed_pass_has_its_section_open_and_escaped(shell):
    from dynamo_nb.views.html import to_html

    run(shell, "joint_custom_post_pass", "Failing()")
    page = to_html(shell.record)
    assert "pass joint_custom_post_pass Failing" in page
    assert "this &lt;b&gt;graph&lt;/b&gt; is not mine" in page
    assert "<b>graph</b>" not in page
