"""Values behind a graph break, and resume functions, in the user's own words."""

from __future__ import annotations

import pytest

from dynamo_nb.findings.wording import function
from dynamo_nb.record.kept import with_kept_named
from dynamo_nb.record.naming import KEPT_VALUE
from dynamo_nb.record.types import CELL, Compile, GraphBreak, Guard, RecompileReason, StackFrame

SOURCE = "def f(x):\n    s = g(x, x.sum().item())\n    return x * s\n"
CALL = StackFrame(file=CELL, line=2, name="f", end_line=2, column=13, end_column=27)


def compiles(kept: int = 0, guards: tuple[int, ...] = (0,), frame: StackFrame = CALL):
    name = "torch_dynamo_resume_in_f_at_2"
    source = f"L['___stack{kept}']"
    reason = RecompileReason(entry="1/0", source=source, name=KEPT_VALUE, was="1.0", now="2.0")
    return [
        Compile(compile_id="0/0", name="f", graph_breaks=[GraphBreak(kind="item", frame=frame)]),
        Compile(compile_id="1/0", name=name, resume_of="f"),
        Compile(
            compile_id="1/1",
            name=name,
            resume_of="f",
            recompile_reasons=[reason],
            guards=[Guard(kind="EQUALS_MATCH", source=f"L['___stack{n}']") for n in guards],
        ),
    ]


def named(found: list[Compile]) -> str:
    return with_kept_named(found, SOURCE)[-1].recompile_reasons[0].name


def test_the_value_that_a_break_gave_is_named_by_its_code():
    assert named(compiles()) == "x.sum().item()"


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (compiles(kept=0, guards=(0, 1)), "a value of line 2"),  # an operand below it
        (compiles(kept=1, guards=(0, 1)), "x.sum().item()"),
        (compiles(frame=StackFrame(file="model.py", line=2, name="f")), "a value of line 2"),
        (compiles()[1:], KEPT_VALUE),  # the break was in an earlier cell
    ],
)
def test_where_that_is_not_known_it_is_named_by_its_line(found, name):
    assert named(found) == name


def test_a_resume_function_has_the_name_of_what_it_resumes():
    assert function("torch_dynamo_resume_in_forward_at_5") == "forward"
    assert function("M.torch_dynamo_resume_in_forward_at_5") == "M.forward"


def test_in_a_report(shell):
    shell.run("import torch")
    ran = shell.run(
        "%%dynamo --backend eager\n"
        "class M(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        s = x.sum().item()\n"
        "        return x * s if s > 0 else x\n"
        "m = M()\n"
        "for n in (1, 2, -1):\n"
        "    m(n * torch.ones(3))\n"
    )
    assert "`M.forward` was compiled again because `x.sum().item()` changed" in " ".join(
        ran.report.split()
    )
    assert "torch_dynamo_resume" not in ran.report
    assert "value kept across" not in ran.report
