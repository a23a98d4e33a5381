"""What the documents on TorchDynamo say happens, seen in the report.

The deep dive, the FAQ, the article on PyTorch 2.1 and the core concepts each have small examples.
Those that still run are here, as cells; where their API or claim is outdated, today's is used, and
a comment says what it replaces. `--backend eager` stands in for Inductor where no kernel is spoken
of.
"""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.conftest import Shell

BREAKING = """\
    def toy_example(a, b):
        x = a / (torch.abs(a) + 1)
        print("woo")
        if b.sum() < 0:
            b = b * -1
        return x * b
"""


class Ran:
    """A cell that was run: its record, and what is asked about it."""

    def __init__(self, shell: Shell, line: str, cell: str, setup: str = "") -> None:
        setup = f"import torch\n_ = torch.manual_seed(0)\n{textwrap.dedent(setup)}"
        assert shell.run(setup).error is None
        self.ran = shell.run(f"%%dynamo {line}\n{textwrap.dedent(cell)}")
        self.record = shell.record
        self.summary: dict[str, Any] = self.record.summary()
        self.namespace = shell.ip.user_ns

    @property
    def error(self) -> str:
        return type(self.ran.error).__name__ if self.ran.error else ""

    @property
    def breaks(self) -> list[tuple[int, int]]:
        return [(place["line"], place["count"]) for place in self.summary["graph_breaks"]]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Graphs, places of breaks, recompiles."""
        return self.summary["graphs"], len(self.breaks), self.summary["recompiles"]

    def codes(self) -> set[str]:
        return {finding.code for finding in self.record.findings}

    def targets(self) -> list[list[str]]:
        """Return the operations of each of Dynamo's graphs."""
        return [
            [node.target for node in graph.nodes if node.op.startswith("call")]
            for entry in self.record.compiles
            for graph in entry.graphs
            if graph.stage == "dynamo"
        ]


@pytest.fixture
def run(shell: Shell):
    return lambda line, cell, setup="": Ran(shell, line, cell, setup)


# ---- the deep dive ------------------------------------------------------------------------------

COMPILER = """\
    graphs = []
    def my_compiler(gm, example_inputs):
        graphs.append([node.name for node in gm.graph.nodes])
        return gm.forward
"""


def test_a_backend_gets_each_graph_once_in_a_hundred_calls(run):
    """`@torchdynamo.optimize(my_compiler)` is `torch.compile(backend=my_compiler)` today."""
    cell = """\
        def toy_example(a, b):
            x = a / (torch.abs(a) + 1)
            if b.sum() < 0:
                b = b * -1
            return x * b
        for _ in range(100):
            toy_example(torch.randn(10), torch.randn(10))
        """
    ran = run("--backend my_compiler", cell, COMPILER)
    assert ran.shape == (3, 1, 0)  # before the `if`, and one for each way on
    assert ran.breaks == [(4, 1)]
    assert len(ran.namespace["graphs"]) == 3
    (call,) = ran.record.calls
    assert call.hits["0/0"] == 99
    assert call.eager == 0


def test_guards_are_a_check_of_types_values_and_tensors(run):
    """`check_fn` was `___check_type_id(y, …) and y == 2 and ___check_tensors(x)`."""
    ran = run("--backend eager", "def f(x, y):\n    return x * y\nf(torch.ones(3), 2)")
    guards = {guard.source: guard for _, guard in ran.record.guards(line=3)}
    assert guards["L['y']"].code == ["L['y'] == 2"]
    assert guards["L['x']"].kind == "TENSOR_MATCH"
    tree = {child.source: child for child in ran.record.compiles[0].guard_tree.children}
    assert tree["L['y']"].value_type == "<class 'int'>"
    assert [leaf.kind for leaf in tree["L['y']"].leaf_guards] == ["EQUALS_MATCH"]


def test_an_entry_that_fails_its_check_is_joined_by_another(run):
    cell = """\
        def f(x, y):
            return x * 2 if y else x
        for y in ("a", "b", "a"):
            f(torch.ones(3), y)
        """
    ran = run("--backend eager", cell)
    assert ran.shape == (2, 0, 1)
    (state,) = ran.record.cache
    assert [entry.entry for entry in state.entries] == ["0/0", "0/1"]
    assert sum(ran.record.calls[0].hits.values()) == 1


