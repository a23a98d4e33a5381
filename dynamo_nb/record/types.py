"""The record: plain, frozen data that says what torch.compile did to one cell.

Everything a view shows comes from here. The names are torch's own; nothing in this package imports
torch or IPython. All structs tolerate unknown keys and fill in missing ones, so that a file written
by another version still opens.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

__all__ = [
    "CELL",
    "SCHEMA_VERSION",
    "Attempt",
    "Binary",
    "Buffer",
    "Bypass",
    "Bytecode",
    "CacheEntry",
    "CacheState",
    "Call",
    "CellError",
    "CellRecord",
    "Check",
    "Compile",
    "CompileError",
    "CompiledObject",
    "EntryCheck",
    "Finding",
    "Folded",
    "Frame",
    "Graph",
    "GraphBreak",
    "GraphPass",
    "Guard",
    "GuardCost",
    "GuardCosts",
    "GuardTree",
    "Instruction",
    "Kernel",
    "KernelTime",
    "LeafGuard",
    "Link",
    "Machine",
    "Measured",
    "Mismatch",
    "Node",
    "NotFused",
    "Note",
    "OutputCode",
    "PassRow",
    "RecompileReason",
    "Ref",
    "ShapeGuard",
    "SkippedCudagraph",
    "Specialization",
    "StackFrame",
    "StageText",
    "StageTime",
    "Step",
    "StepCode",
    "StepFrame",
    "Steps",
    "Symbol",
    "Target",
    "TensorValue",
    "Timing",
    "Versions",
    "Would",
]

SCHEMA_VERSION = 1

#: The file name under which the recorded cell itself appears in every `StackFrame`.
CELL = "<cell>"


class _Data(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all record structs: frozen, keyword-only, defaults left out of the JSON."""


class StackFrame(_Data, frozen=True):
    """One place in source code.

    `file` is `CELL` for the recorded cell, `<cell N>` for the cell with execution count N, and a
    short path for a file on disk. Lines count from 1; columns count characters from 0, and
    `end_column` is exclusive. `name` is the function the place is in.
    """

    file: str
    line: int
    name: str = ""
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


class Ref(Struct, frozen=True, array_like=True):
    """The address of one thing in the record, unique within it.

    ============ ================================ =======================================
    artifact     key                              compile
    ============ ================================ =======================================
    line         `<file>:<line>`                  empty
    node         `<graph name>/<node name>`       key of the compile, e.g. `0/1`
    guard        index in `Compile.guards`        same
    break        index in `Compile.graph_breaks`  same
    recompile    index in `recompile_reasons`     same
    kernel       `<graph name>/<kernel name>`     same
    code         `<graph name>:<line>`            same (a line of output code)
    instruction  `before:<offset>`/`after:<...>`  same
    step         index in `Steps.steps`           same
    compile      empty                            same
    ============ ================================ =======================================
    """

    compile: str
    artifact: str
    key: str


class Link(Struct, frozen=True, array_like=True):
    """Two things that belong together. `kind` is `<artifact of a>-<artifact of b>`."""

    kind: str
    a: Ref
    b: Ref


class TensorValue(_Data, frozen=True):
    """What a graph node holds when it is a tensor. Symbolic sizes are text, e.g. `s77`."""

    shape: list[int | str]
    dtype: str
    device: str = "cpu"
    stride: list[int | str] | None = None
    requires_grad: bool = False


class Node(_Data, frozen=True):
    """One FX node. `frames` are its source frames, outermost first.

    `value` is a tensor, a list of values for a node with several results, or short text for
    anything else. `module_stack` holds `[path, class name]` pairs, outermost first. `origins` are
    the names of the nodes of earlier graphs that it came from, as `<graph name>/<node name>`.
    """

    name: str
    op: str
    target: str
    inputs: list[str] = []
    value: TensorValue | list[TensorValue | str | None] | str | None = None
    frames: list[StackFrame] = []
    module_stack: list[list[str]] = []
    original_aten: str = ""
    is_backward: bool = False
    origins: list[str] = []


