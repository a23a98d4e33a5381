"""The `text/plain` summary and the helpers that place text and carets."""

from __future__ import annotations

import msgspec
import pytest

from dynamo_nb.record.causes import nearest_first
from dynamo_nb.record.types import (
    CELL,
    Call,
    CellError,
    CellRecord,
    Compile,
    Finding,
    RecompileReason,
    StackFrame,
)
from dynamo_nb.views.html import to_html
from dynamo_nb.views.model import Report, main_reason
from dynamo_nb.views.plain import (
    brief,
    clean,
    compact_lines,
    excerpt,
    plural,
    scrub,
    spot,
    value_text,
)
from dynamo_nb.views.text import to_text
from tests import samples

every_sample = pytest.mark.parametrize("name", samples.SAMPLES)


def frame(column: int | None, end: int | None = None, line: int = 1, **more: int) -> StackFrame:
    return StackFrame(file=CELL, line=line, column=column, end_column=end, **more)


# ------------------------------------------------------------------ the summary


def test_breaks_come_with_place_carets_and_advice():
    lines = to_text(samples.graph_breaks()).split("\n")
    at = lines.index('    6 |     print("woo")')
    assert lines[at - 1] == "warning: graph-break line 6: the builtin print ends the graph here"
    assert lines[at + 1] == "      |     ^^^^^^^^^^^^"
    assert lines[at + 2] == "  -> Print outside the compiled function, or after the call."
    assert "        mode calls (the cell calls toy, a function of this notebook)" in lines


def test_a_function_is_shown_with_its_resume_functions():
    text = to_text(samples.graph_breaks())
    assert text.startswith("dynamo: 1 compiled function, 3 graphs, 2 graph breaks\n")
    assert "toy (line 4)\n  0/0  graph of 3 ops from line 5; 2 guards\n" in text
    assert "  2/0  resumes at line 7: graph of 2 ops from lines 8-9" in text
    assert "torch_dynamo_resume_in" not in text


def test_a_recompile_says_what_changed_and_where():
    text = to_text(samples.dtype_recompile())
    assert "recompiled: x.dtype float32 -> bfloat16 (call at line 9, 0/0 did not fit)" in text
    assert "  line 10  toy: 0/0 hit\n" in text + "\n"


def test_the_reason_against_the_nearest_entry_is_shown():
    record = samples.attribute_recompiles()
    reason = main_reason(record.compiles[5])
    assert reason is not None
    assert (reason.entry, reason.was, reason.now) == ("0/4", "4", "5")
    against = [
        RecompileReason(entry="0/9", name="x"),
        RecompileReason(entry="0/10", name="x"),
        RecompileReason(entry="0/11", name="x"),
        RecompileReason(entry="0/11", name="y"),
    ]
    entry = msgspec.structs.replace(record.compiles[1], recompile_reasons=against)
    entry = msgspec.structs.replace(entry, recompile_reasons=nearest_first(entry))
    assert main_reason(entry) is against[1]


def test_what_ran_eagerly_says_why():
    text = to_text(samples.attribute_recompiles())
    assert "warning: recompile line 10 (7 times): self.counter changes" in text
    assert "ran eagerly 2 times: the recompile limit" in text


def test_a_failed_compile_and_cell():
    text = to_text(samples.failed())
    assert "the cell raised Unsupported at line 9: Data-dependent branching" in text
    assert "    5 |     if x.sum() > 0:\n      |        ^^^^^^^^^^^\n" in text
    assert "  0/0  failed: Data-dependent branching" in text


def test_an_error_without_a_message():
    error = CellError(type="KeyboardInterrupt", line=3)
    text = to_text(msgspec.structs.replace(samples.failed(), error=error))
    assert "the cell raised KeyboardInterrupt at line 3\n" in text


def test_kernels_name_their_lines():
    text = to_text(samples.training_step())
    assert "kernel cpp_fused_relu_mul_sum_0 (cpp, forward, fuses 3 nodes from lines 7-8)" in text
    assert "extern calls: extern_kernels.addmm, extern_kernels.mm" in text


def test_a_hit_names_the_cell_that_compiled_it_and_what_is_missing_is_said():
    text = to_text(samples.incomplete())
    assert text.startswith("dynamo: nothing new was compiled\n")
    assert "line 2  net: 0/0 hit 2 times, compiled by cell [1]" in text
    assert "line 2  net: outside any graph: head (Linear)" in text
    assert "compiled by cell [1], only its guards could be read" in text
    assert "note: no Dynamo graphs (call_user_compiler failed: AttributeError" in text
    assert "what is not understood here: artifact:new_thing (3), odd_event (1)" in text


def test_a_break_without_a_finding_still_shows_its_source():
    record = msgspec.structs.replace(samples.graph_breaks(), findings=[])
    text = to_text(record)
    assert "No findings." in text
    assert '    6 |     print("woo")\n      |     ^^^^^^^^^^^^' in text