def test_instructions_push_and_pop_variable_trackers(run):
    """`LOAD_CONST -1` pushes a constant; `BUILD_TUPLE` pops its items and pushes a tuple."""
    cell = "def f(b):\n    pair = (b * -1, b)\n    return pair[0]\nf(torch.ones(3))"
    ran = run("--backend eager", cell)
    steps = ran.record.compiles[0].steps
    code = steps.codes[0].instructions
    names = [code[step.instruction].opname for step in steps.steps]
    after = steps.steps[names.index("LOAD_CONST") + 1]
    assert steps.values[after.stack[-1]] == "constant -1"
    build = names.index("BUILD_TUPLE")
    assert len(steps.steps[build].stack) == 2
    assert [steps.values[v] for v in steps.steps[build + 1].stack] == ["tuple of 2"]


def test_over_the_limit_the_frame_is_given_up(run):
    """`cache_size_limit` is `recompile_limit` today."""
    cell = """\
        def f(x, word):
            return x + 1 if word else x
        for n in range(5):
            f(torch.ones(3), f"{n} words")
        """
    ran = run("--backend eager --config recompile_limit=2", cell)
    assert ran.summary["graphs"] == 2
    assert "recompile-limit" in ran.codes()
    assert ran.record.calls[0].eager == 3


# ---- the FAQ ------------------------------------------------------------------------------------


def test_explain_and_the_report_tell_the_same(run):
    cell = f"{textwrap.dedent(BREAKING)}toy_example(torch.randn(10), -torch.ones(10))"
    ran = run("--backend eager", cell)
    assert ran.shape == (3, 2, 0)
    assert ran.breaks == [(4, 1), (5, 1)]
    first, second = (b for entry in ran.record.compiles for b in entry.graph_breaks)
    assert "builtin" in first.kind  # was: "builtin: print [...] False"
    assert "Data-dependent" in second.kind  # was: "generic_jump TensorVariable()"
    import torch

    explained = torch._dynamo.explain(ran.namespace["toy_example"])(torch.ones(10), -torch.ones(10))
    assert (explained.graph_count, explained.graph_break_count) == (3, 2)


def test_fullgraph_turns_the_first_break_into_an_error(run):
    cell = f"{textwrap.dedent(BREAKING)}toy_example(torch.randn(10), torch.randn(10))"
    ran = run("--backend eager --fullgraph", cell)
    assert ran.error == "Unsupported"
    (finding,) = ran.record.findings
    assert finding.code == "compile-error"
    assert ran.record.compiles[0].error.frame.line == 4


def test_of_several_graphs_only_the_one_that_changed_is_compiled_again(run):
    cell = f"""{textwrap.dedent(BREAKING)}
for dtype in (torch.float32, torch.float64):
    toy_example(torch.ones(10), -torch.ones(10, dtype=dtype))
"""
    ran = run("--backend eager", cell)
    again = [entry for entry in ran.record.compiles if entry.recompile_reasons]
    assert [entry.resume_of for entry in again] == ["toy_example"] * 2
    assert all(entry.recompile_reasons[0].name == "b.dtype" for entry in again)


