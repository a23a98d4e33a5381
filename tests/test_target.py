"""`--target`: kernels for GPUs that are not there, generated and compiled in a process apart."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import tempfile
import threading
from concurrent.futures import Future

import pytest
from msgspec.structs import replace

from dynamo_nb.record.definitions import defined_lines
from dynamo_nb.record.types import CELL, CellRecord, Ref
from dynamo_nb.runner import targeting
from dynamo_nb.target import client
from dynamo_nb.target.devices import DEVICES
from dynamo_nb.views.html import to_html
from dynamo_nb.views.roofline import target_floor_text
from dynamo_nb.views.text import to_text
from tests import snapshot
from tests.models import MODELS, build_cell, training_cell
from tests.zoo import ZOO

pytestmark = pytest.mark.xdist_group("target")  # one process a target, warm for all of them

SPECS = ("cuda:80", "cuda:90", "hip:gfx942")
LAST_STAGE = {"cuda": "ptx", "hip": "amdgcn"}


def magic(*words: str) -> str:
    """Return a magic line: no backend runs here, since the targets are what is looked at."""
    return " ".join(["%%dynamo --fresh --backend eager", *words]) + "\n"


def targets(record: CellRecord) -> dict[str, list]:
    found: dict[str, list] = {}
    for entry in record.compiles:
        for target in entry.targets:
            found.setdefault(target.spec, []).append((entry, target))
    return found


def text_of(binary, stage: str) -> str:
    return next(text.text for text in binary.texts if text.stage == stage)


@pytest.mark.parametrize("function", ZOO, ids=str)
def test_every_kernel_of_the_zoo_has_a_binary(shell, function):
    """Forward with nothing to differentiate, and forward with backward."""
    shell.run(function.definition())
    flags = magic(*(f"--target {spec}" for spec in SPECS))
    ran = shell.run(f"{flags}{function.forward()}\n{function.training()}")
    assert ran.error is None
    found = targets(shell.record)
    assert list(found) == list(SPECS)
    for spec, pairs in found.items():
        (_, inference), (_, training) = pairs
        assert [graph.direction for graph in inference.graphs] == ["inference"]
        assert [graph.direction for graph in training.graphs] == ["forward", "backward"]
        for target in (inference, training):
            assert not target.error
            assert_compiled(target, DEVICES[spec].backend)
        lines = {
            link.b.key
            for link in shell.record.links
            if link.kind == "node-line" and link.a.key.startswith(f"{spec}/")
        }
        assert any(line.startswith("<cell") for line in lines)


def assert_compiled(target, backend: str) -> None:
    """Each Triton kernel has its nodes, and a binary with every stage before it."""
    fused = [kernel for kernel in target.kernels if kernel.language == "triton"]
    assert fused
    for kernel in fused:
        assert kernel.nodes
        assert "@triton.jit" in kernel.code
        assert f"type='{backend}'" in kernel.code
        binary = target.binary(kernel)
        assert not binary.error
        assert binary.size > 0
        assert binary.resources["registers"] > 0
        assert 0 < binary.occupancy <= 1
        stages = {text.stage for text in binary.texts}
        assert {"ttir", "ttgir", "llir", LAST_STAGE[backend]} <= stages


#: Between them: pointwise, a reduction, a library call.
_SAMPLE = ("layer_norm", "matmul")


@pytest.mark.parametrize("spec", ["cuda:75", "cuda:89", "cuda:100"])
def test_kernels_for_the_other_architectures_have_binaries(shell, spec):
    chosen = [function for function in ZOO if function.name in _SAMPLE]
    assert len(chosen) == len(_SAMPLE)
    for function in chosen:
        shell.run(function.definition())
        ran = shell.run(f"{magic(f'--target {spec}')}{function.training()}")
        assert ran.error is None
        ((_, target),) = targets(shell.record)[spec]
        assert not target.error
        assert [graph.direction for graph in target.graphs] == ["forward", "backward"]
        assert_compiled(target, "cuda")


def test_what_a_gpu_has_not_is_said_plainly(shell):
    shell.run(
        "import torch\nx = torch.randn(8, 64)\n"
        "def halved(x):\n    return x.bfloat16().relu()\n"
        "def eighth(x):\n    return x.to(torch.float8_e4m3fn).float() * 2\n"
    )
    ran = shell.run(magic("--target cuda:75 --target cuda:89") + "halved(x)\neighth(x)")
    found = targets(shell.record)
    (_, halved), (_, eighth) = found["cuda:75"]
    assert halved.error.startswith("torch skips a graph whose inputs or results are bfloat16")
    assert "would run eagerly" in ran.report
    (binary,) = eighth.binaries
    assert binary.error.startswith("CompilationError: type fp8e4nv not supported")
    for _, target in found["cuda:89"]:
        assert_compiled(target, "cuda")


MADE_ANYWHERE = """\
import torch
x = torch.randn(16, 16)
def position(x):
    return x + torch.arange(16)
def causal(x):
    return x.masked_fill(torch.ones(16, 16).tril() == 0, float("-inf")).softmax(-1)
def noise(x):
    return torch.nn.functional.dropout(x, 0.5) + torch.rand(16)
def scaled(x):
    return x * torch.tensor(1.5) + torch.tensor([2.0])
def named(x, device="cpu"):
    return x.to(device) + torch.zeros(16, device=device).cos()
