"""`%dynamo diff` and `dynamo_nb.diff` in a real IPython shell."""

from __future__ import annotations

import json

import pytest

import dynamo_nb
from dynamo_nb.session import current

PRINTS = """
import torch
def f(x):
    y = x + 1
    print("hi")
    return y * 2
f(torch.ones(8))
"""
SILENT = PRINTS.replace('    print("hi")\n', "")


@pytest.fixture
def two(shell):
    """A shell with two reports: A has a graph break, B has none."""
    shell.run(f"%%dynamo --backend eager --name A{PRINTS}")
    shell.run(f"%%dynamo --backend eager --name B{SILENT}")
    return shell


def test_the_last_report_against_the_one_before(two):
    ran = two.run("%dynamo diff")
    assert "graphs 2 -> 1, graph breaks 1 -> 0" in ran.report
    assert "moved" in ran.report
    assert "text/html" in ran.displays[-1]


def test_by_name_and_the_other_way_round(two):
    assert "graph breaks 0 -> 1" in two.run("%dynamo diff B A").report
    assert two.run("%dynamo diff A").report == two.run("%dynamo diff A B").report


def test_times_only_when_asked(two):
    assert "Measured" not in two.run("%dynamo diff").report
    assert "Measured" in two.run("%dynamo diff --times").report


def test_save(two, tmp_path):
    two.run(f"%dynamo diff A B --save {tmp_path}/d.html")
    assert (tmp_path / "d.html").read_text().startswith("<!DOCTYPE html>")
    two.run(f"%dynamo diff A B --save {tmp_path}/d.json")
    assert json.loads((tmp_path / "d.json").read_bytes())["breaks"][0]["change"] == "gone"


def test_in_python(two):
    found = dynamo_nb.diff()
    assert [item.change for item in found.breaks] == ["gone"]
    assert dynamo_nb.diff("A", "B") == found
    assert dynamo_nb.diff(dynamo_nb.last("A"), dynamo_nb.last("B")) == found
    assert str(found) == two.run("%dynamo diff").report
    assert found._repr_html_()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("A C", "no report 'C'. There are: A, B."),
        ("AB", "no report 'AB'."),
        ("B", "'B' is the last report itself"),
        ("A B A", "two names at most"),
        ("--when", "unrecognized arguments: --when"),
        ("--save /nowhere/at/all.html", "No such file"),
    ],
)
def test_what_is_wrong_is_said(two, line, says):
    ran = two.run(f"%dynamo diff {line}")
    assert says in ran.stdout + ran.stderr
    assert not ran.displays


def test_one_report_is_not_enough(shell):
    for count in ("no report", "only one report"):
        ran = shell.run("%dynamo diff")
        assert f"there is {count} yet" in ran.stdout + ran.stderr
        with pytest.raises(ValueError, match=count):
            dynamo_nb.diff()
        shell.run("%%dynamo --backend eager\nimport torch\ntorch.ones(2) + 1")


def test_a_wrong_argument(two):
    with pytest.raises(ValueError, match="not by a int"):
        dynamo_nb.diff(1, "A")


def test_the_same_finding_in_another_cell_is_the_same(shell):
    shell.run("import torch\ndef f(x):\n    print(1)\n    return x.sin()")
    shell.run("%%dynamo --backend eager\nf(torch.ones(3))")
    shell.run("%%dynamo --backend eager --fresh\ny = 1\nz = 2\nprint(f(torch.ones(3)))")
    shell.run("import torch\n\ndef f(x):\n    print(1)\n    return x.sin()")
    shell.run("%%dynamo --backend eager\nf(torch.ones(3))")
    shell.run("%dynamo diff")
    records = current().records
    for before, after in ((0, 1), (1, 2)):
        found = dynamo_nb.diff(records[before], records[after])
        assert records[after].findings
        assert found.findings == []
        assert found.breaks == []
