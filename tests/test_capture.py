"""The capture on real compiles: what each hook brings home."""

from __future__ import annotations

import textwrap

import pytest

from dynamo_nb.record.types import Compile, RecompileReason
from tests.capturing import Captured

TRAIN = textwrap.dedent(
    """\
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(8, 8)

        def forward(self, x):
            h = torch.nn.functional.gelu(self.first(x))
            return (h * torch.sigmoid(h)).sum()

    net = Net()
    compiled = torch.compile(net)
    loss = compiled(torch.randn(4, 8))
    loss.backward()
    """
)


@pytest.fixture(scope="module")
def train() -> Compile:
    """The one compile of a training step through Inductor."""
    captured = Captured(TRAIN)
    assert captured.error is None
    assert captured.record.notes == []
    assert captured.record.unparsed == {}
    (compile_,) = captured.record.compiles
    return compile_


def test_every_stage_has_its_graph(train: Compile) -> None:
    assert [graph.name for graph in train.graphs] == [
        "dynamo",
        "joint",
        "forward",
        "backward",
        "post_grad.forward",
        "post_grad.backward",
    ]


def test_call_nodes_lead_to_their_lines(train: Compile) -> None:
    for graph in train.graphs:
        for node in graph.nodes:
            if node.op == "call_function":
                lines = {frame.line for frame in node.frames if frame.file == "<cell>"}
                assert lines & {7, 8}, f"{graph.name}/{node.name}"


def test_dynamo_nodes_have_columns(train: Compile) -> None:
    graph = train.graph("dynamo")
    assert graph is not None
    sigmoid = next(node for node in graph.nodes if node.name.startswith("sigmoid"))
    assert sigmoid.target == "torch.sigmoid"
    frame = sigmoid.frames[-1]
    line = TRAIN.splitlines()[frame.line - 1]
    assert line[frame.column : frame.end_column] == "torch.sigmoid(h)"


def test_backward_nodes_lead_to_forward_modules(train: Compile) -> None:
    graph = train.graph("backward")
    assert graph is not None
    matmuls = [node for node in graph.nodes if node.target == "aten.mm.default"]
    assert matmuls
    assert all(node.is_backward for node in matmuls)
    assert all(node.module_stack[-1][1] == "Linear" for node in matmuls)
    assert all(any(o.startswith("dynamo/") for o in node.origins) for node in matmuls)


def test_inputs_lead_back_to_dynamos(train: Compile) -> None:
    graph = train.graph("joint")
    assert graph is not None
    inputs = [node for node in graph.nodes if node.name.startswith("primals_")]
    assert [node.origins[-1].split("/")[0] for node in inputs] == ["dynamo"] * len(inputs)
    assert len(inputs) == 3


def test_kernels_name_their_nodes_and_place_in_the_output_code(train: Compile) -> None:
    code = {output.graph: output.code.splitlines() for output in train.output_code}
    assert set(code) == {"post_grad.forward", "post_grad.backward"}
    fused = [kernel for kernel in train.kernels if kernel.language == "cpp"]
    assert {kernel.graph for kernel in fused} == set(code)
    for kernel in fused:
        graph = train.graph(kernel.graph)
        assert graph is not None
        assert kernel.nodes
        assert set(kernel.nodes) <= {node.name for node in graph.nodes}
        assert 'extern "C"' in kernel.code
        assert kernel.code_line is not None
        assert code[kernel.graph][kernel.code_line - 1].startswith(f"{kernel.name} = ")
    assert any(kernel.language == "extern" for kernel in train.kernels)


def test_bytecode_before_and_after(train: Compile) -> None:
    assert train.bytecode is not None
    assert any(i.argument == "sigmoid" for i in train.bytecode.before)
    assert not any(i.argument == "sigmoid" for i in train.bytecode.after)
    assert any("__compiled_fn" in i.argument for i in train.bytecode.after)


def test_guards_name_line_and_value(train: Compile) -> None:
    guard = next(g for g in train.guards if g.source == "L['x']")
    assert guard.kind == "TENSOR_MATCH"
    assert guard.value == "float32[4, 8] on cpu"
    assert guard.code[0].startswith("check_tensor(L['x'], Tensor")
    assert guard.frame is not None
    assert guard.frame.line == 7
    assert train.guard_tree is not None
    assert train.guard_tree.children


