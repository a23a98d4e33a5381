"""A reader of the tutorials can answer ten questions about a new cell (`tests/reader`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynamo_nb.record.types import CellRecord
from tests.conftest import Shell

READER = Path(__file__).parent / "reader"
NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \| (\w+) \|$", re.MULTILINE)
ROWS = ROW.findall((READER / "README.md").read_text(encoding="utf-8"))

TIMES = {1: "once", 2: "twice"}
SORTS = {"CONSTANT_MATCH": "value", "TENSOR_MATCH": "tensor"}


def graphs(record: CellRecord) -> str:
    return str(record.summary()["graphs"])


def broken(record: CellRecord) -> str:
    (place,) = record.summary()["graph_breaks"]
    return f"line {place['line']}, {TIMES[place['count']]}"


def last_of_report(record: CellRecord) -> str:
    last = record.compiles[-1]
    return f"{last.compile_id}, {'a resume function' if last.resume_of == 'report' else last.name}"


def guard_on_kind(record: CellRecord) -> str:
    guard = record.guards("kind")[0][1]
    assert guard.frame is not None
    return f"line {guard.frame.line}, {SORTS[guard.kind]}"


def tried_first(record: CellRecord) -> str:
    (state,) = [state for state in record.cache if state.name == "Gate.forward"]
    return state.entries[0].entry


def failed_in(line: int) -> Callable[[CellRecord], str]:
    def answer(record: CellRecord) -> str:
        causes = record.summary()["recompile_causes"]
        (cause,) = [cause for cause in causes if cause["call_line"] == line]
        return f"{cause['source']}: {cause['was']} -> {cause['now']}"

    return answer


def valid_rows(record: CellRecord) -> str:
    (symbol,) = record.compile("0/1").symbols
    assert symbol.sources == ["L['x'].size()[0]"]
    assert symbol.range == "VR[2, int_oo]"
    return "2 or more"


def one_row(record: CellRecord, names: dict[str, Any]) -> str:
    import dynamo_nb

    answer = dynamo_nb.would(names["gate"], names["torch"].ones(1, 4), "sum")
    return {"compile": "yes", "hit": "no"}[answer.outcome]


def differentiated(record: CellRecord) -> str:
    backward = record.compile("0/0").graph("backward")
    assert backward is not None
    (node,) = [node for node in backward.nodes if node.name == "tanh_backward"]
    return f"line {node.frames[-1].line}"


ANSWERS: dict[str, Callable[..., str]] = {
    "1": graphs,
    "2": broken,
    "3": last_of_report,
    "4": guard_on_kind,
    "5": tried_first,
    "6": failed_in(22),
    "7": failed_in(23),
    "8": valid_rows,
    "9": one_row,
    "10": differentiated,
}


def test_there_are_ten_questions_each_with_a_tutorial() -> None:
    assert [number for number, *_ in ROWS] == list(ANSWERS)
    assert all((NOTEBOOKS / f"{tutorial}.ipynb").exists() for *_, tutorial in ROWS)


def test_the_answers_are_those_of_the_record(shell: Shell) -> None:
    ran = shell.run((READER / "new.cell").read_text(encoding="utf-8"))
    assert ran.error is None
    names = shell.ip.user_ns
    for number, question, answer, _ in ROWS:
        compute = ANSWERS[number]
        found = compute(shell.record, names) if compute is one_row else compute(shell.record)
        assert found == answer, question
    for words in ("line 17", "'sum' ->", "3 -> 5", "graph of 3 ops"):
        assert words in ran.report, "the report has what the answers need"
