"""The extension in a real IPython shell: a `%%dynamo` cell is the plain cell, with a report."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests import snapshot

DEFS = """\
import torch
def toy(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b
"""


def state(ip):
    return (
        list(ip.input_transformers_cleanup),
        list(ip.ast_transformers),
        {name: list(callbacks) for name, callbacks in ip.events.callbacks.items()},
        {kind: sorted(magics) for kind, magics in ip.magics_manager.magics.items()},
        hasattr(ip, "_dynamo_nb_extension"),
    )


# --- loading -------------------------------------------------------------------------------------


def test_loading_imports_no_torch_and_unloading_restores_everything(plain_shell):
    before = state(plain_shell.ip)
    plain_shell.run("%load_ext dynamo_nb")
    assert state(plain_shell.ip) != before
    plain_shell.run("%load_ext dynamo_nb")  # IPython says that it is loaded
    plain_shell.run("%reload_ext dynamo_nb")
    loaded = state(plain_shell.ip)
    plain_shell.run("%reload_ext dynamo_nb")
    assert state(plain_shell.ip)[3:] == loaded[3:]
    assert [len(part) for part in state(plain_shell.ip)[:2]] == [len(part) for part in loaded[:2]]
    plain_shell.run("%unload_ext dynamo_nb")
    assert state(plain_shell.ip) == before


def test_loading_is_light():
    code = """
        import sys
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell()
        before = set(sys.modules)
        result = shell.run_cell("%load_ext dynamo_nb")
        assert result.success
        heavy = {"torch", "jinja2", "ipywidgets", "anywidget", "numpy", "graphviz"}
        print(sorted(heavy & (set(sys.modules) - before)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_magic_after_unloading_is_unknown(shell):
    shell.run("%unload_ext dynamo_nb")
    ran = shell.run("%%dynamo\n1 + 1")
    assert "not found" in ran.stderr
    assert not ran.displays


@pytest.mark.parametrize(
    "body",
    [
        "%unload_ext dynamo_nb\ntoy(torch.ones(3), torch.ones(3))",
        "toy(torch.ones(3), torch.ones(3))\n%unload_ext dynamo_nb\n1 / 0",
        "%reload_ext dynamo_nb\ntoy(torch.ones(3), torch.ones(3))",
    ],
)
def test_a_cell_that_unloads_the_extension_is_ended_and_reported(shell, body):
    import torch

    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))  # torch has all its hooks made
    shell.run("%unload_ext dynamo_nb")
    unloaded = state(shell.ip)
    shell.run("%load_ext dynamo_nb")
    before = snapshot.take()
    ran = shell.run(f"%%dynamo --backend eager\n{DEFS}{body}")
    assert "1 graph" in ran.report
    assert not snapshot.differences(before, snapshot.take())
    shell.run("%unload_ext dynamo_nb")
    assert state(shell.ip) == unloaded


def test_a_cell_may_delete_its_working_directory(shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    body = 'import os\nos.makedirs("g")\nos.chdir("g")\nos.rmdir("../g")\n'
    ran = shell.run(f"%%dynamo --backend eager\n{DEFS}{body}toy(torch.ones(3), torch.ones(3))")
    assert ran.result.success
    assert "1 graph" in ran.report
    warm = shell.run("%%dynamo --backend eager\ntoy(torch.ones(3), torch.ones(3))")
    assert "0/0 hit" in warm.report


# --- the cell is the plain cell ------------------------------------------------------------------


def test_calls_are_compiled_and_reported(shell):
    ran = shell.run("%%dynamo --backend eager\n" + DEFS + "toy(torch.ones(3), torch.ones(3))")
    assert ran.result.success
    assert ran.value.tolist() == [0.5, 0.5, 0.5]
    assert "Out[1]" in ran.stdout
    assert shell.record.mode == "calls"
    assert [b.frame.line for c in shell.record.compiles for b in c.graph_breaks] == [5]
    assert set(ran.displays[0]) == {"text/plain", "text/html"}
    assert "graph break" in ran.report


def test_source_and_number_of_the_record(shell):
    shell.run("1")
    cell = "%%dynamo --backend eager\n" + DEFS
    shell.run(cell)
    assert shell.record.source == cell
    assert shell.record.cell == 2


def test_last_value_is_the_cells_own(shell):
    shell.run("%%dynamo --backend eager\nimport torch\ndef f(x): return x + 1\nf(torch.ones(2))")
    assert shell.ip.user_ns["_"].tolist() == [2, 2]
    assert shell.ip.user_ns["Out"][1].tolist() == [2, 2]


def test_semicolon_hides_the_value(shell):
    ran = shell.run("%%dynamo --backend eager\nimport torch\ndef f(x): return x\nf(torch.ones(2));")
    assert "Out" not in ran.stdout


@pytest.mark.parametrize(
    "cell",
    [
        "def f(x): return x + 1\ny = f(torch.ones(2))\ny",
        "x = torch.ones(2)\ny = x.sin()\n[v for v in y]",
        "net = torch.nn.Linear(2, 2)\ny = net(torch.ones(1, 2))",
        "for i in range(2):\n    y = torch.ones(2) * i\ny",
        "total = sum(torch.ones(1) for _ in range(3))",
    ],
)
def test_no_helper_name_shows_or_stays(shell, cell):
    shell.run("import torch")
    before = set(shell.ip.user_ns)
    looked = "\nseen = {n for n in list(globals()) if 'dynamo_nb' in n or 'cell' in n}"
    shell.run("%%dynamo --backend eager\n" + cell)
    extra = {n for n in set(shell.ip.user_ns) - before if not n.startswith(("_", "__"))}
    assert extra <= {"f", "x", "y", "net", "i", "total"}
    ran = shell.run("%%dynamo --backend eager --compile calls\n" + cell + looked)
    assert ran.result.success
    assert shell.ip.user_ns["seen"] == set()
    torchs_own = ("__compiled_fn", "__resume", "__import_", "__builtins_dict")
    hidden = {n for n in set(shell.ip.user_ns) - before if n.startswith("__")}
    assert all(name.startswith(torchs_own) for name in hidden)


def test_await_at_the_top_level(shell):
    cell = "import asyncio, torch\ndef f(x): return x + 1\nawait asyncio.sleep(0)\nf(torch.ones(2))"
    ran = shell.run("%%dynamo --backend eager\n" + cell)
    assert ran.value.tolist() == [2, 2]
    assert len(shell.record.compiles) == 1


def test_shell_commands_and_line_magics(shell):
    cell = """\
%%dynamo --backend eager
import torch
def f(x): return x + 1
files = !echo hello
%time y = f(torch.ones(2))
y
"""
    ran = shell.run(cell)
    assert ran.result.success, ran.error
    assert list(shell.ip.user_ns["files"]) == ["hello"]
    assert ran.value.tolist() == [2, 2]
    assert len(shell.record.compiles) == 1


def test_a_cell_magic_below_the_magic(shell):
    shell.run("import torch\ndef f(x): return x + 1")
    ran = shell.run("%%dynamo --backend eager\n%%time\ny = f(torch.ones(2))\nz = y + 1")
    assert ran.result.success, ran.error
    assert "Wall time" in ran.stdout
    assert shell.ip.user_ns["z"].tolist() == [3, 3]
    assert shell.record.mode == "calls"
    assert len(shell.record.compiles) == 1
    assert [call.line for call in shell.record.calls] == [3]


@pytest.mark.parametrize("magic", ["%%time", "%%capture", "\n%%time"])
def test_lines_below_another_cell_magic_are_the_editors(shell, magic):
    shell.run("import torch")
    body = "def f(x):\n    y = x + 1\n    torch._dynamo.graph_break()\n    return y\n"
    body += "f(torch.ones(2))"
    ran = shell.run(f"%%dynamo --backend eager\n{magic}\n{body}")
    assert ran.result.success, ran.error
    shift = magic.count("\n")
    breaks = [b.frame for c in shell.record.compiles for b in c.graph_breaks]
    assert [(frame.file, frame.line) for frame in breaks] == [("<cell>", 5 + shift)]
    assert shell.record.calls[0].line == 7 + shift
    assert len(ran.displays) == 1


def test_the_magic_below_another_cell_magic(shell):
    shell.run("import torch\ndef f(x): return x + 1")
    ran = shell.run("%%capture out\n%%dynamo --backend eager\nf(torch.ones(2))")
    assert ran.result.success
    assert len(shell.record.compiles) == 1
    ran = shell.run("%%time\n%%dynamo --backend eager\ny = f(torch.ones(2))")
    assert "first line" in str(ran.error)
    assert "y" not in shell.ip.user_ns


def test_the_magic_must_be_the_first_line(shell):
    ran = shell.run("# a comment\n%%dynamo\n1 + 1")
    assert not ran.result.success
    assert "first line" in str(ran.error)


def test_a_cell_with_only_the_magic_line(shell):
    ran = shell.run("%%dynamo")
    assert ran.result.success
    assert shell.record.compiles == []


def test_without_history(shell):
    ran = shell.run("%%dynamo --backend eager\n" + DEFS, store_history=False)
    assert ran.result.success
    assert ran.displays


def test_silent_cells_run_plainly(shell):
    ran = shell.run("%%dynamo --backend eager\nsilent = 3", silent=True)
    assert ran.result.success
    assert shell.ip.user_ns["silent"] == 3
    assert not ran.displays


def test_nested_cells_are_left_alone(shell):
    cell = """\
%%dynamo --backend eager
import torch
def f(x): return x + 1
get_ipython().run_cell("inner = f(torch.ones(1))")
get_ipython().run_cell("")
get_ipython().run_cell("%%dynamo\\nagain = 1", silent=True)
y = f(torch.ones(2))
"""
    ran = shell.run(cell)
    assert ran.result.success, ran.error
    assert len(ran.displays) == 1
    assert len(shell.record.compiles) == 1
    assert shell.ip.user_ns["again"] == 1
    assert shell.run("1").displays == []


def test_a_nested_magic_cell_is_watched_by_the_outer_one(shell):
    cell = '%%dynamo --backend eager\nget_ipython().run_cell("%%dynamo\\ninner = 5")\nouter = 6'
    ran = shell.run(cell)
    assert ran.result.success
    assert len(ran.displays) == 1
    assert (shell.ip.user_ns["inner"], shell.ip.user_ns["outer"]) == (5, 6)


def test_calling_the_magic_directly(shell):
    shell.run("import torch\ndef f(x): return x + 1")
    body = "y = f(torch.ones(2))"
    ran = shell.run(f"get_ipython().run_cell_magic('dynamo', '--backend eager', {body!r})")
    assert ran.result.success
    assert len(shell.record.compiles) == 1
    ran = shell.run("get_ipython().run_cell_magic('dynamo', '', '1 / 0')")
    assert not ran.result.success
    assert ran.stdout.count("ZeroDivisionError") >= 1


# --- failures ------------------------------------------------------------------------------------


def traceback_of(ran):
    """Return the cell's own parts of the traceback that was shown."""
    lines = ran.stdout.splitlines()
    return [line for line in lines if line.strip().startswith(("-->", "---->", "^", "Cell In"))]


@pytest.mark.parametrize(
    "body",
    [
        "def f(x):\n    return x.nope\nf(3)",
        "value = [1, 2]\n(value\n   .index(\n   7))",
        "print(undefined(1), 2)",
        "a = {'k': 1}; a['missing'](3)",
        "len(5, 6)",
        "x = 1\nfoo = 'a' + (x\n   ).bit_length()",
        "for i in range(3):\n    int('x' * i)",
        "[int(s) for s in ('1', 'b')]",
        "f'{int(1):d} {int(\"z\")}'",
    ],
)
def test_tracebacks_are_those_of_the_plain_cell(shell, body):
    plain = shell.run("\n" + "#\n" + body, store_history=False)
    ran = shell.run("%%dynamo --compile calls --backend eager\n#\n" + body, store_history=False)
    assert type(ran.error) is type(plain.error)
    assert str(ran.error) == str(plain.error)

    def places(error):
        frames = []
        tb = error.__traceback__
        while tb is not None:
            code = tb.tb_frame.f_code
            if "ipython-input" in code.co_filename:
                frames.append((code.co_name, list(code.co_positions())[tb.tb_lasti // 2]))
            tb = tb.tb_next
        return frames

    shift = 1  # IPython drops the leading empty line of the plain cell
    moved = [
        (name, (line + shift, end + shift, start, stop))
        for name, (line, end, start, stop) in places(plain.error)
    ]
    assert places(ran.error) == moved


def test_an_exception_stays_and_the_report_follows(shell):
    cell = "%%dynamo --backend eager\nimport torch\ndef f(x):\n    raise ValueError('no')\nf(1)"
    ran = shell.run(cell)
    assert isinstance(ran.error, ValueError)
    assert "ValueError" in ran.stdout
    assert (shell.record.error.type, shell.record.error.line) == ("ValueError", 4)
    assert len(ran.displays) == 1


def test_no_frame_of_ours_shows_in_a_traceback(shell):
    shell.run("import torch\ndef f(x): return torch.ones(2) @ x")
    for mode in ("calls", "cell"):
        ran = shell.run(f"%%dynamo --backend eager --compile {mode}\nf(torch.ones(3))")
        assert type(ran.error).__name__ == "TorchRuntimeError"
        assert "TorchRuntimeError" in ran.stdout
        assert "dynamo_nb" not in ran.stdout
        assert "Error retrieving source" not in ran.stdout
    assert "showtraceback" not in vars(shell.ip)


def test_a_syntax_error_is_the_usual_one(shell):
    ran = shell.run("%%dynamo\nx = = 1")
    assert isinstance(ran.error, SyntaxError)
    assert "SyntaxError" in ran.stdout
    assert shell.record.error.type == "SyntaxError"
    assert shell.record.error.line == 2
    assert shell.run("2 + 2").value == 4


@pytest.mark.parametrize("name", ["KeyboardInterrupt", "SystemExit"])
def test_interrupts_leave_everything_restored_and_report(shell, name):
    import torch

    before = torch._dynamo.config.recompile_limit
    cell = f"%%dynamo --config recompile_limit=3 --device meta\nraise {name}"
    ran = shell.run(cell)
    assert type(ran.error).__name__ == name
    assert len(ran.displays) == 1
    assert shell.record.error.type == name
    assert torch._dynamo.config.recompile_limit == before
    assert torch.ones(1).device.type == "cpu"


def test_a_report_that_fails_breaks_nothing(shell, monkeypatch):
    from dynamo_nb.record import build

    def fail(*_):
        raise RuntimeError("no report today")

    monkeypatch.setattr(build, "build_record", fail)
    ran = shell.run("%%dynamo\nx = 1")
    assert ran.result.success
    assert "no report today" in ran.report
    from dynamo_nb.session import current

    assert current().unbuilt is not None


def test_a_transformer_that_fails_leaves_the_cell_alone(shell, monkeypatch):
    from dynamo_nb.runner import mode

    def fail(*_):
        raise RuntimeError("cannot choose")

    monkeypatch.setattr(mode, "choose", fail)
    ran = shell.run("%%dynamo\nx = 1\nx")
    assert ran.value == 1
    assert any("cannot choose" in note.message for note in shell.record.notes)
    assert shell.run("3").value == 3


# --- usage errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--fullgrph", ["--fullgrph", "--fullgraph"]),
        ("--backend egaer", ["egaer", "eager", "inductor"]),
        ("--backend number", ["number", "int", "called"]),
        ("--mode fast", ["fast", "reduce-overhead"]),
        ("--dynamic maybe", ["maybe", "auto"]),
        ("--compile all", ["all", "as-is"]),
        ("--as-is --compile calls", ["contradict"]),
        ("--mode default --options a=1", ["--mode", "--options"]),
        ("--options no_such_thing=1", ["no_such_thing"]),
        ("--options nothing", ["NAME=VALUE"]),
        ("--config recompile_limt=2", ["recompile_limt", "recompile_limit"]),
        ("--config dynamo.recompile_limt=2", ["recompile_limit"]),
        ("--config inductor.triton.cudagraph=1", ["triton.cudagraphs"]),
        ("--config recompile_limit=many", ["recompile_limit", "int"]),
        ("--config inductor.post_grad_custom_post_pass=mypas", ["mypas", "mypass", "notebook"]),
        ("--options post_grad_custom_post_pass=mypas", ["mypas", "mypass", "notebook"]),
        ("--device gpu", ["gpu"]),
        ("--view pdf", ["pdf", "text"]),
        ("--name 'open", ["quotation"]),
        ("stray", ["stray"]),
        ("--backend", ["--backend"]),
    ],
)
def test_usage_errors_say_what_and_what_next(shell, line, words):
    import torch

    shell.run("number = 3\ndef mypass(graph): pass")
    limit = torch._dynamo.config.recompile_limit
    ran = shell.run(f"%%dynamo {line}\nran = True")
    assert not ran.result.success
    assert type(ran.error).__name__ == "UsageError"
    assert [word for word in words if word not in str(ran.error)] == []
    assert "ran" not in shell.ip.user_ns
    assert ran.displays == []
    assert "Traceback" not in ran.stdout
    assert torch._dynamo.config.recompile_limit == limit
    assert shell.run("%%dynamo\nran = True").result.success


# --- options -------------------------------------------------------------------------------------


def test_a_backend_of_the_notebook(shell):
    shell.run("import torch\nseen = []\ndef mine(gm, inputs):\n    seen.append(gm)\n    return gm")
    shell.run("%%dynamo --backend mine\ndef f(x): return x + 1\nf(torch.ones(2))")
    assert len(shell.ip.user_ns["seen"]) == 1


def test_fullgraph_fails_at_the_break(shell):
    cell = "%%dynamo --backend eager --fullgraph\n" + DEFS + "toy(torch.ones(3), torch.ones(3))"
    ran = shell.run(cell)
    assert type(ran.error).__name__ == "Unsupported"
    assert shell.record.error is not None


def test_dynamic(shell):
    shell.run("import torch\ndef f(x): return x + 1\nx = torch.ones(4)")
    shell.run("%%dynamo --backend eager --dynamic true\nf(x)")
    assert shell.record.compiles[0].symbols
    assert shell.record.options["dynamic"] is True


def test_config_for_this_cell_alone(shell):
    import torch

    shell.run("import torch\nseen = []")
    before = torch._dynamo.config.recompile_limit, torch._inductor.config.triton.cudagraphs
    cell = """\
%%dynamo --config recompile_limit=2 --config inductor.triton.cudagraphs=true
seen.append((torch._dynamo.config.recompile_limit, torch._inductor.config.triton.cudagraphs))
"""
    shell.run(cell)
    assert shell.ip.user_ns["seen"] == [(2, True)]
    now = torch._dynamo.config.recompile_limit, torch._inductor.config.triton.cudagraphs
    assert now == before


@pytest.mark.parametrize(
    "line",
    [
        "--config inductor.post_grad_custom_post_pass=mypass",
        "--options post_grad_custom_post_pass=mypass",
    ],
)
def test_a_setting_that_holds_a_function_takes_a_name_of_the_notebook(shell, line):
    import torch

    shell.run("import torch\nseen = []\ndef mypass(graph):\n    seen.append(len(graph.nodes))")
    ran = shell.run(f"%%dynamo {line}\ndef f(x): return x + 1\nf(torch.ones(2))")
    assert ran.result.success
    assert shell.ip.user_ns["seen"] == [3]
    assert torch._inductor.config.post_grad_custom_post_pass is None
    assert "mypass" in str(shell.record.options)


def test_a_setting_that_may_be_text_stays_text(shell):
    shell.run("import torch, torch._dynamo\npath = 3\nseen = []")
    shell.run(
        "%%dynamo --config log_file_name=path\nseen.append(torch._dynamo.config.log_file_name)"
    )
    assert shell.ip.user_ns["seen"] == ["path"]


def test_config_and_device_in_an_awaited_cell(shell):
    import torch

    before = torch._dynamo.config.recompile_limit
    cell = """\
%%dynamo --config dynamo.recompile_limit=2 --device meta
import asyncio, torch
await asyncio.sleep(0)
seen = torch._dynamo.config.recompile_limit, torch.ones(1).device.type
"""
    ran = shell.run(cell)
    assert ran.result.success, ran.error
    assert shell.ip.user_ns["seen"] == (2, "meta")
    assert torch._dynamo.config.recompile_limit == before
    assert torch.ones(1).device.type == "cpu"


def test_a_gpu_that_is_not_there_is_told(shell, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    said = str(shell.run("%%dynamo --device cuda:2\nran = True").error)
    assert "no device 'cuda:2': cuda is not available here" in said
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    said = str(shell.run("%%dynamo --device cuda:2\nran = True").error)
    assert "no device 'cuda:2': cuda devices here: 2, counted from 0" in said
    assert "ran" not in shell.ip.user_ns


def test_device(shell):
    shell.run("%%dynamo --backend eager --device meta\nimport torch\nd = torch.ones(1).device.type")
    assert shell.ip.user_ns["d"] == "meta"
    assert shell.record.device == "meta"


def test_warm_and_fresh(shell):
    shell.run("import torch\ndef f(x): return x + 1\nx = torch.ones(2)")
    shell.run("%%dynamo --backend eager\nf(x)")
    shell.run("%%dynamo --backend eager\nf(x)")
    call = shell.record.calls[0]
    assert (call.compiles, sum(call.hits.values())) == ([], 1)
    assert list(call.hits_from.values()) == [2]
    shell.run("%%dynamo --backend eager --fresh\nf(x)")
    assert shell.record.calls[0].compiles != []


def test_modules_stay_warm_over_cells(shell):
    shell.run("import torch\nnet = torch.nn.Linear(2, 2)\nx = torch.ones(1, 2)")
    state = dict(vars(shell.ip.user_ns["net"]))
    for expected in (1, 0):
        shell.run("%%dynamo --backend eager\nfor _ in range(3):\n    net(x)")
        new = [c for c in shell.record.compiles if c.cell is None]
        assert len(new) == expected
    assert vars(shell.ip.user_ns["net"]).keys() == state.keys()


def test_views(shell):
    assert set(shell.run("%%dynamo --view text\nx = 1").displays[0]) == {"text/plain"}
    assert set(shell.run("%%dynamo --view html\nx = 1").displays[0]) == {"text/plain", "text/html"}


def test_save_and_load(shell, tmp_path):
    shell.run(f"%%dynamo --backend eager --save {tmp_path}/r.json --name mine\n{DEFS}")
    record = shell.record
    assert record.name == "mine"
    shell.run(f"%dynamo save {tmp_path}/again.json.gz")
    ran = shell.run(f"%dynamo save {tmp_path}/page.html")
    assert ran.result.success, ran.error
    assert "<html" in (tmp_path / "page.html").read_text()
    shell.run("%dynamo reset")
    for name in ("r.json", "again.json.gz"):
        ran = shell.run(f"%dynamo load {tmp_path}/{name}")
        assert ran.result.success
        assert len(ran.displays) == 1
        assert shell.record.source == record.source


# --- %dynamo -------------------------------------------------------------------------------------


def test_the_last_report_again(shell):
    first = shell.run("%%dynamo --backend eager\n" + DEFS).displays
    assert shell.run("%dynamo").displays == first


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("", "no report"),
        ("save x.json", "no report"),
        ("save", "FILE"),
        ("load", "FILE"),
        ("load nowhere.json", "nowhere.json"),
        ("sav", "save"),
        ("reset now", "nothing"),
    ],
)
def test_line_magic_errors(shell, line, word):
    ran = shell.run(f"%dynamo {line}")
    assert type(ran.error).__name__ == "UsageError"
    assert word in str(ran.error)


def test_loading_what_is_no_record_keeps_the_last_one(shell, tmp_path):
    shell.run("%%dynamo\nx = 1")
    before = shell.record
    (tmp_path / "x.json").write_text('{"a": 1')
    assert not shell.run(f"%dynamo load {tmp_path}/x.json").result.success
    assert shell.record is before


def test_help_has_options_and_examples(shell):
    text = shell.ip.object_inspect("%%dynamo")["docstring"]
    for word in ("--fullgraph", "--backend", "%dynamo save FILE", "Examples"):
        assert word in text


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_printed_and_nothing_is_run(shell, flag):
    for cell in (f"%%dynamo {flag}\nran = True", f"%%dynamo {flag}", f"%dynamo {flag}"):
        ran = shell.run(cell)
        assert ran.result.success, ran.error
        assert "--fullgraph" in ran.stdout
        assert "%dynamo save FILE" in ran.stdout
        assert ran.displays == []
    assert "ran" not in shell.ip.user_ns
    assert shell.run("%%dynamo\nran = True").result.success


def test_an_unknown_option_of_inductor_names_the_closest(shell):
    ran = shell.run("%%dynamo --options max_autotun=True\nran = True")
    text = str(ran.error)
    assert "max_autotune" in text
    assert "torch._inductor.list_options()" in text
    assert len(text) < 250
    assert shell.run("%%dynamo --options max-autotune=False\nran = True").result.success


def test_saving_says_what_was_written_where(shell, tmp_path):
    shell.run("%%dynamo --backend eager\n" + DEFS)
    ran = shell.run(f"%dynamo save {tmp_path}/x.html")
    assert ran.stdout == (
        f"dynamo: the report of cell [1] was written to {tmp_path}/x.html "
        "(a page, to open in a browser)\n"
    )
    ran = shell.run(f"%%dynamo --save {tmp_path}/y.json\nx = 1")
    assert f"was written to {tmp_path}/y.json (a record" in ran.stdout


SHOWS = """\
%%dynamo --backend eager
import torch
from IPython.display import display

def shows(x):
    y = x + 1
    display(y)
    return y * 2

_ = shows(torch.ones(3))
"""


def test_the_frames_of_what_runs_the_notebook_are_left_out(shell):
    shell.run(SHOWS)
    record = shell.record
    assert [place["line"] for place in record.summary()["graph_breaks"]] == [7]
    machinery = ("IPython/", "traitlets/", "dynamo_nb/", "torch/_dynamo/", "torch/_compile.py")
    assert not [f for f in record.frames if f.file.startswith(machinery)]
    assert {f.file for c in record.compiles for f in c.user_stack} == {"<cell>"}


def test_a_function_of_ipython_that_the_cell_compiles_is_not_left_out(shell):
    lines = [
        "%%dynamo",
        "import torch",
        "from IPython.utils.text import indent",
        "_ = torch.compile(indent)('a')",
    ]
    shell.run("\n".join(lines))
    assert [f.name for f in shell.record.frames if f.file.startswith("IPython/")] == ["indent"]


REPLACES = """\
%%dynamo --backend eager
import torch

def mine(function=None, **_):
    return function

def f(x):
    return x + 1

before = torch.compile
{body}
_ = f(torch.ones(3))
"""


@pytest.mark.parametrize(
    "body", ["torch.compile = mine", "setattr(torch, 'compile', mine)"], ids=["as-is", "calls"]
)
def test_a_replaced_torch_compile_stays_replaced_and_is_told(shell, body):
    import torch

    own = torch.compile
    try:
        shell.run(REPLACES.format(body=body))
        assert torch.compile is shell.ip.user_ns["mine"]
        assert shell.record.mode_reason.endswith("; torch.compile itself is replaced by `mine`")
        assert shell.record.notes == []
    finally:
        torch.compile = own
    shell.run("%%dynamo --backend eager\n_ = f(torch.ones(3))")
    assert "replaced" not in shell.record.mode_reason
    assert shell.record.summary()["graphs"] == 1


def test_a_library_is_machinery_where_what_runs_the_notebook_calls_it():
    import json

    from dynamo_nb.capture.machinery import is_machinery
    from dynamo_nb.capture.stacks import RUNNERS

    names = {"here": sys._getframe}
    exec(compile("def writes(): return here()", f"{RUNNERS[0]}writes.py", "exec"), names)
    code = json.dumps.__code__
    assert is_machinery(code, names["writes"](), compiled=False)
    assert not is_machinery(code, sys._getframe(), compiled=False)
