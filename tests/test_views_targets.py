"""Targets in text, HTML and parts, from a record made by hand: no worker takes part."""

from __future__ import annotations

import json
import re

from msgspec.structs import replace

from dynamo_nb.record.links import links_of
from dynamo_nb.record.types import (
    CELL,
    Binary,
    Buffer,
    CellRecord,
    Check,
    Compile,
    Finding,
    Folded,
    Graph,
    Kernel,
    Mismatch,
    Node,
    NotFused,
    OutputCode,
    StackFrame,
    StageText,
    StepCode,
    Steps,
    Target,
)
from dynamo_nb.views.html import to_html, to_page
from dynamo_nb.views.limits import CELL_OUTPUT
from dynamo_nb.views.parts import Parts
from dynamo_nb.views.targets import binary_text
from dynamo_nb.views.text import to_text

GRAPH = "cuda:90/post_grad.inference"
RELU = Node(
    name="relu", op="call_function", target="aten.relu", frames=[StackFrame(file=CELL, line=2)]
)
KERNEL = Kernel(
    name="triton_poi_0",
    language="triton",
    graph=GRAPH,
    code="a\ntmp0 = 1",
    nodes=["relu"],
    code_line=2,
)
BINARY = Binary(
    kernel="triton_poi_0",
    graph=GRAPH,
    config={"XBLOCK": 64, "num_warps": 2},
    candidates=[{"XBLOCK": 64}, {"XBLOCK": 128}],
    grid=["7"],
    threads=64,
    shared=16,
    resources={"registers": 40, "spill_stores": 8, "spill_loads": 4},
    occupancy=0.5,
    limited_by="registers",
    texts=[
        StageText(stage="ttir", text="%0 = <b>"),
        StageText(stage="ptx", text="// head\nadd.f32 %f1;", lines=[0, 2]),
    ],
    source_nodes={"2": ["relu"]},
)
TARGET = Target(
    spec="cuda:90",
    device="H100",
    properties={"multi_processor_count": 132},
    sources=["a table"],
    graphs=[Graph(name=GRAPH, stage="post_grad", direction="inference", nodes=[RELU])],
    kernels=[KERNEL, Kernel(name="extern_kernels.mm", language="extern", graph=GRAPH, calls=2)],
    output_code=[OutputCode(graph=GRAPH, code="def call():\n    triton_poi_0.run(...)\n")],
    binaries=[BINARY],
    folded=[Folded(graph=GRAPH, node="permute", why="view")],
    unknown=["run times"],
)


def record(*targets: Target) -> CellRecord:
    entry = Compile(
        compile_id="0/0",
        name="f",
        file=CELL,
        first_line=2,
        graphs=[Graph(name="dynamo", stage="dynamo", nodes=[RELU])],
        targets=list(targets),
    )
    return CellRecord(source="%%dynamo\nx.relu()\n", compiles=[entry])


def test_text_tells_what_a_binary_takes():
    text = " ".join(to_text(record(TARGET)).split())
    assert "For cuda:90 (H100), predicted: not run, not autotuned" in text
    assert "0/0 1 kernel, 2 extern calls" in text
    assert "kernel triton_poi_0 (triton, fuses 1 node from line 2)" in text
    assert (
        "40 registers, 12 bytes of spills, 16 bytes of shared memory, occupancy 50% (limited by "
        "registers), grid 7 of 64 threads" in text
    )
    assert "extern calls: extern_kernels.mm" in text


def test_text_has_a_targets_kernels_whatever_else_there_is_to_tell():
    whole = record(TARGET)
    findings = [Finding(code="graph-break", severity="warning", message="b" * 300)] * 8
    compiles = [replace(whole.compiles[0], compile_id=f"{n}/0") for n in range(3)]
    text = to_text(replace(whole, compiles=compiles, findings=findings))
    assert text.count("40 registers") == 3
    assert text.count("grid 7 of 64 threads") == 3
    many = [replace(KERNEL, name=f"triton_{n}") for n in range(5)]
    binaries = [replace(BINARY, kernel=kernel.name) for kernel in many]
    entry = replace(compiles[0], targets=[replace(TARGET, kernels=many, binaries=binaries)])
    text = to_text(replace(whole, compiles=[entry, replace(entry, compile_id="1/0")]))
    assert text.count("40 registers") == 8
    assert "… 2 more kernels" in text


