"""Effects that can't be taken back: seen before they happen, and prevented in a repeated call.

Python's audit events (PEP 578) tell of them. An audit hook can't be removed: there is one, which
the first check installs, and which only looks at a flag while no call is repeated.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dynamo_nb.capture.check_reach import is_library
from dynamo_nb.capture.stacks import is_internal

__all__ = ["EffectError", "no_effects"]

#: Audit events, and what they mean for a person.
_EFFECTS = {
    "builtins.input": "asks for input",
    "os.mkdir": "makes a folder",
    "os.putenv": "changes the environment",
    "os.remove": "deletes a file",
    "os.rename": "renames a file",
    "os.rmdir": "deletes a folder",
    "os.system": "starts a process",
    "os.posix_spawn": "starts a process",
    "shutil.copyfile": "copies a file",
    "shutil.move": "moves a file",
    "shutil.rmtree": "deletes a folder",
    "socket.connect": "opens a connection",
    "subprocess.Popen": "starts a process",
}
_WRITING = "wax+"


class EffectError(Exception):
    """Raised in place of an effect: what the call was about to do."""


class _Watch(threading.local):
    seen: list[str] | None = None


_watch = _Watch()
_installed: list[bool] = []


@contextmanager
def no_effects() -> Iterator[list[str]]:
    """Prevent effects of the user's code in this thread; yields what was prevented."""
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_on_event)
    before, _watch.seen = _watch.seen, []
    try:
        yield _watch.seen
    finally:
        _watch.seen = before


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    seen = _watch.seen
    if seen is None:
        return
    effect = "writes a file" if event == "open" and _writes(arguments) else _EFFECTS.get(event)
    if effect and _is_users_doing():
        seen.append(effect)
        raise EffectError(effect)


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode = arguments[1]
    return isinstance(mode, str) and any(letter in mode for letter in _WRITING)


def _is_users_doing() -> bool:
    """Tell whether an effect comes from the user's code, and not from torch's compiling."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_internal(file) and "external_utils" not in file:
            return False
        if not is_library(file):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