"""


def test_what_the_cell_makes_on_the_cpu_is_made_on_the_target(shell):
    shell.run(MADE_ANYWHERE)
    calls = "position(x)\ncausal(x)\nnoise(x)\nscaled(x)\nnamed(x)"
    assert shell.run(magic("--target cuda:90") + calls).error is None
    pairs = targets(shell.record)["cuda:90"]
    assert [entry.name for entry, _ in pairs] == [
        "position",
        "causal",
        "noise",
        "scaled",
        "named",
    ]
    for entry, target in pairs:
        assert not target.error, entry.name
        assert {kernel.language for kernel in target.kernels} <= {"triton", "extern"}
        assert_compiled(target, "cuda")


def test_a_number_is_an_argument_of_the_kernel_as_on_a_gpu(shell):
    """Dynamo passes a float that changes as a tensor on the CPU; an array goes to the target."""
    shell.run(
        "import numpy, torch\nx = torch.randn(16)\ndef f(x, s):\n    return x * s + 1\n"
        "def g(x, a):\n    return x + torch.from_numpy(a * 2)\n"
    )
    ran = shell.run(magic("--target cuda:90") + "f(x, 1.5)\nf(x, 2.5)\ng(x, numpy.ones(16))")
    assert ran.error is None
    (_, _), (_, number), (_, array) = targets(shell.record)["cuda:90"]
    assert "= in_ptr1\n" in number.kernels[0].code
    assert "tl.load(in_ptr1 + " in array.kernels[0].code
    for target in (number, array):
        assert_compiled(target, "cuda")


def test_autocast_is_that_of_the_target(shell):
    """Around the call, or within what is compiled; what mm reads was cast to bfloat16."""
    shell.run(
        "import torch\nx = torch.randn(32, 32)\ndef f(x):\n    return (x @ x).softmax(-1)\n"
        "def g(x):\n    with torch.autocast('cpu', dtype=torch.bfloat16):\n        return f(x)\n"
    )
    cell = "with torch.autocast('cpu', dtype=torch.bfloat16):\n    f(x)\ng(x)"
    assert shell.run(magic("--target cuda:90") + cell).error is None
    pairs = targets(shell.record)["cuda:90"]
    assert [entry.name for entry, _ in pairs] == ["f", "g"]
    for _, target in pairs:
        names = [kernel.name for kernel in target.kernels]
        assert names[:2] == ["triton_poi_fused__to_copy_0", "extern_kernels.mm"]


#: Each model on some of the targets, so that a run stays short; these two on all of them.
_EVERYWHERE = ("residual", "llama")
_SPECS_OF = {"encoder": SPECS[:1], "bert": SPECS[1:2], "gpt2": SPECS[2:]}


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_every_kernel_of_a_real_model_has_nodes_lines_and_a_binary(shell, model):
    """And each call of its forward and backward is in one, or is told to need none."""
    specs = SPECS if model.name in _EVERYWHERE else _SPECS_OF[model.name]
    shell.run(build_cell(model))
    flags = magic(*(f"--target {spec}" for spec in specs))
    ran = shell.run(flags + training_cell(model))
    assert ran.error is None
    found = targets(shell.record)
    assert list(found) == list(specs)
    for spec, pairs in found.items():
        for _, target in pairs:
            assert [graph.direction for graph in target.graphs] == ["forward", "backward"]
            assert_compiled(target, DEVICES[spec].backend)
            assert_placed(target)


def assert_placed(target) -> None:
    """Each kernel has nodes with lines; each call node is in a kernel or is told to need none."""
    nodes = [(graph.name, node) for graph in target.graphs for node in graph.nodes]
    placed = {(graph, node.name): node.frames for graph, node in nodes}
    done = {(item.graph, item.node) for item in target.folded}
    assert all(item.why for item in target.folded)
    for kernel in target.kernels:
        assert any(placed[kernel.graph, name] for name in kernel.nodes), kernel.name
        done |= {(kernel.graph, name) for name in kernel.nodes}
    assert {(graph, node.name) for graph, node in nodes if node.op.startswith("call")} <= done


def test_what_a_pass_puts_in_is_where_what_it_stands_for_was(shell):
    """The maximum and the sum of a softmax at once, and the seeds of all random numbers."""
    shell.run(
        "import torch\ndef f(x):\n    y = x.sin()\n    z = torch.softmax(y @ y, -1)\n"
        "    return torch.nn.functional.dropout(z + z.t(), 0.5)\n"
    )
    assert shell.run(magic("--target cuda:90") + "f(torch.randn(64, 64))").error is None
    ((_, target),) = targets(shell.record)["cuda:90"]
    (graph,) = target.graphs
    nodes = {node.target.partition(".default")[0]: node for node in graph.nodes}
    both = nodes["prims.prepare_softmax_online"]
    assert [frame.line for frame in both.frames] == [4]
    assert both.origins == ["dynamo/z"]
    assert both.original_aten == "aten._softmax.default"
    seeds = nodes["prims.inductor_seeds"]
    assert [frame.line for frame in seeds.frames] == [5]
    assert_placed(target)


def test_code_is_that_of_the_architecture(shell):
    shell.run("import torch\nx = torch.randn(64, 64)\ndef f(x):\n    return (x @ x).relu() * 2\n")
    shell.run(magic("--target cuda:75 --target cuda:80 --target cuda:90") + "f(x.half())")
    texts = {
        spec: text_of(pairs[0][1].binaries[0], "ptx")
        for spec, pairs in targets(shell.record).items()
    }
    line = re.compile(r"^\.target (\w+)", re.MULTILINE)
    named = {spec: line.search(text)[1] for spec, text in texts.items()}
    assert named == {"cuda:75": "sm_75", "cuda:80": "sm_80", "cuda:90": "sm_90a"}


def test_only_hopper_multiplies_by_warp_group(shell):
    """`wgmma` is what sm_90a has and sm_80 lacks: the same template, the same candidate."""
    shell.run(
        "import torch\na, b = torch.randn(2, 256, 256).half()\n"
        "def f(a, b):\n    return (a @ b).relu()\n"
    )
    settings = ("max_autotune=true", "max_autotune_gemm_backends=TRITON")
    words = [f"--config inductor.{setting}" for setting in settings]
    ran = shell.run(magic("--target cuda:80 --target cuda:90", *words) + "f(a, b)")
    assert ran.error is None
    found = {spec: pairs[0][1] for spec, pairs in targets(shell.record).items()}
    texts = {spec: text_of(target.binaries[0], "ptx") for spec, target in found.items()}
    assert "wgmma" in texts["cuda:90"]
    assert "wgmma" not in texts["cuda:80"]
    assert "mma.sync" in texts["cuda:80"]
    assert any("candidates" in text for text in found["cuda:90"].unknown)
    (kernel,), (binary,) = found["cuda:90"].kernels, found["cuda:90"].binaries
    columns = 256 // binary.config["BLOCK_M"] * 256 // binary.config["BLOCK_N"]
    assert binary.grid == [str(columns)]
    ptx = next(text for text in binary.texts if text.stage == "ptx")
    computed = {
        instruction: {
            name
            for text, number in zip(ptx.text.splitlines(), ptx.lines, strict=True)
            if instruction in text and number
            for name in binary.source_nodes[str(number)]
        }
        for instruction in ("wgmma.mma_async", "st.global")
    }
    assert computed == {"wgmma.mma_async": {"mm"}, "st.global": {"relu"}}
    assert set(kernel.nodes) == {"mm", "relu"}


def test_sizes_stay_symbols(shell):
    shell.run(
        "import torch\ndef f(x, y):\n    return torch.cat([x, y]).softmax(-1) * x.shape[0]\n"
        "x, y = torch.randn(6, 20, requires_grad=True), torch.randn(7, 20)\n"
    )
    cell = "f(x, y).sum().backward()"
    shell.run(magic("--dynamic true", *(f"--target {spec}" for spec in SPECS)) + cell)
    for pairs in targets(shell.record).values():
        (_, target), *_ = pairs
        assert not target.error
        assert all(not binary.error for binary in target.binaries)
        assert any("s77" in code.code for code in target.output_code)
        grids = [axis for binary in target.binaries for axis in binary.grid]
        assert any("s77" in axis for axis in grids), grids
        assert {graph.direction for graph in target.graphs} == {"forward", "backward"}


USER_KERNELS = """\
import torch, triton
import triton.language as tl

