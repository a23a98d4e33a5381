"""The notebooks as they are committed: executed, whole, and free of what differs between runs.

That they still do what they show is nbval's part: `make notebooks`.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

#: What may not stand in an output: addresses, temporary and personal paths, times of day.
CHANGING = re.compile(r"0x[0-9a-f]{8,}|ipykernel_\d|/tmp/|/home/|/root/|\b\d\d:\d\d:\d\d\b")

#: Bytes of a tutorial, outputs included, that a reader should not wait for.
LARGEST = 400_000

#: What each kind of view leaves of a report, by the types of its outputs.
WIDGET = "application/vnd.jupyter.widget-view+json"
OUTPUTS = {
    "auto": [{"text/plain", "text/html"}, {"text/plain", WIDGET}],
    "html": [{"text/plain", "text/html"}],
    "text": [{"text/plain"}],
}


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def reports(notebook):
    """Return the magic's cells, each with the view that it asks for."""
    found = [cell for cell in code_cells(notebook) if cell.source.startswith("%%dynamo")]
    lines = [cell.source.partition("\n")[0] for cell in found]
    views = [re.findall(r"--view (\w+)", line) for line in lines]
    return [(cell, view[0] if view else "auto") for cell, view in zip(found, views, strict=True)]


def test_the_tutorials_are_in_order():
    assert [int(path.stem.partition("_")[0]) for path in NOTEBOOKS] == list(range(1, 15))
    assert NOTEBOOKS[0].stem == "01_quickstart"


def test_the_readme_links_each_one(path):
    assert f"(notebooks/{path.name})" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_cells_were_run_in_order(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_outputs_are_whole(notebook):
    for cell in code_cells(notebook):
        assert all(output.output_type != "error" for output in cell.outputs)
        assert all(output.get("data", True) for output in cell.outputs), "left by the progress line"


def test_nothing_is_said_on_stderr(notebook):
    said = [o for cell in code_cells(notebook) for o in cell.outputs if o.get("name") == "stderr"]
    assert said == []


def test_every_magic_cell_has_its_report(notebook):
    for cell, view in reports(notebook):
        shown = [output.data for output in cell.outputs if output.output_type == "display_data"]
        wanted = OUTPUTS[view]
        assert [set(data) for data in shown] == wanted
        assert shown[0]["text/plain"].startswith("dynamo: ")
        assert "data-dnb-static" in shown[0].get("text/html", "data-dnb-static")


def test_a_report_is_there_in_html_too(notebook):
    assert any(view != "text" for _, view in reports(notebook))


def test_a_tutorial_asserts_what_it_says(path, notebook):
    if path.stem != "01_quickstart":  # which is for a first look
        asserting = [cell for cell in code_cells(notebook) if "\nassert " in f"\n{cell.source}"]
        assert len(asserting) >= 2


def test_a_tutorial_is_small(path):
    if path.stem != "01_quickstart":
        assert path.stat().st_size <= LARGEST


def test_outputs_are_the_same_at_each_run(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert not CHANGING.findall(str(output))
