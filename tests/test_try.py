"""`%dynamo try` in a real IPython shell: it finds the mend that works, and drops the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dynamo_nb.runner.trying import try_mends

CASES = Path(__file__).parent / "cases"

SWITCH = "torch._dynamo.config.{} = True".format
DYNAMIC = "%%dynamo --dynamic true"
REORDER = "torch._dynamo.config.reorderable_logging_functions.add(warnings.warn)"


def tried(shell):
    """Run the trials for the shell's last report."""
    return try_mends(shell.record, shell.ip.user_ns, shell.ip.transform_cell)


def user_names(shell):
    return {name for name in shell.ip.user_ns if not name.startswith("_")}


def pastes(trials):
    return [trial.paste for trial in trials]


@pytest.mark.parametrize(
    ("case", "winner", "dropped", "pattern"),
    [
        (
            "counter_attribute",
            SWITCH("allow_unspec_int_on_nn_module"),
            DYNAMIC,
            "Count in a tensor",
        ),
        ("float_argument", DYNAMIC, None, None),
        ("growing_list", None, DYNAMIC, "Return what is new"),
        ("boolean_mask", SWITCH("capture_dynamic_output_shape_ops"), None, "Keep the shape"),
        ("item_value", SWITCH("capture_scalar_outputs"), None, "Keep the number"),
        ("warning_call", REORDER, "%%dynamo --fullgraph", "Say it outside"),
        (
            "size_change",
            "torch._dynamo.mark_dynamic(x, 0)",
            "torch._dynamo.mark_static(x, 0)",
            None,
        ),
    ],
)
def test_the_mend_that_works_is_found_and_the_others_are_dropped(
    shell, case, winner, dropped, pattern
):
    shell.run((CASES / f"{case}.cell").read_text())
    found = tried(shell)
    winners = pastes(found.winners)
    assert winners[:1] == ([winner] if winner else [])
    if dropped:
        assert dropped in pastes(found.trials)
        assert dropped not in winners
    titles = [item.title for item in found.patterns]
    assert any(title.startswith(pattern) for title in titles) if pattern else not titles
    costs = ("eager run", "graph break", "recompile")
    for trial in found.winners:
        pairs = [(trial.counts[name], found.baseline.counts[name]) for name in costs]
        assert all(now <= was for now, was in pairs)
        assert any(now < was for now, was in pairs)


def test_what_is_shown(shell):
    shell.run((CASES / "data_dependent_branch.cell").read_text())
    record, names = shell.record, user_names(shell)
    ran = shell.run("%dynamo try")
    assert ran.stdout == ""  # the cell prints: the trials' output is swallowed
    assert "To paste" in ran.report
    assert "torch._dynamo.config.reorderable_logging_functions.add(print)" in ran.report
    assert "line 6; graph breaks 2 -> 1" in ran.report
    apart = ran.report.partition("Fewer costs, but the cell then prints something else")[2]
    price = "ignore_logging_functions.add(print): graph breaks 2 -> 1, its output is not the same"
    assert price in " ".join(apart.partition("Tried, and dropped")[0].split())
    assert re.search(r"--fullgraph: fails \(Unsupported", ran.report)
    assert "With a change of code (not tried)" in ran.report
    assert "torch.where" in ran.report
    assert "torch.cond" in ran.displays[-1]["text/html"]
    assert shell.record is record  # trials are no reports
    assert user_names(shell) == names
    assert (
        "hit" in shell.run("%%dynamo --backend eager\ntoy(torch.ones(10), torch.ones(10))").report
    )


STATE = """
import torch
history = []
net = torch.nn.Linear(4, 4)
class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.by = 0
    def forward(self, x):
        self.by += 1
        return x * self.by + offset
offset = 1
scale = Scale()
"""


def test_the_notebook_is_left_alone(shell):
    """Values made by other cells are copied; what a trial does to them is not seen."""
    import torch

    shell.run(STATE)
    shell.run(
        "def note(x): pass\n"
        "torch._dynamo.config.reorderable_logging_functions.add(note)"  # travels, too
    )
    shell.run(
        "%%dynamo --backend eager\n"
        "offset = 2\n"
        "for _ in range(4):\n"
        "    scale(net(torch.ones(2, 4)))\n"
        "    history.append(scale.by)\n"
    )
    before = (shell.ip.user_ns["scale"].by, list(shell.ip.user_ns["history"]))
    weights = shell.ip.user_ns["net"].weight.clone()
    found = tried(shell)
    assert found.baseline.error == ""
    assert SWITCH("allow_unspec_int_on_nn_module") in pastes(found.winners)
    assert (shell.ip.user_ns["scale"].by, list(shell.ip.user_ns["history"])) == before
    assert torch.equal(shell.ip.user_ns["net"].weight, weights)
    assert not torch._dynamo.config.allow_unspec_int_on_nn_module
    torch._dynamo.config.reorderable_logging_functions.clear()
    assert any("`net`" in note and "`scale`" in note for note in found.notes)


def test_what_was_compiled_in_another_cell_is_compiled_in_the_trials(shell):
    shell.run(
        "import torch\n"
        "def f(x, n):\n    return x * n\n"
        'g = torch.compile(f, backend="eager")\n'
        'net = torch.compile(torch.nn.Linear(3, 3), backend="eager")'
    )
    shell.run("%%dynamo\nfor n in (1.5, 2.5, 3.5):\n    net(g(torch.ones(3), n))")
    assert shell.record.mode == "as-is"
    found = tried(shell)
    assert found.baseline.counts["recompile"] == 1
    assert found.baseline.counts["graph"] == 3
    assert pastes(found.winners) == ["torch.compile(..., dynamic=True)"]


