"""Records written by hand, of the shapes that cells really give: for tests of views and findings.

Places have the columns that Python would report: they are looked up in the sample's own source.
"""

from __future__ import annotations

from typing import Any

from dynamo_nb.record.types import (
    CELL,
    Bytecode,
    Call,
    CellError,
    CellRecord,
    Compile,
    CompileError,
    Finding,
    Frame,
    Graph,
    GraphBreak,
    Guard,
    GuardTree,
    Instruction,
    Kernel,
    LeafGuard,
    Node,
    Note,
    OutputCode,
    RecompileReason,
    Ref,
    ShapeGuard,
    StackFrame,
    StageTime,
    Symbol,
    TensorValue,
    Versions,
)

__all__ = [
    "SAMPLES",
    "attribute_recompiles",
    "dtype_recompile",
    "empty",
    "failed",
    "graph_breaks",
    "hostile",
    "huge",
    "incomplete",
    "library_model",
    "place",
    "training_step",
]

VERSIONS = Versions(dynamo_nb="0.1.0", torch="2.13.0+cpu", python="3.11.7")


def place(source: str, line: int, text: str = "", name: str = "") -> StackFrame:
    """Return the frame of `text` on a line of the source; of the whole statement without a text."""
    content = source.split("\n")[line - 1]
    text = text or content.strip()
    column = content.index(text)
    return StackFrame(
        file=CELL,
        line=line,
        name=name,
        end_line=line,
        column=column,
        end_column=column + len(text),
    )


def f32(*shape: int | str, dtype: str = "float32", **more: Any) -> TensorValue:
    return TensorValue(shape=list(shape), dtype=dtype, **more)


def op(name: str, target: str, inputs: list[str], value: Any, *frames: StackFrame) -> Node:
    return Node(
        name=name,
        op="call_function",
        target=target,
        inputs=inputs,
        value=value,
        frames=list(frames),
    )


def given(name: str, value: Any, source: str = "") -> Node:
    return Node(name=name, op="placeholder", target=source or f"L_{name}_", value=value)


def result(*inputs: str) -> Node:
    return Node(name="output", op="output", target="output", inputs=list(inputs))


TOY = """%%dynamo --backend eager
import torch

def toy(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo")
    if b.sum() < 0:
        b = b * -1
    return x * b

toy(torch.randn(10), torch.randn(10))
"""