BIAS = tl.constexpr(3.0)

@triton.jit
def doubled(value):
    return value * 2

@triton.jit
def scaled(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, doubled(x) * factor + BIAS, mask=offsets < n)

@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 256})], key=["n"]
)
@triton.jit
def tuned(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)

def f(x):
    y = torch.empty_like(x)
    scaled[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), 0.5, BLOCK=128)
    return y.sin() + 1

def g(x):
    y = torch.empty_like(x)
    tuned[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), 0.5)
    return y.sin() + 1

x = torch.randn(1000)
"""


@pytest.mark.parametrize("call", ["f(x)", "g(x)"])
def test_kernels_of_the_user_are_taken_along(shell, call):
    """The cell fails as it does anyway where no GPU is; its kernel is compiled all the same."""
    shell.run(USER_KERNELS)
    plain = shell.run(call)
    flags = " ".join(f"--target {spec}" for spec in SPECS)
    ran = shell.run(f"%%dynamo --fresh {flags}\n{call}")
    assert (type(ran.error), str(ran.error)) == (type(plain.error), str(plain.error))
    for spec, pairs in targets(shell.record).items():
        (_, target), *_ = pairs
        own = next(k for k in target.kernels if k.name.startswith(("scaled", "tuned")))
        binary = target.binary(own)
        assert not binary.error
        assert "tl.store(y_ptr + offsets" in own.code
        # y comes from `empty_like`, and is only written
        assert [sum(side.values()) for side in (own.reads, own.writes)] == [4000, 4000]
        assert {*own.reads, *own.writes} <= {buffer.name for buffer in target.buffers}
        memory = next(buffer for buffer in target.buffers if buffer.node == "empty")
        assert (memory.role, memory.bytes) == ("intermediate", 4000)
        assert [item.why for item in target.folded if item.node == "empty"] == ["memory"]
        assert len(binary.candidates) == (2 if call == "g(x)" else 1)
        assert binary.config["BLOCK"] == (64 if call == "g(x)" else 128)
        assert binary.grid == ["16" if call == "g(x)" else "8"]
        assert text_of(binary, LAST_STAGE[DEVICES[spec].backend])


ATTENTION = """\
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
sdpa = torch.nn.functional.scaled_dot_product_attention
q = torch.randn(1, 4, 32, 16, requires_grad=True)
mask = torch.rand(32, 20) > 0.2
def half(q):
    return sdpa(q.half(), q.half(), q.half(), is_causal=True)
