"""A real JupyterLab or Notebook 7 and a real browser, for the tests of this folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import TimeoutError as PlaywrightTimeout

ROOT = Path(__file__).resolve().parents[2]
READY = 60  # seconds that a server may take to come up

#: The Python whose JupyterLab is tested. Another one, with an older JupyterLab, needs a kernel
#: `python3` that runs in an environment with dynamo_nb, and cells that are there out of sight, too
#: ("windowingMode": "defer" in its overrides.json).
JUPYTER = os.environ.get("DYNAMO_NB_JUPYTER", sys.executable)

#: No GPU, no sandbox, and none of the calls home that a browser makes by itself.
BROWSER = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    """Return the system's Chromium; None leaves Playwright to its own."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextlib.contextmanager
def server(kind: str, folder: Path) -> Iterator[str]:
    """Run `jupyter lab` or `jupyter notebook` on a folder; yield its address."""
    port = _free_port()
    write_settings(folder, SETTINGS)
    command = [
        JUPYTER,
        *("-m", "jupyter", kind, "--no-browser", "--allow-root", f"--port={port}"),
        *("--ip=127.0.0.1", "--IdentityProvider.token=", "--ServerApp.password="),
        *("--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={folder}"),
    ]
    log = (folder / f"{kind}.log").open("w")
    process = subprocess.Popen(
        command, env=environment(folder), stdout=log, stderr=log, start_new_session=True
    )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(f"{address}/api", process)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        log.close()


#: Settings of JupyterLab: no questions, and widgets are saved with the notebook.
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": True},
}


def write_settings(folder: Path, settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Write settings of JupyterLab for the server on a folder."""
    for name, values in settings.items():
        path = folder / "settings" / "settings_dir" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which nothing of the user's own settings counts."""
    own = folder / "settings"
    names = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    lab = ("SETTINGS_DIR", "WORKSPACES_DIR")
    return {
        **os.environ,
        **{f"JUPYTER_{name}": str(own / name.lower()) for name in names},
        **{f"JUPYTERLAB_{name}": str(own / name.lower()) for name in lab},
        "PATH": f"{Path(JUPYTER).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY
    while time.monotonic() < deadline:
        if process.poll() is not None:
            msg = f"the server ended with {process.returncode}"
            raise RuntimeError(msg)
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=1):
            return
        time.sleep(0.1)
    msg = f"the server did not answer within {READY} s"
    raise TimeoutError(msg)


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """Write a notebook of code cells."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in cells],
        metadata={"kernelspec": kernel},
    )
    nbformat.write(notebook, path)


_PROMPT = """index => document.querySelectorAll(".jp-Notebook .jp-CodeCell")[index]
    .querySelector(".jp-InputPrompt").innerText"""
_DONE = (
    "([index, before]) => { "
    f"const now = ({_PROMPT})(index); return now !== before && /\\d/.test(now); }}"
)


class Notebook:
    """A notebook that is open in a browser's page."""

    def __init__(self, page: Any, address: str, kind: str, name: str) -> None:
        self.page = page
        path = f"lab/tree/{name}?reset" if kind == "lab" else f"notebooks/{name}"
        page.goto(f"{address}/{path}")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell .cm-content")
        self.wait_for_kernel()

    def wait_for_kernel(self) -> None:
        """Wait until the kernel is idle, as the notebook's own indicator says."""
        self.page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]')

    def cell(self, index: int) -> Any:
        """Return a code cell."""
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(index)

    def editor(self, index: int) -> Any:
        """Return a cell's editor."""
        return self.cell(index).locator(".jp-InputArea-editor .cm-content")

    def run(self, *indices: int) -> None:
        """Run cells, one after the other, and wait for each."""
        for index in indices:
            before = self.prompt(index)
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline:
                # a kernel that is just up may drop what it is asked: ask again
                if "*" not in self.prompt(index):
                    self.accept()
                    self.editor(index).click()
                    self.page.keyboard.press("Control+Enter")
                with contextlib.suppress(PlaywrightTimeout):
                    self.page.wait_for_function(_DONE, arg=[index, before], timeout=3000)
                    break

    def accept(self) -> None:
        """Agree to what the notebook asks, if it asks anything."""
        button = self.page.locator(".jp-Dialog .jp-mod-accept")
        if button.count():
            button.first.click()

    def prompt(self, index: int) -> str:
        """Return a cell's `[n]:`."""
        return str(self.cell(index).locator(".jp-InputPrompt").inner_text())

    def write(self, index: int, source: str) -> None:
        """Type a cell's text anew."""
        self.editor(index).click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)

    def menu(self, *names: str | re.Pattern[str]) -> None:
        """Choose an entry of the menu bar, or of a menu below it."""
        bar, *between, last = names
        self.page.locator(".lm-MenuBar-item", has_text=bar).click()
        for name in between:
            self.page.locator(".lm-Menu-item", has_text=name).first.hover()
        self.page.locator(".lm-Menu-item", has_text=last).last.click()

    def theme(self, name: str) -> None:
        """Change the theme to one whose name ends in that."""
        self.menu("Settings", "Theme", re.compile(f"{name}$"))

    def restart(self) -> None:
        """Restart the kernel."""
        self.menu("Kernel", "Restart Kernel…")
        self.page.locator(".jp-Dialog").wait_for()
        self.accept()
        self.wait_for_kernel()
