"""The explorer in a browser without a notebook: as a page of its own, and in a made-up host."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from dynamo_nb.record.io import load
from dynamo_nb.views.assets import style, travelling_module
from dynamo_nb.views.page import to_explorer_page
from dynamo_nb.views.parts import Parts
from tests.e2e.conftest import Watched
from tests.e2e.servers import ROOT

AXE = ROOT / "widgets" / "node_modules" / "axe-core" / "axe.min.js"
FORWARD, BREAK = 8, 9
SECTIONS = [
    *("Graphs", "Kernels", "Code", "Guards", "Recompiles", "Cache"),
    *("Shapes", "Frames", "Steps", "Bytecode", "Timeline"),
]


@pytest.fixture(scope="module")
def record() -> Any:
    return load(ROOT / "tests" / "data" / "cell.json.gz")


@pytest.fixture
def page(watched: Watched, record: Any, tmp_path: Path) -> Page:
    """The record as a page of its own, opened as a file."""
    file = tmp_path / "page.html"
    file.write_text(to_explorer_page(record), encoding="utf-8")
    watched.page.goto(file.as_uri())
    expect(watched.page.locator(".dnx-root")).to_be_visible()
    return watched.page


def choose(page: Page, section: str) -> None:
    second = page.get_by_label("second section", exact=True)
    second.get_by_role("tab", name=re.compile(f"^{section}")).click()


def line(page: Page, number: int) -> Any:
    return page.locator(f'.dnx-source [data-dnx-ref$="<cell>:{number}"]')


def test_the_static_report_gives_way(page: Page) -> None:
    expect(page.locator("main.dnb")).to_be_hidden()


def test_without_scripts_the_page_is_the_static_report(record: Any, browser: Any, tmp_path: Path):
    file = tmp_path / "page.html"
    file.write_text(to_explorer_page(record), encoding="utf-8")
    page = browser.new_page(java_script_enabled=False)
    page.goto(file.as_uri())
    expect(page.locator("main.dnb")).to_be_visible()
    expect(page.locator(".dnx-root")).to_have_count(0)
    page.close()


def test_a_line_and_its_kernels_light_up_together(page: Page) -> None:
    line(page, FORWARD).hover()
    expect(page.locator(".dnx-kernel-rows [data-lit]")).not_to_have_count(0)
    page.mouse.move(0, 0)
    expect(page.locator("[data-lit]")).to_have_count(0)


def test_a_guard_underlines_its_columns(page: Page) -> None:
    choose(page, "Guards")
    page.locator(".dnx-guard-rows [role=option]", has_text="scale").first.click()
    expect(line(page, FORWARD).locator("u").first).to_be_visible()


def test_by_keyboard_alone(page: Page) -> None:
    """Tab reaches the source, arrows move in it, Enter holds, Escape lets go."""
    source = page.locator(".dnx-source [role=listbox]")
    for _ in range(60):
        page.keyboard.press("Tab")
        if source.evaluate("one => one === document.activeElement"):
            break
    for _ in range(FORWARD):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(line(page, FORWARD)).to_have_attribute("data-lit", "now")
    expect(page.locator(".dnx-status")).to_contain_text(f"line {FORWARD}")
    page.keyboard.press("Escape")
    expect(page.locator("[data-lit]")).to_have_count(0)


def test_splitters_move_by_keyboard(page: Page) -> None:
    source = page.locator(".dnx-source")
    before = source.bounding_box()
    page.get_by_label("width of the source").press("ArrowRight")
    after = source.bounding_box()
    assert before
    assert after
    assert after["width"] > before["width"]


@pytest.mark.parametrize("width", [480, 900, 1400])
def test_nothing_sticks_out_at_any_width(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for section in SECTIONS:
        choose(page, section)
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, section


def violations(page: Page, *rules: str) -> list[str]:
    """Return what axe finds serious or worse, by all of its rules or by some."""
    options = {"resultTypes": ["violations"], **({"runOnly": [*rules]} if rules else {})}
    found = page.evaluate("options => axe.run('.dnx-root', options)", options)
    return [
        f"{one['id']}: {node['failureSummary']}: {node['html'][:160]}"
        for one in found["violations"]
        for node in one["nodes"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Page, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    page.add_script_tag(path=AXE)
    for section in SECTIONS:
        choose(page, section)
        page.wait_for_timeout(100)
        assert violations(page) == [], section
    line(page, FORWARD).click()
    assert violations(page) == []


#: The themes of JupyterLab itself, whose colours the explorer takes where it finds them.
THEMES = Path(sys.prefix) / "share" / "jupyter" / "lab" / "themes" / "@jupyterlab"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("is_jupyter", [False, True])
def test_what_is_held_can_be_read(page: Page, scheme: Any, is_jupyter: bool) -> None:
    """Keywords, strings, numbers and comments on lit rows, chips in lit cards."""
    page.emulate_media(color_scheme=scheme)
    if is_jupyter:
        page.add_style_tag(path=THEMES / f"theme-{scheme}-extension" / "index.css")
    page.add_script_tag(path=AXE)
    for section, numbers in (("Code", (4, FORWARD, BREAK)), ("Recompiles", (FORWARD,))):
        choose(page, section)
        for number in numbers:
            line(page, number).click()
            assert violations(page, "color-contrast") == [], (section, number)
    page.locator(".dnx-card").first.click(position={"x": 3, "y": 3})
    assert violations(page, "color-contrast") == []


def test_axe_finds_nothing_serious_in_answers(watched: Watched, tmp_path: Path) -> None:
    """Symbolic sizes, a failed check, and a walk under way."""
    file = tmp_path / "page.html"
    shapes = load(ROOT / "tests" / "data" / "shapes.json.gz")
    file.write_text(to_explorer_page(shapes), encoding="utf-8")
    page = watched.page
    page.goto(file.as_uri())
    page.add_script_tag(path=AXE)
    page.locator(".dnx-compile").nth(1).click()
    for section in ("Shapes", "Checks", "Steps"):
        choose(page, section)
        assert violations(page) == [], section
    page.locator(".dnx-steps").press("ArrowDown")
    assert violations(page) == []


@pytest.mark.parametrize(
    ("name", "section", "tabs"),
    [
        ("passes", "Passes", []),
        ("gpu", "Kernels", ["facts", "buffers", "not fused", "cuda:90", "TTGIR", "PTX", "device"]),
    ],
)
def test_axe_finds_nothing_serious_in_passes_and_targets(
    watched: Watched, tmp_path: Path, name: str, section: str, tabs: list[str]
) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        to_explorer_page(load(ROOT / "tests" / "data" / f"{name}.json.gz")), encoding="utf-8"
    )
    page = watched.page
    page.goto(file.as_uri())
    page.add_script_tag(path=AXE)
    choose(page, section)
    assert violations(page) == []
    second = page.get_by_label("second section", exact=True)
    for tab in tabs:
        page.locator(".dnx-kernel-rows [role=option]").last.hover()
        second.get_by_role("tab", name=re.compile(f"^{tab}")).click()
        page.wait_for_timeout(100)
        assert violations(page) == [], tab


def test_a_step_moves_source_bytecode_and_graph_together(page: Page) -> None:
    first = page.get_by_label("first section", exact=True)
    choose(page, "Steps")
    steps = page.locator(".dnx-steps")
    steps.focus()
    for _ in range(90):  # over the inlined call, to the instruction that adds the node `h`
        page.keyboard.press("Shift+ArrowDown")
        if "BINARY_OP" in steps.locator("[data-lit=now]").inner_text():
            break
    expect(line(page, FORWARD).locator("u").first).to_be_visible()
    expect(first.locator('.dnx-g-stage [data-node="h"]')).to_have_class(re.compile("is-lit"))
    first.get_by_role("tab", name=re.compile("^Bytecode")).click()
    lit = first.get_by_label("bytecode as written").locator("[data-lit]")
    expect(lit).to_have_count(1)
    expect(lit).to_contain_text("BINARY_OP")


def test_a_kernel_its_nodes_and_its_lines_light_up_in_two_sections(page: Page) -> None:
    choose(page, "Kernels")
    page.locator(".dnx-kernel-rows [role=option]", has_text="sin").first.click()
    first = page.get_by_label("first section", exact=True)
    expect(first.locator(".dnx-g-stage .dnx-g-is-lit").first).to_be_visible()
    expect(line(page, FORWARD)).to_have_attribute("data-lit", "yes")


# ---- a host of our own ---------------------------------------------------------------------------

HOST = """async ({module, snapshot, answers}) => {
    const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    const view = (text) => { const data = bytes(text); return new DataView(data.buffer); };
    const state = { meta: { id: "x", headline: "1 graph" }, snapshot: view(snapshot) };
    let listener = () => {};
    window.sent = [];
    const model = {
        get: (name) => state[name],
        set: (name, value) => { state[name] = value; },
        save_changes: () => window.sent.push(state.selection),
        on: (_, one) => { listener = one; },
        off: () => {},
        send: ({ id, part }) => {
            if (!answers) throw new Error("no comm");
            const answer = answers[part];
            setTimeout(() => answer ? listener({ re: id }, [view(answer)])
                                    : listener({ re: id, error: `no part ${part}` }, []));
        },
    };
    const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
    const { default: widget } = await import(url);
    const el = document.createElement("div");
    document.body.append(el);
    window.close_it = widget.render({ model, el });
}"""


def host(page: Page, record: Any, *, budget: int, live: bool) -> None:
    """Render the packed module as anywidget does."""
    parts = Parts(record)
    answers = {name: base64.b64encode(parts.compressed(name)).decode() for name in parts.names}
    page.goto("about:blank")
    page.add_style_tag(content=style())
    given = {
        "module": travelling_module(),
        "snapshot": base64.b64encode(parts.snapshot(budget)).decode(),
        "answers": answers if live else None,
    }
    page.evaluate(HOST, given)
    expect(page.locator(".dnx-root, [role=alert]").first).to_be_visible()


@pytest.mark.parametrize("budget", [0, 25_000, 10_000_000])
def test_parts_come_from_the_snapshot_or_from_the_kernel(watched, record, budget) -> None:
    host(watched.page, record, budget=budget, live=True)
    choose(watched.page, "Code")
    expect(watched.page.locator(".dnx-code [role=option]").first).to_be_visible()
    watched.page.locator(".dnx-source [role=option]").nth(FORWARD - 1).click()
    sent = watched.page.evaluate("window.sent[0]")
    assert sent[0] == ["", "line", f"<cell>:{FORWARD}"]


def test_without_a_kernel_a_pane_says_what_is_missing(watched, record) -> None:
    host(watched.page, record, budget=25_000, live=False)
    choose(watched.page, "Bytecode")
    expect(watched.page.locator("[role=alert]", has_text="bytecode")).to_contain_text(
        "Run the cell again"
    )
    line(watched.page, FORWARD).click()
    expect(line(watched.page, FORWARD)).to_have_attribute("data-lit", "now")


def test_with_nothing_at_all_it_says_so(watched, record) -> None:
    host(watched.page, record, budget=0, live=False)
    expect(watched.page.locator("[role=alert]")).to_contain_text("Run the cell again")


def test_closing_leaves_nothing_behind(watched, record) -> None:
    host(watched.page, record, budget=10_000_000, live=True)
    watched.page.evaluate("window.close_it()")
    expect(watched.page.locator(".dnx-root")).to_have_count(0)


def test_the_record_survives_the_page(record: Any) -> None:
    html = to_explorer_page(record)
    embedded = html.partition('id="dynamo-nb-record">')[2].partition("</script>")[0]
    assert json.loads(embedded)["source"] == record.source