TRANSFORMS = {
    "grad": "torch.func.grad(lambda x: x.sin().sum())(x)",
    "vmap": "torch.vmap(lambda x: x.sum(1))(x)",
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_compiled_with_the_rest(run, name):
    cell = f"def wrapper_fn(x):\n    return {TRANSFORMS[name]}\ny = wrapper_fn(torch.ones(3, 3, 3))"
    ran = run("--backend eager", cell)
    assert ran.shape == (1, 0, 0)
    if name == "grad":
        import torch

        assert torch.allclose(ran.namespace["y"], torch.ones(3, 3, 3).cos())


def test_allow_in_graph_belongs_outside_of_the_compiled_function(run):
    """Called within, as the FAQ has it, torch 2.13 breaks the graph and says so."""
    setup = "summed = torch.compiler.allow_in_graph(torch.vmap(torch.sum))"
    cell = "def f(x):\n    return summed(x)\ny = f(torch.ones(2, 3))"
    ran = run("--backend aot_eager", cell, setup)
    assert ran.shape == (1, 0, 0)
    assert ran.namespace["y"].tolist() == [3.0, 3.0]
    inside = """\
        def g(x):
            x = x * 2
            torch._dynamo.allow_in_graph(torch.vmap(torch.sum))
            return x
        g(torch.ones(2, 3))
        """
    ran = run("--backend aot_eager", inside)
    assert ran.breaks == [(4, 1)]
    assert "as a decorator before compilation" in ran.record.findings[0].advice


NUMPY = """\
    import numpy as np
    def numpy_fn(X, Y):
        return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))
    X, Y = np.ones((64, 8)), np.ones((64, 8))
"""


def test_numpy_is_traced_into_one_kernel(run):
    ran = run("", "Z = numpy_fn(X, Y)", NUMPY)
    assert ran.shape == (1, 0, 0)
    assert [kernel.language for kernel in ran.record.compiles[0].kernels] == ["cpp"]
    assert type(ran.namespace["Z"]).__name__ == "ndarray"


def test_numpy_under_a_device_takes_functions(run):
    """On a GPU `cuda`. An operator between arrays fails to trace under a device in 2.13."""
    cell = """\
        def product_sum(X, Y):
            return np.sum(np.multiply(X[:, :, None], Y[:, None, :]), axis=(-2, -1))
        Z = product_sum(X, Y)
        """
    ran = run("--backend eager --device cpu", cell, NUMPY)
    assert ran.shape == (1, 0, 0)
    ran = run("--backend eager --device cpu", "Z = numpy_fn(X, Y)", NUMPY)
    assert ran.error == "TorchRuntimeError"
    assert ran.codes() == {"compile-error"}


def test_gradients_go_through_wrapped_numpy(run):
    cell = """\
        @torch.compiler.wrap_numpy
        def numpy_fn(X, Y):
            return np.mean(np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1)))
        X = torch.ones(4, 3, requires_grad=True)
        Z = numpy_fn(X, torch.ones(4, 3))
        Z.backward()
        """
    ran = run("--backend aot_eager --fullgraph", cell, NUMPY)
    assert ran.shape == (1, 0, 0)
    assert ran.record.compiles[0].graph("backward") is not None
    assert ran.namespace["X"].grad[0].tolist() == [0.75, 0.75, 0.75]


def test_gradients_do_not_outlive_a_graph_break_in_numpy(run):
    cell = """\
        @torch.compiler.wrap_numpy
        def numpy_fn(X, Y):
            prod = X[:, :, None] * Y[:, None, :]
            print("oops, a graph break!")
            return np.sum(prod, axis=(-2, -1))
        Z = numpy_fn(torch.ones(4, 3, requires_grad=True), torch.ones(4, 3))
        """
    ran = run("--backend aot_eager", cell, NUMPY)
    assert ran.breaks == [(5, 1)]
    assert not ran.namespace["Z"].requires_grad


def test_trace_numpy_can_be_switched_off(run):
    ran = run("--backend eager --config trace_numpy=false", "Z = numpy_fn(X, Y)", NUMPY)
    assert ran.summary["graphs"] == 0
    assert ran.namespace["Z"].shape == (64,)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("return a[a > 0].sum()", 3),  # as many elements as the data wills
        ("return np.polynomial.polynomial.polyval(a * 2, [1.0, 0.5])", 3),
    ],
)
def test_what_numpy_code_breaks_the_graph(run, body, line):
    cell = f"def f(a):\n    {body}\nf(np.arange(3.0))"
    ran = run("--backend eager", cell, NUMPY)
    assert [place for place, _ in ran.breaks] == [line]


def test_numpy_scalars_are_arrays_without_dimensions_and_flip_copies(run):
    cell = """\
        def f(a):
            return np.float32(3), np.flip(a)
        a = np.arange(3.0)
        three, flipped = f(a)
        flipped[0] = 10.0
        """
    ran = run("--backend eager", cell, NUMPY)
    assert ran.namespace["three"].shape == ()
    assert ran.namespace["a"].tolist() == [0.0, 1.0, 2.0]


HATCHES = """\
    def inner(x):
        return x.sin()
    def middle(x):
        return torch.sub(inner(x), 0.5)
    def outer(f, x):
        return f(x * 2) + 1
"""

#: What is called, and the operations of each graph.
HATCHED = {
    "none": ("middle", [["_operator.mul", "sin", "torch.sub", "_operator.add"]]),
    "disable": ("torch._dynamo.disable(middle)", [["_operator.mul"], ["_operator.add"]]),
    # was `torch._dynamo.skip`
    "disable(recursive=False)": (
        "torch._dynamo.disable(middle, recursive=False)",
        [["_operator.mul"], ["sin"], ["_operator.add"]],
    ),
}


