"""Take the README's pictures: the quickstart in a real JupyterLab, light and dark, and its page.

    python scripts/screenshots.py [FOLDER]

Needs what tests/e2e needs: JupyterLab, Playwright and a Chromium.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.e2e.servers import BROWSER, Notebook, chromium, server, write_notebook  # noqa: E402

IMAGES = ROOT / "docs" / "images"
QUICKSTART = ROOT / "notebooks" / "01_quickstart.ipynb"
SIZE = {"width": 1280, "height": 1180}
LIMIT = 200_000  # bytes of one picture

SETUP, TOY, TRAINING, SAVE = 0, 1, 2, 3  # the notebook's cells
DIVISION = 5  # a line of the first cell


def cells() -> list[str]:
    """Return the quickstart's cells that are shown, and one that saves the page."""
    notebook = nbformat.read(QUICKSTART, as_version=4)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    training = next(source for source in code if "nn.Module" in source)
    return [code[0], code[1], training, "%dynamo save page.html"]


class Studio:
    """A notebook that was run, and the pictures of it."""

    def __init__(self, page: Page, address: str, images: Path) -> None:
        self.page = page
        self.images = images
        self.notebook = Notebook(page, address, "lab", "quickstart.ipynb")
        page.keyboard.press("Control+b")  # the file browser
        self.notebook.run(SETUP, TOY, TRAINING, SAVE)

    def explorer(self, cell: int) -> Any:
        """Return a cell's explorer, once it is there."""
        root = self.notebook.cell(cell).locator(".dnx-root")
        expect(root).to_be_visible(timeout=60_000)
        return root

    def picture(self, cell: int, name: str) -> None:
        """Take a cell with its output, as far as it fits into the window."""
        self.notebook.cell(cell).evaluate("one => one.scrollIntoView({block: 'start'})")
        self.page.wait_for_timeout(800)
        save(self.page, self.images / name, self.page.locator(".jp-NotebookPanel").bounding_box())


def save(page: Page, path: Path, clip: Any = None) -> None:
    """Write a picture; one that is too large for a repository is an error."""
    page.screenshot(path=path, **({"clip": clip} if clip else {}))
    size = path.stat().st_size
    print(f"{path.name}: {size} bytes")
    if size > LIMIT:
        msg = f"{path.name} has {size} bytes, more than {LIMIT}"
        raise SystemExit(msg)


def line(root: Any, number: int) -> Any:
    """Return a line of the explorer's source pane."""
    return root.locator(f'.dnx-source [data-dnx-ref$="<cell>:{number}"]')


def choose(root: Any, slot: str, section: str) -> None:
    """Show a section in one of the two slots."""
    tabs = root.get_by_label(slot, exact=True).first
    tabs.get_by_role("tab", name=section).first.click()


def take_notebook(studio: Studio) -> None:
    """Take the first cell with a line held, in light; the training step with a kernel, in dark."""
    toy = studio.explorer(TOY)
    line(toy, DIVISION).click()
    studio.picture(TOY, "quickstart-light.png")
    studio.notebook.theme("Dark")
    training = studio.explorer(TRAINING)
    training.locator(".dnx-kernel-rows [role=option]", has_text="backward").first.click()
    studio.picture(TRAINING, "training-dark.png")


def take_page(browser: Browser, file: Path, images: Path) -> None:
    """Take the page of its own, with a walk over the bytecode under way."""
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.goto(file.as_uri())
    root = page.locator(".dnx-root")
    choose(root, "second section", "Steps")
    steps = root.locator(".dnx-steps")
    steps.focus()
    for _ in range(200):  # to the first instruction that adds a node
        page.keyboard.press("Shift+ArrowDown")
        if "node" in steps.locator("[data-lit=now]").inner_text():
            break
    page.wait_for_timeout(800)
    save(page, images / "page.png")


def main() -> None:
    """Run the quickstart and take all pictures."""
    images = Path(sys.argv[1]) if sys.argv[1:] else IMAGES
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        write_notebook(folder / "quickstart.ipynb", cells())
        browser = playwright.chromium.launch(executable_path=chromium(), args=BROWSER)
        with server("lab", folder) as address:
            take_notebook(Studio(browser.new_page(viewport=SIZE), address, images))
        take_page(browser, folder / "page.html", images)
        browser.close()


if __name__ == "__main__":
    main()