def test_text_says_why_a_target_has_no_kernels():
    views = replace(TARGET, kernels=[], binaries=[])
    text = " ".join(to_text(record(views)).split())
    assert "0/0 no kernels: 1 node needs none (another way to look at memory)" in text
    text = " ".join(to_text(record(replace(views, folded=[]))).split())
    assert "0/0 no kernels: the graph has no operations" in text
    calls = replace(TARGET, kernels=TARGET.kernels[1:], binaries=[])
    assert "0/0 2 extern calls" in " ".join(to_text(record(calls)).split())


def test_occupancy_is_rounded_as_in_the_explorer():
    assert "occupancy 13%" in binary_text(replace(BINARY, occupancy=0.125))


def test_what_triton_launches_a_kernel_with_is_no_file_of_the_users():
    """Dynamo steps through it where a kernel has heuristics."""
    launched = StackFrame(file="triton/runtime/autotuner.py", line=503, name="run")
    node = replace(RELU, frames=[*RELU.frames, launched])
    whole = record(replace(TARGET, graphs=[replace(TARGET.graphs[0], nodes=[node])]))
    codes = [StepCode(name="run", file=file, first_line=1) for file in (launched.file, "mine.py")]
    entry = replace(whole.compiles[0], steps=Steps(codes=codes))
    links, files = links_of(replace(whole, compiles=[entry]))
    assert files == ["mine.py"]
    assert not [link for link in links if "triton/" in link.b.key]
    assert [link for link in links if link.kind == "node-line" and link.b.key == f"{CELL}:2"]


def test_a_line_names_the_targets_kernels_where_this_machine_has_none():
    whole = record(TARGET)
    assert whole.kernels(2) == []
    assert whole.kernels(2, target="cuda:90") == [("0/0", KERNEL)]
    assert whole.kernels(1, target="cuda:90") == []
    text = " ".join(re.sub("<[^>]*>", " ", to_html(whole)).split())
    assert "-> cuda:90 triton_poi_0" in text or "-&gt; cuda:90 triton_poi_0" in text
    here = replace(whole.compiles[0], kernels=[replace(KERNEL, graph="dynamo", name="cpp_0")])
    text = " ".join(re.sub("<[^>]*>", " ", to_html(replace(whole, compiles=[here]))).split())
    assert "cpp_0" in text
    assert "gt; cuda:90 triton_poi_0" not in text


def test_the_page_has_the_work_of_a_target_and_where_its_roof_is():
    rates = {"bandwidth": 2e12, "flops": {"float32": 1e12, "float16": 4e12}}
    busy = replace(
        KERNEL,
        code="import triton\n@triton.jit\ndef triton_poi_0():\n    tmp0 = 1",
        calls=1,
        reads={"arg0_1": 4000},
        writes={"buf<0>": 4000},
        flops=800_000,
        dtype="float16",
        replaces=3,
    )
    target = replace(
        TARGET,
        properties=rates,
        kernels=[busy],
        binaries=[replace(BINARY, source_nodes={"4": ["relu"]})],
        buffers=[
            Buffer(
                name="buf<0>",
                graph=GRAPH,
                role="output",
                node="relu",
                shape=[1000],
                stride=[1],
                dtype="float32",
                bytes=4000,
                reuses="arg0_1",
                in_place=True,
                saved=True,
            )
        ],
        unfused=[
            NotFused(
                graph=GRAPH,
                writer="triton_poi_0",
                reader="triton_poi_0",
                buffers=["buf<0>"],
                bytes=8000,
                reason="device mismatch",
                reader_nodes=["relu"],
            )
        ],
        eager_operators={GRAPH: 3},
    )
    page = to_page(record(target))
    words = " ".join(re.sub("<[^>]*>", " ", page).split())
    for told in (
        "1 kernel, 1 launch in place of 3 operators of eager",
        "cuda:90 kernel triton_poi_0 line 2, without 1 line of boilerplate",
        "in place of 3 operators of eager",
        "operations a byte 100",
        "at best, by the data sheet 200 ns, bound by arithmetic",
        "candidates 2: the first that fits was compiled",
        "cuda:90 not fused 1 pair",
        "buf&lt;0&gt; 8.0 kB device mismatch",
        "cuda:90 buffers 1, 1 reuse memory, 4.0 kB saved for backward",
        "has the memory of arg0_1 (in place), saved for backward",
        "4 TFLOP/s",
    ):
        assert told in words, told
    assert 'aria-label="roofline of H100: at best, by the data sheet"' in page
    assert re.search(r'<circle class="l2"[^>]* cx="\d+\.\d" cy="17.0" r="4">', page)
    assert re.search(r'<span class="r l2"[^>]*> *tmp0 = 1', page)
    core = json.loads(Parts(record(target)).json("core"))["record"]["compiles"][0]["targets"][0]
    assert not core.keys() & {"buffers", "unfused"}
    assert json.loads(Parts(record(target)).json("target|0/0|cuda:90"))["buffers"]


