"""The difference of two records, on records written by hand."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from dynamo_nb.record.diff import diff
from dynamo_nb.record.difference import RecordDiff
from dynamo_nb.record.matching import Lines, paired
from dynamo_nb.record.types import (
    CELL,
    Binary,
    CellRecord,
    Compile,
    Finding,
    Graph,
    GraphBreak,
    Guard,
    Kernel,
    Link,
    Node,
    RecompileReason,
    Ref,
    StackFrame,
    StageTime,
    Target,
    TensorValue,
)
from dynamo_nb.session import Session
from dynamo_nb.views.diff import diff_data, diff_html, diff_page, diff_text

BEFORE = """\
%%dynamo
def f(x):
    y = x + 1
    print(y)
    return y * 2
f(torch.ones(8))
"""
AFTER = """\
%%dynamo
# without the print
def f(x):
    y = x + 1
    return y * 2
f(torch.ones(8))
"""


def at(line, **kwargs):
    return StackFrame(file=CELL, line=line, name="f", **kwargs)


def node(name, target, line, shape=(8,), dtype="float32", op="call_function"):
    value = TensorValue(shape=list(shape), dtype=dtype)
    return Node(name=name, op=op, target=target, value=value, frames=[at(line)])


def output():
    return Node(name="output", op="output", target="output")


def entry(compile_id, nodes, **kwargs):
    graph = Graph(name="dynamo", stage="dynamo", nodes=[*nodes, output()])
    fields = {"compile_id": compile_id, "name": "f", "file": CELL, "first_line": 2, **kwargs}
    return Compile(graphs=[graph, *kwargs.pop("more", [])], **fields)


def resumed(compile_id, line, nodes, **kwargs):
    name = f"torch_dynamo_resume_in_f_at_{line}"
    return entry(compile_id, nodes, **{"name": name, "resume_of": "f", **kwargs})


def broken():
    """`f` in two graphs, with a print in between."""
    item = GraphBreak(kind="print", frame=at(4), user_stack=[at(4)])
    return CellRecord(
        name="A",
        cell=1,
        source=BEFORE,
        compiles=[
            entry("0/0", [node("add", "_operator.add", 3)], graph_breaks=[item]),
            resumed("1/0", 4, [node("mul", "_operator.mul", 5)]),
        ],
    )


def whole(shape=(8,), **kwargs):
    """`f` in one graph."""
    nodes = [node("add", "_operator.add", 4, shape), node("mul", "_operator.mul", 5, shape)]
    return CellRecord(
        name="B", cell=2, source=AFTER, compiles=[entry("0/0", nodes, first_line=3, **kwargs)]
    )


def test_a_record_does_not_differ_from_itself():
    for record in (broken(), whole()):
        found = diff(record, record)
        assert [found.breaks, found.recompiles, found.guards, found.kernels] == [[]] * 4
        assert not found.targets
        assert {graph.change for graph in found.graphs} <= {"same"}
        assert {line.change for line in found.source} == {"same"}
        assert "Nothing is different." in diff_text(found)


def test_source_lines():
    found = diff(broken(), whole())
    edited = [
        (line.change, line.before, line.after) for line in found.source if line.change != "same"
    ]
    assert edited == [("added", None, 2), ("removed", 4, None)]


def test_edited_lines_are_quoted_as_they_are():
    line = 'keep("/tmp/tmpab12cd34", id(f), 123456789012345)'
    after = replace(broken(), source=f"{BEFORE}{line}\n")
    assert line in diff_text(diff(broken(), after))


def test_a_break_that_is_gone_and_one_that_is_new():
    assert [(b.change, b.kind, b.line) for b in diff(broken(), whole()).breaks] == [
        ("gone", "print", 4)
    ]
    assert [(b.change, b.line) for b in diff(whole(), broken()).breaks] == [("new", 4)]


def test_a_break_whose_line_has_moved_is_the_same():
    moved = replace(broken(), source="%%dynamo\n" + BEFORE)
    shift = msgspec.json.decode(
        msgspec.json.encode(moved).replace(b'"line":4', b'"line":5'), type=CellRecord
    )
    assert diff(broken(), shift).breaks == []


def test_nodes_move_from_one_graph_to_another():
    found = diff(broken(), whole())
    (kept,) = [graph for graph in found.graphs if graph.before == graph.after == "0/0 dynamo"]
    assert kept.same == 2  # add and the output
    assert [(n.change, n.before, n.after, n.line) for n in kept.nodes] == [
        ("moved", "1/0 dynamo/mul", "0/0 dynamo/mul", 5)
    ]
    (gone,) = [graph for graph in found.graphs if graph.change == "removed"]
    assert gone.before == "1/0 dynamo"
    assert [n.target for n in gone.nodes] == ["output"]


def test_a_node_changes_its_shape_and_dtype():
    found = diff(whole(), whole(shape=(4, 2)))
    nodes = found.graphs[0].nodes
    assert [(n.change, n.fields) for n in nodes] == [("changed", ["shape"])] * 2
    assert nodes[0].was.shape == [8]
    assert nodes[0].now.shape == [4, 2]
    half = whole()
    half = replace(
        half, compiles=[entry("0/0", [node("add", "_operator.add", 4, dtype="float16")])]
    )
    changes = {n.change: n for n in diff(whole(), half).graphs[0].nodes}
    assert changes["changed"].fields == ["dtype"]
    assert changes["removed"].target == "_operator.mul"


def test_repeated_nodes_are_matched_one_by_one():
    many = [node(f"add_{i}", "_operator.add", 3, shape=(i,)) for i in range(5)]
    fewer = [many[0], many[2], many[4]]
    a = CellRecord(source=BEFORE, compiles=[entry("0/0", many)])
    b = CellRecord(source=BEFORE, compiles=[entry("0/0", fewer)])
    (graph,) = diff(a, b).graphs
    assert [(n.change, n.before) for n in graph.nodes] == [
        ("removed", "0/0 dynamo/add_1"),
        ("removed", "0/0 dynamo/add_3"),
    ]


def reason(was, now):
    return RecompileReason(entry="0/0", source="L['n']", name="n", was=was, now=now, call_line=6)


def test_recompiles_fewer_gone_and_new():
    nodes = [node("add", "_operator.add", 3)]
    none = CellRecord(source=BEFORE, compiles=[entry("0/0", nodes)])
    again = entry("0/1", nodes, recompile_reasons=[reason("1", "2")])
    third = entry("0/2", nodes, recompile_reasons=[reason("2", "3")])
    one = replace(none, compiles=[*none.compiles, again])
    two = replace(none, compiles=[*none.compiles, again, third])
    assert [(r.change, r.name, r.before, r.after) for r in diff(two, one).recompiles] == [
        ("fewer", "n", 2, 1)
    ]
    assert [(r.change, r.before, r.after) for r in diff(two, none).recompiles] == [("gone", 2, 0)]
    assert [(r.change, r.values) for r in diff(none, one).recompiles] == [("new", ["1", "2"])]


def test_guards_by_function_without_what_varies():
    def guarded(*guards):
        return CellRecord(source=BEFORE, compiles=[entry("0/0", [], guards=list(guards))])

    def of(code, source="L['x']", kind="TYPE_MATCH"):
        return Guard(kind=kind, source=source, code=[code], frame=at(3))

    same = diff(guarded(of("type(x, 94123456)")), guarded(of("type(x, 94999999)")))
    assert same.guards == []
    found = diff(
        guarded(of("n == 1", "L['n']"), of("a")), guarded(of("n == 2", "L['n']"), of("b", "L['y']"))
    )
    changes = {(g.change, g.source): g for g in found.guards}
    assert set(changes) == {("changed", "n"), ("removed", "x"), ("added", "y")}
    changed = changes["changed", "n"]
    assert (changed.before, changed.after, changed.line) == (["n == 1"], ["n == 2"], 3)


def with_kernels(*groups, names="abcd", shape=(8,)):
    nodes = [node(name, f"aten.{name}", 3, shape) for name in names]
    graph = Graph(name="post_grad.inference", stage="post_grad", nodes=nodes)
    kernels = [
        Kernel(name=f"k{i}", language="cpp", graph=graph.name, nodes=list(group))
        for i, group in enumerate(groups)
    ]
    return CellRecord(
        source=BEFORE,
        compiles=[Compile(compile_id="0/0", name="f", file=CELL, graphs=[graph], kernels=kernels)],
    )


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (("ab", "cd"), ("abcd",), [("merged", 2, 1)]),
        (("abcd",), ("ab", "cd"), [("split", 1, 2)]),
        (("ab", "cd"), ("ac", "bd"), [("regrouped", 2, 2)]),
        (("abc",), ("abcd",), [("changed", 1, 1)]),
        (("ab", "cd"), ("ab", "cd"), []),
        (("ab",), ("ab", "cd"), [("added", 0, 1)]),
        (("ab", "cd"), ("cd",), [("removed", 1, 0)]),
    ],
)
def test_kernels(before, after, wanted):
    found = diff(with_kernels(*before), with_kernels(*after)).kernels
    assert [(k.change, len(k.before), len(k.after)) for k in found] == wanted
    assert all(k.lines == [3] for k in found)


def test_times_are_summed_by_stage():
    def timed(*seconds):
        stages = [StageTime(name="backend_compile", start=0, seconds=s) for s in seconds]
        compiles = [entry("0/0", [], stages=stages)]
        return CellRecord(source=BEFORE, compiles=compiles, metrics={"seconds": sum(seconds)})

    found = {t.stage: (t.before, t.after) for t in diff(timed(1, 2), timed(5)).times}
    assert found == {"cell": (3, 5), "backend_compile": (3, 5)}


def test_findings_by_place():
    finding = Finding(code="graph-break", severity="warning", message="print", line=4)
    a = replace(broken(), findings=[finding])
    b = replace(broken(), source="\n" + BEFORE, findings=[replace(finding, line=5)])
    assert diff(a, b).findings == []
    assert [f.change for f in diff(a, whole()).findings] == ["gone"]


def test_json_there_and_back():
    found = diff(broken(), whole(shape=(2,)))
    assert msgspec.json.decode(found.to_json(), type=RecordDiff) == found


def test_text_and_html_are_deterministic_and_without_times():
    record = replace(whole(), metrics={"seconds": 1.25})
    slow = replace(whole(), metrics={"seconds": 9.75})
    pages = [(diff_text(d), diff_html(d)) for d in (diff(broken(), record), diff(broken(), slow))]
    assert pages[0] == pages[1]
    measured = diff_text(diff(record, slow), with_times=True)
    assert "1250.0" in measured
    assert "9750.0" in measured
    assert "9750.0" in diff_page(diff(record, slow))


def test_text_says_what_happened():
    text = diff_text(diff(broken(), whole()))
    assert "A (cell [1]) -> B (cell [2])" in text
    assert "graphs 2 -> 1, graph breaks 1 -> 0" in text
    assert "-   4 |     print(y)" in text
    assert "moved    line 5: mul = _operator.mul, from 1/0 dynamo" in text


def test_html_is_escaped():
    evil = replace(broken(), name="<script>", source=BEFORE + "# <script>alert(1)</script>\n")
    html = diff_page(diff(whole(), evil))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_lines_that_were_edited_stand_for_each_other():
    lines = Lines("a = 1\nvalue = x.item()\nb = 2", "a = 1\nnew\nvalue = y.item()\nb = 2")
    assert [lines.now(n) for n in (1, 2, 3, None)] == [1, 3, 4, None]


def test_paired_tries_keys_in_order():
    pairs, gone, new = paired(
        ["a1", "a2", "b"], ["a2", "a9", "c"], (lambda t, _: t, lambda t, _: t[0])
    )
    assert pairs == [("a2", "a2"), ("a1", "a9")]
    assert (gone, new) == (["b"], ["c"])


def test_the_explorers_data_has_both_sources_and_the_lines_of_changes():
    found = diff_data(diff(broken(), whole()), broken())
    edited = [(row["old"], row["new"]) for row in found["rows"] if row["change"] != "same"]
    assert edited == [(None, 2), (4, None)]
    (breaks,) = [group for group in found["groups"] if group["title"] == "Graph breaks"]
    assert breaks["summary"] == "1 gone"
    assert list(breaks["changes"][0]["old"]) == [4]
    msgspec.json.encode(found)


def pairs_of(found):
    return {
        (tuple(msgspec.to_builtins(pair.before)), tuple(msgspec.to_builtins(pair.after)))
        for pair in found.counterparts
    }


def test_counterparts_lead_from_the_first_record_to_the_second():
    found = pairs_of(diff(broken(), whole()))
    lines = {(old[2], new[2]) for old, new in found if old[1] == "line"}
    assert {("<cell>:3", "<cell>:4"), ("<cell>:5", "<cell>:5")} <= lines
    assert not any(old == "<cell>:4" for old, _ in lines)
    assert (("0/0", "node", "dynamo/add"), ("0/0", "node", "dynamo/add")) in found
    assert (("1/0", "node", "dynamo/mul"), ("0/0", "node", "dynamo/mul")) in found  # it moved
    assert (("0/0", "compile", ""), ("0/0", "compile", "")) in found
    assert not any(old[1] == "break" for old, _ in found)


def test_counterparts_of_what_compiles_number():
    def record(*guards, breaks, reasons):
        return CellRecord(
            source=BEFORE,
            compiles=[
                entry(
                    "0/0",
                    [],
                    guards=[Guard(kind=kind, source=source) for kind, source in guards],
                    graph_breaks=[GraphBreak(kind=kind, frame=at(4)) for kind in breaks],
                    recompile_reasons=[RecompileReason(entry="0/0", name=name) for name in reasons],
                )
            ],
        )

    a = record(("K", "x"), ("K", "y"), breaks=["print"], reasons=["n"])
    b = record(("K", "y"), breaks=["other", "print"], reasons=["m", "n"])
    found = {(old[1:], new[1:]) for old, new in pairs_of(diff(a, b))}
    assert (("guard", "1"), ("guard", "0")) in found
    assert (("break", "0"), ("break", "1")) in found
    assert (("recompile", "0"), ("recompile", "1")) in found
    assert sum(old[0] in ("guard", "break", "recompile") for old, _ in found) == 3


def test_kernels_that_share_nodes_are_counterparts():
    found = diff(with_kernels("ab", "cd"), with_kernels("abcd"))
    kernels = {(old[2], new[2]) for old, new in pairs_of(found) if old[1] == "kernel"}
    graph = "post_grad.inference"
    assert kernels == {(f"{graph}/k0", f"{graph}/k0"), (f"{graph}/k1", f"{graph}/k0")}
    (merged,) = found.kernels
    assert [ref.key for ref in merged.refs_before] == [f"{graph}/k0", f"{graph}/k1"]
    assert [ref.key for ref in merged.refs_after] == [f"{graph}/k0"]


def on_target(spec, kernels, lines=(4, 5), **binary):
    """`f` with kernels for a target: each letter is a node, which comes of one of Dynamo's."""
    graph = f"{spec}/post_grad.inference"
    names = "".join(kernels)
    origins = dict(zip(names, ("add", "mul"), strict=False))
    nodes = [
        replace(node(name, "aten", line), origins=[f"dynamo/{origins[name]}"])
        for name, line in zip(names, lines, strict=False)
    ]
    made = [
        Kernel(name=f"triton_{nodes}", language="triton", graph=graph, nodes=list(nodes))
        for nodes in kernels
    ]
    fields = {"resources": {"registers": 40}, "occupancy": 0.5, "grid": ["7"], "threads": 64}
    binaries = [Binary(kernel=k.name, graph=graph, **{**fields, **binary}) for k in made]
    target = Target(
        spec=spec,
        graphs=[Graph(name=graph, stage="post_grad", nodes=nodes)],
        kernels=made,
        binaries=binaries,
    )
    return replace(whole(), compiles=[replace(whole().compiles[0], targets=[target])])