@pytest.mark.parametrize("name", HATCHED)
def test_disable_says_which_functions_are_read(run, name):
    callee, graphs = HATCHED[name]
    ran = run("--backend eager", f"outer({callee}, torch.ones(3))", HATCHES)
    assert ran.targets() == graphs


def test_disallow_in_graph_is_about_an_operation(run):
    import torch

    torch._dynamo.disallow_in_graph(torch.sub)
    try:
        ran = run("--backend eager", "outer(middle, torch.ones(3))", HATCHES)
    finally:
        torch._dynamo.allow_in_graph(torch.sub)
    assert [line for line, _ in ran.breaks] == [None]  # a line of the cell before
    assert not any("sub" in target for graph in ran.targets() for target in graph)


def test_graph_break_breaks_where_it_stands(run):
    cell = """\
        def f(x):
            x = x.sin()
            torch._dynamo.graph_break()
            return x.cos()
        f(torch.ones(3))
        """
    ran = run("--backend eager", cell)
    assert ran.breaks == [(4, 1)]
    assert ran.targets() == [["sin"], ["cos"]]


# ---- the article on PyTorch 2.1 -----------------------------------------------------------------

TOY_MODEL = """\
    def toy_model(x):
        x = torch.relu(x)
        if x.sum() > 0:
            x = x * 2
        return x
"""


def test_a_branch_on_data_is_not_in_the_graph(run):
    """The article says that the whole graph, branch included, is captured."""
    ran = run(
        "--backend my_compiler",
        f"{textwrap.dedent(TOY_MODEL)}toy_model(torch.ones(3))",
        COMPILER,
    )
    assert ran.shape == (2, 1, 0)
    assert ran.breaks == [(4, 1)]


def test_another_dtype_is_compiled_again(run):
    cell = f"""{textwrap.dedent(TOY_MODEL)}
for dtype in (torch.float32, torch.bfloat16):
    toy_model(torch.ones(3, dtype=dtype))
"""
    ran = run("--backend eager", cell)
    cause = ran.summary["recompile_causes"][0]
    assert (cause["source"], cause["was"], cause["now"]) == ("x.dtype", "float32", "bfloat16")


def test_backends_have_names():
    import torch

    backends = torch._dynamo.list_backends()
    assert "inductor" in backends
    assert not {"nvfuser", "aot_cudagraphs"} & set(backends)  # in the article, and gone


def test_relu_and_sigmoid_are_one_kernel(run):
    cell = """\
        @torch.compile(backend="inductor")
        def fused_ops(x):
            return x.relu() + x.sigmoid()
        fused_ops(torch.ones(64))
        """
    ran = run("", cell)
    (kernel,) = ran.record.compiles[0].kernels
    assert sorted(kernel.nodes) == ["add", "relu", "sigmoid"]


#: The article's pass looks for `torch.add` alone, adds nodes rather than values, and hides errors.
FOLDING = """\
    import operator
    from torch._inductor.compile_fx import compile_fx
    from torch.fx.passes.infra.pass_base import PassBase, PassResult

    class ConstantFoldPass(PassBase):
        def call(self, gm):
            modified = False
            for node in gm.graph.find_nodes(op="call_function", target=operator.add):
                if all(getattr(arg, "target", None) is torch.tensor for arg in node.args):
                    left, right = (arg.args[0] for arg in node.args)
                    with gm.graph.inserting_before(node):
                        total = [a + b for a, b in zip(left, right)]
                        node.replace_all_uses_with(gm.graph.call_function(torch.tensor, (total,)))
                    gm.graph.erase_node(node)
                    modified = True
            gm.graph.eliminate_dead_code()
            gm.recompile()
            return PassResult(gm, modified)

    sizes = []
    def custom_compiler(gm, example_inputs):
        before = len(gm.graph.nodes)
        gm = ConstantFoldPass()(gm).graph_module
        sizes.append((before, len(gm.graph.nodes)))
        return compile_fx(gm, example_inputs)
"""