def test_text_tells_what_there_is_not():
    failed = Target(spec="cuda:80", device="A100", error="input `x` is a NestedTensor")
    unbuilt = replace(TARGET, binaries=[replace(BINARY, error="out of resource")])
    text = " ".join(to_text(record(failed, unbuilt)).split())
    assert "For cuda:80 (A100), predicted" in text
    assert "0/0 nothing: input `x` is a NestedTensor" in text
    assert "1 kernel, 2 extern calls, 1 without a binary" in text
    assert "no binary: out of resource" in text


def test_html_marks_lines_of_the_machine_code_by_the_cells():
    page = to_page(record(TARGET))
    for expected in ("cuda:90, predicted", "run times", "a table", "XBLOCK=64", "%0 = &lt;b&gt;"):
        assert expected in page
    assert re.search(r'<span class="r l2"[^>]*>add\.f32 %f1;', page)


def test_the_page_has_the_targets_output_code_and_the_cells_output_has_not():
    page, output = to_page(record(TARGET)), to_html(record(TARGET))
    title = "output code cuda:90/post_grad.inference"
    assert title in page
    assert "cuda:90 nodes without a kernel" in page
    assert "2 lines, predicted: not run, not autotuned" in page
    assert re.search(r'<span class="r l2"[^>]*> *triton_poi_0\.run\(', page)
    assert title not in output


def test_an_output_keeps_its_size_with_many_kernels():
    many = [replace(KERNEL, name=f"triton_{number}", code="x = 1\n" * 400) for number in range(60)]
    binaries = [
        replace(
            BINARY,
            kernel=kernel.name,
            texts=[replace(text, text="mov.u32\n" * 600, lines=[]) for text in BINARY.texts],
        )
        for kernel in many
    ]
    target = replace(TARGET, kernels=many, binaries=binaries)
    html = to_html(record(target, replace(target, spec="cuda:80")))
    assert len(html.encode()) <= CELL_OUTPUT.size
    assert "Triton IR of" not in html
    assert "--save FILE.html" in html


def test_the_core_has_no_texts_and_a_part_has_them():
    parts = Parts(record(TARGET))
    core = json.loads(parts.json("core"))["record"]["compiles"][0]["targets"][0]
    assert core["binaries"][0]["resources"]["registers"] == 40
    assert "texts" not in core["binaries"][0]
    assert "code" not in core["kernels"][0]
    whole = json.loads(parts.json("target|0/0|cuda:90"))
    assert whole["binaries"][0]["texts"][1]["text"].startswith("// head")


def test_a_target_that_is_wrong_when_interpreted_is_told():
    check = Check(
        name="f",
        status="differs",
        line=2,
        target="cuda:90",
        gradients=True,
        mismatches=[Mismatch(name="output", what="output", kind="value", of=4, count=1, error=1.0)],
        unchecked=["the math library"],
    )
    text = " ".join(to_text(replace(record(TARGET), checks=[check])).split())
    assert (
        "line 2 f: results and gradients of the Triton kernels for cuda:90, interpreted, differ "
        "from eager; not checked: the math library" in text
    )
