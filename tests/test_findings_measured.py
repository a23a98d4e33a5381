"""Findings from specializations and from measured times, on records made by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dynamo_nb.findings import find, slow
from dynamo_nb.record.types import (
    CELL,
    CellRecord,
    Compile,
    Finding,
    RecompileReason,
    Specialization,
    StackFrame,
    StageTime,
    Symbol,
)
from dynamo_nb.views.html import to_html, to_page
from dynamo_nb.views.text import to_text

SOURCE = "L['x'].size()[0]"


def specialized(value: str) -> Specialization:
    frame = StackFrame(file=CELL, line=5, name="f")
    return Specialization(symbol="s77", sources=[SOURCE], value=value, frame=frame)


def entry(number: int, **fields: object) -> Compile:
    return Compile(
        compile_id=f"0/{number}", name="f", file=CELL, first_line=4, call_line=9, **fields
    )


def changed(number: int, was: str, now: str) -> Compile:
    reason = RecompileReason(
        entry=f"0/{number - 1}", source=SOURCE, kind="TENSOR_MATCH", was=was, now=now,
        call_line=9, name="x.size()[0]",
    )  # fmt: skip
    return entry(
        number,
        recompile_reasons=[reason],
        symbols=[Symbol(name="s77", sources=[SOURCE])],
        specializations=[specialized(now)],
    )


def test_size_that_changes_and_is_specialized_is_one_warning() -> None:
    record = CellRecord(compiles=[entry(0), changed(1, "2", "3"), changed(2, "3", "4")])
    (found,) = find(record)
    assert (found.code, found.severity, found.line, found.count) == (
        "specialized-dim", "warning", 5, 2,
    )  # fmt: skip
    assert "2 -> 3 -> 4" in found.message
    assert found.lines == [5, 9]


def test_size_that_stays_dynamic_is_none() -> None:
    dynamic = replace(changed(1, "2", "3"), specializations=[])
    (found,) = find(CellRecord(compiles=[entry(0), dynamic]))
    assert found.code == "became-dynamic"


def test_size_that_was_allowed_to_be_dynamic_is_information() -> None:
    (found,) = find(CellRecord(compiles=[entry(0, specializations=[specialized("16")])]))
    assert (found.code, found.severity, found.line) == ("specialized-dim", "info", 5)
    assert "`x.size()[0]`" in found.message
    assert "the constant 16" in found.message


def test_module_attribute_that_is_specialized_is_none() -> None:
    item = Specialization(symbol="zf64", sources=["G['net'].eps"], value="1e-5")
    assert find(CellRecord(compiles=[entry(0, specializations=[item])])) == []


STAGES = [
    StageTime(name="entire_frame_compile", start=0, seconds=60),
    StageTime(name="backend_compile", start=2, seconds=57),
    StageTime(name="GraphLowering.run", start=3, seconds=5),
    StageTime(name="unheard_of", start=8, seconds=50),
    StageTime(name="async_compile.wait", start=9, seconds=48),
    StageTime(name="compile_file", start=9, seconds=20),
]


def slow_record(**fields: object) -> CellRecord:
    record = CellRecord(source="%%dynamo\n\n\ndef f(x):\n    return x\n\n\n\nf(x)\n", **fields)
    record = replace(record, compiles=[entry(0, stages=STAGES)])
    return replace(record, findings=find(record))


def test_slow_compile_names_the_part_with_most_time_of_its_own() -> None:
    (found,) = slow_record().findings
    assert (found.code, found.severity, found.line) == ("slow-compile", "info", 4)
    assert "compiling of kernels" in found.message
    assert found.measured


def test_quick_compile_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "SLOW_SECONDS", 61.0)
    assert slow_record().findings == []


def test_measured_finding_is_only_where_times_are() -> None:
    record = slow_record()
    without: list[Finding] = []
    assert to_text(record) == to_text(replace(record, findings=without))
    assert to_html(record) == to_html(replace(record, findings=without))
    assert "slow-compile" in to_page(record)