def test_times_and_metrics(train: Compile) -> None:
    names = {stage.name for stage in train.stages}
    assert any("backward" in name or "bwd" in name for name in names)
    assert all(stage.seconds >= 0 for stage in train.stages)
    assert train.metrics["co_name"] == "forward"


def test_warm_caches_do_not_hide_the_code() -> None:
    for _ in range(2):
        captured = Captured("f = torch.compile(lambda x: x.sin() + 1)\nf(torch.ones(3))\n")
        (compile_,) = captured.record.compiles
        assert [kernel.language for kernel in compile_.kernels] == ["cpp"]
        assert compile_.graph("post_grad.inference") is not None


BREAK = textwrap.dedent(
    """\
    def helper(z):
        é = "ü"; print(é)
        return z * 2

    @torch.compile(backend="eager")
    def f(x):
        y = torch.cos(x)
        return helper(y) + 1

    f(torch.ones(3))
    f(torch.ones(3))
    """
)


def test_break_in_an_inlined_function_has_its_exact_place() -> None:
    record = Captured(BREAK).record
    first = record.compiles[0].graph_breaks[0]
    assert first.frame is not None
    assert (first.frame.line, first.frame.name) == (2, "helper")
    line = BREAK.splitlines()[1]
    assert line[first.frame.column : first.frame.end_column] == "print(é)"
    assert first.kind == "Failed to trace builtin operator"
    assert first.id == "GB0059"
    assert "print" in first.explanation
    assert any("print" in hint for hint in first.hints)
    assert [attempt.status for attempt in record.compiles[0].attempts] == ["restarted", "ok"]


def test_calls_say_what_was_compiled_and_what_was_hit() -> None:
    record = Captured(BREAK).record
    by_line = {(call.line, call.name): call for call in record.calls}
    assert by_line[10, "f"].compiles[0] == "0/0"
    assert by_line[11, "f"].compiles == []
    assert by_line[11, "f"].hits["0/0"] == 1


RECOMPILES = {
    "dtype": (
        "x * 2",
        "(torch.ones(3)), (torch.ones(3, dtype=torch.float64))",
        "x.dtype",
        "float32",
        "float64",
    ),
    "size": ("x * 2", "(torch.ones(3)), (torch.ones(4))", "x.size()[0]", "3", "4"),
    "rank": ("x * 2", "(torch.ones(3)), (torch.ones(3, 3))", "x.dim()", "1", "2"),
    "stride": ("x * 2", "(torch.ones(3, 4)), (torch.ones(4, 3).t())", "x.stride()[0]", "4", "1"),
    "requires_grad": (
        "x * 2",
        "(torch.ones(3)), (torch.ones(3, requires_grad=True))",
        "x.requires_grad",
        "False",
        "True",
    ),
    "scalar": ("torch.ones(3) * x", "(2), (3)", "x", "2", "3"),
    "text": ("torch.ones(3) * len(x)", "('a'), ('bb')", "x", "'a'", "'bb'"),
    "type": ("torch.ones(3) * x", "(2), (2.5)", "type(x)", "int", "float"),
    "list": ("sum(x)", "([torch.ones(3)]), ([torch.ones(3)] * 2)", "len(x)", "1", "2"),
}


def _reason(function: str, calls: str) -> RecompileReason:
    source = f"@torch.compile(backend='eager', dynamic=False)\ndef f(x):\n    return {function}\n\n"
    source += f"for x in [{calls}]:\n    f(x)\n"
    record = Captured(source).record
    assert record.notes == []
    assert len(record.compiles) == 2
    reason: RecompileReason = record.compiles[1].recompile_reasons[0]
    return reason


@pytest.mark.parametrize("case", RECOMPILES)
def test_recompile_says_what_changed(case: str) -> None:
    function, calls, name, was, now = RECOMPILES[case]
    reason = _reason(function, calls)
    assert (reason.name, reason.was, reason.now) == (name, was, now)
    assert reason.entry == "0/0"
    assert reason.call_line == 6
    assert reason.frame is not None
    assert reason.frame.line == 3


