"""Progress: where torch is, while it takes longer than a second, and then no trace of it."""

from __future__ import annotations

import sys
import threading

import pytest

from dynamo_nb import progress
from dynamo_nb.progress import NotebookLine, Progress, TerminalLine, shown


class Lines:
    def __init__(self):
        self.shown = []
        self.cleared = 0

    def show(self, text):
        self.shown.append(text)

    def clear(self):
        self.cleared += 1


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

    monkeypatch.setattr(progress.time, "monotonic", lambda: Clock.now)
    monkeypatch.setattr(progress, "INTERVAL", 1000.0)  # only the test's own ticks
    return Clock


@pytest.fixture
def watched(clock):
    lines = Lines()
    made = Progress(lines)
    yield made, lines
    made.close()


def test_short_compiles_show_nothing(watched, clock):
    made, lines = watched
    made("0/0", "f", "dynamo")
    clock.now += 0.9
    made.tick()
    made("", "", "")
    made.close()
    assert (lines.shown, lines.cleared) == ([], 0)


def test_long_compiles_show_frame_stage_and_time(watched, clock):
    made, lines = watched
    made("0/0", "f", "dynamo")
    clock.now += 1.2
    made.tick()
    made("0/0", "", "inductor")
    clock.now += 2
    made.tick()
    assert lines.shown == ["compiling 0/0 f: dynamo, 1 s", "compiling 0/0 f: inductor, 3 s"]
    made("", "", "")
    assert lines.cleared == 1
    made.tick()
    assert len(lines.shown) == 2


def test_each_compile_counts_anew(watched, clock):
    made, lines = watched
    for _ in range(3):
        made("0/0", "f", "dynamo")
        clock.now += 0.8
        made.tick()
        made("", "", "")
    assert lines.shown == []


def test_the_thread_ends_with_the_cell(watched):
    made, _ = watched
    made("0/0", "f", "dynamo")
    names = [thread.name for thread in threading.enumerate()]
    assert "dynamo_nb progress" in names
    made.close()
    assert "dynamo_nb progress" not in [thread.name for thread in threading.enumerate()]


def test_a_front_end_that_fails_is_left_alone(clock):
    class Broken(Lines):
        def show(self, text):
            super().show(text)
            raise OSError("no comm")

    lines = Broken()
    made = Progress(lines)
    made("0/0", "f", "dynamo")
    clock.now += 5
    made.tick()
    made.tick()
    made.close()
    assert len(lines.shown) == 1


def test_a_terminal_line_is_overwritten_and_erased(capsys):
    line = TerminalLine()
    line.show("one")
    line.clear()
    assert capsys.readouterr().err == "\r\x1b[Kone\r\x1b[K"


def test_a_notebook_line_begins_and_ends_empty(plain_shell):
    plain_shell.ip.display_pub.outputs.clear()
    line = NotebookLine(plain_shell.ip)
    line.show("a < b")
    line.clear()
    datas = [output["data"] for output in plain_shell.ip.display_pub.outputs]
    html = "<pre>a &lt; b</pre>"
    assert datas == [{}, {"text/plain": "a < b", "text/html": html}, {}]


def test_where_it_is_shown(monkeypatch):
    class Kernel:
        kernel = object()

    with shown(Kernel()) as made:
        assert isinstance(made._line, NotebookLine)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with shown(None) as made:
        assert made is None