def test_kernels_of_a_target_are_compared():
    before = on_target("cuda:90", ["ab"], config={"XBLOCK": 64, "num_warps": 2})
    after = on_target(
        "cuda:90",
        ["cd"],
        config={"XBLOCK": 32, "num_warps": 2},
        resources={"registers": 32, "spill_stores": 8},
        occupancy=0.125,
        shared=16,
    )
    found = diff(before, after)
    assert not found.kernels
    (change,) = found.targets
    assert (change.before, change.after) == ("0/0 triton_ab", "0/0 triton_cd")
    assert change.was == {
        "registers": 40,
        "spills": 0,
        "shared memory": 0,
        "occupancy": 0.5,
        "XBLOCK": 64,
    }
    text = " ".join(diff_text(found).split())
    assert (
        "Kernels for cuda:90, predicted (1 changed) changed lines 4-5: 0/0 triton_ab -> 0/0 "
        "triton_cd: registers 40 -> 32, spills 0 bytes -> 8 bytes, shared memory 0 bytes -> 16 "
        "bytes, occupancy 50% -> 13%, XBLOCK 64 -> 32"
    ) in text
    assert "triton_cd" in diff_html(found)
    groups = diff_data(found, before)["groups"]
    assert [group["title"] for group in groups] == ["Kernels for cuda:90, predicted"]
    graph = "cuda:90/post_grad.inference"
    kernel = Ref("0/0", "kernel", f"{graph}/triton_ab"), Ref("0/0", "kernel", f"{graph}/triton_cd")
    assert kernel in [(pair.before, pair.after) for pair in found.counterparts]


