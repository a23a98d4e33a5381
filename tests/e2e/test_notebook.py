"""The explorer in a real JupyterLab and a real Notebook 7."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Watched, open_page
from tests.e2e.servers import JUPYTER, Notebook, environment, write_notebook

SETUP = """import torch
%load_ext dynamo_nb
"""
NET = """%%dynamo
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())

    def forward(self, x):
        h = self.up(x).sin()
        print("between")
        return h.cos() + 1

Net()(torch.randn(3, 4)).sum().backward()
"""
TOY = """%%dynamo --backend eager
def toy(a):
    return a.abs() * 2

toy(torch.randn(3))
"""
FORWARD, BREAK, AFTER = 8, 9, 10  # the lines of NET
NET_CELL, TOY_CELL = 1, 2

LIT = ".dnx-g-is-lit"


class Explored:
    """A notebook whose cells were run, and its explorers."""

    def __init__(self, watched: Watched, jupyter: tuple[str, str, Path], name: str) -> None:
        self.kind, self.address, self.folder = jupyter
        self.watched = watched
        self.page = watched.page
        self.path = self.folder / name
        self.notebook = Notebook(self.page, self.address, self.kind, name)
        watched.errors.clear()  # what the front end said while it opened

    def run(self) -> None:
        self.notebook.run(0, NET_CELL, TOY_CELL)
        for cell in (NET_CELL, TOY_CELL):
            expect(self.root(cell)).to_be_visible(timeout=60_000)
        self.root().get_by_role("button", name="fit").click()

    def root(self, cell: int = NET_CELL) -> Any:
        return self.notebook.cell(cell).locator(".dnx-root")

    def line(self, number: int, cell: int = NET_CELL) -> Any:
        """Return a line of the explorer's source pane."""
        return self.root(cell).locator(f'.dnx-source [data-dnx-ref$="<cell>:{number}"]')

    def marks(self, cell: int = NET_CELL) -> Any:
        """Return the marks over a cell's editor, lit or not."""
        mark = ".dnx-over-strip, :has(> .dnx-over-mark)"
        return self.notebook.cell(cell).locator(f".dnx-overlay > :is({mark})")

    def lit_lines(self, cell: int = NET_CELL) -> list[int]:
        """Return the lines that are lit over the editor."""
        lit = self.notebook.cell(cell).locator(".dnx-overlay > .dnx-over-lit")
        return sorted(int(mark.get_attribute("data-line")) for mark in lit.all())

    def release(self) -> None:
        self.root().locator(".dnx-source [role=listbox]").focus()
        self.page.keyboard.press("Escape")
        self.page.mouse.move(5, 5)
        expect(self.root().locator("[data-lit]")).to_have_count(0)

    def kernels(self) -> Any:
        return self.root().locator(".dnx-kernel-rows [role=option]")

    def node(self, name: str) -> Any:
        return self.root().locator(f'.dnx-g-stage [data-node="{name}"]')

    def visible(self, selector: str) -> int:
        """Count the elements that take up room."""
        return sum(one.is_visible() for one in self.page.locator(selector).all())

    def save(self) -> dict[str, Any]:
        """Save the notebook until its file has the state of what it shows; return what it holds."""
        saved: dict[str, Any] = {}
        for _ in range(30):
            self.root().locator(".dnx-source [role=listbox]").focus()  # it leaves this key alone
            self.page.keyboard.press("Control+s")
            self.page.wait_for_timeout(1000)
            saved = json.loads(self.path.read_text())
            shown = set(shown_models(saved))
            if len(shown) == 2 and shown <= saved_models(saved).keys():
                break
        return saved

    def copy(self, name: str, saved: dict[str, Any]) -> tuple[str, str, Path]:
        """Write a notebook beside this one, as trusted as if it had been run here."""
        path = self.folder / name
        path.write_text(json.dumps(saved))
        trust = [JUPYTER, "-m", "jupyter", "trust", str(path)]
        subprocess.run(trust, env=environment(self.folder), check=True, capture_output=True)
        return self.kind, self.address, self.folder


def shown_models(notebook: dict[str, Any]) -> list[str]:
    """Return the ids of the models whose views a notebook's outputs hold."""
    kind = "application/vnd.jupyter.widget-view+json"
    outputs = [output for cell in notebook["cells"] for output in cell["outputs"]]
    views = [output.get("data", {}).get(kind) for output in outputs]
    return [view["model_id"] for view in views if view]


