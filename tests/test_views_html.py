"""Static HTML: escaped, bounded, deterministic, linked without JavaScript."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser

import msgspec
import pytest

from dynamo_nb.record.types import CELL, CellRecord, Compile, Finding, StackFrame
from dynamo_nb.views.guard_sections import conditions
from dynamo_nb.views.html import static_id, to_html, to_page
from dynamo_nb.views.limits import CELL_OUTPUT, PAGE
from dynamo_nb.views.marks import Marks
from dynamo_nb.views.model import Report
from dynamo_nb.views.source import listing
from tests import samples

small_sample = pytest.mark.parametrize("name", [n for n in samples.SAMPLES if n != "huge"])
every_sample = pytest.mark.parametrize("name", samples.SAMPLES)
both_views = pytest.mark.parametrize("view", [to_html, to_page])

#: Every element that our own templates write.
OURS = {
    *("html", "head", "meta", "title", "style", "body", "main", "footer", "script"),
    *("h1", "div", "p", "ul", "li", "b", "i", "u", "br", "code", "pre", "span"),
    *("details", "summary", "table", "thead", "tbody", "tr", "th", "td"),
}
#: Every attribute that they write, and what its values look like.
ATTRIBUTES = {
    "class": r"[a-z0-9 ]*",
    "id": r"dnb-[0-9a-f]{12}|dynamo-nb-record",
    "data-dnb-static": r"[0-9a-f]{12}",
    "tabindex": "0",
    "open": "",
    "lang": "en",
    "charset": "utf-8",
    "name": "viewport|color-scheme",
    "content": r"[\w =,.-]*",
    "type": "application/json",
}
VOID = {"meta", "br"}


class Page(HTMLParser):
    """The elements of an HTML text, checked to be well nested, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        pytest.fail(f"a comment came from data: {data[:80]}")

    def unknown_decl(self, data: str) -> None:
        pytest.fail(f"a declaration came from data: {data[:80]}")

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def with_class(self, name: str) -> list[str]:
        return [tag for tag, attrs in self.elements if name in attrs.get("class", "").split()]


# ------------------------------------------------------------------ escaping


@small_sample
@both_views
def test_no_element_and_no_attribute_comes_from_data(name: str, view: Callable[[CellRecord], str]):
    html = view(samples.SAMPLES[name]())
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag in OURS
        for attribute, value in attributes.items():
            assert re.fullmatch(ATTRIBUTES[attribute], value), (tag, attribute, value)
    scripts = [attrs for tag, attrs in page.elements if tag == "script"]
    assert scripts == ([{"type": "application/json", "id": "dynamo-nb-record"}] * (view is to_page))


@both_views
def test_hostile_text_is_shown_as_text(view: Callable[[CellRecord], str]):
    html = view(samples.hostile())
    html.encode()
    assert "\x00" not in html
    assert "\x1b" not in html
    text = Page(html).text
    assert "</script><script>alert(1)</script><b onclick='x()'>\"&amp;]]><!-- ␛[31m␀" in text
    assert "\t" not in html.partition("</style>")[2].partition("<footer")[0]


@small_sample
def test_the_page_holds_the_record(name: str):
    record = samples.SAMPLES[name]()
    html = to_page(record)
    embedded = html.partition('id="dynamo-nb-record">')[2].partition("</script>")[0]
    assert not set("<>&") & set(embedded)
    assert msgspec.convert(json.loads(embedded), CellRecord) == record


def test_addresses_are_text():
    assert "https://docs.pytorch.org/compile-graph-break-site" in to_html(samples.graph_breaks())
    assert "href" not in to_page(samples.hostile())


# ------------------------------------------------------------------ sizes


def test_the_output_of_a_huge_record_is_bounded():
    html = to_html(samples.huge())
    assert len(html.encode()) < 200_000
    text = " ".join(Page(html).text.split())
    assert "… 90 more findings; %dynamo save report.html has all." in text
    assert "more lines; %dynamo save report.html has all" in text
    assert "Left out here, for its size:" in text


def test_the_page_of_a_huge_record_has_more_and_says_what_it_leaves_out():
    record = samples.huge(PAGE.rows + 10)
    html = to_page(msgspec.structs.replace(record, compiles=record.compiles[:1]))
    assert html.count("<td>add_1999</td>") == 5
    assert html.count("<td>add_2000</td>") == 0
    assert html.count("… 10 more rows") == 5