def single(q):
    return sdpa(q, q, q)
def masked(q, mask):
    return sdpa(q.half(), q[:, :, :20].half(), q[:, :, :20].half(), attn_mask=mask)
def grouped(q):
    return sdpa(q.half(), q[:, :2].half(), q[:, :2].half(), enable_gqa=True)
def plain(q):
    with sdpa_kernel(SDPBackend.MATH):
        return sdpa(q, q, q)
def flat(q):
    return sdpa(q[0], q[0], q[0])
"""


def test_attention_is_that_of_the_device(shell):
    """Forward and backward; masks of booleans are made into what is added, and rows are aligned."""
    shell.run(ATTENTION)
    calls = "half(q)\nsingle(q)\nmasked(q, mask)\ngrouped(q)\nplain(q)\nflat(q)"
    ran = shell.run(magic("--target cuda:80", "--target cuda:90") + calls)
    assert ran.error is None
    found = targets(shell.record)
    kernels = {
        spec: [
            [attention_of(target, way) for way in ("forward", "backward")] for _, target in pairs
        ]
        for spec, pairs in found.items()
    }
    flash, efficient, cudnn, none = [[name] * 2 for name in ("flash", "efficient", "cudnn", "")]
    assert kernels["cuda:80"] == [flash, efficient, efficient, flash, none, none]
    assert kernels["cuda:90"] == [cudnn, efficient, cudnn, cudnn, none, none]
    _, target = found["cuda:90"][0]
    assert any("cuDNN's attention was taken" in text for text in target.unknown)
    assert any("up to 9.15 it would be flash attention" in text for text in target.unknown)
    _, target = found["cuda:80"][2]
    (call,) = (n for n in target.graphs[0].nodes if "efficient_attention" in n.target)
    placed = {node.name: node for node in target.graphs[0].nodes}
    mask = next(placed[name] for name in call.inputs if placed[name].value.shape == [1, 4, 32, 20])
    assert mask.value.dtype == "float16"


def attention_of(target, direction: str) -> str:
    """Return the attention kernel that a target calls in a direction."""
    assert not target.error
    (graph,) = (graph for graph in target.graphs if graph.direction == direction)
    named = (re.match(r"aten\._scaled_dot_product_(\w+?)_attention", n.target) for n in graph.nodes)
    return next((match[1] for match in named if match), "")


USERS_OWN = """\
def f(x):
    y = torch.empty_like(x)
    scaled[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), 0.5, BLOCK=128)
    return y

@triton.jit(
    do_not_specialize=["n"],
)
def scaled(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)

    "a \\\\ remark"
    tl.store(y_ptr + offsets, doubled(x) * factor, mask=offsets < n)

f(torch.randn(1000))
"""


def test_lines_of_a_users_kernel_are_lines_of_the_cell(shell):
    """From the machine's code to the line that the user wrote, in this cell or in another one."""
    shell.run("import torch, triton\nimport triton.language as tl\n")
    shell.run("@triton.jit\ndef doubled(value):\n    return value * 2\n")
    shell.run(f"%%dynamo --fresh --target cuda:90 --sass\n{USERS_OWN}")
    record = shell.record
    ((_, target),) = targets(record)["cuda:90"]
    (kernel,), (binary,) = target.kernels, target.binaries
    code = kernel.code.splitlines()
    source = record.source.splitlines()
    placed = dict(defined_lines(kernel))
    assert [(item.name, item.file, item.line) for item in kernel.definitions] == [
        (
            "scaled",
            CELL,
            source.index("def scaled(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):") + 1,
        ),
        ("doubled", "<cell 2>", 2),
    ]
    texts = {CELL: source, "<cell 2>": record.files["<cell 2>"].splitlines()}
    for number, frame in placed.items():
        own, written = code[number - 1], texts[frame.file][frame.line - 1]
        assert own.replace("\\\\", "\\") == written
    assert len(placed) == 6 + 2
    for stage, instruction in (("ptx", "st.global"), ("sass", "STG"), ("llir", "st.global")):
        text = next(text for text in binary.texts if text.stage == stage)
        (line,) = {
            placed[number].line
            for shown, number in zip(text.text.splitlines(), text.lines, strict=True)
            if instruction in shown and number
        }
        assert "tl.store(" in source[line - 1]
        assert (kernel.name, kernel) in [
            (one.name, one) for _, one in record.kernels(line, "cuda:90")
        ]
    links = {(link.kind, link.a.key, link.b.key) for link in record.links}
    number = next(number for number, text in enumerate(code, 1) if "tl.load(" in text)
    name, place = f"{kernel.graph}/{kernel.name}", f"{CELL}:{placed[number].line}"
    assert ("code-line", f"{name}:{number}", place) in links
    assert ("kernel-line", name, place) in links
    (entry,) = record.compiles
    assert f"written at line {kernel.definitions[0].line}" in to_text(record)
    ran = replace(entry, targets=[], kernels=target.kernels, binaries=target.binaries)
    for shown in (record, replace(record, compiles=[ran])):  # predicted, or as if it had run here
        ptx = to_html(shown).partition("PTX of scaled")[2]
        assert re.search(rf'class="[^"]*\bl{line}\b[^"]*"[^>]*>[^<]*st.global', ptx)


