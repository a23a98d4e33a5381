"""A browser for each module; a server and a notebook that was run for each kind of front end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.servers import BROWSER, chromium, server

#: What the front ends themselves say in the console, and has nothing to do with us.
NOT_OURS = ("favicon", "net::ERR_INTERNET_DISCONNECTED")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Open a browser, not for longer than needed: its event loop runs on the tests' own thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=BROWSER)
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page, and the errors that its console showed."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _said(self, message: Any) -> None:
        if message.type == "error" and not any(one in message.text for one in NOT_OURS):
            self.errors.append(message.text)


def open_page(browser: Browser, **options: Any) -> Watched:
    """Open a page that is watched for errors."""
    page = browser.new_page(**{"viewport": {"width": 1400, "height": 1000}, **options})
    page.set_default_timeout(30_000)
    watched = Watched(page)
    watched.watch()
    return watched


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """Open a page of a test's own; the test fails when its console shows an error."""
    watched = open_page(browser)
    yield watched
    watched.page.close()
    assert watched.errors == []


@pytest.fixture(scope="module", params=["lab", "notebook"])
def jupyter(request: Any, tmp_path_factory: Any) -> Iterator[tuple[str, str, Path]]:
    """Run a server; yield its kind, its address and its folder."""
    folder = tmp_path_factory.mktemp(request.param)
    with server(request.param, folder) as address:
        yield request.param, address, folder