class Graph(_Data, frozen=True):
    """One FX graph at one stage of the stack.

    `stage` is one of `dynamo`, `pre_grad`, `joint`, `forward`, `backward`, `inference`,
    `post_grad`. `direction` (`forward`, `backward`, `inference`) tells post-grad graphs apart.
    `name` is unique within its compile: the stage, with the direction after a dot where there is
    one (`post_grad.backward`), and a number where the same comes twice (`dynamo#2`).
    """

    name: str
    stage: str
    direction: str = ""
    nodes: list[Node] = []


class PassRow(_Data, frozen=True):
    """A node that a graph pass `added`, `removed` or `changed` (its `kind`).

    `before` and `after` are what the node computes, as `target(arguments) -> value`; empty where
    it is not. `frame` is the source line that it comes from.
    """

    kind: str
    node: str
    before: str = ""
    after: str = ""
    frame: StackFrame | None = None


class GraphPass(_Data, frozen=True):
    """What a pass over a graph did to it.

    `name` is Inductor's: `pre_grad`, `joint`, `post_grad` for a whole group of passes, or the
    setting that holds a custom pass (`post_grad_custom_pre_pass`). A custom pass has its
    `function` and the `frame` where that is defined. `rows` are the nodes that differ, in the order
    of the graph, `same` counts the others. `error` says that the pass raised, or left a graph that
    FX calls broken.
    """

    name: str
    direction: str = ""
    function: str = ""
    frame: StackFrame | None = None
    rows: list[PassRow] = []
    same: int = 0
    error: str = ""


class Guard(_Data, frozen=True):
    """One guard that Dynamo made while it traced a frame.

    `kind` is torch's name (`TENSOR_MATCH`), `source` the guarded expression (`L['x']`), `code` the
    conditions that are checked, `frame` the user line that caused it, `value` what it saw.
    """

    kind: str
    source: str = ""
    origin: str = ""
    code: list[str] = []
    frame: StackFrame | None = None
    user_stack: list[StackFrame] = []
    value: str = ""


class LeafGuard(_Data, frozen=True):
    """One check at a place of the guard tree."""

    kind: str
    code: list[str] = []


class GuardTree(_Data, frozen=True):
    """The guard manager tree that is run at each call, in the order of its checks."""

    source: str = ""
    manager: str = ""
    accessor: str = ""
    value_type: str = ""
    leaf_guards: list[LeafGuard] = []
    children: list[GuardTree] = []


class GuardCost(_Data, frozen=True):
    """What checking one source costs at each look-up, measured with warm CPU caches.

    `managers` counts the guard managers in it: 1 when it is the source alone, more when the time is
    that of all that is reached through it.
    """

    source: str
    microseconds: float
    managers: int = 1


