"""The casebook: every case runs through the magic in a real IPython shell.

A case is a cell (`tests/cases/NAME.cell`) and what a person should be told about it
(`NAME.json`); `tests/cases/README.md` explains the keys.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Shell

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.cell"))

#: Findings that no rule makes yet, by case. All else of these cases is compared, and that the
#: finding is still missing too: a case leaves this table when its finding comes.
WAITING: dict[str, set[str]] = {}

#: A place in a file that runs notebooks, or in one of ours.
MACHINERY = re.compile(r"\b(?:dynamo_nb|IPython|ipykernel|traitlets)/[\w/]+\.py")


class Case:
    """A case that was run: what is wanted, what was reported, what was displayed."""

    def __init__(self, name: str, shell: Shell) -> None:
        self.name = name
        self.wanted: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())
        source = (CASES / f"{name}.cell").read_text()
        self.ran = shell.run(source)
        self.summary: dict[str, Any] = shell.record.summary()
        self.json = shell.record.to_json().decode()

    @property
    def codes(self) -> set[str]:
        return {finding["code"] for finding in self.summary["findings"]}

    def found(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the findings that agree with all that is wanted of one."""
        return [f for f in self.summary["findings"] if wanted.items() <= f.items()]


def check_run(case: Case) -> None:
    wanted = case.wanted
    raised = type(case.ran.error).__name__ if case.ran.error is not None else None
    assert raised == wanted.get("error")
    assert case.summary["error"] == wanted.get("error")
    for key in ("mode", "graphs", "recompiles"):
        if key in wanted:
            assert case.summary[key] == wanted[key], key


def check_graph_breaks(case: Case) -> None:
    if "graph_breaks" in case.wanted:
        places = case.summary["graph_breaks"]
        wanted = case.wanted["graph_breaks"]
        assert sorted(p["line"] or 0 for p in places) == sorted(w["line"] or 0 for w in wanted)
        assert all(any(w.items() <= p.items() for p in places) for w in wanted), places


def check_recompile(case: Case) -> None:
    wanted = dict(case.wanted.get("recompile", {}))
    if wanted:
        source = wanted.pop("source")
        causes = case.summary["recompile_causes"]
        assert any(source in c["source"] and wanted.items() <= c.items() for c in causes), causes


def check_findings(case: Case) -> None:
    reported = case.summary["findings"]
    waiting = WAITING.get(case.name, set())
    for wanted in case.wanted.get("findings", []):
        assert bool(case.found(wanted)) != (wanted["code"] in waiting), (wanted, reported)
    if case.wanted.get("findings") == []:
        assert reported == []
    assert not case.codes & set(case.wanted.get("no_findings", []))
    for line in case.wanted.get("cause_lines", []):
        code = case.wanted["findings"][0]["code"]
        assert any(line in f["lines"] for f in reported if f["code"] == code), reported


def check_text(case: Case) -> None:
    for text in case.wanted.get("text_has", []):
        if case.name not in WAITING:
            assert text in case.ran.report


def check_places(case: Case) -> None:
    """No line of what runs the notebook, or of ours, is told as one of the user's."""
    assert MACHINERY.findall(case.json) == []


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str, shell: Shell) -> None:
    case = Case(name, shell)
    check_run(case)
    check_graph_breaks(case)
    check_recompile(case)
    check_findings(case)
    check_text(case)
    check_places(case)


def test_every_cell_has_its_answers_and_the_other_way_round() -> None:
    assert sorted(path.stem for path in CASES.glob("*.json")) == NAMES


def test_what_waits_is_a_case() -> None:
    assert set(WAITING) <= set(NAMES)