@every_sample
def test_the_summary_fits_on_a_screen(name: str):
    lines = to_text(samples.SAMPLES[name]()).split("\n")
    assert len(lines) <= (60 if name == "hostile" else 40)
    assert max(map(len, lines)) <= 100


def test_what_does_not_fit_is_counted():
    text = to_text(samples.huge())
    assert "… 114 more findings" in text
    assert "… 198 more calls" in text
    assert "… 300 more kernels" in text


@every_sample
def test_the_summary_is_the_same_each_time_and_survives_json(name: str):
    record = samples.SAMPLES[name]()
    text = to_text(record)
    assert to_text(samples.SAMPLES[name]()) == text
    if name != "hostile":
        again = msgspec.json.decode(msgspec.json.encode(record), type=CellRecord)
        assert to_text(again) == text


def test_nothing_invisible_reaches_the_summary():
    text = to_text(samples.hostile())
    assert all(char == "\n" or char.isprintable() for char in text)
    text.encode()


def test_an_exact_place_is_found_through_the_refs_of_a_finding():
    report = Report(samples.graph_breaks())
    finding = report.record.findings[1]
    place = report.place_of(finding)
    assert place is not None
    assert (place.line, place.column, place.end_column) == (7, 7, 18)
    bare = report.place_of(Finding(code="x", severity="info", message="m", line=3))
    assert bare == StackFrame(file=CELL, line=3)


# ------------------------------------------------------------------ carets


@pytest.mark.parametrize(
    ("text", "place", "shown", "carets"),
    [
        ("x = f(y)", frame(4, 8), "x = f(y)", "    ^^^^"),
        ("\tx = f(y)", frame(5, 9), "    x = f(y)", "        ^^^^"),
        ("größe = f(y)", frame(8, 12), "größe = f(y)", "        ^^^^"),
        ("变量 = f(y)", frame(5, 9), "变量 = f(y)", "       ^^^^"),
        ("e\u0301 = f(y)", frame(5, 9), "e\u0301 = f(y)", "    ^^^^"),
        ("a\x00b = f(y)", frame(6, 10), "a\u2400b = f(y)", "      ^^^^"),
        ("x = f(", frame(4, 1, end_line=3), "x = f(", "    ^^"),
        ("x = f(y)", frame(4), "x = f(y)", "    ^^^^"),
        ("x", frame(0, 0), "x", "^"),
        ("x = f(y)", frame(None), "x = f(y)", ""),
        ("x", frame(9, 12), "x", ""),
    ],
)
def test_carets_stand_under_their_characters(text: str, place: StackFrame, shown: str, carets: str):
    assert spot(text, place) == (shown, carets)


def test_a_long_line_keeps_its_marked_part_in_sight():
    text = "a" * 200 + "MARK" + "b" * 50
    shown, carets = spot(text, frame(200, 204), width=60)
    assert len(shown) <= 60
    assert shown[carets.index("^") : carets.index("^") + carets.count("^")] == "MARK"
    shown, carets = spot(text, frame(0, 250), width=60)
    assert (len(shown), carets) == (60, "^" * 60)


def test_an_excerpt_of_a_line_that_is_not_there_is_empty():
    record = CellRecord(source="x = 1\n")
    assert excerpt(record, frame(0, 1)) == ["    1 | x = 1", "      | ^"]
    assert excerpt(record, frame(0, 1, line=9)) == []
    assert excerpt(record, StackFrame(file="gone.py", line=1)) == []


# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("x == 1  # mp/ipykernel_23/35.py:8 in f", "x == 1  # <tmp> in f"),
        ("<object at 0x7f3a2b1c4d50>", "<object at 0x…>"),
        ("___check_obj_id(L['f'], 140234567890123)", "___check_obj_id(L['f'], …)"),
        ("__compiled_fn_1_d7a2c0de_12ab_34cd_56ef_0123456789ab(x)", "__compiled_fn(x)"),
        ('#include "/tmp/torchinductor_me/2r/c2rn.h"', '#include "<tmp>"'),
        ("File /var/folders/xy/ipykernel_77/12.py, line 3", "File <tmp> line 3"),
        ("model.py:12 size=[1024, 1000000]", "model.py:12 size=[1024, 1000000]"),
        ("a / b", "a / b"),
        ("s77 >= 2", "s77 >= 2"),
        ("___check_type_id(L['f'], 94712345678912), type=M", "___check_type_id(L['f'], …), type=M"),
        ("_Wrapper(f) (id=0x7f3a2b1c4d50)", "_Wrapper(f) (id=0x…)"),
        ("File /tmp/tmpab12_x9z/out.py", "File <tmp>"),
        (
            "0.010000000000000002 -> 0.3333333333333333",
            "0.010000000000000002 -> 0.3333333333333333",
        ),
        ("L['c'].key == 1234567890123", "L['c'].key == 1234567890123"),
        ("10000000000000000000000000000000000", "10000000000000000000000000000000000"),
        ("'/tmp/a' -> '/data/tmp.txt'", "'/tmp/a' -> '/data/tmp.txt'"),
        ("(a + 1)/tmp and b[0]/tmp", "(a + 1)/tmp and b[0]/tmp"),
    ],
)
def test_what_differs_between_runs_is_scrubbed(text: str, scrubbed: str):
    assert scrub(text) == scrubbed