def test_hostile_length_does_not_break_the_bound():
    source = "%%dynamo\n" + ('"' * 400 + "\n") * 3000
    finding = Finding(code="&" * 999, severity="<" * 999, message="'" * 9999, advice='"' * 9999)
    record = CellRecord(
        source=source,
        findings=[finding] * 500,
        compiles=[Compile(compile_id="<" * 5000, name="&" * 5000)] * 500,
        unparsed={f"{i}" + "&" * 999: 1 for i in range(500)},
    )
    assert len(to_html(record).encode()) < 300_000


# ------------------------------------------------------------------ sameness


@every_sample
def test_the_output_is_the_same_each_time(name: str):
    assert to_html(samples.SAMPLES[name]()) == to_html(samples.SAMPLES[name]())


@small_sample
def test_a_record_read_from_json_looks_the_same(name: str):
    record = samples.SAMPLES[name]()
    again = msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(record))), CellRecord)
    assert to_html(again) == to_html(record)


def test_the_output_does_not_depend_on_times_and_addresses():
    record = samples.graph_breaks()
    first = record.compiles[0]
    guard = msgspec.structs.replace(
        first.guards[1], code=["___check_obj_id(G['torch'], 99988877766655)"]
    )
    other = msgspec.structs.replace(
        first,
        guards=[first.guards[0], guard],
        stages=[msgspec.structs.replace(first.stages[0], seconds=9.75)],
        metrics={"entire_frame_compile_time_s": 9.75},
    )
    changed = msgspec.structs.replace(
        record, compiles=[other, *record.compiles[1:]], metrics={"seconds": 3.25}
    )
    assert to_html(changed) == to_html(record)
    assert to_page(changed) != to_page(record)
    assert "9750.0" in to_page(changed)


def test_the_id_is_made_of_the_content():
    record = samples.graph_breaks()
    assert static_id(record) == static_id(samples.graph_breaks())
    assert static_id(record) != static_id(samples.failed())
    assert f'data-dnb-static="{static_id(record)}"' in to_html(record)


# ------------------------------------------------------------------ links


@small_sample
@both_views
def test_every_line_that_something_belongs_to_has_its_rule(
    name: str, view: Callable[[CellRecord], str]
):
    record = samples.SAMPLES[name]()
    html = view(record)
    ruled = re.findall(r"^#dnb-[0-9a-f]{12}:has\(\.(\w+):is\(:hover,:focus\)\) \.(\w+)", html, re.M)
    assert all(pointed == marked for pointed, marked in ruled)
    used = {
        mark
        for _, attributes in Page(html).elements
        for mark in attributes.get("class", "").split()
        if re.fullmatch(r"(f\d+)?l\d+", mark)
    }
    assert used or name == "empty"
    assert used <= {mark for mark, _ in ruled}


@pytest.mark.parametrize(
    ("name", "line", "rows"),
    [
        # rows: nodes of every stage, guards, kernels, nodes on their pages, calls
        ("graph_breaks", "l5", 3 + 2 + 1),
        ("training_step", "l8", 2 + 4 + 2 + 2 + 2 + 2 + 2 + 4),
        ("attribute_recompiles", "l11", 8),
    ],
)
def test_a_line_marks_its_nodes_guards_and_kernels(name: str, line: str, rows: int):
    page = Page(to_html(samples.SAMPLES[name]()))
    assert page.with_class(line).count("span") == (2 if name == "training_step" else 1)
    assert page.with_class(line).count("tr") == rows


def test_whatever_is_marked_can_be_focused():
    for _, attributes in Page(to_html(samples.training_step())).elements:
        marked = re.search(r"l\d", attributes.get("class", ""))
        assert bool(marked) == (attributes.get("tabindex") == "0")


def test_a_finding_marks_its_lines():
    html = to_html(samples.dtype_recompile())
    assert '<li class="warn l9 l5" tabindex="0">' in html


def test_marks_are_limited():
    record = samples.huge(50)
    assert len(Marks(record, 10).classes) == 10


def test_lines_of_other_files_have_marks_of_their_own():
    html = to_html(samples.training_step())
    assert '<span class="r f1l134" tabindex="0">' in html
    assert re.search(r'<tr class="f1l134 l7" tabindex="0"><td>line 7</td><td>linear</td>', html)


# ------------------------------------------------------------------ what it says


def gutter(record: CellRecord, file: str = CELL) -> list[str]:
    """Return a listing as it reads without any style."""
    block = listing(Report(record), file, Marks(record, 100), CELL_OUTPUT)
    return [
        f"{line.letters}|{line.graphs}|{line.guards}|{line.number}|"
        f"{''.join(piece.text for piece in line.pieces)}|{line.note}"
        for line in block.lines
    ]


