"""Effects that can't be taken back: seen before they happen, and prevented in a repeated call.

Python's audit events (PEP 578) tell of them. An audit hook can't be removed: there is one, which
the first check installs, and which only looks at a flag while no call is repeated. `torch.save`
opens its file in C++, which Python does not tell of: it is announced.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from dynamo_nb.capture.check_reach import is_library
from dynamo_nb.capture.stacks import is_internal

__all__ = ["EffectError", "no_effects", "no_effects_outside"]

#: Audit events, and what they mean for a person.
_EFFECTS = {
    "builtins.input": "asks for input",
    "os.chmod": "changes a file",
    "os.chown": "changes a file",
    "os.exec": "starts a process",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "os.kill": "sends a signal",
    "os.killpg": "sends a signal",
    "os.link": "makes a file",
    "os.mkdir": "makes a folder",
    "os.posix_spawn": "starts a process",
    "os.putenv": "changes the environment",
    "os.remove": "deletes a file",
    "os.rename": "renames a file",
    "os.rmdir": "deletes a folder",
    "os.spawn": "starts a process",
    "os.startfile": "starts a process",
    "os.symlink": "makes a file",
    "os.system": "starts a process",
    "os.truncate": "writes a file",
    "os.unsetenv": "changes the environment",
    "pty.spawn": "starts a process",
    "shutil.copyfile": "copies a file",
    "shutil.move": "moves a file",
    "shutil.rmtree": "deletes a folder",
    "socket.connect": "opens a connection",
    "socket.sendmsg": "sends to the network",
    "socket.sendto": "sends to the network",
    "sqlite3.connect": "opens a database",
    "subprocess.Popen": "starts a process",
}
#: What ends with the process in which it is done.
_OF_THE_PROCESS = ("os.putenv", "os.unsetenv")
_WRITING = "wax+"
_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

#: Parts of torch that write or load files for whoever calls them, unlike what compiles.
_TORCH = Path(torch.__file__).parent
_FOR_THE_USER = (
    __file__,  # what is announced
    *(
        str(_TORCH / part)
        for part in ("serialization.py", "hub.py", "distributed/checkpoint", "utils/tensorboard")
    ),
)


#: A user's Triton kernel is compiled when it is launched.
_TRITON = tuple(
    str(Path(spec.origin).parent) + os.sep
    for spec in [find_spec("triton")]
    if spec is not None and spec.origin
)

_Hook = Callable[[str, tuple[Any, ...]], None]


class EffectError(Exception):
    """Raised in place of an effect: what the call was about to do."""


class _Watch(threading.local):
    seen: list[str] | None = None


_watch = _Watch()
#: What is prevented in every thread, while a process is there to be thrown away.
_everywhere: list[list[str]] = []
_installed: list[bool] = []


@contextmanager
def no_effects() -> Iterator[list[str]]:
    """Prevent effects of the user's code in this thread; yields what was prevented."""
    _install()
    before, _watch.seen = _watch.seen, []
    try:
        with _announced_writers():
            yield _watch.seen
    finally:
        _watch.seen = before


@contextmanager
def no_effects_outside() -> Iterator[list[str]]:
    """Prevent, in every thread, what would outlast this process; yields what was prevented."""
    _install()
    seen: list[str] = []
    _everywhere.append(seen)
    try:
        with _announced_writers():
            yield seen
    finally:
        _everywhere.remove(seen)


def _install() -> None:
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_until_exit(_on_event))


def _until_exit(on_event: _Hook) -> _Hook:
    """Return a hook that is silent once Python ends: a module's globals are None by then."""
    is_ending = sys.is_finalizing

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not is_ending():
            on_event(event, arguments)

    return hook


@contextmanager
def _announced_writers() -> Iterator[None]:
    """Let torch's writer of files say that it opens one (`torch/serialization.py`, 2.13)."""
    original = torch._C.PyTorchFileWriter

    def announced(target: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(target, str | os.PathLike):
            sys.audit("open", os.fspath(target), "w", 0)
        return original(target, *args, **kwargs)

    torch._C.PyTorchFileWriter = announced
    try:
        yield
    finally:
        torch._C.PyTorchFileWriter = original


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    seen = _watch.seen
    if seen is None:
        if not _everywhere or event in _OF_THE_PROCESS:
            return
        seen = _everywhere[-1]
    effect = _EFFECTS.get(event)
    if event == "open" and _writes(*arguments):
        effect = "writes a file"
    if effect and _is_users_doing():
        seen.append(effect)
        raise EffectError(f"the code {effect}, which is not done a second time")


def _writes(path: Any, mode: Any, flags: Any) -> bool:
    """Tell whether a file is opened to be written; one that is open already has a number."""
    if path == os.devnull or isinstance(path, int):
        return False
    if isinstance(mode, str):
        return any(letter in mode for letter in _WRITING)
    return isinstance(flags, int) and bool(flags & _WRITING_FLAGS)


def _is_users_doing() -> bool:
    """Tell whether an effect comes from the user's code, and not from compiling or importing."""
    frame = sys._getframe(3)
    while frame is not None:
        file = frame.f_code.co_filename
        if (is_internal(file) and not _is_for_the_user(file)) or file.startswith(_TRITON):
            return False
        if not is_library(file) and not is_internal(file):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _is_for_the_user(file: str) -> bool:
    """Tell whether what an internal file does is its caller's doing: `os` is frozen, too."""
    if file.startswith("<frozen"):
        return "importlib" not in file
    return "external_utils" in file or file.startswith(_FOR_THE_USER)