def test_what_cannot_be_copied_is_said(shell):
    shell.run("import torch, threading\nlock = threading.Lock()")
    shell.run(
        "%%dynamo --backend eager\n"
        "def f(x):\n    print('f')\n    return x + 1\n"
        "with lock:\n    f(torch.ones(2))"
    )
    found = tried(shell)
    assert any(note.startswith("`lock` can't be copied") for note in found.notes)
    assert "NameError" in found.baseline.error
    assert found.winners == []


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("", "there is no report yet"),
        ("%%dynamo --backend eager\nimport torch\ntorch.ones(2) + 1", "has no findings"),
    ],
)
def test_nothing_to_try(shell, cell, says):
    shell.run(cell)
    ran = shell.run("%dynamo try")
    assert says in ran.stdout + ran.stderr
    assert not ran.displays


def test_a_script_cannot_be_run_again(shell):
    from msgspec.structs import replace

    shell.run((CASES / "item_value.cell").read_text())
    with pytest.raises(ValueError, match="of a script"):
        try_mends(replace(shell.record, source="import torch"), {}, str)


def test_a_process_that_dies_is_told(shell):
    from msgspec.structs import replace

    shell.run((CASES / "item_value.cell").read_text())
    deadly = replace(shell.record, source="%%dynamo\nimport os\nos._exit(3)")
    found = try_mends(deadly, {}, str)
    assert found.baseline.error == "the process of the trials ended (code 3)"
    assert {trial.verdict for trial in found.trials} <= {"same", "failed"}
    assert any("can't begin from" in note for note in found.notes)


# --- the cell's own settings, and the time limit -------------------------------------------------

LIMITED = """\
%%dynamo --backend eager --config recompile_limit=2 --config automatic_dynamic_shapes=False
import time
import torch
def f(x):
    return x + 1
if torch._dynamo.config.recompile_limit == 8:
    time.sleep(SECONDS)
for n in range(2, 7):
    f(torch.ones(n))
"""
LIMIT = "torch._dynamo.config.recompile_limit = 8"


def test_a_mend_may_change_what_the_cells_config_flag_sets(shell):
    shell.run(LIMITED.replace("SECONDS", "0"))
    found = tried(shell)
    assert (found.baseline.counts["recompile"], found.baseline.counts["eager run"]) == (1, 3)
    (trial,) = (trial for trial in found.trials if trial.paste == LIMIT)
    assert (trial.counts["recompile"], trial.counts["eager run"]) == (4, 0)
    assert not any("does not do what it did" in note for note in found.notes)


def test_a_run_that_takes_too_long_is_cut_off_and_the_others_go_on(shell):
    shell.run(LIMITED.replace("SECONDS", "60"))
    ran = shell.run("%dynamo try --timeout 6")
    assert f"{LIMIT}: cut off after 6 s" in ran.report
    said = " ".join(ran.report.split())
    assert re.search("Together, `.+` and `.+`: eager runs 3 -> 0, recompiles 1 -> 0", said)
    assert "cut off after 6 s" in ran.displays[-1]["text/html"]


def test_a_cell_that_takes_too_long_itself_is_told(shell):
    shell.run(LIMITED.replace("== 8", "== 2").replace("SECONDS", "3"))
    ran = shell.run("%dynamo try --timeout 1")
    assert "The cell as it is was cut off after 1 s: give more with --timeout SECONDS" in ran.report


@pytest.mark.parametrize("words", ["--timeout soon", "--timeout -1", "--timeout", "3"])
def test_what_try_does_not_understand(shell, words):
    shell.run((CASES / "item_value.cell").read_text())
    ran = shell.run(f"%dynamo try {words}")
    assert type(ran.error).__name__ == "UsageError"
    assert "%dynamo try [--timeout SECONDS]" in str(ran.error)


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        ("open(path, 'w').close()", "writes a file"),
        ("torch.save({}, path)", "writes a file"),
        ("os.remove(path)", "deletes a file"),
        ("os.makedirs(path + '.d', exist_ok=True)", "makes a folder"),
        ("subprocess.run(['true'])", "starts a process"),
    ],
)
def test_what_can_not_be_taken_back_is_not_done_again(shell, tmp_path, effect, told):
    kept = tmp_path / "kept"
    shell.run(f"import os, subprocess, torch\npath = {str(kept)!r}\nopen(path, 'w').close()")
    shell.run(
        "%%dynamo --backend eager\n"
        "def f(x):\n"
        "    y = x + 1\n"
        f"    {effect}\n"
        "    return y * 2\n"
        "f(torch.ones(2))"
    )
    for made in tmp_path.iterdir():
        made.rmdir() if made.is_dir() else made.unlink()
    kept.write_text("precious")
    text = shell.run("%dynamo try").report
    assert f"note: The cell {told}: that is not done a second time." in text
    assert [file.name for file in tmp_path.iterdir()] == ["kept"]
    assert kept.read_text() == "precious"


def test_what_fullgraph_refuses_compiles_in_parts(shell):
    shell.run(
        "%%dynamo --backend eager --fullgraph\n"
        "import torch\n"
        "def f(x):\n    return x + 1 if x.sum() > 0 else x\n"
        "f(torch.ones(2))"
    )
    found = tried(shell)
    assert pastes(found.winners) == ["%%dynamo --backend eager"]
    assert "the error is gone" in str(found)
    assert "torch.where" in str(found)