class GuardCosts(_Data, frozen=True):
    """What checking the guards of one entry costs, measured: `parts` have the dearest first.

    `microseconds` is one whole check, `call_microseconds` one whole call that hits the entry.
    """

    callee: str
    entry: str
    microseconds: float
    call_microseconds: float
    parts: list[GuardCost] = []

    @property
    def share(self) -> float:
        """The part of a call that is spent in guards, from 0 to 1."""
        return min(1.0, self.microseconds / self.call_microseconds)

    def __str__(self) -> str:
        """Return the measurement as text."""
        from dynamo_nb.views.costs import to_text

        return to_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the measurement as a notebook shows it."""
        from dynamo_nb.views.costs import to_html

        return to_html(self)


class ShapeGuard(_Data, frozen=True):
    """One condition on symbolic sizes, and the user line that asked for it."""

    expr: str
    frame: StackFrame | None = None
    user_stack: list[StackFrame] = []


class Symbol(_Data, frozen=True):
    """One symbolic size or scalar: where it comes from, the value seen, its range."""

    name: str
    sources: list[str] = []
    hint: str = ""
    range: str = ""
    frame: StackFrame | None = None


class Specialization(_Data, frozen=True):
    """A symbolic size or scalar that became a constant, and the user line that made it so."""

    symbol: str
    sources: list[str] = []
    value: str = ""
    reason: str = ""
    frame: StackFrame | None = None


class GraphBreak(_Data, frozen=True):
    """One place where Dynamo had to end a graph.

    `kind` is torch's `gb_type`, `id` its number in torch's registry (`GB0059`), `frame` the exact
    instruction's place, `user_stack` the frames down to it, outermost first.
    """

    kind: str
    reason: str = ""
    explanation: str = ""
    hints: list[str] = []
    context: str = ""
    id: str = ""
    url: str = ""
    attempt: int = 0
    frame: StackFrame | None = None
    user_stack: list[StackFrame] = []


class RecompileReason(_Data, frozen=True):
    """One guard of an existing entry that failed and so led to this compile.

    `entry` is the compile id of the entry that did not fit; `source` and `kind` name the failing
    guard, `guard` is its code. `name` says what changed in the user's terms (`x.dtype`,
    `len(history)`, `second (closure variable of inner)`): `was` is the value that the entry was
    compiled for, `now` the one of this call. `call_line` is the cell's line that made the call,
    `frame` the line that reads the value. `text` is torch's own wording.
    """

    entry: str
    source: str = ""
    kind: str = ""
    guard: str = ""
    was: str = ""
    now: str = ""
    call_line: int | None = None
    frame: StackFrame | None = None
    text: str = ""
    name: str = ""


class Kernel(_Data, frozen=True):
    """One generated kernel or extern call.

    `language` is `cpp`, `triton` or `extern`; `graph` is the name of the post-grad graph whose
    `nodes` were fused into it; `calls` counts its call sites in the output code.

    Over all its call sites, `reads` and `writes` have the bytes of each buffer, each counted once a
    kernel, and `flops` the arithmetic operations, None where torch has no formula for an operator;
    sizes that are symbols count with the values seen. `replaces` is how many operators eager would
    run for it, one launch each.
    """

    name: str
    language: str
    graph: str = ""
    code: str = ""
    nodes: list[str] = []
    calls: int = 0
    code_line: int | None = None
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    flops: int | None = None
    replaces: int = 0

    @property
    def bytes(self) -> int:
        """The bytes that it reads and writes."""
        return sum(self.reads.values()) + sum(self.writes.values())

    @property
    def intensity(self) -> float | None:
        """Arithmetic operations a byte; None where either is not known."""
        return self.flops / self.bytes if self.bytes and self.flops is not None else None


class Buffer(_Data, frozen=True):
    """A piece of memory that kernels of a graph read or write.

    `role` is `input`, `constant`, `intermediate` or `output`, `node` the post-grad node that it
    holds. `reuses` is the buffer whose memory it takes over, `in_place` tells that the kernel which
    writes it reads that one. `saved` tells that the forward keeps it for backward. `mutates` and
    `views` are buffers whose memory it is.
    """

    name: str
    graph: str
    role: str
    node: str = ""
    shape: list[int | str] = []
    stride: list[int | str] = []
    dtype: str = ""
    device: str = "cpu"
    bytes: int = 0
    reuses: str = ""
    in_place: bool = False
    saved: bool = False
    mutates: list[str] = []
    views: list[str] = []


class Folded(_Data, frozen=True):
    """A call node of a post-grad graph that no kernel computes, and why.

    `why` is `view` (another way to look at memory), `result` (one of several results of a call),
    `size` (arithmetic on sizes, done in Python), `constant` (put in where it is used), `dead`
    (nothing uses it), `effect` (it returns nothing); empty where that is not known.
    """

    graph: str
    node: str
    why: str = ""


class NotFused(_Data, frozen=True):
    """Two groups of operations that stay apart though one reads what the other writes.

    `writer` and `reader` are the kernels that they are in, which may be the same where it has
    several loops. `reason` is Inductor's, empty where its backend declined without one; `loops` are
    the sizes of both groups' loops. `bytes` is what `buffers` make the two write and read.
    """

    graph: str
    writer: str
    reader: str
    reason: str = ""
    buffers: list[str] = []
    bytes: int = 0
    writer_nodes: list[str] = []
    reader_nodes: list[str] = []
    loops: list[str] = []


class SkippedCudagraph(_Data, frozen=True):
    """A graph of which no CUDA graph will be recorded though it was asked for, and torch's reason.

    `frame` is the line that torch found to be the cause.
    """

    graph: str
    reason: str
    frame: StackFrame | None = None
    user_stack: list[StackFrame] = []


class OutputCode(_Data, frozen=True):
    """The Python module that Inductor wrote for one graph."""

    graph: str
    code: str


class Instruction(_Data, frozen=True):
    """One bytecode instruction. `argument` is `dis`'s text for its argument."""

    offset: int
    opname: str
    argument: str = ""
    frame: StackFrame | None = None