def test_the_gutter_says_it_in_text():
    lines = gutter(samples.graph_breaks())
    assert lines[3:9] == [
        "||||4|def toy(a, b):|".replace("||||", "|||"),
        "|0/0|2|5|    x = a / (torch.abs(a) + 1)|abs, add, truediv",
        'B|||6|    print("woo")|graph break: Failed to trace builtin operator',
        "B|1/0||7|    if b.sum() < 0:|graph break: Data-dependent branching",
        "|2/0||8|        b = b * -1|mul",
        "|2/0||9|    return x * b|mul",
    ]


def test_the_gutter_reads_without_style():
    text = Page(to_html(samples.graph_breaks())).text
    assert "  graph guards line\n" in text
    assert "  0/0        2    5      x = a / (torch.abs(a) + 1)   ← abs, add, truediv\n" in text
    assert 'B                 6      print("woo")   ← graph break' in text


def test_the_values_of_a_recompile_stand_in_order():
    assert gutter(samples.attribute_recompiles())[9].endswith(
        "|        self.counter += 1|self.counter: 0 -> 1 -> 2 -> … -> 7"
    )
    assert "0/0 0/1 +6" in gutter(samples.attribute_recompiles())[10]


def test_a_line_names_its_kernels():
    assert gutter(samples.training_step())[7].endswith(
        "mul, sum -> cpp_fused_relu_mul_sum_0, cpp_fused_expand_le_mul_1"
    )


def test_the_exact_place_of_a_break_is_underlined():
    html = to_html(samples.graph_breaks())
    marked = "".join(re.findall(r"<u>(.*?)</u>", html))
    assert re.sub("<[^>]*>", "", marked).replace("&#34;", '"').replace("&lt;", "<") == (
        'print("woo")b.sum() < 0'
    )


def test_a_model_of_a_library_is_linked_to_its_call_and_its_own_source():
    record = samples.library_model()
    assert gutter(record)[4] == "|||5|net(x)|net: compiled 0/0"
    html = to_html(record)
    rows = re.findall(r'<tr class="([^"]*)" tabindex="0"><td>(.*?)</td><td>(.*?)</td>', html)
    assert ("f1l134 f2l3 l5", "models.py:3", "linear") in rows
    assert re.findall(r"<b>(source .*?)</b>", html) == [
        "source site/models.py",
        "source torch/nn/modules/linear.py",
    ]
    assert html.index("<td>linear</td>") < html.index("<td>l_x_</td>")


def test_other_files_are_shown_around_their_lines():
    record = samples.training_step()
    lines = gutter(record, "torch/nn/modules/linear.py")
    assert [line.split("|")[3] for line in lines] == ["132", "133", "134"]


def test_tabs_and_wide_characters_keep_their_spans():
    source = "%%dynamo\n\tgröße = f(变量)\n"
    place = StackFrame(file=CELL, line=2, column=9, end_column=14, end_line=2)
    broken = msgspec.structs.replace(
        samples.graph_breaks().compiles[0].graph_breaks[0], frame=place
    )
    record = CellRecord(source=source, compiles=[Compile(compile_id="0/0", graph_breaks=[broken])])
    block = listing(Report(record), CELL, Marks(record, 9), CELL_OUTPUT)
    assert "".join(piece.text for piece in block.lines[1].pieces if piece.marked) == "f(变量)"


@every_sample
def test_the_listing_is_the_source(name: str):
    record = samples.SAMPLES[name]()
    shown = [line.split("|", 4)[4] for line in gutter(record)]
    for line, text in zip(record.source.split("\n"), shown, strict=False):
        if line.isprintable() and len(line) < CELL_OUTPUT.width:
            assert text.startswith(line)


def test_torchs_boilerplate_is_left_out_of_guards():
    marks = [
        f"hasattr(L['x'], '_dynamo_{kind}_indices') == False" for kind in ("static", "dynamic")
    ]
    commented = "len(L['x']) == 1      # return x  # <cell>:5 in f"
    assert conditions([commented, *marks]) == (
        "len(L['x']) == 1 and no dimension marked dynamic or static"
    )


def test_empty_columns_are_left_out():
    html = to_html(samples.dtype_recompile())
    heads = Counter(re.findall(r"<th>(.*?)</th>", html))
    assert heads["target"] == 2
    assert "module" not in heads


def test_what_is_missing_is_said():
    text = " ".join(Page(to_html(samples.incomplete())).text.split())
    assert "Note: no Dynamo graphs (call_user_compiler failed: AttributeError" in text
    assert "artifact:new_thing (3)" in text


def test_nothing_is_said_twice_about_an_empty_cell():
    text = Page(to_html(samples.empty())).text.split()
    assert text[:3] == ["nothing", "was", "compiled"]
    assert "findings" not in text
