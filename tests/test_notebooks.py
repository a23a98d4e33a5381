"""The notebooks as they are committed: executed, whole, and free of what differs between runs.

That they still do what they show is nbval's part: `make notebooks`.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))

#: What may not stand in an output: addresses, temporary and personal paths, times of day.
CHANGING = re.compile(r"0x[0-9a-f]{8,}|/tmp/|/home/|/root/|\b\d\d:\d\d:\d\d\b")


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_is_a_quickstart():
    assert "01_quickstart" in {path.stem for path in NOTEBOOKS}


def test_cells_were_run_in_order(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_outputs_are_whole(notebook):
    for cell in code_cells(notebook):
        assert all(output.output_type != "error" for output in cell.outputs)
        assert all(output.get("data", True) for output in cell.outputs), "left by the progress line"


def test_every_magic_cell_has_its_report_in_text_and_html(notebook):
    cells = [cell for cell in code_cells(notebook) if cell.source.startswith("%%dynamo")]
    assert cells
    for cell in cells:
        report, explorer = (output.data for output in cell.outputs[-2:])
        assert report["text/plain"].startswith("dynamo: ")
        assert "data-dnb-static" in report["text/html"]
        assert "application/vnd.jupyter.widget-view+json" in explorer


def test_outputs_are_the_same_at_each_run(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert not CHANGING.findall(str(output))