def test_recompile_for_global_state() -> None:
    source = (
        "f = torch.compile(lambda x: x.sin(), backend='eager')\n"
        "f(torch.ones(3))\nwith torch.no_grad():\n    f(torch.ones(3))\n"
    )
    reason = Captured(source).record.compiles[1].recompile_reasons[0]
    assert (reason.name, reason.was, reason.now) == ("grad_mode", "True", "False")
    assert reason.call_line == 4


def test_entries_of_an_earlier_capture_are_told_apart() -> None:
    first = Captured("f = torch.compile(lambda x: x + 1, backend='eager')\nf(torch.ones(3))\n")
    compile_ = first.record.compiles[0]
    from msgspec.structs import replace

    again = Captured(
        "f(torch.ones(3))\n",
        namespace=first.namespace,
        fresh=False,
        earlier=[replace(compile_, cell=3)],
    )
    (call,) = again.record.calls
    assert call.hits == {"0/0": 1}
    assert call.hits_from == {"0/0": 3}
    (shown,) = again.record.compiles
    assert (shown.cell, shown.graphs != []) == (3, True)


def test_an_entry_compiled_out_of_sight_shows_its_guards() -> None:
    import torch

    torch._dynamo.reset()
    namespace = {"torch": torch}
    exec("f = torch.compile(lambda x: x + 1, backend='eager')\nf(torch.ones(3))\n", namespace)
    record = Captured("f(torch.ones(3))\n", namespace=namespace, fresh=False).record
    (compile_,) = record.compiles
    assert compile_.seen == "guards"
    assert compile_.guard_tree is not None
    assert record.calls[0].hits == {"0/0": 1}


def test_compile_ids_start_anew_after_a_reset() -> None:
    source = (
        "f = torch.compile(lambda x: x + 1, backend='eager')\nf(torch.ones(3))\n"
        "torch._dynamo.reset()\nf(torch.ones(3))\n"
    )
    record = Captured(source).record
    assert [compile_.key for compile_ in record.compiles] == ["0/0", "0/0@2"]


def test_fullgraph_failure_has_place_and_hints() -> None:
    source = (
        "@torch.compile(backend='eager', fullgraph=True)\ndef f(x):\n"
        "    print('here')\n    return x\n\nf(torch.ones(3))\n"
    )
    captured = Captured(source)
    assert type(captured.error).__name__ == "Unsupported"
    (compile_,) = captured.record.compiles
    assert compile_.status == "failed"
    assert compile_.error is not None
    assert compile_.error.frame is not None
    assert compile_.error.frame.line == 3
    assert any("reorderable_logging_functions" in hint for hint in compile_.error.hints)


def test_skipped_frames_say_why() -> None:
    source = "def g(x):\n    yield x\n\nlist(torch.compile(g, backend='eager')(torch.ones(2)))\n"
    frames = [frame for frame in Captured(source).record.frames if frame.file == "<cell>"]
    assert [(f.name, f.outcome, f.reason) for f in frames] == [
        ("g", "skipped", "Attempt to trace generator")
    ]


def test_modules_outside_every_graph_are_named() -> None:
    source = textwrap.dedent(
        """\
        def report(module, args):
            torch._dynamo.graph_break()

        net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
        net[1].register_forward_pre_hook(report)
        torch.compile(net, backend="eager")(torch.randn(2, 4))
        """
    )
    modules = [m for call in Captured(source).record.calls for m in call.eager_modules]
    assert "2 (Linear)" in modules or "0 (Linear)" in modules


DISABLED = textwrap.dedent(
    """\
    def inner(x):
        return x + 1

    @torch._dynamo.disable(recursive=False)
    def outer(x):
        return inner(x) * 2

    def top(x):
        return outer(x) - 1

    graphs = []

    def backend(module, inputs):
        graphs.append([node.name for node in module.graph.nodes])
        return module.forward

    torch.compile(top, backend=backend)(torch.ones(3))
    """
)


def test_disable_without_recursion_is_honoured() -> None:
    """The hooks must not stand between Dynamo and the frame that it looks for above itself."""
    import torch

    plain = {"torch": torch}
    torch._dynamo.reset()
    exec(DISABLED, plain)
    assert Captured(DISABLED).namespace["graphs"] == plain["graphs"]