def saved_models(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the widget models that were saved with a notebook."""
    widgets = notebook["metadata"].get("widgets", {})
    found: dict[str, Any] = widgets.get("application/vnd.jupyter.widget-state+json", {})
    return found.get("state", {})


@pytest.fixture(scope="module")
def explored(browser: Any, jupyter: Any) -> Iterator[Explored]:
    write_notebook(jupyter[2] / "main.ipynb", [SETUP, NET, TOY, ""])
    watched = open_page(browser)
    explored = Explored(watched, jupyter, "main.ipynb")
    explored.run()
    yield explored
    watched.page.close()


@pytest.fixture(autouse=True)
def clean_console(explored: Explored) -> Iterator[None]:
    """Each test leaves nothing selected and no error behind."""
    yield
    assert explored.watched.errors == []


def test_one_of_the_two_outputs_is_shown(explored: Explored) -> None:
    assert explored.visible("[data-dnb-static]") == 0
    assert explored.visible(".dnx-root") == 2
    assert explored.page.get_by_text("Error displaying widget").count() == 0


def test_a_line_leads_to_nodes_kernels_and_the_editor(explored: Explored) -> None:
    explored.line(FORWARD).hover()
    expect(explored.node("h")).to_have_class(re.compile("is-lit"))
    expect(explored.kernels().and_(explored.page.locator("[data-lit]"))).not_to_have_count(0)
    expect(explored.line(FORWARD)).to_have_attribute("data-lit", "now")
    assert explored.lit_lines() == [FORWARD]
    explored.release()


def test_the_editor_leads_to_the_explorer(explored: Explored) -> None:
    explored.notebook.editor(NET_CELL).locator(".cm-line").nth(FORWARD - 1).hover()
    expect(explored.line(FORWARD)).to_have_attribute("data-lit", "now")
    explored.release()


def test_a_node_leads_to_its_line(explored: Explored) -> None:
    explored.node("h").hover()
    expect(explored.line(FORWARD)).to_have_attribute("data-lit", "yes")
    assert explored.lit_lines() == [FORWARD]
    explored.release()


def test_a_kernel_leads_to_its_nodes_and_lines(explored: Explored) -> None:
    kernel = explored.kernels().filter(has_text="sin").first
    kernel.click()
    expect(kernel).to_have_attribute("data-lit", "now")
    expect(explored.root().locator(f".dnx-g-stage {LIT}")).not_to_have_count(0)
    assert FORWARD in explored.lit_lines()
    explored.line(BREAK).hover()  # what is held stays
    expect(kernel).to_have_attribute("data-lit", "now")
    explored.release()


def test_marks_over_the_editor_stand_on_their_lines(explored: Explored) -> None:
    badge = explored.marks().locator(".dnx-over-mark")
    expect(badge).to_have_count(1)
    expect(badge).to_contain_text("graph break")
    mark = badge.locator("..")
    assert mark.get_attribute("data-line") == str(BREAK)
    line = explored.notebook.editor(NET_CELL).locator(".cm-line").nth(BREAK - 1)
    assert mark.bounding_box()["y"] == pytest.approx(line.bounding_box()["y"], abs=1)
    assert mark.bounding_box()["height"] == pytest.approx(line.bounding_box()["height"], abs=1)


def test_marks_go_with_an_edit_and_come_back_with_undo(explored: Explored) -> None:
    before = explored.marks().count()
    explored.notebook.editor(NET_CELL).click()
    explored.page.keyboard.press("End")
    explored.page.keyboard.type("#")
    expect(explored.marks()).to_have_count(0)
    explored.page.keyboard.press("Control+z")
    expect(explored.marks()).to_have_count(before)


def test_a_module_opens_and_closes(explored: Explored) -> None:
    stage = explored.root().locator(".dnx-g-stage")
    explored.root().get_by_role("button", name="close all").click()
    group = stage.locator("[data-group]").first
    expect(explored.node("input_1")).to_have_count(0)
    group.click()
    expect(explored.node("input_1")).to_be_visible()
    explored.root().get_by_role("button", name="open all").click()


def test_searching_filters_and_leaves_the_notebook_alone(explored: Explored) -> None:
    cells = explored.page.locator(".jp-Cell").count()
    field = explored.root().locator(".dnx-graph input[type=search]")
    field.click()
    field.press_sequentially("sin aabbdd")
    assert explored.page.locator(".jp-Cell").count() == cells
    field.fill("sin")
    expect(explored.node("h")).not_to_have_class(re.compile("is-dim"))
    expect(explored.root().locator(".dnx-g-is-dim")).not_to_have_count(0)
    field.fill("")


def test_keys_move_in_a_list_and_not_in_the_notebook(explored: Explored) -> None:
    second = explored.root().get_by_label("second section", exact=True)
    second.get_by_role("tab", name=re.compile("^Kernels")).click()
    expect(explored.notebook.cell(NET_CELL)).to_have_class(re.compile("jp-mod-active"))
    explored.root().locator(".dnx-kernel-rows").focus()
    selected = explored.page.locator(".jp-Cell.jp-mod-selected")
    which = selected.evaluate("one => [...one.parentNode.children].indexOf(one)")
    for key in ("Home", "ArrowDown", "Enter"):
        explored.page.keyboard.press(key)
    expect(explored.kernels().nth(1)).to_have_attribute("data-lit", "now")
    assert selected.evaluate("one => [...one.parentNode.children].indexOf(one)") == which
    explored.release()


def test_python_reads_the_selection(explored: Explored) -> None:
    explored.kernels().first.click()
    look = (
        "from ipywidgets.widgets.widget import _instances\n"
        "print([one.selection[0].artifact for one in _instances.values()"
        " if getattr(one, 'selection', None)])"
    )
    explored.notebook.write(TOY_CELL + 1, look)
    explored.notebook.run(TOY_CELL + 1)
    expect(explored.notebook.cell(TOY_CELL + 1)).to_contain_text("['kernel']")
    explored.release()


def test_two_cells_keep_apart(explored: Explored) -> None:
    explored.line(3, TOY_CELL).hover()
    expect(explored.line(3, TOY_CELL)).to_have_attribute("data-lit", "now")
    assert explored.lit_lines(TOY_CELL) == [3]
    assert explored.lit_lines(NET_CELL) == []
    expect(explored.root(NET_CELL).locator("[data-lit]")).to_have_count(0)
    explored.page.mouse.move(5, 5)


def test_a_page_of_its_own(explored: Explored, tmp_path: Path) -> None:
    with explored.page.expect_download() as started:
        explored.root().get_by_role("button", name="save page").click()
    started.value.save_as(tmp_path / "page.html")
    watched = open_page(explored.page.context.browser)
    watched.page.goto((tmp_path / "page.html").as_uri())
    expect(watched.page.locator(".dnx-root")).to_be_visible()
    watched.page.close()
    assert watched.errors == []


def test_dark_and_light(explored: Explored) -> None:
    background = "one => getComputedStyle(one).backgroundColor"
    assert _brightness(explored.root().evaluate(background)) > 200
    explored.notebook.theme("Dark")
    try:
        explored.page.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
        assert _brightness(explored.root().evaluate(background)) < 60
    finally:
        explored.notebook.theme("Light")


def _brightness(colour: str) -> float:
    red, green, blue = (float(one) for one in re.findall(r"[\d.]+", colour)[:3])
    return (red + green + blue) / 3


def test_running_again_leaves_one_of_everything(explored: Explored) -> None:
    for _ in range(2):
        explored.notebook.run(TOY_CELL)
        expect(explored.root(TOY_CELL)).to_be_visible(timeout=60_000)
    cell = explored.notebook.cell(TOY_CELL)
    expect(cell.locator(".dnx-overlay")).to_have_count(1)
    expect(cell.locator(".dnx-root")).to_have_count(1)
    expect(explored.marks(TOY_CELL)).not_to_have_count(0)


def test_saved_reopened_and_restarted(explored: Explored) -> None:
    saved = explored.save()
    models = saved_models(saved)
    assert len(shown_models(saved)) == 2
    assert all(len(json.dumps(models[one])) <= 512_000 for one in shown_models(saved))

    watched = open_page(explored.page.context.browser)
    again = Explored(watched, explored.copy("again.ipynb", saved), "again.ipynb")
    _works_from_its_snapshot(again)
    again.notebook.restart()
    _works_from_its_snapshot(again)
    watched.page.close()
    assert watched.errors == []


def _works_from_its_snapshot(again: Explored) -> None:
    expect(again.root()).to_be_visible(timeout=60_000)
    assert again.visible("[data-dnb-static]") == 0
    kernel = again.kernels().filter(has_text="sin").first
    kernel.click()
    expect(again.root().locator(".dnx-split-code [role=option]").first).to_be_visible()
    assert FORWARD in again.lit_lines()
    again.release()


def test_without_its_model_the_static_output_stands_alone(explored: Explored) -> None:
    saved = explored.save()
    del saved["metadata"]["widgets"]
    watched = open_page(explored.page.context.browser)
    bare = Explored(watched, explored.copy("bare.ipynb", saved), "bare.ipynb")
    failed = bare.page.get_by_text("Error displaying widget")
    expect(failed.first).to_be_attached(timeout=60_000)
    assert not any(one.is_visible() for one in failed.all())
    assert bare.visible("[data-dnb-static]") == 2
    watched.page.close()
