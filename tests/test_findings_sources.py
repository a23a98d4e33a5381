"""Findings that also read the source: loops, mutations, hooks, the line of a `def`."""

from __future__ import annotations

import ast
from textwrap import dedent

import msgspec
import pytest

from dynamo_nb.findings import find
from dynamo_nb.findings.errors import parse_reasons
from dynamo_nb.findings.sources import def_line, enclosing_loop, mutation_line
from dynamo_nb.findings.wording import is_standard_library, names, stable
from dynamo_nb.record.types import (
    CELL,
    Call,
    CellRecord,
    Compile,
    Finding,
    Frame,
    Graph,
    Node,
    RecompileReason,
    StackFrame,
)
from dynamo_nb.views.model import Report


def cell(text: str) -> str:
    return "%%dynamo\n" + dedent(text).lstrip("\n")


def at(line: int, file: str = CELL, column: int = 0) -> StackFrame:
    return StackFrame(file=file, line=line, column=column)


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


# ------------------------------------------------------------------ the source


def test_a_decorated_function_begins_at_its_def() -> None:
    record = CellRecord(source=cell("@wrap\n@wrap\ndef f(x):\n    return x\n"))
    assert def_line(record, Compile(compile_id="0/0", file=CELL, first_line=2)) == 4
    assert def_line(record, Frame(name="f", file=CELL, first_line=4, outcome="skipped")) == 4
    assert def_line(record, Compile(compile_id="0/0", file="model.py", first_line=2)) is None


def test_a_cell_that_is_no_python_still_has_lines() -> None:
    record = CellRecord(source="%%dynamo\n!ls\ndef (")
    assert def_line(record, Compile(compile_id="0/0", file=CELL, first_line=3)) == 3


@pytest.mark.parametrize(
    ("statement", "expression", "changes"),
    [
        ("self.n += 1", "self.n", True),
        ("self.n = self.n + 1", "self.n", True),
        ("seen.append(x)", "seen", True),
        ("seen[0] = x", "seen", True),
        ("del seen[0]", "seen", True),
        ("y = self.n + 1", "self.n", False),
        ("y = seen.count(x)", "seen", False),
        ("self.other = 1", "self.n", False),
    ],
)
def test_what_a_statement_changes(statement: str, expression: str, changes: bool) -> None:
    (function,) = ast.parse(f"def f(self, x, seen):\n    {statement}\n").body
    assert isinstance(function, ast.FunctionDef)
    assert mutation_line(function, expression) == (2 if changes else None)


def test_a_loop_around_a_def_is_not_the_defs_own() -> None:
    tree = ast.parse("for i in r:\n    def f(x):\n        return x\n    f(i)\n")
    assert enclosing_loop(tree, 3) is None
    loop = enclosing_loop(tree, 4)
    assert loop is not None
    assert loop.lineno == 1


# ------------------------------------------------------------------ rules


def counter(body: str, *, init: str = "self.n = 0") -> CellRecord:
    source = cell(f"""
        class Net:
            def __init__(self):
                {init}

            def forward(self, x):
                {body}
                return x * self.n
    """)
    reason = RecompileReason(
        entry="0/0", source="L['self'].n", name="self.n", was="0", now="1", frame=at(8), call_line=9
    )
    again = Compile(
        compile_id="0/1", name="Net.forward", file=CELL, first_line=6, recompile_reasons=[reason]
    )
    call = Call(line=9, name="Net.forward", compiles=["0/0", "0/1"], hits={"0/1": 3})
    return CellRecord(source=source, compiles=[Compile(compile_id="0/0"), again], calls=[call])


def test_a_function_that_changes_what_it_is_guarded_on() -> None:
    findings = find(counter("self.n += 1"))
    assert codes(findings) == ["self-invalidating-guard", "recompile"]
    assert (findings[0].line, findings[0].lines) == (7, [7, 8, 9])


def test_an_attribute_that_init_alone_sets_differs_between_objects() -> None:
    (found,) = find(counter("x = x + 1"))
    assert "differs between the objects" in found.message
    assert "5 calls" in found.message
    assert "isolate_recompiles" in found.advice


def test_an_attribute_that_the_cell_sets_does_not_differ_between_objects() -> None:
    record = counter("x = x + 1")
    source = record.source + "\nnet.n = 1\n"
    (found,) = find(msgspec.structs.replace(record, source=source))
    assert "changed (0 -> 1)" in found.message


def unrolled(times: int, *, modules: bool = False) -> CellRecord:
    source = cell("""
        def roll(x):
            for t in range(99):
                x = x + x[t]
            return x
    """)
    nodes = [
        Node(
            name=f"{target}_{n}",
            op="call_function",
            target=target,
            frames=[at(4, column=column)],
            module_stack=[[f"layers.{n}", "Layer"]] if modules else [],
        )
        for n in range(times)
        for column, target in enumerate(("getitem", "add"))
    ]
    graph = Graph(name="dynamo", stage="dynamo", nodes=nodes)
    return CellRecord(source=source, compiles=[Compile(compile_id="0/0", graphs=[graph])])


def test_a_loop_whose_body_is_there_many_times_is_unrolled() -> None:
    (found,) = find(unrolled(64))
    assert (found.code, found.line) == ("unrolled-loop", 3)
    assert "64 times, as 128 nodes" in found.message


