"""Guards understood: names for ids, filters, costs."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import pytest
import torch
from msgspec.structs import replace

import dynamo_nb
from dynamo_nb.capture.identities import without_addresses
from dynamo_nb.record.types import CellRecord, GuardCost, GuardCosts
from tests.capturing import Captured
from tests.conftest import Shell

NET = textwrap.dedent(
    """\
    import math

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
            self.act = torch.nn.functional.relu

        def forward(self, x):
            for layer in self.layers:
                x = self.act(layer(x))
            return x * math.pi

    net = torch.compile(Net(), backend="eager")
    net(torch.ones(2, 4))
    """
)


@pytest.fixture(scope="module")
def record() -> CellRecord:
    return Captured(NET).record


def codes(record: CellRecord) -> list[str]:
    return [code for _, guard in record.guards() for code in guard.code]


def test_identities_are_names(record: CellRecord) -> None:
    assert "___check_obj_id(G['math'], module math)" in codes(record)
    assert "___check_type_id(L['self']._modules, dict)" in codes(record)
    assert any(re.fullmatch(r"___check_type_id\(L\['self'\], .*Net\)", c) for c in codes(record))


def test_the_record_holds_no_ids_and_no_addresses(record: CellRecord) -> None:
    (compiled,) = record.compiles
    text = repr((compiled.guards, compiled.guard_tree, compiled.recompile_reasons))
    assert not re.findall(r"(?<![.\w])(?:0x[0-9a-f]{6,}|\d{9,})\b", text)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("___check_obj_id(L['f'], 140234567890123), type=<class 'function'>", "function object"),
        ("___check_type_id(L['x'], 94381234567890), type=<class 'torch.nn.Linear'>", "nn.Linear"),
        ("___check_obj_id(L['f'], 140234567890123)", "another object"),
        ("G['_Foo_140234567890123_c0/1'] == 2", "G['_Foo_c0/1'] == 2"),
        ("L['x'] == <object at 0x7f0011223344>", "0x…"),
    ],
)
def test_ids_without_a_known_object(code: str, shown: str) -> None:
    assert shown in without_addresses(code)
    assert "1402" not in without_addresses(code)


def test_guards_by_source_and_line(record: CellRecord) -> None:
    everything = record.guards()
    on_layers = record.guards(source="self.layers")
    assert 0 < len(on_layers) < len(everything)
    assert all("layers" in guard.source for _, guard in on_layers)
    assert record.guards(source="L['x']") == record.guards(source="x")
    assert [guard.kind for _, guard in record.guards(source="x")] == ["TENSOR_MATCH"]
    at_return = record.guards(line=12)
    assert {guard.source for _, guard in at_return} == {"G['math']", "G['math'].pi"}
    assert record.guards(source="x", line=12) == []
    assert {key for key, _ in everything} == {"0/0"}


def test_a_source_is_no_prefix_of_a_longer_name() -> None:
    source = (
        "def f(x, xs):\n    return x + xs\n"
        "torch.compile(f, backend='eager')(torch.ones(2), torch.ones(2))\n"
    )
    guards = Captured(source).record.guards(source="x")
    assert {guard.source for _, guard in guards} == {"L['x']"}


def test_a_capture_measures_the_check(record: CellRecord) -> None:
    (compiled,) = record.compiles
    assert 0 < compiled.metrics["guard_check_us"] < 1e4


def test_costs_of_a_call_by_source() -> None:
    torch._dynamo.reset()
    net = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(6)))
    f = torch.compile(net, backend="eager")
    x = torch.ones(2, 4)
    f(x)
    costs = dynamo_nb.guard_costs(f, x)
    assert costs.entry == "0/0"
    assert 0 < costs.share <= 1
    total = sum(part.microseconds for part in costs.parts)
    assert 0 < total <= costs.microseconds * 1.01
    assert any("_modules" in part.source for part in costs.parts)
    in_order = [part.microseconds for part in costs.parts]
    assert in_order == sorted(in_order, reverse=True)
    assert dynamo_nb.would(f, x).outcome == "hit"  # the clones left the entry as it was
    with pytest.raises(ValueError, match="fits no entry"):
        dynamo_nb.guard_costs(f, x.double())


def test_the_magic_shows_costs(shell: Shell) -> None:
    shell.run(
        "%%dynamo --backend eager\nimport torch\ndef f(x):\n    return x + 1\nf(torch.ones(3))\n"
    )
    ran: Any = shell.run("%dynamo guards f(torch.ones(3))")
    assert ran.report.startswith("f 0/0: one check of its guards takes ")
    assert "of a call" in ran.report
    assert "the rest: entering the check" in ran.report
    ran = shell.run("%dynamo guards f(torch.ones(4))")
    assert "fits no entry" in str(ran.error)


def test_the_call_is_made_once(shell: Shell) -> None:
    shell.run(
        "import torch\nmade = []\n"
        "@torch._dynamo.disable\ndef note(): made.append(1)\n"
        "def f(x):\n    y = x + 1\n    note()\n    return y\n"
        "f = torch.compile(f, backend='eager')\nf(torch.ones(3))\nmade.clear()"
    )
    assert shell.run("%dynamo guards f(torch.ones(3))").report.startswith("f ")
    assert shell.ip.user_ns["made"] == [1]


def test_the_rows_add_up() -> None:
    parts = [
        GuardCost(source=f"L['x{i}']", microseconds=5.0 - i / 10, managers=1) for i in range(14)
    ]
    costs = GuardCosts(
        callee="f", entry="0/0", microseconds=100.0, call_microseconds=200.0, parts=parts
    )
    rows = [line.split() for line in str(costs).splitlines()[1:]]
    assert [row[3:5] for row in rows[-2:]] == [["…", "2"], ["the", "rest:"]]
    assert sum(float(row[0]) for row in rows) == pytest.approx(100.0)
    assert "not measured" in str(replace(costs, parts=[]))


DYNAMIC = textwrap.dedent(
    """\
    def f(x):
        if x.size(0) > 3:
            x = x + 1
        return x.reshape(8, -1)

    x = torch.ones(8, 2)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    torch._dynamo.mark_dynamic(x, 1)
    torch.compile(f, backend="eager")(x)
    """
)


def test_shape_guards_name_input_dimension_and_line() -> None:
    from dynamo_nb.views.html import to_html

    html = to_html(Captured(DYNAMIC).record)
    assert "dimension 0 of x" in html
    assert "dimension 1 of x" in html
    assert "became a constant" in html


def test_the_guard_tree_has_values_and_lines(record: CellRecord) -> None:
    from dynamo_nb.views.html import to_html

    html = to_html(record)
    assert "= float32[2, 4] on cpu  (line 11)" in html
    assert "___check_obj_id(G[&#39;math&#39;], module math)" in html