def test_kernels_of_a_target_come_and_go():
    found = diff(on_target("cuda:90", ["a", "b"]), on_target("cuda:90", ["a"]))
    assert [(change.change, change.before) for change in found.targets] == [
        ("removed", "0/0 triton_b")
    ]
    assert "removed line 5: 0/0 triton_b: nodes 1, registers 40, occupancy 50%, grid 7" in (
        " ".join(diff_text(found).split())
    )
    found = diff(on_target("cuda:90", ["a"]), on_target("cuda:90", ["a", "b"]))
    assert [(change.change, change.after) for change in found.targets] == [
        ("added", "0/0 triton_b")
    ]
    edited = diff(on_target("cuda:90", ["a"]), on_target("cuda:90", ["ab"]))
    assert [change.change for change in edited.targets] == ["changed"]  # of what it begins with


def test_the_only_targets_are_compared_and_of_several_those_of_the_same_spec():
    one, other = on_target("cuda:90", ["ab"]), on_target("cuda:80", ["ab"])
    assert "same nothing is different in 1 kernel" in " ".join(diff_text(diff(one, other)).split())
    slower = on_target("cuda:80", ["ab"], resources={"registers": 50})
    found = diff(one, slower)
    assert "Kernels for cuda:90 -> cuda:80, predicted (1 changed)" in diff_text(found)
    targets = [*one.compiles[0].targets, *slower.compiles[0].targets]
    both = replace(one, compiles=[replace(one.compiles[0], targets=targets)])
    assert [change.spec_before for change in diff(other, both).targets] == ["cuda:80"]
    assert not diff(one, both).targets