def graph_breaks() -> CellRecord:
    """The FAQ's toy: two graph breaks, three graphs, the later two in resume functions."""

    def toy(line: int, text: str = "") -> StackFrame:
        return place(TOY, line, text, "toy")

    call = place(TOY, 11)
    vec = f32(10)
    first = Compile(
        compile_id="0/0",
        name="toy",
        file=CELL,
        first_line=4,
        call_line=11,
        user_stack=[call],
        guards=[
            Guard(
                kind="TENSOR_MATCH",
                source="L['a']",
                code=[
                    "check_tensor(L['a'], Tensor, DispatchKeySet(CPU), torch.float32, size=[10])"
                ],
                frame=toy(5, "torch.abs(a)"),
                value="f32[10]",
            ),
            Guard(
                kind="ID_MATCH",
                source="G['torch']",
                code=["___check_obj_id(G['torch'], 140234567890123)"],
                frame=toy(5, "torch.abs"),
                value="<module 'torch'>",
            ),
        ],
        graph_breaks=[
            GraphBreak(
                kind="Failed to trace builtin operator",
                reason="Failed to trace builtin operator `print`",
                explanation="Dynamo does not know how to trace builtin operator `print`.",
                hints=["Avoid calling builtin `print` in compiled code, or report it."],
                context="builtin print [<class 'str'>] False",
                id="GB0059",
                url="https://docs.pytorch.org/compile-graph-break-site/gb/gb0059.html",
                frame=toy(6, 'print("woo")'),
                user_stack=[toy(6, 'print("woo")')],
            )
        ],
        graphs=[
            Graph(
                name="dynamo",
                stage="dynamo",
                nodes=[
                    given("l_a_", vec),
                    op("abs_1", "torch.abs", ["l_a_"], vec, toy(5, "torch.abs(a)")),
                    op("add", "operator.add", ["abs_1"], vec, toy(5, "torch.abs(a) + 1")),
                    op(
                        "x",
                        "operator.truediv",
                        ["l_a_", "add"],
                        vec,
                        toy(5, "a / (torch.abs(a) + 1)"),
                    ),
                    result("x"),
                ],
            )
        ],
        bytecode=Bytecode(
            before=[
                Instruction(offset=0, opname="RESUME", argument="0", frame=toy(4)),
                Instruction(offset=2, opname="LOAD_FAST", argument="a", frame=toy(5, "a")),
            ],
            after=[Instruction(offset=2, opname="LOAD_GLOBAL", argument="__compiled_fn_1")],
        ),
        stages=[StageTime(name="entire_frame_compile", start=0.01, seconds=0.125)],
    )
    second = Compile(
        compile_id="1/0",
        name="torch_dynamo_resume_in_toy_at_6",
        file=CELL,
        first_line=4,
        resume_of="toy",
        call_line=11,
        graph_breaks=[
            GraphBreak(
                kind="Data-dependent branching",
                reason="Data-dependent branching on a tensor",
                explanation="Dynamo cannot trace a branch that depends on a tensor's value.",
                hints=["Use `torch.cond` to express the branch."],
                id="GB0170",
                frame=toy(7, "b.sum() < 0"),
                user_stack=[toy(7, "b.sum() < 0")],
            )
        ],
        graphs=[
            Graph(
                name="dynamo",
                stage="dynamo",
                nodes=[
                    given("l_b_", vec),
                    op("sum_1", "Tensor.sum", ["l_b_"], f32(), toy(7, "b.sum()")),
                    op("lt", "operator.lt", ["sum_1"], f32(dtype="bool"), toy(7, "b.sum() < 0")),
                    result("lt"),
                ],
            )
        ],
    )
    third = Compile(
        compile_id="2/0",
        name="torch_dynamo_resume_in_toy_at_7",
        file=CELL,
        first_line=4,
        resume_of="toy",
        call_line=11,
        graphs=[
            Graph(
                name="dynamo",
                stage="dynamo",
                nodes=[
                    given("l_x_", vec),
                    given("l_b_", vec),
                    op("b", "operator.mul", ["l_b_"], vec, toy(8, "b * -1")),
                    op("mul_1", "operator.mul", ["l_x_", "b"], vec, toy(9, "x * b")),
                    result("mul_1"),
                ],
            )
        ],
    )
    return CellRecord(
        cell=3,
        source=TOY,
        mode="calls",
        mode_reason="the cell calls toy, a function of this notebook",
        options={"backend": "eager"},
        versions=VERSIONS,
        compiles=[first, second, third],
        frames=[
            Frame(name="toy", file=CELL, first_line=4, outcome="compiled", compile_id="0/0"),
            Frame(name="<module>", file=CELL, first_line=1, outcome="skipped", reason="module"),
        ],
        calls=[Call(line=11, name="toy", compiles=["0/0", "1/0", "2/0"])],
        findings=[
            Finding(
                code="graph-break",
                severity="warning",
                message="the builtin print ends the graph here",
                advice="Print outside the compiled function, or after the call.",
                line=6,
                lines=[6],
                refs=[Ref("0/0", "break", "0")],
            ),
            Finding(
                code="graph-break",
                severity="warning",
                message="a branch that depends on a tensor's value ends the graph here",
                advice="Use `torch.where` or `torch.cond` to express the branch.",
                line=7,
                lines=[7],
                refs=[Ref("1/0", "break", "0")],
            ),
        ],
    )


DTYPE = """%%dynamo --backend eager
import torch

def toy(x):
    x = torch.relu(x)
    return x * 2

toy(torch.randn(3))
toy(torch.randn(3, dtype=torch.bfloat16))
toy(torch.randn(3))
"""