def test_lines_lead_from_the_machine_code_to_the_cell(shell):
    """PTX and SASS lines lead to a line of Triton, that to nodes, those to the cell."""
    cell = "y = torch.sigmoid(x * 2)\nz = y.sum(-1)\nz + 1"
    shell.run("import torch\nx = torch.randn(8, 64)\n")
    shell.run(magic("--target cuda:90 --sass --compile cell") + cell)
    (_, target), *_ = targets(shell.record)["cuda:90"]
    kernel, binary = target.kernels[0], target.binaries[0]
    source = kernel.code.splitlines()
    for stage, instruction in (("ptx", "ld.global"), ("sass", "LDG")):
        text = next(text for text in binary.texts if text.stage == stage)
        assert len(text.lines) == len(text.text.splitlines())
        loads = [
            number
            for line, number in zip(text.text.splitlines(), text.lines, strict=True)
            if instruction in line and number
        ]
        assert loads, stage
        assert all("tl.load(" in source[number - 1] for number in loads)
        nodes = binary.source_nodes[str(loads[0])]
        assert set(nodes) <= set(kernel.nodes)
        placed = {node.name: node for node in target.graphs[0].nodes}
        lines = {
            frame.line for name in nodes for frame in placed[name].frames if frame.file == CELL
        }
        assert lines <= {2, 3, 4}
        assert 2 in lines
    of = {"MUFU.EX2": "tl.sigmoid(", "SHFL": "tl.sum(", "STG": "tl.store("}
    for line, number in zip(text.text.splitlines(), text.lines, strict=True):
        for instruction, call in of.items():  # code of triton's own belongs to what calls it
            assert instruction not in line or call in source[number - 1]


def test_texts_are_the_same_in_each_run(shell):
    shell.run("import torch\nx = torch.randn(8, 64)\ndef f(x):\n    return x.relu() + 1\n")
    reports = [shell.run(magic("--target cuda:90") + "f(x)") for _ in range(2)]
    assert reports[0].displays[0]["text/html"] == reports[1].displays[0]["text/html"]
    (_, target), *_ = targets(shell.record)["cuda:90"]
    shown = "".join(text.text for binary in target.binaries for text in binary.texts)
    assert tempfile.gettempdir() not in shown
    assert "site-packages" not in shown
    assert not re.search(r"[a-z0-9]{40,}\.py", shown)


def test_the_report_names_what_a_binary_takes(shell):
    shell.run("import torch\nx = torch.randn(8, 64)\n")
    ran = shell.run(magic("--target cuda:90 --compile cell") + "x.relu() + 1")
    assert "For cuda:90 (NVIDIA H100 80GB HBM3), predicted: not run, not autotuned" in ran.report
    assert re.search(r"\d+ registers, no spills, occupancy \d+%", ran.report)
    page = ran.displays[0]["text/html"]
    for word in ("cuda:90, predicted", "PTX of triton_poi_fused", "figures from", ".target sm_90a"):
        assert word in page


def test_kernels_have_their_bytes_and_the_floor_of_the_data_sheet(shell):
    body = "import torch\ntorch.compile(lambda x: x.relu() * 2)(torch.ones(1024, 1024))\n"
    assert shell.run(magic("--target cuda:90") + body).error is None
    ((_, target),) = targets(shell.record)["cuda:90"]
    (kernel,) = target.kernels
    assert (kernel.bytes, kernel.flops) == (2 << 22, 2 << 20)
    # 8 MiB at 3.35 TB/s
    assert target_floor_text(target, kernel) == "2.5 µs, bound by memory"


@pytest.mark.parametrize(
    ("setup", "product", "dtype", "text"),
    [
        # 2 x 4096^3 operations at 67, 494.5, 989.5 and 1979 TFLOP/s
        ("", "a.float() @ a.float()", "float32", "2.05 ms, bound by arithmetic"),
        (
            "torch.set_float32_matmul_precision('high')",
            "a.float() @ a.float()",
            "tf32",
            "278 µs, bound by arithmetic",
        ),
        ("", "a @ a", "float16", "139 µs, bound by arithmetic"),
        (
            "one = torch.ones(()); eight = a.to(torch.float8_e4m3fn)",
            "torch._scaled_mm(eight, eight.t(), one, one, out_dtype=torch.bfloat16)",
            "float8_e4m3fn",
            "69.4 µs, bound by arithmetic",
        ),
    ],
)
def test_a_product_has_the_rate_of_what_it_multiplies(shell, setup, product, dtype, text):
    shell.run(
        f"import torch\na = torch.zeros(4096, 4096, dtype=torch.half, device='meta')\n{setup}"
    )
    ran = shell.run(magic("--target cuda:90 --compile cell") + product)
    shell.run("torch.set_float32_matmul_precision('highest')")
    assert ran.error is None
    ((_, target),) = targets(shell.record)["cuda:90"]
    kernel = next(kernel for kernel in target.kernels if "mm" in kernel.name)
    assert (kernel.dtype, target_floor_text(target, kernel)) == (dtype, text)