def test_quoted_source_is_what_the_user_wrote():
    source = 'y = (x + 1)/tmp; id(f, 123456789012345); at 0x7f3a2b1c4d50; "/tmp/tmpab12cd34"'
    finding = Finding(
        code="graph-break",
        severity="warning",
        message="at 0x7f3a2b1c4d50",
        line=1,
        frame=frame(4, 11, line=1),
    )
    text = to_text(CellRecord(source=source, findings=[finding]))
    assert source[:80] in text
    assert "at 0x…" in text.partition(source[:20])[0]


def test_scrubbing_comes_before_cutting():
    text = "File /tmp/ipykernel_1234/567.py, line 3"
    assert brief(text, 16) == brief(text.replace("1234", "98765432"), 16)


def test_every_character_stays_one_character():
    text = "a\x1b[0m\u202e\ud800\x7f\xa0\n\t"
    assert len(clean(text)) == len(text)
    assert clean(text) == "a\u241b[0m\ufffd\ufffd\u2421\xa0\n\t"


def test_lines_are_named_in_ranges():
    assert compact_lines([]) == ""
    assert compact_lines([5]) == "line 5"
    assert compact_lines([9, 5, 6, 7]) == "lines 5-7, 9"
    assert compact_lines(range(1, 40, 2), limit=2) == "lines 1, 3, … 18 more"


def test_counted_nouns():
    assert [plural(n, "graph break") for n in (0, 1, 2)] == [
        "0 graph breaks",
        "1 graph break",
        "2 graph breaks",
    ]


def test_values_read_as_torch_prints_them():
    tensor = samples.f32(8, "s77", dtype="torch.bfloat16", device="cuda:0")
    assert value_text(tensor) == "bf16[8, s77] cuda:0"
    assert value_text([samples.f32(2), "s77"]) == "(f32[2], s77)"
    assert value_text([{"shape": [2], "dtype": "int64"}]) == "(i64[2])"
    assert value_text(None) == ""


# --- whose lines these are -----------------------------------------------------------------------

HELPERS = """\
import torch

def act(x):
    y = x.sin()
    print("deep")
    return y.cos()

def scaled(x, k):
    return act(x) * k
"""


def test_excerpts_of_another_file_name_it(shell, tmp_path, monkeypatch):
    (tmp_path / "helpers_of_text.py").write_text(HELPERS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    shell.run("import torch\nfrom helpers_of_text import scaled")
    shell.run("%%dynamo --backend eager\nscaled(torch.ones(3), 2)\nscaled(torch.ones(3), 3)")
    ran = shell.run("%%dynamo --backend eager\nscaled(torch.ones(3), 4)")
    lines = ran.report.splitlines()
    at = lines.index(next(line for line in lines if line.startswith("    9 |")))
    assert lines[at - 1].startswith("      in ")
    assert lines[at - 1].endswith("helpers_of_text.py")
    assert "call at line" not in ran.report


def test_lines_of_another_cell_name_that_cell(shell):
    shell.run("import torch")
    cell = "def f(x, k):\n    y = x.sin()\n    print('woo')\n    return y * k\nf(torch.ones(3), 2)"
    shell.run(f"%%dynamo --backend eager\n{cell}")
    ran = shell.run("%%dynamo --backend eager\nf(torch.ones(3), 3)")
    assert "f (line 2 of cell [2])" in ran.report
    assert "graph break at line 4 of cell [2]" in ran.report
    (found,) = shell.record.findings
    assert (found.code, found.line, found.lines) == ("became-dynamic", 2, [2])
    assert ran.report.count("\nf (line") == 1  # the rest of f is shown with it


def test_a_call_without_a_name_says_what_ran_outside_graphs():
    record = CellRecord(calls=[Call(line=3, eager_modules=["LSTM"])])
    assert "  line 3  outside any graph: LSTM" in to_text(record).split("\n")
    assert "no compiled code" not in to_text(record)


# ------------------------------------------------------------------ a record as a value


@every_sample
def test_a_record_is_one_line_and_shows_itself_as_the_report(name: str):
    record = samples.SAMPLES[name]()
    assert "\n" not in repr(record)
    assert len(repr(record)) < 400
    assert all("\n" not in repr(entry) and len(repr(entry)) < 400 for entry in record.compiles)
    assert str(record) == to_text(record)
    assert record._repr_html_() == to_html(record)


def test_a_compiles_line_says_what_it_made():
    assert repr(Compile(compile_id="0/1", name="f")) == "<Compile 0/1 of f: no graph>"


def test_a_records_line_says_what_is_in_it():
    record = CellRecord(
        cell=3, name="<b>\n", mode="cell", findings=[Finding(code="a", severity="info", message="")]
    )
    assert repr(record) == (
        "<CellRecord '<b>\\n' of cell [3]: mode cell, nothing was compiled, 1 finding>"
    )