def dtype_recompile() -> CellRecord:
    """A recompile that the call decides: another dtype; then a hit of an entry."""

    def entry(compile_id: str, line: int, dtype: str, **more: Any) -> Compile:
        value = f32(3, dtype=dtype)
        return Compile(
            compile_id=compile_id,
            name="toy",
            file=CELL,
            first_line=4,
            call_line=line,
            guards=[
                Guard(kind="TENSOR_MATCH", source="L['x']", frame=place(DTYPE, 5, "torch.relu(x)"))
            ],
            graphs=[
                Graph(
                    name="dynamo",
                    stage="dynamo",
                    nodes=[
                        given("l_x_", value),
                        op("x", "torch.relu", ["l_x_"], value, place(DTYPE, 5, "torch.relu(x)")),
                        op("mul", "operator.mul", ["x"], value, place(DTYPE, 6, "x * 2")),
                        result("mul"),
                    ],
                )
            ],
            **more,
        )

    reason = RecompileReason(
        entry="0/0",
        name="x.dtype",
        source="L['x']",
        kind="TENSOR_MATCH",
        guard="check_tensor(L['x'], Tensor, torch.float32, size=[3])",
        was="float32",
        now="bfloat16",
        call_line=9,
        frame=place(DTYPE, 5, "torch.relu(x)"),
        text="tensor 'x' dtype mismatch. expected Float, actual BFloat16",
    )
    return CellRecord(
        source=DTYPE,
        mode="calls",
        mode_reason="the cell calls toy, a function of this notebook",
        options={"backend": "eager"},
        versions=VERSIONS,
        compiles=[
            entry("0/0", 8, "float32"),
            entry("0/1", 9, "bfloat16", recompile_reasons=[reason]),
        ],
        calls=[
            Call(line=8, name="toy", compiles=["0/0"]),
            Call(line=9, name="toy", compiles=["0/1"]),
            Call(line=10, name="toy", hits={"0/0": 1}),
        ],
        findings=[
            Finding(
                code="recompile",
                severity="warning",
                message="x has another dtype at this call: float32 -> bfloat16",
                advice="Give the function one dtype, or compile it once for each.",
                line=9,
                lines=[5, 9],
                refs=[Ref("0/1", "recompile", "0")],
            )
        ],
    )


COUNTER = """%%dynamo --backend eager
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = 0

    def forward(self, x):
        self.counter += 1
        return x + self.counter

net = Net()
for _ in range(8):
    net(torch.randn(4))
"""


def attribute_recompiles() -> CellRecord:
    """Seven recompiles for one attribute that the function itself changes; then the limit."""

    def entry(index: int) -> Compile:
        read = place(COUNTER, 10, "self.counter", "forward")
        reasons = [
            RecompileReason(
                entry=f"0/{older}",
                source="L['self'].counter",
                kind="EQUALS_MATCH",
                guard=f"L['self'].counter == {older}",
                was=str(older),
                now=str(index),
                call_line=15,
                frame=read,
                text=f"L['self'].counter == {older}",
            )
            for older in reversed(range(index))
        ]
        body = place(COUNTER, 11, "x + self.counter", "forward")
        return Compile(
            compile_id=f"0/{index}",
            name="forward",
            file=CELL,
            first_line=9,
            call_line=15,
            guards=[
                Guard(kind="EQUALS_MATCH", source="L['self'].counter", frame=read, value=str(index))
            ],
            recompile_reasons=reasons,
            graphs=[
                Graph(
                    name="dynamo",
                    stage="dynamo",
                    nodes=[
                        given("l_x_", f32(4)),
                        op("add", "operator.add", ["l_x_"], f32(4), body),
                        result("add"),
                    ],
                )
            ],
        )

    return CellRecord(
        source=COUNTER,
        mode="calls",
        mode_reason="the cell calls net, a module of this notebook",
        versions=VERSIONS,
        compiles=[entry(index) for index in range(8)],
        frames=[
            Frame(
                name="forward",
                file=CELL,
                first_line=9,
                outcome="failed",
                reason="the recompile limit of 8 was reached",
            )
        ],
        calls=[
            Call(
                line=15,
                name="net",
                compiles=[f"0/{index}" for index in range(8)],
                eager=2,
                reason="the recompile limit of 8 was reached",
            )
        ],
        findings=[
            Finding(
                code="recompile",
                severity="warning",
                message="self.counter changes at each call: 0 -> 1 -> 2 … 7",
                advice="Set torch._dynamo.config.allow_unspec_int_on_nn_module = True.",
                line=10,
                lines=[10, 15],
                count=7,
                refs=[Ref("0/1", "recompile", "0")],
            )
        ],
    )


