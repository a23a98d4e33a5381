"""Hooks fail apart: with any one of them broken the cell still runs, and the report says so."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest
import torch

from dynamo_nb.capture import Capture, hooks
from dynamo_nb.capture.recorder import Hook, Hooked, Recorder
from tests import snapshot
from tests.standins import replay, tune

HOOKS = hooks.HOOKS
NAMES = [hook.name for hook in HOOKS]


class Broken(Exception):
    """What a broken hook raises."""


def explode(*_: Any, **__: Any) -> Any:
    raise Broken("on purpose")


class BrokenRecorder:
    """A recorder that takes nothing, and still keeps exceptions and notes apart."""

    def __init__(self, recorder: Recorder) -> None:
        self.apart = recorder.apart
        self.note_failure = recorder.note_failure

    emit = inside_graph = meet = progress = explode
    codes = events = graph = property(explode)


class BrokenHooked(Hooked):
    """Installs as told, but all that the hook does when torch calls it raises."""

    def __init__(self, hooked: Hooked) -> None:
        self.hook = hooked.hook
        self.recorder: Any = BrokenRecorder(hooked.recorder)
        self.undo = hooked.undo
        self._whole = hooked

    def around(self, owner: Any, name: str, **callbacks: Any) -> None:
        self._whole.around(owner, name, **dict.fromkeys(callbacks, explode))

    def inside(self, owner: Any, name: str, context: Any) -> None:
        self._whole.inside(owner, name, explode)


def install_then_raise(hook: Hook) -> Hook:
    """Return the hook with an installation that gets half-way and raises."""

    def install(hooked: Hooked) -> None:
        hook.install(hooked)
        explode()

    return hook._replace(install=install)


def raise_when_called(hook: Hook) -> Hook:
    """Return the hook so that it installs and raises whenever torch calls it."""
    return hook._replace(install=lambda hooked: hook.install(BrokenHooked(hooked)))


def numbers(count: int):
    """A generator: a frame that Dynamo refuses."""
    yield from range(count)


def work(x: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x) * sum(numbers(3))
    torch._dynamo.graph_break()
    two = y.repeat(2, 1)
    return (two.t() @ two + 1.0 * y).sum()  # a pattern makes one operation of these


def train() -> list[float]:
    """Make every hook do its work: compile, break, recompile, hit, go backward, refuse a frame.

    What only a GPU does is done by stand-ins.
    """
    torch._dynamo.reset()
    compiled = torch.compile(work)
    results = []
    for size in (4, 4, 6):
        x = torch.linspace(-1, 1, size, requires_grad=True)
        loss = compiled(x)
        loss.backward()
        results += [loss.item(), *x.grad.tolist()]
    torch.compile(numbers)(2)
    tune()
    replay()
    return results


@contextmanager
def table(monkeypatch: pytest.MonkeyPatch, *rows: Hook):
    with monkeypatch.context() as patch:
        patch.setattr(hooks, "HOOKS", rows)
        yield


@pytest.fixture(scope="module")
def expected() -> list[float]:
    return train()


@pytest.mark.parametrize("broken", [install_then_raise, raise_when_called])
@pytest.mark.parametrize("hook", HOOKS, ids=NAMES)
def test_a_broken_hook_costs_its_own_panel_alone(hook, broken, expected, monkeypatch):
    before = snapshot.take()
    rows = [broken(row) if row is hook else row for row in HOOKS]
    with table(monkeypatch, *rows), Capture() as capture:
        results = train()
    assert results == expected
    assert [(note.hook, note.panel) for note in capture.notes] == [(hook.name, hook.panel)]
    assert "on purpose" in capture.notes[0].message
    assert capture.events
    assert not snapshot.differences(before, snapshot.take())


def test_all_hooks_broken_at_once(expected, monkeypatch):
    """All but the one that turns the caches off: behind a warm cache the others aren't called."""
    rows = [row if row.name == "fresh-code" else raise_when_called(row) for row in HOOKS]
    with table(monkeypatch, *rows), Capture() as capture:
        assert train() == expected
    assert {note.hook for note in capture.notes} == set(NAMES) - {"fresh-code"}


def test_whole_hooks_leave_no_note(expected):
    with Capture() as capture:
        assert train() == expected
    assert not capture.notes