def test_a_training_step_has_buffers_of_the_target_and_what_is_saved(shell):
    shell.run(
        "import torch\nw = torch.randn(64, 64, requires_grad=True)\n"
        "def f(x):\n    y = torch.softmax(x @ w, -1)\n    return (y + y.t()).sum()\n"
    )
    ran = shell.run(magic("--target cuda:90") + "f(torch.randn(64, 64)).backward()")
    assert ran.error is None
    ((_, target),) = targets(shell.record)["cuda:90"]
    forward, backward = (graph.name for graph in target.graphs)
    of_forward = {item.name: item for item in target.buffers if item.graph == forward}
    assert {item.device for item in target.buffers} == {"cuda:0"}
    assert any(item.saved and item.shape == [64, 64] for item in of_forward.values())
    assert any(item.reuses for item in target.buffers)
    assert {item.graph for item in target.buffers} == {forward, backward}
    (apart,) = (item for item in target.unfused if item.reason == "memory deps did not match")
    assert apart.graph == forward
    assert set(apart.buffers) <= set(of_forward)
    assert apart.writer in {kernel.name for kernel in target.kernels}
    assert sum(target.eager_operators.values()) > sum(kernel.calls for kernel in target.kernels)


def test_a_record_with_targets_travels(shell):
    shell.run("import torch\nx = torch.randn(8, 64)\n")
    shell.run(magic("--target cuda:90 --compile cell") + "x.relu() + 1")
    record = shell.record
    assert CellRecord.from_json(record.to_json()) == record
    kernel = record.compiles[0].targets[0].kernels[0]
    ref = Ref(record.compiles[0].key, "kernel", f"{kernel.graph}/{kernel.name}")
    assert any(link.a == ref for link in record.links)


# ------------------------------------------------------------------ the notebook's process


def test_the_notebooks_torch_is_untouched(shell):
    shell.run("import torch\nx = torch.randn(8, 64)\ndef f(x):\n    return x.relu() + 1\n")
    shell.run("%%dynamo --fresh --backend eager\nf(x)")
    before = snapshot.take()
    shell.run(magic("--target cuda:90 --interpret") + "f(x)")
    assert not snapshot.differences(before, snapshot.take())
    import torch

    assert not torch.cuda.is_available()
    assert torch.version.hip is None


# ------------------------------------------------------------------ what goes wrong


def test_an_unknown_target_names_those_known(shell):
    ran = shell.run("%%dynamo --target cuda:95\n1")
    assert str(ran.error).startswith("%%dynamo: argument --target: no target 'cuda:95'.")
    assert all(spec in str(ran.error) for spec in DEVICES)


@pytest.mark.parametrize("flag", ["--sass", "--interpret"])
def test_a_flag_of_targets_needs_one(shell, flag):
    ran = shell.run(f"%%dynamo {flag}\n1")
    assert "needs a target: --target cuda:90" in str(ran.error)


@pytest.mark.parametrize(
    ("version", "said"), [(None, "not installed"), ("3.2.0", "triton 3.2.0 is too old")]
)
def test_without_triton_it_says_what_to_install(shell, monkeypatch, version, said):
    monkeypatch.setattr(client, "triton_version", lambda: version)
    ran = shell.run("%%dynamo --target cuda:90\n1")
    assert said in str(ran.error)
    assert "pip install 'dynamo_nb[target]'" in str(ran.error)


def test_without_numpy_the_interpreter_says_what_to_install(shell, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "numpy" else find(name, *a)
    )
    ran = shell.run("%%dynamo --target cuda:90 --interpret\n1")
    assert "--interpret needs numpy, which is not installed" in str(ran.error)
    assert "pip install 'dynamo_nb[target]'" in str(ran.error)
    assert client.problem("cuda:90") == ""


def test_a_graph_that_cannot_travel_is_named(shell):
    shell.run(
        "import torch\nfrom torch.testing._internal.two_tensor import TwoTensor\n"
        "y = torch.ones(3)\nx = TwoTensor(y, y)\n"
        "def f(x):\n    return x * 2\ndef g(y):\n    return y + 1\n"
    )
    ran = shell.run(magic("--target cuda:90") + "f(x)\ng(y)")
    assert ran.error is None
    found = {entry.name: target for entry, target in targets(shell.record)["cuda:90"]}
    assert "input `l_x_` is a TwoTensor" in found["f"].error
    assert not found["g"].error
    assert found["g"].kernels
    assert "nothing: input `l_x_`" in ran.report