FAILED = """%%dynamo --fullgraph
import torch

def pick(x):
    if x.sum() > 0:
        return x
    return -x

pick(torch.ones(3))
"""


def failed() -> CellRecord:
    """A cell whose only compile failed, and with it the cell."""
    frame = place(FAILED, 5, "x.sum() > 0", "pick")
    return CellRecord(
        source=FAILED,
        mode="calls",
        mode_reason="the cell calls pick, a function of this notebook",
        options={"fullgraph": True},
        versions=VERSIONS,
        compiles=[
            Compile(
                compile_id="0/0",
                name="pick",
                file=CELL,
                first_line=4,
                call_line=9,
                status="failed",
                reason="Data-dependent branching",
                error=CompileError(
                    type="Unsupported",
                    message="Data-dependent branching\\n  Explanation: …",
                    kind="Data-dependent branching",
                    explanation="Data-dependent branching, e.g. `if my_tensor.sum() > 0:`.",
                    hints=["Use `torch.cond` to express dynamic control flow."],
                    frame=frame,
                    user_stack=[frame],
                ),
            )
        ],
        frames=[Frame(name="pick", file=CELL, first_line=4, outcome="failed", compile_id="0/0")],
        findings=[
            Finding(
                code="compile-error",
                severity="error",
                message="fullgraph=True, and a branch depends on a tensor's value",
                advice="Use `torch.cond` to express dynamic control flow.",
                line=5,
                lines=[5],
                refs=[Ref("0/0", "compile", "")],
            )
        ],
        error=CellError(type="Unsupported", message="Data-dependent branching", line=9),
    )


TRAIN = """%%dynamo
import torch

lin = torch.nn.Linear(8, 8)

def step(x):
    h = torch.relu(lin(x))
    return (h * h).sum()

step(torch.randn(4, 8)).backward()
"""

KERNEL = """\
cpp_fused_relu_mul_sum_0 = async_compile.cpp_pybinding(['const float*', 'float*'], '''
#include "/tmp/torchinductor_someone/2r/c2rnilspx43ivnzu4uieul65kx65dfhfbptbh5og4wk6rqebuxoo.h"
extern "C" void kernel(const float* in_ptr0, float* out_ptr0)
{
    for (int64_t x0 = 0; x0 < 32L; x0 += 8L) { /* … */ }
}
''')
"""