class Bytecode(_Data, frozen=True):
    """A frame's instructions before Dynamo, and those that replace them."""

    before: list[Instruction] = []
    after: list[Instruction] = []


class StepCode(_Data, frozen=True):
    """A code object whose instructions Dynamo interpreted, as Dynamo has them."""

    name: str
    file: str
    first_line: int
    instructions: list[Instruction] = []


class StepFrame(_Data, frozen=True):
    """One interpreted call: `code` indexes `Steps.codes`, `parent` is the step that called it."""

    code: int
    parent: int | None = None


class Step(Struct, frozen=True, array_like=True):
    """One interpreted instruction and the state ahead of it.

    `frame` indexes `Steps.frames`, `instruction` that frame's code. `stack` and `locals` hold
    indices of `Steps.values`; `locals` has only what changed since the frame's step before, -1 for
    a deleted name. `nodes` and `guards` are what this instruction added: names of nodes of the
    Dynamo graph, indices of `Compile.guards`. `raised` names the exception that ended it.
    """

    frame: int
    instruction: int
    stack: list[int] = []
    locals: dict[str, int] = {}
    nodes: list[str] = []
    guards: list[int] = []
    raised: str = ""


class Steps(_Data, frozen=True):
    """What Dynamo interpreted in the last attempt at a compile, in order.

    `values` are the words for what variable trackers stand for. `is_cut` says that there were more
    steps than are kept.
    """

    codes: list[StepCode] = []
    frames: list[StepFrame] = []
    values: list[str] = []
    steps: list[Step] = []
    is_cut: bool = False

    def __str__(self) -> str:
        """Return the walk as text."""
        from dynamo_nb.views.steps import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        """Return the walk as a notebook shows it."""
        from dynamo_nb.views.steps import to_html

        return to_html(self)


class StageTime(_Data, frozen=True):
    """How long one stage of a compile took, in seconds; `start` counts from the cell's start."""

    name: str
    start: float
    seconds: float


class Attempt(_Data, frozen=True):
    """One attempt at a compile; all but the last were restarted for `reason`."""

    attempt: int
    status: str
    reason: str = ""


class CompileError(_Data, frozen=True):
    """The exception that ended a compile."""

    type: str
    message: str = ""
    kind: str = ""
    explanation: str = ""
    hints: list[str] = []
    frame: StackFrame | None = None
    user_stack: list[StackFrame] = []


class StageText(_Data, frozen=True):
    """What one stage of Triton's compiler made of a kernel: `ttir`, `ttgir`, `llir`, `ptx`, ....

    `lines` has for each line of the text the line of the kernel's source it comes from, or 0.
    """

    stage: str
    text: str
    lines: list[int] = []