def test_a_pass_in_a_backend_that_ends_in_inductor(run):
    cell = """\
        def optimized_fn(x):
            return x + (torch.tensor([1.0]) + torch.tensor([2.0]))
        y = optimized_fn(torch.ones(3))
        """
    ran = run("--backend custom_compiler", cell, FOLDING)
    assert ran.namespace["sizes"] == [(6, 4)]
    assert ran.namespace["y"].tolist() == [4.0, 4.0, 4.0]
    adds = [n for n in ran.record.compiles[0].graph("inference").nodes if "add" in n.target]
    assert len(adds) == 1


def test_the_profiler_sees_one_kernel_in_place_of_three_operations(run):
    """`torch.randn(1e6)` raises, as it did then: a size is an integer."""
    cell = """\
        def optimized_fn(x):
            return x.relu() + x.sigmoid()
        x = torch.ones(64)
        _ = optimized_fn(x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            _ = optimized_fn(x)
        names = [event.key for event in prof.key_averages()]
        """
    ran = run("", cell)
    names = ran.namespace["names"]
    assert not {"aten::relu", "aten::sigmoid", "aten::add"} & set(names)
    assert any("CompiledFxGraph" in name for name in names)
    assert ran.record.calls[-1].hits == {"0/0": 1}


def test_autocast_is_traced(run):
    """`torch.cuda.amp.autocast()` is `torch.autocast(device)` today."""
    cell = """\
        def train_step(x, target):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return torch.nn.functional.cross_entropy(model(x), target)
        train_step(torch.ones(4, 8), torch.tensor([0, 1, 2, 0])).backward()
        """
    ran = run("--backend aot_eager", cell, "model = torch.nn.Linear(8, 3)")
    assert ran.shape == (1, 0, 0)
    forward = ran.record.compiles[0].graph("forward")
    assert "bfloat16" in {getattr(node.value, "dtype", "") for node in forward.nodes}


# ---- the core concepts --------------------------------------------------------------------------


def test_a_compile_has_a_graph_bytecode_and_guards(run):
    cell = """\
        seen = []
        def fn(x):
            seen.append(1)
            return x + 1
        fn(torch.ones(3, 3))
        """
    ran = run("--backend eager", cell)
    (entry,) = ran.record.compiles
    assert ran.targets() == [["_operator.add"]]
    assert entry.bytecode.before
    assert any("__compiled_fn" in item.argument for item in entry.bytecode.after)
    assert [g.kind for _, g in ran.record.guards("x")] == ["TENSOR_MATCH"]
    assert ran.namespace["seen"] == [1]  # the side effect is the new bytecode's part


def test_torch_save_runs_between_two_graphs(run):
    cell = """\
        def f(x):
            y = x ** 2 / 2
            torch.save(y, buffer)
            z = y ** 3 / 6
            return z
        f(torch.ones(3))
        """
    ran = run("--backend eager", cell, "import io\nbuffer = io.BytesIO()")
    assert ran.shape == (2, 1, 0)
    assert ran.breaks == [(4, 1)]
    power_and_quotient = ["_operator.pow", "_operator.truediv"]
    assert ran.targets() == [power_and_quotient, power_and_quotient]
    assert ran.namespace["buffer"].tell() > 0


SIZES = "fn(torch.ones(3, 3))\nfn(torch.ones(4, 4))"


def test_another_shape_is_compiled_again(run):
    ran = run("--backend eager", f"def fn(x):\n    return x + 1\n{SIZES}")
    assert ran.shape == (2, 0, 1)
    sources = {cause["source"]: cause for cause in ran.summary["recompile_causes"]}
    assert sources["x.size()[0]"]["was"] == "3"
    assert sources["x.size()[0]"]["now"] == "4"
    assert sources["x.size()[0]"]["call_line"] == 5


def test_dynamic_shapes_save_the_recompile(run):
    ran = run("--backend eager --dynamic true", f"def fn(x):\n    return x + 1\n{SIZES}")
    assert ran.shape == (1, 0, 0)
    assert ran.record.calls[-1].hits == {"0/0": 1}


def test_any_length_of_a_sequence_fits_one_entry(run):
    cell = """\
        @torch.compile(dynamic=True, backend="eager")
        def process_variable_length(x):
            return x.mean(dim=1)
        for length in (8, 12, 20):
            process_variable_length(torch.ones(4, length))
        """
    ran = run("", cell)
    assert ran.shape == (1, 0, 0)
    assert sum(ran.record.calls[-1].hits.values()) == 2
