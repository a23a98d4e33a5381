"""Findings and causes on hand-made records: no torch, no capture."""

from __future__ import annotations

import pytest

from dynamo_nb.findings import CODES, RULES, find
from dynamo_nb.record.break_places import break_places
from dynamo_nb.record.causes import recompile_causes
from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import (
    CELL,
    Bypass,
    CacheState,
    Call,
    CellRecord,
    Compile,
    CompiledObject,
    CompileError,
    Finding,
    Frame,
    Graph,
    GraphBreak,
    RecompileReason,
    StackFrame,
    Symbol,
)


def at(line: int, name: str = "f", file: str = CELL) -> StackFrame:
    return StackFrame(file=file, line=line, name=name)


def compiled(compile_id: str, **fields: object) -> Compile:
    defaults: dict[str, object] = {
        "name": "f",
        "file": CELL,
        "first_line": 4,
        "graphs": [Graph(name="dynamo", stage="dynamo")],
    }
    return Compile(compile_id=compile_id, **{**defaults, **fields})  # type: ignore[arg-type]


def record(*compiles: Compile, **fields: object) -> CellRecord:
    return CellRecord(compiles=list(compiles), **fields)  # type: ignore[arg-type]


def broke(*stack: StackFrame, kind: str = "Failed", **fields: object) -> GraphBreak:
    return GraphBreak(kind=kind, frame=stack[-1], user_stack=list(stack), **fields)  # type: ignore[arg-type]


def reason(entry: str, was: str, now: str, **fields: object) -> RecompileReason:
    defaults: dict[str, object] = {
        "source": "L['self'].counter",
        "name": "self.counter",
        "kind": "EQUALS_MATCH",
        "guard": f"L['self'].counter == {was}",
        "call_line": 12,
        "frame": at(6),
    }
    return RecompileReason(entry=entry, was=was, now=now, **{**defaults, **fields})  # type: ignore[arg-type]


def only(findings: list[Finding], code: str) -> Finding:
    (found,) = [finding for finding in findings if finding.code == code]
    return found


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_an_uneventful_record_has_no_findings() -> None:
    assert find(record(compiled("0/0"))) == []


def test_findings_bear_the_code_of_their_rule() -> None:
    assert set(RULES) == set(CODES)


# ------------------------------------------------------------------ graph breaks


def test_breaks_on_one_line_are_one_finding() -> None:
    compiles = [compiled(f"{n}/0", graph_breaks=[broke(at(6))]) for n in range(48)]
    found = only(find(record(*compiles)), "graph-break")
    assert (found.line, found.count, found.severity) == (6, 48, "warning")
    assert len(found.refs) == 48


def test_a_callee_that_breaks_again_in_its_own_frame_is_the_same_place() -> None:
    outer = compiled("0/0", graph_breaks=[broke(at(10, "outer"), at(5, "helper"))])
    inner = compiled("1/0", name="helper", graph_breaks=[broke(at(5, "helper"))])
    (place,) = break_places(record(outer, inner))
    assert (place.line, place.count) == (5, 1)
    assert only(find(record(outer, inner)), "graph-break").lines == [5, 10]


def test_a_break_in_a_library_is_shown_at_the_line_that_calls_it() -> None:
    library = at(300, "info", "logging/__init__.py")
    outer = compiled("0/0", graph_breaks=[broke(at(7), library)])
    own = compiled("1/0", name="info", file=library.file, graph_breaks=[broke(library)])
    found = only(find(record(outer, own)), "graph-break")
    assert (found.line, found.count, found.frame) == (7, 1, at(7))
    assert "logging/__init__.py:300" in found.message