class Binary(_Data, frozen=True):
    """A Triton kernel compiled for a GPU, with what its binary says of it.

    `kernel` and `graph` are the kernel's name and graph. `config` is the configuration that was
    compiled, and `candidates` all those among which an autotuner would measure. `grid` is the
    launch grid, `threads` the size of a block, `shared` its bytes of shared memory. `resources` has
    `registers` a thread, the bytes of `spill_stores`, `spill_loads` and `stack`. `occupancy` is the
    share of a multiprocessor's warps that are resident, `limited_by` what keeps it below 1.
    `source_nodes` maps lines of the kernel's source to the nodes that they compute. `error` says
    why there is no binary.
    """

    kernel: str
    graph: str = ""
    config: dict[str, Any] = {}
    candidates: list[dict[str, Any]] = []
    grid: list[str] = []
    threads: int = 0
    shared: int = 0
    resources: dict[str, int] = {}
    occupancy: float | None = None
    limited_by: str = ""
    size: int = 0
    texts: list[StageText] = []
    source_nodes: dict[str, list[str]] = {}
    error: str = ""


class Target(_Data, frozen=True):
    """What a compile would be on a GPU that is not there: predicted, neither run nor autotuned.

    `spec` is what was asked for (`cuda:90`), `device` the GPU that stands for it and `properties`
    its figures, with their `sources`. Names of its `graphs` begin with the spec, as in
    `cuda:90/post_grad.forward`, so that they are unique within the compile. `error` says why there
    is nothing, `unknown` what can't be known without the device.
    """

    spec: str
    device: str = ""
    properties: dict[str, Any] = {}
    sources: list[str] = []
    graphs: list[Graph] = []
    kernels: list[Kernel] = []
    output_code: list[OutputCode] = []
    binaries: list[Binary] = []
    unknown: list[str] = []
    error: str = ""

    def binary(self, kernel: Kernel) -> Binary | None:
        """Return a kernel's binary; None for an extern call."""
        key = kernel.name, kernel.graph
        return next((item for item in self.binaries if (item.kernel, item.graph) == key), None)


class Compile(_Data, frozen=True):
    """All that happened under one compile id.

    `generation` counts Dynamo's resets in this process: compile ids start anew at each. `cell` is
    the execution count of the cell that compiled it when that was not this one; `seen` is what can
    be told of such an entry: `whole` when its capture is at hand, `guards` when only the live cache
    entry could be read. `status` is `ok`, `skipped` or `failed`. `inlined` are the calls that
    Dynamo traced into, each with the cell's line that led to it. `eager_operators` counts, for each
    post-grad graph, the operators that eager runs in its place, one launch each.
    """

    compile_id: str
    generation: int = 0
    name: str = ""
    file: str = ""
    first_line: int = 0
    resume_of: str = ""
    status: str = "ok"
    reason: str = ""
    error: CompileError | None = None
    attempts: list[Attempt] = []
    call_line: int | None = None
    user_stack: list[StackFrame] = []
    cell: int | None = None
    seen: str = "whole"
    guards: list[Guard] = []
    guard_tree: GuardTree | None = None
    shape_guards: list[ShapeGuard] = []
    symbols: list[Symbol] = []
    graph_breaks: list[GraphBreak] = []
    recompile_reasons: list[RecompileReason] = []
    graphs: list[Graph] = []
    kernels: list[Kernel] = []
    output_code: list[OutputCode] = []
    bytecode: Bytecode | None = None
    stages: list[StageTime] = []
    cache: dict[str, int] = {}
    metrics: dict[str, Any] = {}
    alias: str = ""
    specializations: list[Specialization] = []
    guard_costs: list[GuardCost] = []
    steps: Steps | None = None
    passes: list[GraphPass] = []
    inlined: list[Frame] = []
    targets: list[Target] = []
    buffers: list[Buffer] = []
    folded: list[Folded] = []
    unfused: list[NotFused] = []
    skipped_cudagraphs: list[SkippedCudagraph] = []
    eager_operators: dict[str, int] = {}

    @property
    def key(self) -> str:
        """The compile's name in a `Ref`: its id, or its alias where the id comes twice."""
        return self.alias or self.compile_id

    def graph(self, name: str) -> Graph | None:
        """Return the graph of that name, e.g. `dynamo` or `post_grad.forward`."""
        graphs = [*self.graphs, *(graph for target in self.targets for graph in target.graphs)]
        return next((graph for graph in graphs if graph.name == name), None)


