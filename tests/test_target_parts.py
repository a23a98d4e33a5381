"""The parts of `--target` that need neither a worker nor torch."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time

import pytest

from dynamo_nb.record.launches import grid_of
from dynamo_nb.record.stage_texts import sass_of, text_of
from dynamo_nb.target import client, trouble
from dynamo_nb.target.devices import DEVICES, FIGURES
from dynamo_nb.target.occupancy import occupancy

#: Modules of the worker that name what is private to torch or triton.
MODULES = (
    "attention",
    "binary",
    "choices",
    "interpreting",
    "libdevice",
    "lower",
    "pretence",
    "variables",
)

CANARY = """
import importlib, json
names = []
for module in {modules}:
    names += importlib.import_module("dynamo_nb.target." + module).NAMES
missing = []
for name in names:
    module, _, path = name.partition(":")
    try:
        found = importlib.import_module(module)
        for part in path.split("."):
            found = vars(found).get(part) if part in vars(found) else getattr(found, part)
    except Exception as error:
        missing.append(f"{{name}}: {{error}}")
print(json.dumps([len(names), missing]))
"""


def test_every_private_name_exists():
    """In a process of its own: importing the worker's modules is not for the notebook's."""
    program = CANARY.format(modules=MODULES)
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    count, missing = json.loads(run.stdout.splitlines()[-1])
    assert count > 25
    assert not missing


@pytest.mark.parametrize("spec", DEVICES)
def test_devices_are_whole(spec):
    device = DEVICES[spec]
    properties = device.properties()
    assert device.spec == spec
    assert set(device.sources) == set(FIGURES) <= set(device.__struct_fields__)
    cited = [line.partition(": ")[0].split(", ") for line in device.cited]
    assert sorted(name for names in cited for name in names) == sorted(FIGURES)
    assert device.threads % device.warp == 0
    assert device.block_shared <= device.shared
    assert properties["major"] * 10 + properties["minor"] == (
        device.arch if isinstance(device.arch, int) else 94
    )
    assert device.bandwidth > 1e11
    assert device.flops["float32"] < device.flops["float16"]


@pytest.mark.parametrize(
    ("spec", "name"),
    [("cuda:80", "NVIDIA A100"), ("cuda:90", "NVIDIA H100"), ("hip:gfx942", "AMD MI300X")],
)
def test_rates_are_those_of_torchs_table(spec, name):
    """Dense; torch rounds the A100's 312 up to 312.5."""
    info = importlib.import_module("torch._inductor.analysis.device_info").lookup_device_info(name)
    device = DEVICES[spec]
    assert device.bandwidth == info.dram_bw_gbs * 1e9
    tops = {str(key).removeprefix("torch."): value for key, value in info.tops.items()}
    for dtype, rate in device.flops.items():
        if dtype == "float8_e4m3fn":
            continue  # torch's table has this one of float8 by other names alone
        dense = tops[dtype] if dtype in ("float32", "float64") else tops[dtype] / _sparse(info)
        assert rate == pytest.approx(dense * 1e12, rel=0.002), dtype


def _sparse(info) -> int:
    return getattr(info, "tops_sparsity_factor", 1)


@pytest.mark.parametrize(
    ("spec", "threads", "registers", "shared", "share", "limited_by"),
    [
        ("cuda:80", 256, 32, 0, 1.0, ""),
        ("cuda:80", 256, 64, 0, 0.5, "registers"),
        ("cuda:80", 128, 255, 0, 0.125, "registers"),
        ("cuda:80", 128, 32, 80 * 1024, 0.125, "shared memory"),
        ("cuda:90", 32, 16, 0, 0.5, "blocks"),
        ("cuda:90", 32, 16, 10000, 20 / 64, "shared memory"),
        ("cuda:89", 1024, 32, 0, 2 / 3, "threads"),
        ("hip:gfx942", 256, 64, 0, 1.0, ""),
        ("hip:gfx942", 256, 128, 0, 0.5, "registers"),
    ],
)
def test_occupancy(spec, threads, registers, shared, share, limited_by):
    """Figures of the vendors' own calculators: NVIDIA's is `cuda_occupancy.h`."""
    found = occupancy(DEVICES[spec], threads, registers, shared)
    assert found["share"] == pytest.approx(share)
    assert found["limited_by"] == limited_by


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("one\ntwo"), "ValueError: one"),
        (ValueError("at 8:11:\n    x = y\n        ^\nno such type"), "ValueError: no such type"),
    ],
)
def test_a_kernels_compiler_gives_its_reason(error, said):
    assert trouble.of_a_kernel(error) == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("one\ntwo"), "ValueError: one"),
        (ValueError(), "ValueError"),
        (AssertionError("Torch not compiled with CUDA enabled\nmore"), "an operator of it asks"),
        (RuntimeError("SkipFrame: BF16 is not supported"), "torch skips a graph"),
        (
            ModuleNotFoundError("No module named 'a'", name="a"),
            "it needs a, which is not installed",
        ),
    ],
)
def test_a_graphs_trouble_is_a_sentence(error, said):
    assert trouble.of_a_graph(error).startswith(said)