def training_step() -> CellRecord:
    """Forward and backward of one training step, every stage, with fused and extern kernels."""
    lin = place(TRAIN, 7, "lin(x)", "step")
    relu = place(TRAIN, 7, "torch.relu(lin(x))", "step")
    mul = place(TRAIN, 8, "h * h", "step")
    total = place(TRAIN, 8, "(h * h).sum()", "step")
    stack = [["lin", "torch.nn.modules.linear.Linear"]]
    mat, scalar = f32(4, 8), f32()

    def nodes(style: str) -> list[Node]:
        target = {"dynamo": "torch.nn.functional.{}", "aten": "aten.{}.default"}[style]
        linear = Node(
            name="linear" if style == "dynamo" else "addmm",
            op="call_function",
            target=target.format("linear" if style == "dynamo" else "addmm"),
            inputs=["primals_1", "primals_2", "primals_3"],
            value=mat,
            frames=[lin, StackFrame(file="torch/nn/modules/linear.py", line=134, name="forward")],
            module_stack=stack,
        )
        return [
            given("primals_1", mat),
            given("primals_2", f32(8, 8, requires_grad=True)),
            given("primals_3", f32(8, requires_grad=True)),
            linear,
            op("relu", target.format("relu"), [linear.name], mat, relu),
            op("mul", target.format("mul"), ["relu", "relu"], mat, mul),
            op("sum_1", target.format("sum"), ["mul"], scalar, total),
            result("sum_1"),
        ]

    def backward() -> list[Node]:
        gradient = {"is_backward": True, "op": "call_function", "value": mat}
        return [
            given("tangents_1", scalar),
            Node(
                name="expand",
                target="aten.expand.default",
                frames=[total],
                inputs=["tangents_1"],
                **gradient,
            ),
            Node(
                name="mul_1", target="aten.mul.Tensor", frames=[mul], inputs=["expand"], **gradient
            ),
            Node(name="le", target="aten.le.Scalar", frames=[relu], inputs=["mul_1"], **gradient),
            Node(
                name="mm",
                target="aten.mm.default",
                frames=[lin],
                inputs=["le"],
                module_stack=stack,
                **gradient,
            ),
            result("mm"),
        ]

    entry = Compile(
        compile_id="0/0",
        name="step",
        file=CELL,
        first_line=6,
        call_line=10,
        guards=[
            Guard(kind="TENSOR_MATCH", source="L['x']", frame=lin, value="f32[4, 8]"),
            Guard(
                kind="TYPE_MATCH",
                source="G['lin']",
                frame=lin,
                code=["___check_type_id(G['lin'], 94381234567890)"],
            ),
            Guard(kind="GRAD_MODE"),
        ],
        guard_tree=GuardTree(
            source="L",
            manager="RootGuardManager",
            leaf_guards=[LeafGuard(kind="GLOBAL_STATE", code=["___check_global_state()"])],
            children=[
                GuardTree(
                    source="L['x']",
                    manager="GuardManager",
                    accessor="DictGetItemGuardAccessor('x')",
                )
            ],
        ),
        shape_guards=[ShapeGuard(expr="s77 >= 2", frame=lin)],
        symbols=[
            Symbol(
                name="s77", sources=["L['x'].size()[0]"], hint="4", range="[2, int_oo]", frame=lin
            )
        ],
        graphs=[
            Graph(name="dynamo", stage="dynamo", nodes=nodes("dynamo")),
            Graph(name="joint", stage="joint", nodes=nodes("aten")[:-1] + backward()),
            Graph(name="forward", stage="forward", nodes=nodes("aten")),
            Graph(name="backward", stage="backward", nodes=backward()),
            Graph(
                name="post_grad.forward",
                stage="post_grad",
                direction="forward",
                nodes=nodes("aten"),
            ),
            Graph(
                name="post_grad.backward", stage="post_grad", direction="backward", nodes=backward()
            ),
        ],
        kernels=[
            Kernel(
                name="cpp_fused_relu_mul_sum_0",
                language="cpp",
                graph="post_grad.forward",
                code=KERNEL,
                nodes=["relu", "mul", "sum_1"],
                calls=1,
                code_line=9,
            ),
            Kernel(
                name="extern_kernels.addmm",
                language="extern",
                graph="post_grad.forward",
                nodes=["addmm"],
                calls=1,
                code_line=12,
            ),
            Kernel(
                name="cpp_fused_expand_le_mul_1",
                language="cpp",
                graph="post_grad.backward",
                code=KERNEL.replace("relu_mul_sum_0", "expand_le_mul_1"),
                nodes=["expand", "mul_1", "le"],
                calls=1,
            ),
            Kernel(
                name="extern_kernels.mm",
                language="extern",
                graph="post_grad.backward",
                nodes=["mm"],
                calls=2,
            ),
        ],
        output_code=[
            OutputCode(
                graph="post_grad.forward", code=f"# AOT ID: ['0_forward']\nimport torch\n{KERNEL}"
            ),
            OutputCode(graph="post_grad.backward", code="# AOT ID: ['0_backward']\nimport torch\n"),
        ],
        stages=[
            StageTime(name="entire_frame_compile", start=0.0, seconds=1.5),
            StageTime(name="backend_compile", start=0.1, seconds=1.25),
        ],
        cache={"fxgraph_cache_bypass": 1},
        metrics={"guard_count": 3},
    )
    return CellRecord(
        source=TRAIN,
        mode="calls",
        mode_reason="the cell calls step, a function of this notebook",
        options={"backend": "inductor"},
        versions=VERSIONS,
        files={
            "torch/nn/modules/linear.py": "\n" * 133
            + "        return F.linear(input, self.weight, self.bias)\n"
        },
        compiles=[entry],
        calls=[Call(line=10, name="step", compiles=["0/0"])],
    )


LIBRARY = """%%dynamo
import models

net = models.Net()
net(x)
"""