OPERATORS = """\
import torch
from torch import Tensor

@torch.library.custom_op("dnb_test::wave", mutates_args=())
def wave(x: Tensor, k: int = 2) -> Tensor:
    return x.sin() * k
@wave.register_fake
def _(x, k=2):
    return torch.empty_like(x)

@torch.library.custom_op("dnb_test::wave_backward", mutates_args=())
def wave_backward(g: Tensor, x: Tensor) -> Tensor:
    return g * x.cos()
@wave_backward.register_fake
def _(g, x):
    return torch.empty_like(x)
wave.register_autograd(
    lambda ctx, g: (wave_backward(g, ctx.saved_tensors[0]) * 2, None),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)

@torch.library.custom_op("dnb_test::bump", mutates_args=("x",))
def bump(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y)
    return y.sum(-1)
@bump.register_fake
def _(x, y):
    return y.new_empty(len(y))

@torch.library.custom_op("dnb_test::parts", mutates_args=())
def parts(x: Tensor, n: int) -> tuple[Tensor, list[Tensor]]:
    return x.sum(-1), [x[:n].clone(), x.t().clone()]
@parts.register_fake
def _(x, n):
    rows, columns = x.shape
    return x.new_empty(rows), [x.new_empty(n, columns), x.new_empty(columns, rows)]

library = torch.library.Library("dnb_test_library", "FRAGMENT")
library.define("plain(Tensor x, float s=1.5) -> Tensor")
library.impl("plain", lambda x, s=1.5: x * s, "CPU")
torch.library.register_fake("dnb_test_library::plain", lambda x, s=1.5: torch.empty_like(x))
torch.library.register_autograd("dnb_test_library::plain", lambda ctx, g: (g, None))

def trained(x):
    return (wave(x * 2) + 1).sum()
def several(x):
    y = x * 2
    d = bump(y, x + 1)
    a, (b, c) = parts(y, 3)
    return a + 1, b * 2, c.sum(0), d * 2
def hidden(x):
    y = x * 2
    return torch.ops.dnb_test_library.plain(y) + 1
x = torch.randn(6, 5)
w = torch.randn(6, 5, requires_grad=True)
"""


def test_operators_of_the_notebook_are_library_calls(shell):
    """All around them is compiled; backward too, where the formula is one that can be read."""
    shell.run(OPERATORS)
    for dynamic in ("false", "true"):
        words = f"--dynamic {dynamic} --target cuda:90 --interpret"
        ran = shell.run(magic(words) + "trained(w).backward()\nseveral(x)\nhidden(x)\nhidden(w)")
        assert ran.error is None
        assert_around_operators(shell.record, ran)


def assert_around_operators(record, ran) -> None:
    pairs = targets(record)["cuda:90"]
    assert [target.error for _, target in pairs] == [""] * 4
    trained, several, inference, lost = (target for _, target in pairs)
    assert [graph.direction for graph in trained.graphs] == ["forward", "backward"]
    extern = [kernel.name for kernel in trained.kernels if kernel.language == "extern"]
    assert extern == [f"torch.ops.dnb_test.wave{end}.default" for end in ("", "_backward")]
    assert len(several.kernels) > 3
    assert several.left_behind == [
        f"what `dnb_test::{name}` launches: it is a library call here, at node `{node}` "
        f"(<cell 1>:{line})"
        for name, node, line in (("bump", "d", 48), ("parts", "parts_default", 49))
    ]
    for target in (trained, several, inference):
        assert_compiled(target, "cuda")
    assert [graph.direction for graph in lost.graphs] == ["inference"]
    assert "what `dnb_test_library::plain` launches" in lost.left_behind[0]
    assert "the backward of `dnb_test_library::plain`" in lost.left_behind[1]
    assert "the backward of `dnb_test_library::plain`" in " ".join(ran.report.split())
    assert {check.status for check in record.checks} == {"not repeated"}
    assert "which only the notebook can run" in record.checks[0].reason


def test_a_redefined_operator_is_the_new_one(shell):
    for columns in (3, 4):
        shell.run(
            "import torch\n"
            "@torch.library.custom_op('dnb_test::made', mutates_args=())\n"
            "def made(x: torch.Tensor) -> torch.Tensor:\n"
            f"    return x.new_ones(len(x), {columns})\n"
            f"@made.register_fake\ndef _(x):\n    return x.new_empty(len(x), {columns})\n"
            "def f(x):\n    return made(x * 2) + 1\n"
        )
        assert shell.run(magic("--target cuda:90") + "f(torch.ones(8, 2))").error is None
        ((_, target),) = targets(shell.record)["cuda:90"]
        assert not target.error
        (output,) = (item for item in target.buffers if item.role == "output")
        assert output.shape == [8, columns]


TRITON_OPERATOR = """\
import torch, triton
import triton.language as tl
from torch.library import triton_op, wrap_triton

@triton.jit
def added(a_ptr, b_ptr, to_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(a_ptr + offsets, mask=mask) + tl.load(b_ptr + offsets, mask=mask)
    tl.store(to_ptr + offsets, total, mask=mask)

@triton_op("dnb_test::add", mutates_args={})
def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    to = torch.empty_like(a)
    wrap_triton(added)[lambda meta: (triton.cdiv(a.numel(), 128),)](a, b, to, a.numel(), BLOCK=128)
    return to
add.register_autograd(lambda ctx, g: (g * 2, g))

def f(x):
    return (add(x * 2, x) + 1).sum()
"""


def test_a_triton_op_is_traced_through(shell):
    shell.run(TRITON_OPERATOR)
    shell.run(magic("--target cuda:90") + "f(torch.randn(40, 5, requires_grad=True))")
    ((_, target),) = targets(shell.record)["cuda:90"]
    assert (target.error, target.left_behind) == ("", [])
    assert [graph.direction for graph in target.graphs] == ["forward", "backward"]
    assert any(kernel.name.startswith("added") for kernel in target.kernels)


def test_an_error_on_the_target_names_node_and_line(shell):
    shell.run(
        "import torch\nx = torch.randn(8, 8)\n"
        "def f(x):\n    y = x * 2\n    z = torch.quantize_per_tensor(y, 0.1, 0, torch.quint8)\n"
        "    return z.dequantize()\n"
        "def g(x):\n    return torch.ops.mkldnn._linear_pointwise(x, x, None, 'relu', [], '')\n"
    )
    assert shell.run(magic("--target cuda:90") + "f(x)\ng(x)").error is None
    (_, f), (_, g) = targets(shell.record)["cuda:90"]
    assert f.error.endswith("(node `dequantize`, <cell 1>:6)")
    assert g.error.endswith("in mkldnn._linear_pointwise.default (<cell 1>:8)")