FILE = "/tmp/ab/caaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.py"
NAME = FILE.rpartition("/")[2]


def _inlined(here: str, caller: str) -> list[str]:
    """Return a `.loc` of PTX whose place is in a helper, and an instruction."""
    return [
        f"\t.loc {here}, function_name $L__s0, inlined_at {caller} // std.py:1:1",
        "\tadd.s32 %r1;",
    ]


@pytest.mark.parametrize(
    ("stage", "text", "lines"),
    [
        (
            "ttir",
            f'#loc1 = loc("{FILE}":7:3)\n#loc2 = loc("x"(#loc1))\n  %a = f %b loc(#loc2)\n'
            f'#loc3 = loc("/lib/helpers.py":90:1)\n#loc4 = loc(callsite(#loc3 at #loc1))\n'
            "  %c = g %a loc(#loc4)",
            [0, 0, 7, 0, 0, 7],
        ),
        (
            "llir",
            "  %1 = add i32 %0, 1, !dbg !8\n!7 = !DILocation(line: 5, column: 1, scope: !4)\n"
            "!8 = !DILocation(line: 90, column: 1, scope: !5, inlinedAt: !7)\n"
            "  %2 = add i32 %0, 1, !dbg !9\n!9 = !DILocation(line: 91, column: 1, scope: !5)\n"
            f'!1 = !DIFile(filename: "{NAME}", directory: "")\n!2 = !DIFile(filename: "std.py")\n'
            '!4 = distinct !DISubprogram(name: "k", scope: !1, file: !1)\n'
            "!5 = distinct !DILexicalBlockFile(scope: !4, file: !2, discriminator: 0)",
            [5, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        (
            "ptx",
            f"\t.loc\t2 90 1  // helpers.py:90:1 @[ {NAME}:9:4 ]\n\tadd.s32 %r1, %r2, 1;\n"
            "$L__tmp0:\n\tret;\n\t.section .debug_info\n\tgone",
            [0, 9, 0, 9],
        ),
        (  # the lines of assembly in the source are none of the source
            "ptx",
            f"\t.loc 1 7 3 // {NAME}:7:3\n\t// begin inline asm\n\t.loc 1 8 3 // {NAME}:8:3\n"
            "\tld.global.b32 %r1;\n\t// end inline asm\n\tmov.u32 %r1, %r2;\n"
            "\t.loc 1 0 3\n\tnop;",
            [0, 0, 0, 7, 0, 7, 0, 0],
        ),
        (  # inlined twice, where each place is named by its first `.loc` alone
            "ptx",
            "\n".join(
                [
                    f"\t.loc 1 9 4 // {NAME}:9:4",
                    *_inlined("2 50 1", "1 9 4"),
                    *_inlined("2 60 1", "2 50 1"),
                    f"\t.loc 1 10 4 // {NAME}:10:4",
                    *_inlined("2 50 1", "1 10 4"),
                    *_inlined("2 60 1", "2 50 1"),
                    *_inlined("2 70 1", "1 9 4"),
                ]
            ),
            [0, 0, 9, 0, 9, 0, 0, 10, 0, 10, 0, 9],
        ),
        (  # a function beside the kernel counts for the line that calls it, as in LLVM IR
            "ptx",
            "\n".join(
                [
                    f"\t.loc 1 9 4 // {NAME}:9:4",
                    f"\t.loc 1 27 4, function_name $L__s0, inlined_at 1 9 4 // {NAME}:27:4",
                    "\tadd.s32 %r1;",
                    *_inlined("2 60 1", "1 27 4"),
                ]
            ),
            [0, 0, 9, 0, 9],
        ),
        (  # two calls of the same that go on in turns: of the inner one it can't be known whose
            "ptx",
            "\n".join(
                [
                    f"\t.loc 1 9 4 // {NAME}:9:4",
                    *_inlined("2 50 1", "1 9 4"),
                    f"\t.loc 1 10 4 // {NAME}:10:4",
                    *_inlined("2 50 1", "1 10 4"),
                    *_inlined("2 60 1", "2 50 1"),
                    *_inlined("2 50 1", "1 9 4"),
                ]
            ),
            [0, 0, 9, 0, 0, 10, 0, 0, 0, 9],
        ),
        (
            "amdgcn",
            f"\t.loc\t2 287 12 ; std.py:287:12 @[ std.py:314:12 @[ {NAME}:9:4 ] ]\n\tv_add v1, v2\n"
            "\t.loc\t2 90 1 ; std.py:90:1\n\tv_mul v1, v2",
            [0, 9, 0, 0],
        ),
    ],
)
def test_lines_of_a_stage(stage, text, lines):
    found = text_of(stage, text, "triton_poi", FILE)
    assert found["lines"] == lines
    assert "caaaa" not in found["text"]
    assert "/tmp" not in found["text"]


def test_sass_has_the_lines_of_its_ptx():
    mark = '\t//## File ".nv_debug_ptx_txt", line '
    text = f"k:\n{mark}1\n\t/*0*/ LDC ;\n{mark}3\n\t/*10*/ LDG ;\n{mark}2\n\t/*20*/ NOP ;"
    found = sass_of(text, {"lines": [0, 7, 7]}, "k")
    assert found["text"].splitlines() == [
        "k:",
        "\t/*0*/ LDC ;",
        '\t//## File "k.py", line 7',
        "\t/*10*/ LDG ;",
        "\t/*20*/ NOP ;",
    ]
    assert found["lines"] == [0, 0, 0, 7, 7]
    assert sass_of(f"{mark}9\n\tRET", {"lines": [1]}, "k")["lines"] == [0]


def test_grid_is_read_from_the_launch():
    binary = {
        "grid_type": "Grid2D",
        "grid": [],
        "extra": [],
        "signature": {"in": "*fp32", "ynumel": "i32", "xnumel": "i32", "XBLOCK": "constexpr"},
        "config": {"XBLOCK": 64, "YBLOCK": 8},
    }
    code = "    k_xnumel = s0*s1\n    k.run(f(a, (1, 2)), 100, k_xnumel, stream=stream0)\n"
    assert grid_of("k", binary, code) == ["ceil(s0*s1 / 64)", "13"]


@pytest.mark.parametrize(
    ("extra", "formulas", "launch", "grid"),
    [
        (["_g0", "_g1", "_g2"], ["_g0", "_g1", "_g2"], "a, 100, 8, 2, 1", ["8", "2"]),
        (["_g0", "_g1", "_g2"], ["_g0", "_g1", "_g2"], "a, 9, (s0 + 7)//8, 1, 1", ["(s0 + 7)//8"]),
        (["_s0"], ["(_s0 + 63)//64", "1", "1"], "a, 100, s7", ["(s7 + 63)//64"]),
        (["_s0"], ["_s0", "_s0 // 2", "1"], "a, 100, 2*s7", ["2*s7", "(2*s7) // 2"]),
        ([], ["16", "1", "1"], "a, 100", ["16"]),
        ([], ["4", "-((xnumel) // -(8))", "1"], "a, 100", ["4", "13"]),
        ([], ["4", "-((xnumel) // -(8))", "xnumel"], "a, s0", ["4", "ceil(s0 / 8)", "s0"]),
    ],
)
def test_grids_of_templates_and_of_users_kernels(extra, formulas, launch, grid):
    binary = {
        "grid_type": "FixedGrid",
        "signature": {"in": "*fp32", "xnumel": "i32", "BLOCK": "constexpr"},
        "config": {},
        "grid": formulas,
        "extra": extra,
    }
    assert grid_of("k", binary, f"    k.run({launch}, stream=raw_stream0)\n") == grid
    assert grid_of("other", binary, f"    k.run({launch}, stream=raw_stream0)\n") == []


def test_the_notebooks_side_needs_no_torch():
    importlib.import_module("dynamo_nb.target.client")
    program = "import dynamo_nb.target.client, sys; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert run.stdout.strip() == b"False"


def test_a_gpu_that_is_here_is_hidden_from_the_worker(monkeypatch):
    """There torch is to believe in another one."""
    started = []

    def start(command, env, **_):
        started.append((env["CUDA_VISIBLE_DEVICES"], env["HIP_VISIBLE_DEVICES"]))
        raise OSError("not started")

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(subprocess, "Popen", start)
    assert client.Worker("cuda:90").start().result().error == "OSError: not started"
    assert started == [("-1", "-1")]


IDLING = """
import pickle, sys
from dynamo_nb.target.jobs import Answer
pickle.dump(Answer(), sys.stdout.buffer)
sys.stdout.flush()
sys.stdin.read()
"""


@pytest.fixture
def idling(tmp_path, monkeypatch):
    """Make workers that do nothing, so that they are there at once."""
    (tmp_path / "idling.py").write_text(IDLING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(client, "_workers", {})
    monkeypatch.setattr(client.Worker.__init__, "__defaults__", (client.COMPILE, "idling"))
    yield
    client.stop_all()


@pytest.mark.parametrize("cell", ["%unload_ext dynamo_nb", "%%dynamo\n%unload_ext dynamo_nb"])
def test_unloading_the_extension_ends_all_workers(shell, idling, cell):
    workers = [client.worker_for(spec) for spec in ("cuda:90", "cuda:80")]
    for worker in workers:
        assert not worker.start().result(60).error
        assert worker.pid
    shell.run(cell)
    assert [worker.pid for worker in workers] == [None, None]
    assert "stopped" in workers[0].start().result(60).error
    again = client.worker_for("cuda:90")
    assert not again.start().result(60).error
    assert again.pid


def test_a_worker_that_was_idle_for_long_ends_until_it_is_asked_again(idling, monkeypatch):
    monkeypatch.setattr(client, "IDLE", 0.2)
    worker = client.worker_for("cuda:90")
    for _ in range(2):
        assert not worker.start().result(60).error
        limit = time.monotonic() + 20
        while worker.pid and time.monotonic() < limit:
            time.sleep(0.05)
        assert worker.pid is None


def test_a_graph_of_a_gpu_runs_on_the_cpu():
    """`--interpret` compares with eager there, also where the cell itself has a GPU."""
    torch = pytest.importorskip("torch")
    from dynamo_nb.capture import graph_text
    from dynamo_nb.capture.graph_module import graph_module

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    gpu = torch.device("cuda", 0)
    made = graph.call_function(torch.ones, (2,), {"device": gpu})
    there = graph.call_method("to", (graph.call_method("cuda", (x,)), "cuda:0"))
    graph.output((graph.call_function(torch.add, (made, there)),))
    text = graph_text._graph_text(torch.fx.GraphModule(torch.nn.Module(), graph))
    (result,) = graph_module(text, "cpu")(torch.ones(2))
    assert result.tolist() == [2.0, 2.0]
    moved = {node.name: node for node in graph_module(text, "cuda:0").graph.nodes}
    assert moved["ones"].kwargs == {"device": gpu}
    assert moved["cuda"].target == "to"


def test_trouble_names_the_node_and_its_place():
    """As torch's interpreters put it below the message, and Inductor."""
    torch = pytest.importorskip("torch")

    def failing(x):
        return x.relu() @ x.sum()

    module = torch.fx.symbolic_trace(failing)
    node = next(node for node in module.graph.nodes if node.name == "matmul")
    node.meta["stack_trace"] = '  File "<cell>", line 7, in f\n    x @ y\n'
    with pytest.raises(RuntimeError) as raised:
        torch.fx.Interpreter(module).run(torch.ones(2, 2))
    assert trouble.node_of(raised.value) == "matmul"
    assert trouble.places_of(raised.value) == [("<cell>", 7, "f", None, None, None)]
    lowering = RuntimeError(
        "LoweringException: AssertionError: \n  target: mkldnn.linear\n  args[0]: x\n"
        'Found from : \n   File "<cell>", line 4, in f\n    y = linear(x)\n\n'
    )
    assert trouble.of_a_graph(lowering).endswith("AssertionError in mkldnn.linear")
    assert trouble.places_of(lowering) == [("<cell>", 4, "f", None, None, None)]