def library_model() -> CellRecord:
    """A model that lies in a library: no frame of any node is in the cell, but for the call."""
    module = "class Net:\n    def forward(self, x):\n        return self.lin(x)\n" * 20
    call = StackFrame(file="site/models.py", line=3, name="forward", column=15, end_column=26)
    deep = StackFrame(file="torch/nn/modules/linear.py", line=134, name="forward")
    nodes = [
        given("l_x_", f32(4)),
        given("l_weight_", f32(4, 4)),
        op("linear", "torch._C._nn.linear", ["l_x_", "l_weight_"], f32(4), call, deep),
        result("linear"),
    ]
    entry = Compile(
        compile_id="0/0",
        name="Net.forward",
        file="site/models.py",
        first_line=2,
        call_line=5,
        graphs=[Graph(name="dynamo", stage="dynamo", nodes=nodes)],
        kernels=[
            Kernel(name="extern_kernels.mm", language="extern", graph="dynamo", nodes=["linear"])
        ],
    )
    return CellRecord(
        source=LIBRARY,
        mode="calls",
        files={"torch/nn/modules/linear.py": "\n" * 140, "site/models.py": module},
        compiles=[entry],
        calls=[Call(line=5, name="net", compiles=["0/0"])],
    )


NASTY = "</script><script>alert(1)</script><b onclick='x()'>\"&amp;]]><!-- \x1b[31m\x00\ud800\u202e"


def hostile() -> CellRecord:
    """Text that tries to get out of every place it is put in."""
    source = f"%%dynamo\nx = '{NASTY}'\n\ty = x  # </pre></details></table>\nf(x)\n"
    frame = place(source, 3, "y = x", NASTY)
    far = StackFrame(file=f"/tmp/{NASTY}.py", line=1, name=NASTY, column=0, end_column=3)
    node = Node(
        name=NASTY,
        op=NASTY,
        target=NASTY,
        inputs=[NASTY],
        value=NASTY,
        frames=[far, frame],
        module_stack=[[NASTY, NASTY]],
    )
    call = Node(
        name="ok",
        op="call_function",
        target=NASTY,
        inputs=[NASTY],
        value=[f32(NASTY), NASTY],
        frames=[frame],
    )
    graph = Graph(name=NASTY, stage="dynamo", nodes=[node, call])
    entry = Compile(
        compile_id=NASTY,
        name=NASTY,
        file=NASTY,
        first_line=1,
        status="failed",
        reason=NASTY,
        error=CompileError(type=NASTY, message=NASTY, hints=[NASTY], frame=frame),
        guards=[Guard(kind=NASTY, source=NASTY, code=[NASTY], frame=frame, value=NASTY)],
        guard_tree=GuardTree(
            source=NASTY, manager=NASTY, leaf_guards=[LeafGuard(kind=NASTY, code=[NASTY])]
        ),
        shape_guards=[ShapeGuard(expr=NASTY, frame=far)],
        symbols=[Symbol(name=NASTY, sources=[NASTY], hint=NASTY, range=NASTY)],
        graph_breaks=[
            GraphBreak(
                kind=NASTY,
                reason=NASTY,
                explanation=NASTY,
                hints=[NASTY],
                url="javascript:alert(1)",
                frame=frame,
            )
        ],
        recompile_reasons=[
            RecompileReason(
                entry=NASTY, source=NASTY, was=NASTY, now=NASTY, frame=frame, call_line=4
            )
        ],
        graphs=[graph],
        kernels=[Kernel(name=NASTY, language=NASTY, graph=NASTY, code=NASTY, nodes=[NASTY])],
        output_code=[OutputCode(graph=NASTY, code=NASTY)],
        bytecode=Bytecode(
            before=[Instruction(offset=0, opname=NASTY, argument=NASTY, frame=frame)]
        ),
        stages=[StageTime(name=NASTY, start=0.0, seconds=1.0)],
        cache={NASTY: 1},
        metrics={NASTY: NASTY},
    )
    return CellRecord(
        name=NASTY,
        source=source,
        mode=NASTY,
        mode_reason=NASTY,
        options={NASTY: NASTY},
        device=NASTY,
        versions=Versions(torch=NASTY),
        files={far.file: f"{NASTY}\n"},
        compiles=[entry],
        frames=[Frame(name=NASTY, file=CELL, first_line=2, outcome=NASTY, reason=NASTY)],
        calls=[
            Call(
                line=4,
                name=NASTY,
                compiles=[NASTY],
                hits={NASTY: 2},
                hits_from={NASTY: 1},
                reason=NASTY,
                eager=1,
                eager_modules=[NASTY],
            )
        ],
        findings=[
            Finding(
                code=NASTY,
                severity=NASTY,
                message=NASTY,
                advice=NASTY,
                line=3,
                lines=[3],
                frame=frame,
            ),
            Finding(code="graph-break", severity="warning", message=NASTY, advice=NASTY, frame=far),
        ],
        notes=[Note(hook=NASTY, panel=NASTY, message=NASTY)],
        error=CellError(type=NASTY, message=NASTY, line=3),
        unparsed={NASTY: 1},
    )