def test_breaks_inside_pythons_library_are_one_finding_at_the_line_that_calls_it() -> None:
    context = "method: <Logger a (INFO)>.warning, args: [], kwargs: {}"
    kind = "logging.Logger method not supported for non-export cases"
    first = broke(at(7), kind=kind, context=context)
    inner = [
        compiled(
            f"{n}/0",
            name="Logger.warning",
            file="logging/__init__.py",
            user_stack=[at(7)],
            graph_breaks=[broke(at(100 * n, "warning", "logging/__init__.py"))],
        )
        for n in range(1, 6)
    ]
    found = only(find(record(compiled("0/0", graph_breaks=[first]), *inner)), "graph-break")
    assert (found.line, found.count, found.frame) == (7, 1, at(7))
    assert "logging/__init__.py:100, " in found.message
    assert "2 more" in found.message
    assert "ignore_logging_functions.add(logging.Logger.warning)" in found.advice
    assert "logs nothing" in found.advice


def test_what_dynamo_traces_in_place_of_c_code_is_neither_named_nor_advised() -> None:
    stack = [
        at(7),
        at(249, "iterencode", "json/encoder.py"),
        at(505, "instantiate", "torch/_dynamo/polyfills/__init__.py"),
    ]
    hints = ["Avoid calling `type.__new__` in your code."]
    entry = compiled("0/0", graph_breaks=[broke(*stack, hints=hints)])
    found = only(find(record(entry)), "graph-break")
    assert (found.line, found.frame) == (7, at(7))
    assert "json/encoder.py:249" in found.message
    assert "polyfills" not in found.message
    assert "type.__new__" not in found.advice
    assert "out of the compiled function" in found.advice


def test_breaks_inside_a_package_stay_apart() -> None:
    compiles = [
        compiled("0/0", graph_breaks=[broke(at(7), at(n, "forward", "package/model.py"))])
        for n in (3, 5)
    ]
    assert codes(find(record(*compiles))) == ["graph-break", "graph-break"]


def test_a_call_inside_pythons_library_that_ran_eagerly_is_no_news() -> None:
    state = CacheState(name="Logger.warning", file="logging/__init__.py", first_line=1, entries=[])
    call = Call(line=3, name="Logger.warning", eager=2)
    assert find(record(calls=[call], cache=[state])) == []
    assert codes(find(record(calls=[call]))) == ["not-compiled"]


def test_a_break_that_no_cell_line_leads_to_has_no_line_but_its_call() -> None:
    library = at(300, "forward", "model.py")
    found = only(
        find(record(compiled("0/0", call_line=9, graph_breaks=[broke(library)]))), "graph-break"
    )
    assert (found.line, found.lines) == (None, [9])


def test_advice_is_torchs_hint_without_the_boilerplate() -> None:
    hints = ["Please report an issue to PyTorch.", "Set `torch._dynamo.config.x = True`."]
    found = only(
        find(record(compiled("0/0", graph_breaks=[broke(at(6), hints=hints)]))), "graph-break"
    )
    assert found.advice == "Set `torch._dynamo.config.x = True`."


def test_a_way_around_is_better_than_a_general_hint() -> None:
    hints = ["Please report an issue to PyTorch."]
    found = only(
        find(record(compiled("0/0", graph_breaks=[broke(at(6), hints=hints)]))), "graph-break"
    )
    assert "out of the compiled function" in found.advice


def test_a_break_that_torch_makes_on_purpose_is_information() -> None:
    kind = "Call to `torch._dynamo.graph_break()`"
    inside = at(79, "_use_grad", "torch/optim/optimizer.py")
    made = [
        compiled("0/0", graph_breaks=[broke(at(6), kind=kind)]),
        compiled("1/0", graph_breaks=[broke(inside, kind=kind)]),
    ]
    found = [f.severity for f in find(record(*made)) if f.code == "graph-break"]
    assert found == ["warning", "info"]


# ------------------------------------------------------------------ not compiled


LOOP = CompileError(type="Unsupported", kind="graph break in loop", message="graph break in loop")