class Frame(_Data, frozen=True):
    """A Python frame that Dynamo looked at: it was `compiled`, `skipped`, `failed` or `inlined`."""

    name: str
    file: str
    first_line: int
    outcome: str
    reason: str = ""
    compile_id: str = ""
    call_line: int | None = None
    count: int = 1


class Call(_Data, frozen=True):
    """What one call site of the cell did, over all its runs.

    `hits` maps the keys of the entries that were reused to how often; `compiles` are the keys
    compiled there; `eager` counts runs of frames that fell back, and `reason` says why.
    `hits_from` maps the key of an entry that an earlier cell compiled to that cell's number.
    `eager_modules` are the `path (Class)` of the callee's modules that ran outside every graph.
    `tensor_calls` counts the eager calls that took tensors of a function that Dynamo had given up
    before; `unreached` is work of it that the call then traced did not come to. `uncompiled` says
    why the magic compiles nothing here.
    """

    line: int
    name: str = ""
    compiles: list[str] = []
    hits: dict[str, int] = {}
    hits_from: dict[str, int] = {}
    eager: int = 0
    reason: str = ""
    eager_modules: list[str] = []
    tensor_calls: int = 0
    unreached: StackFrame | None = None
    uncompiled: str = ""


class CacheEntry(_Data, frozen=True):
    """One entry of a code object's cache, as the cell left it.

    `entry` is the key of its compile, `cell` the number of the earlier cell that compiled it.
    `hits` counts this cell's calls that it served, at the call lines `lines`. `invalidated` says
    why torch will not use it again (an object that it was guarded on is gone).
    """

    entry: str
    cell: int | None = None
    hits: int = 0
    lines: list[int] = []
    invalidated: str = ""


class CacheState(_Data, frozen=True):
    """The cache of one code object after the cell: its entries in the order of the next look-up.

    `resume_of` names the function that a resume function continues.
    """

    name: str
    file: str = ""
    first_line: int = 0
    resume_of: str = ""
    entries: list[CacheEntry] = []


class EntryCheck(_Data, frozen=True):
    """How one cache entry stands to the arguments of a call: it fits, or these guards fail."""

    entry: str
    cell: int | None = None
    fits: bool = False
    invalidated: str = ""
    failed: list[RecompileReason] = []


