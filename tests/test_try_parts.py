"""The parts of `%dynamo try` without a process: which mends, which patterns, how they are shown."""

from __future__ import annotations

import textwrap

import pytest
from msgspec.structs import replace

from dynamo_nb.findings.mends import mends
from dynamo_nb.findings.patterns import patterns
from dynamo_nb.record.trials import Mend, Pattern, Trial, Trials
from dynamo_nb.record.types import CellRecord, Compile, Finding, GraphBreak, Ref
from dynamo_nb.runner.trying import _combined, _judged, _names
from dynamo_nb.views.trials import trials_html, trials_text


def broken(hint, kind="Unsupported", context="", **kwargs):
    """A record with one graph break that has this hint."""
    item = GraphBreak(kind=kind, hints=[hint], context=context)
    finding = Finding(
        code="graph-break",
        severity="warning",
        message=kind,
        line=4,
        refs=[Ref("0/0", "break", "0")],
    )
    return CellRecord(
        source="%%dynamo\n",
        mode="calls",
        compiles=[Compile(compile_id="0/0", graph_breaks=[item])],
        findings=[finding],
        **kwargs,
    )


@pytest.mark.parametrize(
    ("hint", "line"),
    [
        ("Set `torch._dynamo.config.a = True` or `export A=1`", "torch._dynamo.config.a = True"),
        ("Change `torch._dynamo.config.b` to `True`.", "torch._dynamo.config.b = True"),
        ("Set torch._dynamo.config.c = False. Note that", "torch._dynamo.config.c = False"),
        (
            "If you are attempting to call a logging function (e.g. `_warnings.warn`), you can try "
            "adding it to `torch._dynamo.config.reorderable_logging_functions`.",
            "torch._dynamo.config.reorderable_logging_functions.add(warnings.warn)",
        ),
    ],
)
def test_what_a_hint_names(hint, line):
    found = {
        mend.paste: mend
        for mend in mends(broken(hint, context="module: _warnings, qualname: warn"))
    }
    assert line in found
    assert found[line].code[-1] == line
    assert found[line].lines == [4]
    assert "%%dynamo --fullgraph" in found


def test_a_logger_method():
    hint = "Add the logging method to `torch._dynamo.config.ignore_logging_functions`."
    record = broken(hint, context="method: <Logger a.b (WARNING)>.info, args: []")
    (mend, _) = mends(record)
    assert mend.code == [
        "import logging",
        "torch._dynamo.config.ignore_logging_functions.add(logging.Logger.info)",
    ]


def test_hints_that_name_no_value_are_no_mends():
    assert [m.paste for m in mends(broken("Raise torch._dynamo.config.recompile_limit."))] == [
        "%%dynamo --fullgraph"
    ]
    asked = broken("Move the call.", options={"fullgraph": True})
    assert mends(asked) == []


def test_arguments_are_written_as_the_mode_has_them():
    record = replace(broken("Move the call."), mode="as-is")
    assert [mend.paste for mend in mends(record)] == ["torch.compile(..., fullgraph=True)"]


def test_no_findings_no_mends():
    record = replace(broken("Set torch._dynamo.config.a = True"), findings=[])
    assert all(not mend.lines for mend in mends(record))
    assert patterns(record) == []


def test_one_pattern_for_several_findings():
    record = broken("", kind="Data-dependent branching")
    more = [replace(finding, line=9) for finding in record.findings]
    (found,) = patterns(replace(record, findings=[*record.findings, *more]))
    assert "torch.cond" in found.after
    assert found.lines == [4, 9]


def run(counts, *mends_, **kwargs):
    names = ("eager run", "graph break", "recompile")
    return Trial(
        mends=list(mends_), counts=dict(zip(names, counts, strict=True)), run_seconds=0.5, **kwargs
    )


@pytest.mark.parametrize(
    ("counts", "error", "verdict"),
    [
        ((0, 0, 0), "", "helps"),
        ((0, 1, 2), "", "same"),
        ((0, 2, 2), "", "worse"),
        ((0, 0, 3), "", "mixed"),
        ((0, 0, 0), "Unsupported: no", "failed"),
    ],
)
def test_verdicts(counts, error, verdict):
    assert _judged(run(counts, error=error), run((0, 1, 2))).verdict == verdict


def test_fewer_breaks_because_less_is_printed_is_no_help():
    silent = run((0, 0, 0), MENDS[0], differs=["output"])
    assert _judged(silent, run((0, 1, 2))).verdict == "changes"
    worse = run((0, 3, 3), differs=["output"])
    assert _judged(worse, run((0, 1, 2))).verdict == "worse"
    moved = run((0, 0, 0), differs=["value"])
    assert _judged(moved, run((0, 1, 2))).verdict == "helps"


def test_what_changes_the_output_is_listed_apart_with_its_cost():
    changing = replace(SHOWN.trials[0], verdict="changes", differs=["output"])
    found = replace(SHOWN, trials=[changing, SHOWN.trials[1]])
    text, html = trials_text(found), trials_html(found)
    assert "To paste" not in text
    assert "none help" in text
    said = "config.a = True: graph breaks 1 -> 0, its output is not the same; costs"
    head = "Fewer costs, but the cell then prints something else"
    assert f"{head}\n  {said}" in text
    assert text.partition("Tried, and dropped")[2].count("config.a") == 0
    assert head in html
    assert "its output is not the same; costs" in html


def test_an_error_that_is_gone_helps():
    assert _judged(run((0, 0, 0)), run((0, 0, 0), error="ValueError")).verdict == "helps"


