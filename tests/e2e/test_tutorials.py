"""Each tutorial in a real JupyterLab: all of it runs, no cell fails, the explorer opens."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.e2e.conftest import Watched
from tests.e2e.servers import ROOT, Notebook, server, write_settings

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LONGEST = 280  # seconds that a notebook may take
LOOK = 15_000  # milliseconds between two looks whether the kernel still works on it

#: All cells are in the page, also those far down.
WHOLE = {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}}

_BEGUN = """() => [...document.querySelectorAll(".jp-Notebook .jp-InputPrompt")]
    .some(prompt => /[*\\d]/.test(prompt.textContent))"""
_IDLE = "() => !!document.querySelector('.jp-Notebook-ExecutionIndicator[data-status=idle]')"
_RUN = """count => {
    const prompts = [...document.querySelectorAll(".jp-Notebook .jp-CodeCell .jp-InputPrompt")];
    const failed = document.querySelector('[data-mime-type="application/vnd.jupyter.error"]');
    const done = prompts.filter(prompt => /\\d/.test(prompt.textContent)).length;
    return failed !== null || (prompts.length === count && done === count);
}"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Run a JupyterLab on copies of the tutorials, without their outputs."""
    folder = tmp_path_factory.mktemp("tutorials")
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        notebook.metadata.pop("widgets", None)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, folder / path.name)
    write_settings(folder, WHOLE)
    with server("lab", folder) as address:
        yield address, folder
    shutil.rmtree(folder, ignore_errors=True)


def run_all(notebook: Notebook) -> None:
    """Run all cells; a kernel that is just up may ask which it is, or drop what it is asked."""
    for _ in range(10):
        notebook.accept()
        with contextlib.suppress(PlaywrightTimeout):  # a question may come at any time
            notebook.page.locator(".lm-MenuBar-item", has_text="Run").click(timeout=4000)
            notebook.page.get_by_text("Run All Cells", exact=True).click(timeout=4000)
            notebook.page.wait_for_function(_BEGUN, timeout=4000)
            return


def wait_for_all(notebook: Notebook, count: int) -> None:
    """Wait until all cells ran or one failed; begin again where the kernel dropped some."""
    end = time.monotonic() + LONGEST
    while True:
        try:
            notebook.page.wait_for_function(_RUN, arg=count, timeout=LOOK)
            return
        except PlaywrightTimeout:
            if time.monotonic() > end:
                raise
            if notebook.page.evaluate(_IDLE):
                run_all(notebook)


@pytest.mark.xdist_group("tutorials")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path: Path, lab: tuple[str, Path], watched: Watched) -> None:
    address, _ = lab
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    notebook = Notebook(watched.page, address, "lab", path.name)
    run_all(notebook)
    wait_for_all(notebook, len(cells))
    errors = watched.page.locator('[data-mime-type="application/vnd.jupyter.error"]')
    assert errors.all_inner_texts() == []
    reports = [c.source.partition("\n")[0] for c in cells if c.source.startswith("%%dynamo")]
    shown = sum("--view" not in line for line in reports)
    if shown:  # one that ends with text or HTML alone has none
        explorers = watched.page.locator(".jp-OutputArea-output .dnx-root")
        explorers.nth(shown - 1).wait_for(state="attached")
    notebook.menu("Kernel", "Shut Down Kernel")