def test_a_backward_compiled_in_a_later_cell_joins_its_forward() -> None:
    from msgspec.structs import replace

    first = Captured(
        "net = torch.nn.Linear(4, 4)\nloss = torch.compile(net)(torch.randn(2, 4)).relu().sum()\n"
    )
    earlier = replace(first.record.compiles[0], cell=3)
    record = Captured(
        "loss.backward()\n", namespace=first.namespace, fresh=False, earlier=[earlier]
    ).record
    (compile_,) = record.compiles
    assert compile_.cell == 3
    names = [graph.name for graph in compile_.graphs]
    assert names[-2:] == ["post_grad.forward", "post_grad.backward"]
    matmul = next(node for node in compile_.graphs[-1].nodes if node.target == "aten.mm.default")
    assert any(origin.startswith("dynamo/") for origin in matmul.origins)
    assert {kernel.graph for kernel in compile_.kernels} >= {"post_grad.backward"}


STEPS = textwrap.dedent(
    """\
    def inner(x):
        return torch.sin(x) * 2

    def outer(x, scale):
        for _ in range(2):
            x = inner(x)
        return x * scale

    torch.compile(outer, backend="eager")(torch.ones(3), 4.0)
    """
)


def test_every_node_and_guard_belongs_to_one_step() -> None:
    (compile_,) = Captured(STEPS).record.compiles
    graph, steps = compile_.graph("dynamo"), compile_.steps
    assert graph is not None
    assert steps is not None
    nodes = [name for step in steps.steps for name in step.nodes]
    assert sorted(nodes) == sorted(node.name for node in graph.nodes)
    guards = [index for step in steps.steps for index in step.guards]
    assert sorted(guards) == list(range(len(compile_.guards)))


def test_inlined_calls_are_nested_and_own_their_nodes() -> None:
    (compile_,) = Captured(STEPS).record.compiles
    steps = compile_.steps
    assert steps is not None
    names = [steps.codes[frame.code].name for frame in steps.frames]
    assert names == ["outer", "inner", "inner"]
    for frame in steps.frames[1:]:
        assert frame.parent is not None
        caller = steps.steps[frame.parent]
        assert caller.frame == 0
        assert steps.codes[0].instructions[caller.instruction].opname.startswith("CALL")
        assert caller.nodes == []
    sines = [s for s in steps.steps if any(name.startswith("sin") for name in s.nodes)]
    assert [step.frame for step in sines] == [1, 2]


def test_the_steps_are_dynamos_own_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    seen: list[str] = []
    original = InstructionTranslatorBase.update_block_stack

    def counted(self: object, inst: object) -> None:
        seen.append(inst.opname)  # type: ignore[attr-defined]
        original(self, inst)

    monkeypatch.setattr(InstructionTranslatorBase, "update_block_stack", counted)
    (compile_,) = Captured(STEPS).record.compiles
    steps = compile_.steps
    assert steps is not None
    names = [
        steps.codes[steps.frames[step.frame].code].instructions[step.instruction].opname
        for step in steps.steps
    ]
    assert names == seen


def test_a_step_names_arguments_and_the_nodes_on_its_stack() -> None:
    (compile_,) = Captured(STEPS).record.compiles
    steps, graph = compile_.steps, compile_.graph("dynamo")
    assert steps is not None
    assert graph is not None
    code = steps.codes[0].instructions
    assert {item.argument for item in code if item.opname == "STORE_FAST"} == {"_", "x"}
    names = {node.name for node in graph.nodes}
    tensors = [value for value in steps.values if value.startswith("tensor ")]
    assert tensors
    assert {value.removeprefix("tensor ") for value in tensors} <= names


def test_inlined_calls_are_listed_with_the_line_that_led_to_them() -> None:
    (compile_,) = Captured(STEPS).record.compiles
    (frame,) = compile_.inlined
    assert (frame.name, frame.outcome, frame.count) == ("inner", "inlined", 2)
    assert (frame.first_line, frame.call_line) == (1, 6)


def test_links_lead_from_a_compile_to_its_lines_and_from_its_bytecode_to_it() -> None:
    record = Captured(STEPS).record
    kinds: dict[str, set[str]] = {}
    for link in record.links:
        kinds.setdefault(link.kind, set()).add(link.b.key or link.b.compile)
    assert kinds["compile-line"] == {"<cell>:2", "<cell>:6", "<cell>:7"}
    assert kinds["instruction-compile"] == {"0/0"}
