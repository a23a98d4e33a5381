"""Dynamo's walk over the bytecode, as text and in the static report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from dynamo_nb.record.io import load
from dynamo_nb.record.types import CellRecord, Steps
from dynamo_nb.views.html import to_html, to_page
from dynamo_nb.views.steps import rows, steps_text
from dynamo_nb.views.text import to_text

DATA = Path(__file__).resolve().parent / "data"


@pytest.fixture(scope="module")
def record() -> CellRecord:
    return load(DATA / "cell.json.gz")


@pytest.fixture(scope="module")
def steps(record: CellRecord) -> Steps:
    found = record.compile("0/0").steps
    assert found is not None
    return found


def test_a_row_says_what_the_instruction_met_changed_and_added(steps: Steps) -> None:
    found = {row.name: row for row in rows(steps) if row.depth == 0}
    assert found["STORE_FAST h"].stack == ["tensor h"]
    assert found["STORE_FAST h"].changed == {"h": "tensor h"}
    assert found["BINARY_OP *"].effect == "adds h; 1 guard"
    assert found["BINARY_OP *"].where == "line 8"
    assert found["LOAD_METHOD up"].top == "lazy self"


def test_inlined_calls_are_set_off(steps: Steps) -> None:
    depths = {row.name.count("> "): row.where for row in rows(steps)}
    assert set(depths) == {0, 1, 2}
    assert depths[2].startswith("activation.py:")


def test_every_step_has_its_row(steps: Steps) -> None:
    assert len(list(rows(steps))) == len(steps.steps)
    assert steps_text(steps) == f"{len(steps.steps)} instructions, 4 inlined calls"


def test_the_text_is_one_line_a_step_and_bounded(steps: Steps) -> None:
    text = str(steps)
    assert text.count("\n") == len(steps.steps)
    assert max(map(len, text.split("\n"))) <= 110
    assert re.search(r"\n  line 8 +2  LOAD_FAST self +\[\]\n +4  LOAD_METHOD up +4 guards ", text)
    many = replace(steps, steps=steps.steps * 10)
    assert "more instructions" in str(many)
    assert str(many).count("\n") < 250
    assert "LOAD_METHOD up" in steps._repr_html_()


def test_the_summary_says_how_many_and_how_to_see_them(record: CellRecord) -> None:
    text = to_text(record)
    assert "Bytecode interpreted, libraries apart: 16 in 0/0, 15 in 1/0, 16 in 0/1" in text
    assert 'dynamo_nb.last().compile("0/0").steps' in text


def test_the_page_has_all_steps_tied_to_their_lines(record: CellRecord) -> None:
    section = to_page(record).partition("<b>steps</b>")[2].partition("</details>")[0]
    assert section.count("<tr") == 1 + 71
    row = next(row for row in section.split("<tr") if "BINARY_OP *" in row)
    assert re.search(r'class="[^"]*\bl8\b', row)


def test_a_cells_output_leaves_the_code_of_libraries_to_the_page(record: CellRecord) -> None:
    section = to_html(record).partition("<b>steps</b>")[2].partition("</details>")[0]
    assert section.count("<tr") == 1 + 16
    assert "16 instructions, libraries&#39; code apart" in section
    assert "activation.py" not in section
