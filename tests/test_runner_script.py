"""`dynamo_nb.capture()`, for scripts."""

from __future__ import annotations

import pytest
import torch

import dynamo_nb


@torch.compile(backend="eager")
def broken(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


def test_a_block_is_watched():
    with dynamo_nb.capture("mine") as capture:
        broken(torch.ones(2))
    record = capture.record
    assert (record.mode, record.name, record.error) == ("as-is", "mine", None)
    places = {b.frame.line for c in record.compiles for b in c.graph_breaks}
    assert places == {broken.__wrapped__.__code__.co_firstlineno + 3}
    assert "def broken" in record.source
    assert dynamo_nb.last() is record
    assert dynamo_nb.last("mine") is record
    assert dynamo_nb.last("other") is None


def test_an_exception_passes_and_is_recorded():
    with pytest.raises(KeyError), dynamo_nb.capture() as capture:
        {}["x"]
    assert capture.record.error.type == "KeyError"
    assert capture.record.error.line is not None


def test_saved_and_loaded(tmp_path):
    with dynamo_nb.capture() as capture:
        broken(torch.ones(2))
    from dynamo_nb.record.io import save

    save(capture.record, tmp_path / "r.json")
    assert dynamo_nb.load(tmp_path / "r.json").compiles == capture.record.compiles