def test_a_function_given_up_is_not_compiled_and_its_cause_is_named() -> None:
    given_up = compiled(
        "0/0",
        name="settle",
        first_line=5,
        status="skipped",
        error=LOOP,
        call_line=14,
        graphs=[],
        graph_breaks=[broke(at(9, "settle"), kind="Data-dependent branching")],
    )
    seen = Frame(name="settle", file=CELL, first_line=5, outcome="skipped", reason="suppressed")
    findings = find(record(given_up, frames=[seen]))
    found = only(findings, "not-compiled")
    assert (found.line, found.lines) == (5, [5, 9, 14])
    assert "settle" in found.message
    assert codes(findings) == ["not-compiled"]


@pytest.mark.parametrize(
    ("name", "file", "why"),
    [
        ("make", CELL, "No ops traced for the FX graph."),
        ("make", CELL, "no tensor-related objects found in frame"),
        ("inner", "torch/_compile.py", "frame is in the Dynamo skipfiles list"),
        ("roll", "/opt/python3.11/site-packages/numpy/numeric.py", "anything"),
        ("__init__", CELL, "anything"),
    ],
)
def test_frames_with_nothing_to_compile_are_no_finding(name: str, file: str, why: str) -> None:
    frame = Frame(name=name, file=file, first_line=4, outcome="skipped", reason=why)
    skipped = compiled("0/0", name=name, file=file, status="skipped", reason=why, graphs=[])
    assert find(record(frames=[frame])) == []
    if file != CELL or "anything" not in why:
        assert find(record(skipped, frames=[frame])) == []


def test_modules_outside_every_graph_are_named() -> None:
    call = Call(line=11, name="net", eager_modules=["0 (Linear)", "2 (Linear)"])
    found = only(find(record(calls=[call])), "not-compiled")
    assert (found.line, found.count) == (11, 2)
    assert "0 (Linear), 2 (Linear)" in found.message


def test_a_call_around_a_compiled_object_is_never_entered() -> None:
    writer = CompiledObject(
        name="writer", line=16, bypasses=[Bypass(line=17, callee="writer.generate")]
    )
    found = only(find(record(compiled_objects=[writer])), "never-entered")
    assert (found.line, found.lines) == (17, [16, 17])
    assert "writer.generate" in found.message


def test_a_compiled_object_that_was_entered_or_not_used_is_no_finding() -> None:
    bypasses = [Bypass(line=17, callee="writer.generate")]
    objects = [
        CompiledObject(name="a", entered=1, bypasses=bypasses),
        CompiledObject(name="b"),
    ]
    assert find(record(compiled_objects=objects)) == []


# ------------------------------------------------------------------ recompiles


def counting(times: int) -> list[Compile]:
    """Compiles 0/0 to 0/times; each repeats the reasons against all earlier entries."""
    return [
        compiled(
            f"0/{n}",
            recompile_reasons=[reason(f"0/{k}", str(k), str(n)) for k in reversed(range(n))],
        )
        for n in range(times + 1)
    ]


def test_recompiles_for_one_attribute_are_one_finding_with_its_values_in_order() -> None:
    found = only(find(record(*counting(7))), "recompile")
    assert (found.line, found.lines, found.count) == (6, [6, 12], 7)
    assert "self.counter" in found.message
    assert "0 -> 1 -> 2 -> 3 -> … -> 7" in found.message


def test_the_entry_with_the_fewest_failing_guards_is_the_one_that_matters() -> None:
    other = {"source": "L['k']", "name": "k"}
    last = compiled(
        "0/2",
        recompile_reasons=[
            reason("0/1", "1", "2"),
            reason("0/1", "8", "9", **other),
            reason("0/0", "8", "9", **other),
        ],
    )
    (cause,) = recompile_causes(record(compiled("0/0"), last))
    assert (cause.name, cause.first.entry) == ("k", "0/0")


def test_the_call_decides_a_tensors_properties() -> None:
    changed = reason(
        "0/0",
        "float32",
        "bfloat16",
        source="L['x']",
        kind="TENSOR_MATCH",
        name="x.dtype",
    )
    found = only(
        find(record(compiled("0/0"), compiled("0/1", recompile_reasons=[changed]))), "recompile"
    )
    assert (found.line, found.lines) == (12, [12])
    assert "`x.dtype` changed (float32 -> bfloat16)" in found.message