def empty() -> CellRecord:
    """A cell with only the magic's line."""
    return CellRecord(source="%%dynamo\n", mode="as-is", mode_reason="the cell is empty")


def incomplete() -> CellRecord:
    """A record some of whose hooks failed, with an entry that only the cache knows."""
    source = "%%dynamo\ny = net(x)\n"
    return CellRecord(
        source=source,
        mode="calls",
        mode_reason="the cell calls net, a module of this notebook",
        versions=VERSIONS,
        compiles=[
            Compile(
                compile_id="0/0",
                name="forward",
                file="model.py",
                first_line=12,
                cell=1,
                seen="guards",
                guards=[Guard(kind="TENSOR_MATCH", source="L['x']")],
            )
        ],
        calls=[
            Call(
                line=2,
                name="net",
                hits={"0/0": 2},
                hits_from={"0/0": 1},
                eager_modules=["head (Linear)"],
            )
        ],
        notes=[
            Note(
                hook="call_user_compiler",
                panel="Dynamo graphs",
                message="AttributeError: no attribute",
            )
        ],
        unparsed={"artifact:new_thing": 3, "odd_event": 1},
    )


def huge(count: int = 3000) -> CellRecord:
    """A synthetic record of `count` nodes a graph, on 200 lines, with as many guards and breaks."""
    lines = 200
    source = "%%dynamo\ndef f(x):\n" + "".join(
        f"    x = x + {i}  # {'long ' * 20}\n" for i in range(lines)
    )
    frames = [place(source, 3 + i, f"x + {i}", "f") for i in range(lines)]
    nodes = [
        op(f"add_{i}", "aten.add.Tensor", [f"add_{i - 1}"], f32(64, 64), frames[i % lines])
        for i in range(count)
    ]
    stages = ("dynamo", "joint", "forward", "backward", "post_grad")
    compiles = [
        Compile(
            compile_id=f"{index}/0",
            name=f"f_{index}",
            file=CELL,
            first_line=2,
            guards=[
                Guard(
                    kind="ID_MATCH", source=f"G['g{i}']", frame=frames[i % lines], code=["x" * 500]
                )
                for i in range(500)
            ],
            graph_breaks=[
                GraphBreak(kind="print", frame=frames[i], hints=["hint"]) for i in range(50)
            ],
            graphs=[Graph(name=stage, stage=stage, nodes=nodes) for stage in stages],
            kernels=[
                Kernel(
                    name=f"cpp_{i}",
                    language="cpp",
                    graph="post_grad",
                    code="int x;\n" * 500,
                    nodes=[f"add_{i}"],
                )
                for i in range(300)
            ],
            output_code=[OutputCode(graph="post_grad", code="y = x\n" * 20_000)],
        )
        for index in range(4)
    ]
    return CellRecord(
        source=source,
        mode="cell",
        mode_reason="the cell defines nothing",
        compiles=compiles,
        calls=[Call(line=3 + i, name="f", compiles=["0/0"]) for i in range(lines)],
        findings=[
            Finding(
                code="graph-break",
                severity="warning",
                message=f"break {i}",
                advice="Move it out.",
                line=3 + i,
                lines=[3 + i],
            )
            for i in range(120)
        ],
    )


SAMPLES = {
    sample.__name__: sample
    for sample in (
        graph_breaks,
        dtype_recompile,
        attribute_recompiles,
        failed,
        training_step,
        library_model,
        hostile,
        empty,
        incomplete,
        huge,
    )
}
