"""The explorer's Python side: parts, the widget, its messages, the page."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import traitlets

from dynamo_nb.record.io import load
from dynamo_nb.record.links import links_of
from dynamo_nb.record.types import CellRecord, Node, Ref
from dynamo_nb.views import assets
from dynamo_nb.views.page import to_explorer_page
from dynamo_nb.views.parts import Parts
from dynamo_nb.views.widget import STATE_BYTES, DynamoWidget, explorer
from tests import samples

ROOT = Path(__file__).resolve().parent.parent
SENT_MODULE = 80_000  # bytes: it is sent and saved once for every widget

every_sample = pytest.mark.parametrize("make", samples.SAMPLES.values(), ids=samples.SAMPLES)


@pytest.fixture(scope="module")
def record() -> CellRecord:
    """A real cell that the front end's tests read, too: a break, a recompile, kernels."""
    return load(ROOT / "tests" / "data" / "cell.json.gz")


def linked(record: CellRecord) -> CellRecord:
    return msgspec.structs.replace(record, links=links_of(record)[0])


def unpacked(data: bytes) -> Any:
    return json.loads(gzip.decompress(data))


class Front:
    """The front end's end of a widget's comm."""

    def __init__(self, widget: DynamoWidget, monkeypatch: pytest.MonkeyPatch) -> None:
        self.widget = widget
        self.answers: list[tuple[dict[str, Any], list[bytes]]] = []
        monkeypatch.setattr(widget, "send", self._receive)

    def _receive(self, content: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        self.answers.append((content, buffers or []))

    def ask(self, message: Any) -> None:
        self.widget._handle_custom_msg(message, [])


@pytest.fixture
def front(record: CellRecord, monkeypatch: pytest.MonkeyPatch) -> Front:
    return Front(DynamoWidget(record), monkeypatch)


# ---- parts ---------------------------------------------------------------------------------------


def test_the_parts_hold_the_whole_record(record):
    parts = {name: json.loads(Parts(record).json(name)) for name in Parts(record).names}
    whole = parts["core"]["record"]
    whole["files"] = parts["files"]
    refs, pairs = parts["links"]["refs"], parts["links"]["pairs"]
    couples = [(refs[a], refs[b]) for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
    whole["links"] = [[f"{a[1]}-{b[1]}", a, b] for a, b in couples]
    for entry in whole["compiles"]:
        key = entry.get("alias") or entry["compile_id"]
        entry.update(parts[f"guards|{key}"])
        entry["bytecode"] = parts[f"bytecode|{key}"] or None
        entry["steps"] = parts.get(f"steps|{key}")
        entry["graphs"] = [parts[f"graph|{key}|{graph['name']}"] for graph in entry["graphs"]]
        code = parts[f"code|{key}"]
        entry.update({name: code[name] for name in ("buffers", "folded", "unfused")})
        for kernel in entry.get("kernels", []):
            kernel["code"] = code["kernels"][f"{kernel.get('graph', '')}/{kernel['name']}"]
        for output in entry.get("output_code", []):
            output["code"] = code["output"][output["graph"]]
    assert msgspec.convert(whole, CellRecord) == record


@every_sample
def test_every_part_of_every_sample_is_json(make):
    parts = Parts(linked(make()))
    for name in parts.names:
        json.loads(parts.json(name))
        assert parts.compressed(name) == parts.compressed(name)


def test_a_part_that_is_not_there_is_named(record):
    with pytest.raises(KeyError, match=r"no part 'graph\|7/7\|dynamo'"):
        Parts(record).json("graph|7/7|dynamo")


def test_a_snapshot_has_what_fits_the_most_useful_first(record):
    everything = unpacked(Parts(record).snapshot(10_000_000))
    assert list(everything) == Parts(record).names
    some = unpacked(Parts(record).snapshot(30_000))
    assert {"core", "links"} <= set(some) < set(everything)
    assert all(some[name] == everything[name] for name in some)
    assert Parts(record).snapshot(1_000) == b""


# ---- the widget ----------------------------------------------------------------------------------


def saved_size(widget: DynamoWidget) -> int:
    """Return what a widget's state takes in a notebook file."""
    state = widget.get_state()
    snapshot = state.pop("snapshot")
    return len(json.dumps(state)) + (len(snapshot) + 2) // 3 * 4


def test_a_small_record_is_saved_whole(record):
    assert set(unpacked(DynamoWidget(record).snapshot)) == set(Parts(record).names)


def test_the_saved_state_is_bounded_however_large_the_record(record):
    graph = record.compiles[0].graphs[0]
    nodes = [Node(name=f"n{i}", op="call_function", target=str(hash(i * i))) for i in range(60_000)]
    large = msgspec.structs.replace(graph, nodes=nodes)
    compiles = [msgspec.structs.replace(record.compiles[0], graphs=[large, *([graph] * 3)])]
    widget = DynamoWidget(msgspec.structs.replace(record, compiles=compiles * 4))
    assert widget.snapshot
    assert saved_size(widget) <= STATE_BYTES


def test_the_module_travels_packed_and_unpacks_to_itself():
    sent = assets.travelling_module()
    assert len(sent) <= SENT_MODULE
    packed = re.search(r'const text = "([^"]+)"', sent)[1]
    data = base64.b85decode(packed.replace(",", "<"))
    size = int(re.search(r"words.buffer, 0, (\d+)", sent)[1])
    assert gzip.decompress(data[:size]).decode() == assets.module()
    assert "<!--" not in sent


def test_a_request_is_answered_with_its_id(front, record):
    front.ask({"id": 7, "part": "guards|0/0"})
    [(content, [data])] = front.answers
    assert content == {"re": 7}
    assert len(unpacked(data)["guards"]) == len(record.compiles[0].guards)


def test_a_failure_is_answered_with_its_id(front, monkeypatch):
    front.ask({"id": 8, "part": "graph|9/9|dynamo"})
    monkeypatch.setattr(front.widget, "part", lambda name: 1 / 0)
    front.ask({"id": 9, "part": "core"})
    assert front.answers == [
        ({"re": 8, "error": "This report has no part 'graph|9/9|dynamo'."}, []),
        ({"re": 9, "error": "ZeroDivisionError: division by zero"}, []),
    ]


@pytest.mark.parametrize("message", [None, "core", [], {}, {"id": 1}])
def test_what_is_no_request_is_passed_over(front, message):
    front.ask(message)
    assert front.answers == []


def test_the_page_can_be_asked_for(front, record):
    front.ask({"id": 1, "part": "page"})
    [(_, [data])] = front.answers
    assert unpacked(data) == to_explorer_page(record)


def test_the_difference_from_the_report_before_can_be_asked_for(record, monkeypatch):
    cut = record.source.replace('        print("between")\n', "")
    after = msgspec.structs.replace(record, source=cut, cell=7)
    widget = DynamoWidget(after, msgspec.structs.replace(record, name="first"))
    assert widget.meta["before"].startswith("first (cell [")
    front = Front(widget, monkeypatch)
    front.ask({"id": 1, "part": "diff"})
    (((_, buffers)),) = front.answers
    found = unpacked(buffers[0])
    assert found["after"] == "cell [7]"
    (removed,) = [row for row in found["rows"] if row["change"] != "same"]
    assert (removed["old"], removed["new"]) == (9, None)
    assert "print" in removed["old_text"]


def test_without_a_report_before_there_is_no_difference(front):
    assert "before" not in front.widget.meta
    front.ask({"id": 1, "part": "diff"})
    ((answer, _),) = front.answers
    assert "no part 'diff'" in answer["error"]


def test_the_selection_comes_back_as_refs_and_cannot_be_set(record):
    widget = DynamoWidget(record)
    seen: list[Any] = []
    widget.observe(lambda change: seen.append(change.new), "selection")
    widget.set_state(
        {"selection": [["0/0", "kernel", "post_grad.forward/k"], ["", "line", "<cell>:3"]]}
    )
    assert widget.selection == [
        Ref("0/0", "kernel", "post_grad.forward/k"),
        Ref("", "line", "<cell>:3"),
    ]
    assert seen == [widget.selection]
    with pytest.raises(traitlets.TraitError, match="read-only"):
        widget.selection = []


@pytest.mark.parametrize("nonsense", [None, 3, ["x"], [["a", "b"]]])
def test_a_selection_that_makes_no_sense_is_none(record, nonsense):
    widget = DynamoWidget(record)
    widget.set_state({"selection": nonsense})
    assert widget.selection == []


@every_sample
def test_the_bundle_has_a_view_and_the_same_text_each_time(make):
    first, second = explorer(linked(make())), explorer(linked(make()))
    assert first["text/plain"] == second["text/plain"]
    assert "0x" not in first["text/plain"]
    view = first["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"]
    assert set(first) == {"text/plain", "application/vnd.jupyter.widget-view+json"}


def test_a_cell_that_runs_again_gives_up_its_last_explorer(record):
    from ipywidgets.widgets.widget import _instances

    def live(bundle: dict[str, Any]) -> bool:
        return bundle["application/vnd.jupyter.widget-view+json"]["model_id"] in _instances

    first, other = explorer(record, "cell a"), explorer(record, "cell b")
    again = explorer(record, "cell a")
    assert [live(one) for one in (first, other, again)] == [False, True, True]


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [samples.hostile, samples.training_step, samples.empty])
def test_the_page_holds_record_and_module_and_asks_nobody(make):
    record = linked(make())
    html = to_explorer_page(record)
    embedded = html.partition('id="dynamo-nb-record">')[2].partition("</script>")[0]
    assert msgspec.convert(json.loads(embedded), CellRecord) == record
    assert f'<script type="module">{assets.module()}</script>' in html
    assert not re.search(r'\b(?:src|href)="(?:https?:)?//', html)


def test_a_missing_module_is_told_with_the_command_that_makes_it(monkeypatch, tmp_path):
    monkeypatch.setattr(assets, "_STATIC", tmp_path)
    assets.module.cache_clear()
    try:
        with pytest.raises(FileNotFoundError, match="npm run build"):
            assets.module()
    finally:
        assets.module.cache_clear()


def test_the_front_ends_types_are_those_of_the_record():
    command = [sys.executable, str(ROOT / "widgets" / "scripts" / "schema.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