class Would(_Data, frozen=True):
    """What a call would do, told without making it.

    `outcome` is `hit`, `compile`, `eager`, `error` or `unknown`; `entry` is the entry that is hit,
    `reason` says the rest in a sentence. `entries` are in the order of the look-up, which ends at
    the first that fits; `notes` say what can't be known.
    """

    callee: str
    outcome: str
    entry: str = ""
    reason: str = ""
    entries: list[EntryCheck] = []
    notes: list[str] = []

    def __str__(self) -> str:
        """Return the answer as text."""
        from dynamo_nb.views.would import to_text

        return to_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the answer as a notebook shows it."""
        from dynamo_nb.views.would import to_html

        return to_html(self)


class Bypass(_Data, frozen=True):
    """A call that goes around a compiled object: `line` of the cell, `callee` as it is written."""

    line: int
    callee: str


class CompiledObject(_Data, frozen=True):
    """A variable that holds something torch.compile returned, and whether it was ever entered.

    `callee` names what is compiled (`Writer.forward`), `line` is the cell line that assigned the
    variable, `entered` counts the frames of it that Dynamo was asked about while the cell ran.
    `calls` are the lines at the cell's top level that call it in any case, and `given_up` is why
    Dynamo leaves its code alone since an earlier call.
    """

    name: str
    callee: str = ""
    line: int | None = None
    entered: int = 0
    bypasses: list[Bypass] = []
    calls: list[int] = []
    given_up: str = ""


class Mismatch(_Data, frozen=True):
    """One thing in which a compiled call differs from the eager one.

    `name` is the output (`output[0]`), argument (`dst`), buffer, parameter or gradient
    (`self.weight.grad`) and `what` says which of these it is. `kind` is `value`, `dtype`, `shape`,
    `stride`, `device`, `alias`, `missing` or `error`; `eager` and `compiled` are what was there.
    Values have the largest error, its index, and how many elements differ; `closer` is `eager` when
    a float64 reference says so. `frame` is the line that makes it, `kernel` the kernel that writes
    it. A tensor that is returned has its `position` among `outputs` of them.
    """

    name: str
    what: str
    kind: str
    eager: str = ""
    compiled: str = ""
    error: float | None = None
    index: list[int] = []
    count: int = 0
    of: int = 0
    closer: str = ""
    frame: StackFrame | None = None
    kernel: str = ""
    position: int = -1
    outputs: int = 0


class Check(_Data, frozen=True):
    """Compiled calls of one line that were repeated on copies, eagerly and compiled (`--check`).

    `status` is `same`, `differs` or `not repeated`, then `reason` says why. `backend` is what was
    compared with eager; where it differs, `stage` is the first of the stages up to it that does, or
    `entry` when the call compiled anew does not differ: then the entry it hit lacks a guard.
    `gradients` tells that backward was run, too, `random` that the call draws random numbers.
    With a `target` (`cuda:90`) it is the target's Triton kernels that were run, in Triton's
    interpreter, and `unchecked` says what that can't tell of them.
    """

    name: str
    status: str
    line: int | None = None
    count: int = 1
    reason: str = ""
    backend: str = ""
    stage: str = ""
    gradients: bool = False
    random: bool = False
    compile: str = ""
    mismatches: list[Mismatch] = []
    target: str = ""
    unchecked: list[str] = []


class Measured(_Data, frozen=True):
    """The time of one call, in seconds: the median, and the distance of the quartiles."""

    median: float
    spread: float = 0.0
    runs: int = 0


class KernelTime(_Data, frozen=True):
    """What a kernel took within one call: how often it ran, and the seconds of all its runs.

    `compile` and `graph` are empty where the profiler knows no more than the name.
    """

    name: str
    calls: float
    seconds: float
    compile: str = ""
    graph: str = ""


class Timing(_Data, frozen=True):
    """Compiled calls of one line, measured on copies against eager (`--time`).

    `status` is `timed` or `not timed`, then `reason` says why. `gradients` tells that backward is
    in the time, too. Launches count kernels, extern calls and operators of one call, memory the
    bytes that it takes at most, on a GPU. `kernels` are those of the compiled call.
    """

    name: str
    status: str
    line: int | None = None
    count: int = 1
    reason: str = ""
    device: str = ""
    gradients: bool = False
    compile: str = ""
    eager: Measured | None = None
    compiled: Measured | None = None
    eager_launches: int | None = None
    compiled_launches: int | None = None
    eager_memory: int | None = None
    compiled_memory: int | None = None
    kernels: list[KernelTime] = []

    @property
    def speed_up(self) -> float | None:
        """How many compiled calls fit into the time of one eager call."""
        if self.eager is None or self.compiled is None or not self.compiled.median:
            return None
        return self.eager.median / self.compiled.median


class Machine(_Data, frozen=True):
    """What a device does at best: bytes of memory and, by dtype, operations a second."""

    device: str
    name: str = ""
    bandwidth: float = 0.0
    flops: dict[str, float] = {}
    source: str = ""


class Finding(_Data, frozen=True):
    """A plain answer: what happened, where, and what to do about it.

    `severity` is `error`, `warning` or `info`. `line` is where to look first in the cell (None when
    the place lies outside it, then `frame` has it), `lines` are all cell lines that are named.
    `measured` says that it rests on a measured time, so that the next run may lack it: the output
    that is compared from run to run leaves it out.
    """

    code: str
    severity: str
    message: str
    advice: str = ""
    line: int | None = None
    lines: list[int] = []
    count: int = 1
    frame: StackFrame | None = None
    refs: list[Ref] = []
    measured: bool = False


class Note(_Data, frozen=True):
    """Something the report lacks: which hook failed, if any did, and which panel it costs."""

    hook: str
    panel: str
    message: str


class Versions(_Data, frozen=True):
    """Versions of what made the record; empty where absent."""

    dynamo_nb: str = ""
    torch: str = ""
    python: str = ""
    triton: str = ""


class CellError(_Data, frozen=True):
    """The exception that the cell raised."""

    type: str
    message: str = ""
    line: int | None = None


class CellRecord(_Data, frozen=True):
    """What torch.compile did to one cell, whole.

    `mode` is `as-is`, `calls` or `cell` and `mode_reason` says why it was chosen. `source` is the
    cell with its `%%dynamo` line as line 1. `files` holds the text of the other files that frames
    refer to, by their short name. `unparsed` counts, by name, what torch said and nobody here
    understands.
    """

    schema: int = SCHEMA_VERSION
    name: str = ""
    cell: int | None = None
    source: str = ""
    mode: str = "as-is"
    mode_reason: str = ""
    options: dict[str, Any] = {}
    device: str = "cpu"
    versions: Versions = Versions()
    files: dict[str, str] = {}
    compiles: list[Compile] = []
    frames: list[Frame] = []
    calls: list[Call] = []
    compiled_objects: list[CompiledObject] = []
    links: list[Link] = []
    findings: list[Finding] = []
    notes: list[Note] = []
    error: CellError | None = None
    unparsed: dict[str, int] = {}
    metrics: dict[str, Any] = {}
    cache: list[CacheState] = []
    checks: list[Check] = []
    timings: list[Timing] = []
    machines: list[Machine] = []

    def compile(self, compile_id: str) -> Compile:
        """Return the compile with that id, e.g. `0/1`.

        Raises
        ------
        KeyError
            When there is none; the message lists those that exist.
        """
        for compile_ in self.compiles:
            if compile_id in (compile_.key, compile_.compile_id):
                return compile_
        have = ", ".join(compile_.key for compile_ in self.compiles) or "none"
        msg = f"No compile {compile_id!r}; this cell has: {have}."
        raise KeyError(msg)

    def guards(self, source: str | None = None, line: int | None = None) -> list[tuple[str, Guard]]:
        """Return guards of all compiles, each with the key of its compile.

        Parameters
        ----------
        source
            Only guards on this and on what is reached through it, as torch writes it (`L['x']`) or
            as the cell does (`x`, `self.layers`).
        line
            Only guards that this line of the cell caused.
        """
        from dynamo_nb.record.guards import guards

        return guards(self, source, line)

    def kernels(self, line: int | None = None) -> list[tuple[str, Kernel]]:
        """Return kernels of all compiles, each with the key of its compile.

        Parameters
        ----------
        line
            Only kernels that compute something of this line of the cell.
        """
        from dynamo_nb.record.kernels import kernels

        return kernels(self, line)

    def summary(self) -> dict[str, Any]:
        """Return the record in short, as plain data: counts, causes and findings."""
        from dynamo_nb.record.summary import summary

        return summary(self)

    def to_dot(self, compile_id: str, stage: str = "dynamo") -> Any:
        """Return one graph as a `graphviz.Digraph`, nodes within their modules.

        Raises
        ------
        ValueError
            When there is no such compile or stage; the message lists those that exist.
        """
        from dynamo_nb.views.dot import to_dot

        return to_dot(self, compile_id, stage)

    def to_json(self) -> bytes:
        """Return the record as JSON; `from_json` gives an equal one back."""
        from dynamo_nb.record.io import to_json

        return to_json(self)

    @staticmethod
    def from_json(data: bytes | str) -> CellRecord:
        """Return the record that `to_json` wrote; `RecordError` says what is wrong with others."""
        from dynamo_nb.record.io import from_json

        return from_json(data.encode() if isinstance(data, str) else data)
