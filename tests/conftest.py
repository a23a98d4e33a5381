"""A fresh IPython shell for each test, with its outputs at hand."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell


@dataclass
class Ran:
    """One cell that was run: IPython's result, and all that it showed."""

    result: ExecutionResult
    stdout: str
    stderr: str
    displays: list[dict[str, Any]] = field(default_factory=list)
    value: Any = None

    @property
    def error(self) -> BaseException | None:
        return self.result.error_before_exec or self.result.error_in_exec

    @property
    def report(self) -> str:
        """The plain text of what the cell displayed last."""
        return self.displays[-1]["text/plain"] if self.displays else ""


class Shell:
    """An IPython shell that keeps what its cells show."""

    def __init__(self) -> None:
        self.ip = InteractiveShell(colors="nocolor", display_pub_class=CapturingDisplayPublisher)
        self.ip.display_pub = CapturingDisplayPublisher()
        self.ip.history_manager.enabled = False

    def run(self, cell: str, *, store_history: bool = True, **kwargs: Any) -> Ran:
        """Run a cell; return its result with its output."""
        self.ip.display_pub.outputs.clear()
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            result = self.ip.run_cell(cell, store_history=store_history, **kwargs)
        shown = [output["data"] for output in self.ip.display_pub.outputs]
        return Ran(result, out.getvalue(), err.getvalue(), shown, result.result)

    def load(self) -> Shell:
        """Load the extension."""
        self.run("%load_ext dynamo_nb", store_history=False)
        return self

    @property
    def record(self) -> Any:
        """The record of the last report."""
        import dynamo_nb

        return dynamo_nb.last()


@pytest.fixture
def plain_shell() -> Iterator[Shell]:
    """Make a shell without the extension."""
    hook, trap = sys.displayhook, sys.excepthook
    shell = Shell()
    yield shell
    from dynamo_nb import unload_ipython_extension

    with patch("dynamo_nb.magic.stop_all"):  # the workers are there for the next tests
        unload_ipython_extension(shell.ip)
    shell.ip.restore_sys_module_state()
    sys.displayhook, sys.excepthook = hook, trap
    InteractiveShell.clear_instance()
    forget_main_module()


def forget_main_module() -> None:
    """Take away what Dynamo left of this shell's `__main__` in torch's modules.

    A function of torch's own that is compiled around one of the notebook's keeps that module in its
    globals, and the import is cached (`torch/_dynamo/symbolic_convert.py: import_source` and
    `_import_module`, 2.13); the next shell has another.
    """
    from torch._dynamo import symbolic_convert

    symbolic_convert._import_module.cache_clear()
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            vars(module).pop("__import___main__", None)


@pytest.fixture
def shell(plain_shell: Shell) -> Iterator[Shell]:
    """Make a shell with the extension, and with nothing compiled or reported yet."""
    import torch

    from dynamo_nb.session import current

    torch._dynamo.reset()
    current().reset()
    yield plain_shell.load()
    torch._dynamo.reset()
    current().reset()