def test_what_a_call_passes_and_has_a_symbol_now_became_dynamic() -> None:
    changed = reason("0/0", "1.5", "2.5", source="L['factor']")
    new = compiled(
        "0/1",
        recompile_reasons=[changed],
        symbols=[Symbol(name="zf48", sources=["L['factor']"])],
    )
    (found,) = find(record(compiled("0/0"), new))
    assert (found.code, found.severity, found.line) == ("became-dynamic", "info", 6)


def test_a_size_that_has_a_symbol_now_became_dynamic() -> None:
    size: dict[str, object] = {"source": "L['x']", "name": "x.size()[0]"}
    changed = reason("0/0", "8", "9", kind="TENSOR_MATCH", **size)
    symbols = [Symbol(name="s77", sources=["L['x'].size()[0]"])]
    new = compiled("0/1", recompile_reasons=[changed], symbols=symbols)
    assert codes(find(record(compiled("0/0"), new))) == ["became-dynamic"]


def test_a_shape_guard_that_fails_is_a_recompile_although_there_is_a_symbol() -> None:
    size: dict[str, object] = {"source": "L['x'].size()[0]", "name": "x.size()[0]"}
    changed = reason("0/0", "8", "1", kind="SHAPE_ENV", **size)
    symbols = [Symbol(name="s77", sources=["L['x'].size()[0]"])]
    new = compiled("0/1", recompile_reasons=[changed], symbols=symbols)
    found = only(find(record(compiled("0/0", symbols=symbols), new)), "recompile")
    assert found.line == 12


def test_a_closure_that_changed_is_a_recompile_even_with_a_symbol() -> None:
    source = "L['fn'].__closure__[1].cell_contents"
    changed = reason("1/0", "1", "2", source=source, name="second (closure)")
    new = compiled(
        "1/1", recompile_reasons=[changed], symbols=[Symbol(name="s64", sources=[source])]
    )
    findings = find(record(compiled("1/0"), new))
    assert codes(findings) == ["recompile"]
    assert "`second (closure)` changed (1 -> 2); it became dynamic" in findings[0].message


def test_the_recompile_limit_is_no_recompile() -> None:
    limit = CompileError(type="Unsupported", kind="Dynamo recompile limit exceeded")
    refused = compiled(
        "0/8", status="failed", error=limit, graphs=[], recompile_reasons=[reason("0/7", "7", "8")]
    )
    findings = find(record(*counting(7), refused))
    assert codes(findings) == ["recompile-limit", "recompile"]
    assert only(findings, "recompile").count == 7
    assert only(findings, "recompile-limit").lines == [4, 6]


# ------------------------------------------------------------------ errors


def test_an_operator_without_a_fake_impl_is_named() -> None:
    error = CompileError(
        type="TorchRuntimeError",
        message="There was no fake impl registered for <CustomOpDef(casebook::twice)>. This is",
        frame=at(10, "use"),
        user_stack=[at(10, "use")],
    )
    failed = compiled("0/0", name="use", status="failed", error=error, graphs=[], call_line=12)
    (found,) = find(record(failed))
    assert (found.code, found.severity, found.line) == ("compile-error", "error", 10)
    assert "casebook::twice" in found.message
    assert "register_fake" in found.advice


def test_a_marked_dimension_with_one_size_is_specialized() -> None:
    error = CompileError(
        type="ConstraintViolationError",
        message="- You marked L['x'].size()[1] as dynamic but your code specialized it to be a "
        "constant (16). If you're using",
        user_stack=[at(5, "project")],
    )
    (found,) = find(record(compiled("0/0", status="failed", error=error, call_line=9)))
    assert (found.code, found.line) == ("specialized-dim", 5)
    assert "16" in found.message


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("G['__import___main__'].seen", "seen"),
        ("G['__import_torch_dot_nn_dot_functional'].x", "torch.nn.functional.x"),
    ],
)
def test_globals_of_other_modules_are_named_as_in_code(source: str, name: str) -> None:
    assert readable(source) == name