def test_a_target_that_has_nothing_any_more_says_why():
    before = on_target("cuda:90", [])
    target = Target(spec="cuda:90", error="no way")
    after = replace(before, compiles=[replace(before.compiles[0], targets=[target])])
    assert "changed 0/0: error none -> no way" in " ".join(diff_text(diff(before, after)).split())


def test_changes_name_what_they_are_about():
    found = diff(broken(), whole(shape=(4,)))
    (gone,) = found.breaks
    assert (gone.refs_before, gone.refs_after) == ([Ref("0/0", "break", "0")], [])
    add = next(n for g in found.graphs for n in g.nodes if n.target == "_operator.add")
    assert add.refs_before == add.refs_after == [Ref("0/0", "node", "dynamo/add")]


def test_a_row_holds_lines_that_stand_for_each_other():
    before = CellRecord(source="a = first(x)\nprint(a)\nreturn a.cos() + 1\n")
    after = CellRecord(source="a = first(x) * 2\n# new\nreturn a.cos() + 10\n")
    rows = diff_data(diff(before, after), before)["rows"]
    assert [(row["old"], row["new"]) for row in rows] == [(1, 1), (None, 2), (2, None), (3, 3)]


def test_the_explorers_data_has_the_links_of_the_first_record():
    before = broken()
    links = [
        Link("node-line", Ref("0/0", "node", "dynamo/add"), Ref("", "line", "<cell>:3")),
        Link("step-line", Ref("0/0", "step", "1"), Ref("", "line", "<cell>:3")),
    ]
    before = replace(before, links=links)
    found = diff_data(diff(before, whole()), before)
    assert found["links"]["refs"] == [["0/0", "node", "dynamo/add"], ["", "line", "<cell>:3"]]
    assert found["links"]["pairs"] == [0, 1]
    (breaks,) = [group for group in found["groups"] if group["title"] == "Graph breaks"]
    assert breaks["changes"][0]["refs_before"] == [["0/0", "break", "0"]]


def test_the_session_knows_which_record_came_before():
    session = Session()
    first, second = CellRecord(name="a"), CellRecord(name="a")
    session.keep(first)
    session.keep(second)
    assert session.before(first) is None
    assert session.before(second) is first
    assert session.before(CellRecord()) is None
