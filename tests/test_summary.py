"""`record.summary()`: the dict that tests and scripts compare."""

from __future__ import annotations

from dynamo_nb.record.summary import summary
from dynamo_nb.record.types import (
    CELL,
    CellError,
    CellRecord,
    Compile,
    Finding,
    Graph,
    GraphBreak,
    RecompileReason,
    StackFrame,
)

HERE = StackFrame(file=CELL, line=5, name="f")


def graphs(*stages: str) -> list[Graph]:
    return [Graph(name=stage, stage=stage) for stage in stages]


def test_an_empty_record_counts_nothing() -> None:
    assert summary(CellRecord(mode="calls")) == {
        "mode": "calls",
        "graphs": 0,
        "graph_breaks": [],
        "recompiles": 0,
        "recompile_causes": [],
        "findings": [],
        "error": None,
    }


def test_graphs_are_those_that_dynamo_captured_here() -> None:
    here = Compile(compile_id="1/0", graphs=graphs("dynamo", "joint", "forward", "backward"))
    earlier = Compile(compile_id="0/0", cell=3, graphs=graphs("dynamo"))
    assert summary(CellRecord(compiles=[earlier, here]))["graphs"] == 1


def test_breaks_are_places_with_counts() -> None:
    twice = [GraphBreak(kind="a", frame=HERE, user_stack=[HERE])] * 2
    compiles = [Compile(compile_id="0/0", graph_breaks=twice)]
    assert summary(CellRecord(compiles=compiles))["graph_breaks"] == [{"line": 5, "count": 2}]


def test_a_recompile_is_any_compile_beyond_a_code_objects_first() -> None:
    reason = RecompileReason(
        entry="0/0", source="L['k']", kind="EQUALS_MATCH", was="1", now="2", call_line=8, frame=HERE
    )
    earlier = Compile(compile_id="0/0", cell=3)
    again = Compile(compile_id="0/1", recompile_reasons=[reason])
    resumed = Compile(compile_id="1/0", resume_of="f")
    result = summary(CellRecord(compiles=[earlier, again, resumed]))
    assert result["recompiles"] == 1
    assert result["recompile_causes"] == [
        {"line": 5, "call_line": 8, "source": "k", "was": "1", "now": "2", "count": 1}
    ]


def test_findings_and_the_error_are_passed_on() -> None:
    finding = Finding(
        code="x", severity="info", message="m", advice="a", line=3, lines=[3], count=2
    )
    result = summary(CellRecord(findings=[finding], error=CellError(type="ValueError")))
    assert result["error"] == "ValueError"
    assert result["findings"] == [
        {"code": "x", "line": 3, "lines": [3], "count": 2, "message": "m", "advice": "a"}
    ]