def test_the_best_mend_for_each_finding_goes_into_the_combination():
    a, b, c = (Mend(paste=name, lines=[line]) for name, line in (("a", 1), ("b", 1), ("c", 2)))
    winners = [run((0, 0, 1), a), run((0, 0, 0), b), run((0, 1, 0), c)]
    assert [mend.paste for mend in _combined(winners)] == ["b", "c"]


def test_mends_that_set_the_same_are_not_combined():
    always = Mend(paste="--dynamic true", arguments={"dynamic": True}, lines=[2, 3])
    auto = Mend(paste="--dynamic auto", arguments={"dynamic": None}, lines=[2, 3, 4])
    other = Mend(paste="c", lines=[5])
    winners = [run((0, 0, 1), auto), run((0, 0, 0), always), run((0, 1, 0), other)]
    assert _combined(winners) == [always, other]


def test_what_was_combined_is_named():
    trial = run((0, 0, 0), MENDS[0], verdict="helps")
    together = replace(trial, mends=[MENDS[0], Mend(paste="c = 1")])
    found = replace(SHOWN, together=together)
    said = "Together, `config.a = True` and `c = 1`: graph breaks 1 -> 0, recompiles 2 -> 0."
    assert said in " ".join(trials_text(found).split())


PRINT = "Say it outside of the compiled function, or only when it is not compiled"
BRANCH = "Choose by value, not by branch: torch.where, or torch.cond for whole functions"


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("random.random()", None),
        ("open('/dev/null').close()", None),
        ("print('p')", PRINT),
        ("warnings.warn('w')", PRINT),
        ("y = x + 1 if x.sum() > 0 else x", BRANCH),
    ],
)
def test_examples_and_mends_are_for_the_call_that_breaks(shell, line, title, fullgraph):
    flag = " --fullgraph" if fullgraph else ""
    shell.run(
        f"%%dynamo --backend eager{flag}\n"
        "import torch, random, warnings\n"
        f"def f(x):\n    {line}\n    return x + 1\n"
        "f(torch.ones(2))"
    )
    found = {pattern.title for pattern in patterns(shell.record)}
    assert found == ({title} if title else set())
    pastes = [mend.paste for mend in mends(shell.record)]
    assert any("logging_functions" in paste for paste in pastes) == (title == PRINT)
    assert ("%%dynamo --backend eager" in pastes) == fullgraph
    assert ("%%dynamo --fullgraph" in pastes) != fullgraph


def test_names_that_a_cell_needs():
    cell = textwrap.dedent("""
        import torch
        y = x + 1
        def f(a):
            return a * scale + y
        for item in items:
            total = f(item)
        with lock as held:
            held.go(total)
        count += 1
    """)
    found = _names(cell, str)
    assert found == {"x", "scale", "items", "lock", "count", "total"}


MENDS = [
    Mend(paste="config.a = True", code=["import b", "config.a = True"], note="costs", lines=[4]),
    Mend(paste="%%dynamo --fullgraph"),
]
SHOWN = Trials(
    cell=3,
    baseline=run((0, 1, 2)),
    trials=[
        run((0, 0, 2), MENDS[0], verdict="helps", differs=["value"]),
        run((0, 0, 0), MENDS[1], verdict="failed", error="Unsupported: <b>"),
    ],
    patterns=[Pattern(title="Do it so", before="a < b", after="b > a", lines=[7])],
    notes=["From here."],
)


def test_text():
    text = trials_text(SHOWN)
    assert "2 mends tried for cell [3]: 1 mend helps" in text
    assert "  import b\n  config.a = True\n" in text
    assert "# line 4; graph breaks 1 -> 0, its value is not the same; costs" in text
    assert "%%dynamo --fullgraph: fails (Unsupported: <b>)" in text
    assert (
        "With a change of code (not tried)\n  Do it so (line 7)\n      - a < b\n      + b > a"
        in text
    )
    assert "note: From here." in text


def test_html_is_escaped():
    html = trials_html(SHOWN)
    assert "Unsupported: &lt;b&gt;" in html
    assert "<b>)" not in html
    assert "a &lt; b" in html


def test_nothing_tried_is_said():
    shown = trials_text(Trials(cell=1, patterns=SHOWN.patterns))
    assert "nothing could be tried" in shown
    assert "To paste" not in shown


def test_functions_travel_with_the_notebook_as_their_globals():
    from dynamo_nb.capture.portable import pack, unpack

    namespace = {"__name__": "__main__", "scale": 2}
    exec("def f(x):\n    return x * scale", namespace)
    data, problems = pack({"f": namespace["f"], "g": namespace["f"]}, namespace)
    assert problems == {}
    there = {"__name__": "__main__"}
    values = unpack(data, there)
    assert values["f"] is values["g"]
    assert values["f"](3) == 6
    there["scale"] = 5
    assert values["f"](3) == 15


def test_what_cannot_travel_is_named():
    from dynamo_nb.capture.portable import pack, unpack

    data, problems = pack({"a": 1, "b": (i for i in [1])}, {})
    assert list(problems) == ["b"]
    assert problems["b"].startswith("generator")
    assert unpack(data, {}) == {"a": 1}


def test_compiled_modules_travel_and_are_compiled_anew():
    import torch

    from dynamo_nb.capture.compiler import is_compiled
    from dynamo_nb.capture.portable import pack, unpack

    inside = torch.nn.Linear(2, 2)
    inside.compile(backend="eager", dynamic=True)
    values = {
        "wrapped": torch.compile(torch.nn.Linear(2, 2), backend="eager"),
        "inside": inside,
        "function": torch.compile(torch.relu, backend="eager"),
    }
    data, problems = pack(values, {})
    assert problems == {}
    there = unpack(data, {})
    assert all(map(is_compiled, there.values()))
    for name, value in values.items():
        assert torch.equal(there[name](torch.ones(2)), value(torch.ones(2)))
    torch._dynamo.reset()
