"""The magic in a real ipykernel, spoken to as a notebook does."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

SPEC = KernelSpec(
    argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
    display_name="test",
    language="python",
)
MAGIC = "%%dynamo --backend eager\n"


def is_explorer(content: dict[str, Any]) -> bool:
    return "application/vnd.jupyter.widget-view+json" in content.get("data", {})


def has_html(content: dict[str, Any]) -> bool:
    return "data-dnb-static" in content.get("data", {}).get("text/html", "")


@dataclass
class Reply:
    """What came back for one cell: the reply, and its outputs in the order of their coming."""

    content: dict[str, Any]
    outputs: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def reports(self) -> list[dict[str, str]]:
        return [content["data"] for _, content in self.outputs if has_html(content)]

    @property
    def kinds(self) -> list[str]:
        """The kinds of output, in order; a report and its explorer count as one."""
        shown = [(k, c) for k, c in self.outputs if not k.startswith("comm_")]
        return ["report" if has_html(c) else k for k, c in shown if not is_explorer(c)]

    def texts(self, kind: str) -> list[str]:
        return [content["data"].get("text/plain", "") for k, content in self.outputs if k == kind]

    @property
    def printed(self) -> str:
        return "".join(content["text"] for kind, content in self.outputs if kind == "stream")


class Notebook:
    """A kernel and a client to it."""

    def __init__(self) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager._kernel_spec = SPEC
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)

    def run(self, cell: str, **kwargs: Any) -> Reply:
        outputs: list[tuple[str, dict[str, Any]]] = []

        def keep(message: dict[str, Any]) -> None:
            if message["msg_type"] not in ("status", "execute_input"):
                outputs.append((message["msg_type"], message["content"]))

        reply = self.client.execute_interactive(cell, output_hook=keep, timeout=120, **kwargs)
        return Reply(reply["content"], outputs)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def notebook():
    made = Notebook()
    made.run("%load_ext dynamo_nb")
    made.run("import torch\ndef f(x): return x + 1\nx = torch.ones(2)")
    yield made
    made.close()


def test_the_report_comes_last_as_one_output(notebook):
    reply = notebook.run(MAGIC + "print('mine')\nf(x)")
    assert reply.content["status"] == "ok"
    assert reply.kinds == ["stream", "execute_result", "report"]
    (report,) = reply.reports
    assert set(report) == {"text/plain", "text/html"}
    assert "1 compiled function" in report["text/plain"]
    assert is_explorer(reply.outputs[-1][1])


def test_an_awaited_cell(notebook):
    cell = "import asyncio\nawait asyncio.sleep(0)\ndef g(x): return x * 2\ng(x)"
    reply = notebook.run(MAGIC + cell)
    assert reply.kinds == ["execute_result", "report"]
    assert "1 compiled function" in reply.reports[0]["text/plain"]


def test_config_and_device_of_an_awaited_cell_end_with_it(notebook):
    look = "print(torch._dynamo.config.recompile_limit, torch.ones(1).device)"
    before = notebook.run(look).printed
    flags = "%%dynamo --config recompile_limit=3 --device meta\n"
    for start in ("", "import asyncio; await asyncio.sleep(0)\n"):
        assert "3 meta" in notebook.run(flags + start + look).printed
        assert notebook.run(look).printed == before


def test_the_report_follows_the_traceback_and_run_all_stops(notebook):
    reply = notebook.run(MAGIC + "def bad(x): raise ValueError('no')\nbad(x)")
    assert reply.content["status"] == "error"
    assert reply.content["ename"] == "ValueError"
    assert reply.kinds == ["error", "report"]


def test_a_usage_error_fails_the_cell_in_one_line(notebook):
    reply = notebook.run("%%dynamo --bakend eager\nnever = 1")
    assert reply.content["status"] == "error"
    assert reply.kinds == ["error"]
    assert reply.outputs[0][1]["traceback"] == [f"UsageError: {reply.content['evalue']}"]
    assert notebook.run("never").content["ename"] == "NameError"


def test_user_expressions_see_the_plain_notebook(notebook):
    expressions = {"a": "f(x)", "b": "y", "c": "sorted(n for n in globals() if 'dynamo_nb' in n)"}
    reply = notebook.run(MAGIC + "y = f(x)\ny", user_expressions=expressions)
    got = reply.content["user_expressions"]
    assert got["a"]["data"]["text/plain"] == "tensor([2., 2.])"
    assert got["b"]["status"] == "ok"
    assert got["c"]["data"]["text/plain"] == "[]"


def test_silent_cells_show_nothing(notebook):
    reply = notebook.run(MAGIC + "quiet = f(x)", silent=True)
    assert reply.content["status"] == "ok"
    assert reply.outputs == []
    assert notebook.run("quiet").content["status"] == "ok"


@pytest.mark.parametrize("start", ["import time\n", "import asyncio\n"])
def test_an_interrupt_still_reports_and_restores(notebook, start):
    wait = "await asyncio.sleep(60)" if "asyncio" in start else "time.sleep(60)"
    limit = notebook.run("print(torch._dynamo.config.recompile_limit)").printed
    cell = f"%%dynamo --backend eager --config recompile_limit=3\n{start}f(x)\nprint('go')\n{wait}"
    outputs = []

    def keep(message):
        if message["msg_type"] not in ("status", "execute_input"):
            outputs.append(message["msg_type"])
        if message["msg_type"] == "stream" and "go" in message["content"]["text"]:
            notebook.manager.interrupt_kernel()

    reply = notebook.client.execute_interactive(cell, output_hook=keep, timeout=120)
    assert reply["content"]["status"] == "error"
    assert outputs[-1] == "display_data" or outputs[-2:] == ["display_data", "error"]
    assert notebook.run("print(torch._dynamo.config.recompile_limit)").printed == limit
    assert notebook.run(MAGIC + "f(x)").kinds == ["execute_result", "report"]


def test_progress_is_shown_and_leaves_an_empty_output(notebook):
    cell = """\
%%dynamo --backend slow
def h(x): return x * 3
h(x)
"""
    notebook.run("import time\ndef slow(gm, inputs):\n    time.sleep(2.2)\n    return gm")
    reply = notebook.run(cell)
    shown, *_, cleared = reply.texts("update_display_data")
    assert shown.startswith("compiling ")
    assert " h: " in shown
    assert cleared == ""
    assert reply.texts("display_data")[0] == ""
    assert reply.kinds[-1] == "report"


def test_outputs_are_the_same_each_time(notebook):
    cell = "%%dynamo --backend eager --fresh\nfor i in range(2):\n    f(x * i)\nf(x)"
    first, second = notebook.run(cell), notebook.run(cell)
    assert first.reports == second.reports
    assert first.kinds == second.kinds == ["execute_result", "report"]