def test_a_cell_without_graphs_is_not_told_to_be_fresh_again(shell):
    ran = shell.run(magic("--target cuda:90") + "1 + 1")
    assert "(the cell compiled no graph)" in " ".join(ran.report.split())


def test_a_graph_pass_of_the_notebook_is_taken_along(shell):
    shell.run(
        "import torch\n"
        "import torch._inductor.config as inductor_config\n"
        "def replace_sin(graph):\n"
        "    for node in list(graph.nodes):\n"
        "        if node.target is torch.ops.aten.sin.default:\n"
        "            with graph.inserting_after(node):\n"
        "                cosine = graph.call_function(torch.ops.aten.cos.default, node.args)\n"
        "            cosine.meta = dict(node.meta)\n"
        "            node.replace_all_uses_with(cosine)\n"
        "            graph.erase_node(node)\n"
        "def wave(x):\n"
        "    return torch.sin(x) + 1.5\n"
    )
    ran = shell.run(
        "%%dynamo --as-is --target cuda:90\n"
        "with inductor_config.patch(post_grad_custom_pre_pass=replace_sin):\n"
        "    out = torch.compile(wave)(torch.ones(64))\n"
    )
    assert ran.error is None
    (target,) = shell.record.compiles[0].targets
    assert target.error == ""
    (kernel,) = target.kernels
    assert "cos" in kernel.code


ENDING = """\
import os, torch
x = torch.randn(8, 64)
def f(x):
    return x.relu() + 1
def ending(graph):
    if os.getpid() != HERE:
        os._exit(9)
"""


def test_a_worker_that_dies_at_a_graph_leaves_the_cell(shell):
    shell.run(ENDING)
    shell.ip.user_ns["HERE"] = os.getpid()
    ran = shell.run(
        "%%dynamo --fresh --as-is --target cuda:90\n"
        "torch.compile(f, options={'post_grad_custom_pre_pass': ending})(x)"
    )
    assert ran.error is None
    ((_, target),) = targets(shell.record)["cuda:90"]
    assert target.error == "its process ended in the midst of it (code 9)"
    assert "its process ended" in ran.report
    shell.run(magic("--target cuda:90") + "f(x)")
    ((_, target),) = targets(shell.record)["cuda:90"]
    assert not target.error
    assert target.kernels


def test_a_worker_that_was_killed_between_cells_is_replaced(shell):
    """Also when the system has not told of its death yet, as after a stop."""
    shell.run("import torch\nx = torch.randn(8, 64)\ndef f(x):\n    return x.relu() + 1\n")
    worker = client.worker_for("cuda:90")
    for kill in (lambda: os.kill(worker.pid, signal.SIGKILL), lambda: kill_late(worker.pid)):
        worker.start().result()
        kill()
        assert shell.run(magic("--target cuda:90") + "f(x)").error is None
        ((_, target),) = targets(shell.record)["cuda:90"]
        assert not target.error
        assert target.kernels


def kill_late(pid: int) -> None:
    """Stop a process where it is, so that it dies before it takes what it was handed."""
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()


def test_an_interrupt_while_waiting_ends_the_worker():
    """The cell is done by then: the report is shown without the target's kernels."""

    class Interrupted(Future):
        def result(self, timeout=None):
            raise KeyboardInterrupt

    worker = client.Worker("cuda:90")
    worker.start()
    answer = targeting._awaited(Interrupted(), worker, None)
    assert answer.error == "it was interrupted"
    assert worker.pid is None


def test_a_cell_that_compiles_nothing_says_whose_kernels_are_shown(shell):
    shell.run("import torch\nx = torch.randn(8)\ndef f(x):\n    return x + 1\n")
    shell.run("%%dynamo --fresh --backend eager\nf(x)")
    shell.run("%%dynamo --target cuda:90 --backend eager\nf(x)")
    (note,) = shell.record.notes
    assert (note.panel, note.message) == (
        "kernels for cuda:90 of 0/0",
        "cell [2] compiled it: run this one with --fresh to take its graph to the target",
    )
    shell.run(magic("--target cuda:90") + "f(x)")
    ran = shell.run("%%dynamo --target cuda:90 --backend eager --interpret\nf(x)")
    ((_, target),) = targets(shell.record)["cuda:90"]
    assert target.kernels
    report = " ".join(ran.report.split())
    assert (
        "no new kernels for cuda:90 of 0/0 (those shown are from its compile in cell [4])" in report
    )
    assert (
        "no check of the kernels of 0/0 (cell [4] compiled it: run this one with --fresh" in report
    )


def test_a_cell_that_could_not_be_compiled_is_not_told_to_be_fresh(shell):
    shell.run("import torch\nlstm = torch.nn.LSTM(4, 4)\ndef f(x):\n    return lstm(x)[0] + 1\n")
    ran = shell.run("%%dynamo --target cuda:90\nf(torch.randn(2, 2, 4))")
    (note,) = shell.record.notes
    assert note.message == "the cell compiled no graph; the report says what hindered it"
    assert "--fresh" not in ran.report