def test_a_short_loop_and_a_loop_over_layers_are_no_finding() -> None:
    assert find(unrolled(4)) == []
    assert find(unrolled(64, modules=True)) == []


def hooked(module: str, **call: object) -> CellRecord:
    source = cell(f"""
        compiled = torch.compile(net)
        compiled(x)
        {module}.register_forward_hook(hook)
        compiled(x)
    """)
    entry = Compile(compile_id="0/0", file="model.py", call_line=3)
    second = Call(line=5, **{"hits": {"0/0": 1}, **call})  # type: ignore[arg-type]
    return CellRecord(source=source, compiles=[entry], calls=[second])


def test_a_hook_registered_after_the_compile_never_runs() -> None:
    (found,) = find(hooked("net.layers[0]"))
    assert (found.code, found.line, found.lines) == ("unguarded-hook", 4, [4, 5])


def test_a_hook_that_led_to_a_compile_or_is_on_another_module_is_no_finding() -> None:
    assert find(hooked("net.layers[0]", compiles=["0/1"])) == []
    assert find(hooked("other.layers[0]")) == []


def test_a_hook_on_the_model_itself_runs_around_its_compiled_forward() -> None:
    assert find(hooked("net")) == []


def test_a_call_that_fits_no_entry_of_earlier_cells_ran_eagerly() -> None:
    (found,) = find(CellRecord(calls=[Call(line=2, name="Net.forward", eager=3)]))
    assert (found.code, found.line, found.count) == ("not-compiled", 2, 3)
    assert find(CellRecord(calls=[Call(line=2, name="f", hits={"0/0": 3})])) == []


# ------------------------------------------------------------------ wording


def test_torchs_message_has_the_first_break_first() -> None:
    message = (
        "Failed to trace\n  Explanation: no print\n  Hint: a\n  Hint: b\n\n"
        "  Developer debug context: c\n\n"
        "*** While handling this graph break, another graph break occurred: ***\n\n"
        "graph break in loop\n  Explanation: a loop"
    )
    first, last = parse_reasons(message)
    assert (first.kind, first.explanation, first.hints) == (
        "Failed to trace",
        "no print",
        ["a", "b"],
    )
    assert (last.kind, last.explanation, last.hints) == ("graph break in loop", "a loop", [])


def test_a_message_without_parts_is_its_kind() -> None:
    (reason,) = parse_reasons("something else")
    assert (reason.kind, reason.explanation, reason.hints) == ("something else", "", [])


def test_addresses_and_install_paths_do_not_reach_the_reader() -> None:
    text = "function `<function f at 0x7f3d4ad30e00>` in `/a/site-packages/torch/x.py`\n twice"
    assert stable(text) == "function `<function f>` in `torch/x.py` twice"


@pytest.mark.parametrize(
    ("file", "standard"),
    [
        ("tokenize.py", True),
        ("logging/__init__.py", True),
        ("<frozen os>", True),
        ("torch/nn/modules/linear.py", False),
        ("<cell>", False),
        ("/home/me/model.py", False),
    ],
)
def test_files_of_the_standard_library(file: str, standard: bool) -> None:
    assert is_standard_library(file) == standard


def test_names_in_a_sentence() -> None:
    assert names(["a"]) == "`a`"
    assert names(["a", "b", "c"]) == "`a`, `b` and `c`"


# ------------------------------------------------------------------ which line


def changed(source: str, name: str, line: int, *values: str) -> CellRecord:
    """Return a record in which a value changed that is noted at this line."""
    reason = RecompileReason(
        entry="0/0",
        source=f"L[{name!r}]",
        name=name,
        kind="CONSTANT_MATCH",
        was=values[0],
        now=values[1],
        call_line=20,
        frame=StackFrame(file=CELL, line=line, name="f", column=4, end_line=line, end_column=9),
    )
    compiles = [
        Compile(compile_id="0/0", name="f", file=CELL, first_line=2),
        Compile(compile_id="0/1", name="f", file=CELL, first_line=2, recompile_reasons=[reason]),
    ]
    return CellRecord(source=cell(source), compiles=compiles)


QUESTION = """
    def f(x, s):
        if s is None:
            return x
        return x.cos() if s else x
"""


@pytest.mark.parametrize(("values", "line"), [(("True", "False"), 5), (("None", "True"), 3)])
def test_a_value_is_told_at_the_line_that_reads_it(values: tuple[str, ...], line: int) -> None:
    (found,) = find(changed(QUESTION, "s", 3, *values))
    assert (found.line, found.frame and found.frame.line) == (line, line)


def test_a_value_that_is_read_on_the_line_of_the_question_stays_there() -> None:
    source = "def f(x, s):\n    y = x if s is None or s > 2 else 2 * x\n    return y + s\n"
    (found,) = find(changed(source, "s", 3, "1", "2"))
    assert found.line == 3


def test_the_quoted_line_is_the_one_that_a_finding_names() -> None:
    source = "def f(x, k):\n    cache[k] = x\n    return x + len(cache)\n"
    record = changed(source, "len(cache)", 4, "0", "1")
    found = next(f for f in find(record) if f.code == "self-invalidating-guard")
    quoted = Report(record).place_of(found)
    assert (found.line, quoted and quoted.line) == (3, 3)
