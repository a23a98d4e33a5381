"""One compile, and the frames that Dynamo looked at."""

from __future__ import annotations

from typing import Any

from dynamo_nb.record.types.base import Data, StackFrame
from dynamo_nb.record.types.breaks import Attempt, CompileError, GraphBreak, RecompileReason
from dynamo_nb.record.types.graphs import Graph, GraphPass
from dynamo_nb.record.types.guards import (
    Guard,
    GuardCost,
    GuardTree,
    ShapeGuard,
    Specialization,
    Symbol,
)
from dynamo_nb.record.types.kernels import (
    Buffer,
    CudagraphUse,
    Folded,
    Kernel,
    NotFused,
    OutputCode,
    SkippedCudagraph,
    Tuning,
)
from dynamo_nb.record.types.steps import Bytecode, Steps
from dynamo_nb.record.types.targets import Binary, Target

__all__ = ["Compile", "Frame", "StageTime"]


class StageTime(Data, frozen=True):
    """How long one stage of a compile took, in seconds; `start` counts from the cell's start."""

    name: str
    start: float
    seconds: float


class Compile(Data, frozen=True):
    """All that happened under one compile id.

    `generation` counts Dynamo's resets in this process: compile ids start anew at each. `cell` is
    the execution count of the cell that compiled it when that was not this one; `seen` is what can
    be told of such an entry: `whole` when its capture is at hand, `guards` when only the live cache
    entry could be read. `status` is `ok`, `skipped` or `failed`. `inlined` are the calls that
    Dynamo traced into, each with the cell's line that led to it. `recompile_reasons` are those of
    all earlier entries, of the one that nearly fitted first. `eager_operators` counts, for each
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
    cudagraphs: list[CudagraphUse] = []
    tunings: list[Tuning] = []
    binaries: list[Binary] = []
    eager_operators: dict[str, int] = {}

    def __repr__(self) -> str:
        """Return the compile on one line: all of it would be many pages."""
        from dynamo_nb.views.brief import compile_line

        return compile_line(self)

    @property
    def key(self) -> str:
        """The compile's name in a `Ref`: its id, or its alias where the id comes twice."""
        return self.alias or self.compile_id

    def graph(self, name: str) -> Graph | None:
        """Return the graph of that name, e.g. `dynamo` or `post_grad.forward`."""
        graphs = [*self.graphs, *(graph for target in self.targets for graph in target.graphs)]
        return next((graph for graph in graphs if graph.name == name), None)


class Frame(Data, frozen=True):
    """A Python frame that Dynamo looked at: it was `compiled`, `skipped`, `failed` or `inlined`."""

    name: str
    file: str
    first_line: int
    outcome: str
    reason: str = ""
    compile_id: str = ""
    call_line: int | None = None
    count: int = 1
