"""The pages of the findings: what a page says of its cell is what the cell gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dynamo_nb.findings import CODES, slow
from dynamo_nb.record.types import Finding
from tests.conftest import Shell

PAGES = Path(__file__).parent.parent / "docs" / "findings"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: The page's example sleeps this long, so that it need not take half a minute.
SLOW_SECONDS = 0.2


class Page:
    """A page taken apart: the cell, the report that it promises, the cell without the cause."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.text = (PAGES / f"{code}.md").read_text(encoding="utf-8")
        blocks = _BLOCK.findall(self.text)
        cells = [text for kind, text in blocks if kind == "python" and text.startswith("%%dynamo")]
        self.cell, *self.mended = cells
        self.reported = next(text.strip() for kind, text in blocks if kind == "text")


def head(finding: Finding) -> str:
    return f"{finding.severity}: {finding.code} line {finding.line}: {finding.message}"


@pytest.mark.parametrize("code", CODES)
def test_cell_gives_what_the_page_says(
    code: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    if code == "slow-compile":
        monkeypatch.setattr(slow, "SLOW_SECONDS", SLOW_SECONDS)
    page = Page(code)
    shell.run(page.cell)
    found = [finding for finding in shell.record.findings if finding.code == code]
    assert page.reported in map(head, found)


@pytest.mark.parametrize("code", sorted(set(CODES) - {"slow-compile"}))
def test_mended_cell_does_not(code: str, shell: Shell) -> None:
    page = Page(code)
    assert len(page.mended) == 1
    ran = shell.run(page.mended[0])
    assert ran.error is None
    assert code not in {finding.code for finding in shell.record.findings}


def test_every_code_has_its_page_and_its_line_in_the_index() -> None:
    pages = {path.stem for path in PAGES.glob("*.md")} - {"README"}
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    assert pages == set(CODES)
    assert re.findall(r"^\| \[([\w-]+)\]", index, re.MULTILINE) == list(CODES)


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda path: path.stem)
def test_links_lead_to_pages(path: Path) -> None:
    links = re.findall(r"\]\(([\w-]+\.md)\)", path.read_text(encoding="utf-8"))
    assert all((PAGES / link).exists() for link in links)
