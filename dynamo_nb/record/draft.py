"""A compile while it is put together."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from dynamo_nb.record.types import (
    Attempt,
    Binary,
    Buffer,
    Bytecode,
    Compile,
    CompileError,
    CudagraphUse,
    Folded,
    Frame,
    Graph,
    GraphBreak,
    GraphPass,
    Guard,
    GuardCost,
    GuardTree,
    Kernel,
    NotFused,
    OutputCode,
    RecompileReason,
    ShapeGuard,
    SkippedCudagraph,
    Specialization,
    StackFrame,
    StageTime,
    Steps,
    Symbol,
    Target,
    Tuning,
)

__all__ = ["Draft"]


@dataclass
class Draft:
    """The mutable twin of `Compile`, with what is only needed until the links are drawn."""

    compile_id: str
    generation: int
    name: str = ""
    file: str = ""
    first_line: int = 0
    resume_of: str = ""
    status: str = "ok"
    reason: str = ""
    error: CompileError | None = None
    restart_reasons: list[str] = field(default_factory=list)
    call_line: int | None = None
    user_stack: list[StackFrame] = field(default_factory=list)
    cell: int | None = None
    seen: str = "whole"
    guards: list[Guard] = field(default_factory=list)
    guard_tree: GuardTree | None = None
    shape_guards: list[ShapeGuard] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    graph_breaks: list[GraphBreak] = field(default_factory=list)
    recompile_reasons: list[RecompileReason] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    raw_graphs: list[dict[str, Any]] = field(default_factory=list)
    kernel_code: dict[tuple[str, str], str] = field(default_factory=dict)
    kernel_functions: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    kernel_nodes: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    kernel_calls: dict[tuple[str, str], int] = field(default_factory=dict)
    extern_kernels: set[tuple[str, str]] = field(default_factory=set)
    kernel_ops: dict[tuple[str, str], list[list[str]]] = field(default_factory=dict)
    raw_schedules: list[dict[str, Any]] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    eager_operators: dict[str, int] = field(default_factory=dict)
    folded: list[Folded] = field(default_factory=list)
    unfused: list[NotFused] = field(default_factory=list)
    skipped_cudagraphs: list[SkippedCudagraph] = field(default_factory=list)
    cudagraphs: list[CudagraphUse] = field(default_factory=list)
    tunings: list[Tuning] = field(default_factory=list)
    raw_tunings: list[dict[str, Any]] = field(default_factory=list)
    binaries: list[Binary] = field(default_factory=list)
    raw_binaries: list[dict[str, Any]] = field(default_factory=list)
    output_code: list[OutputCode] = field(default_factory=list)
    bytecode: Bytecode | None = None
    stages: list[StageTime] = field(default_factory=list)
    open_stages: list[tuple[str, float]] = field(default_factory=list)
    cache: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    shape_guard_stacks: dict[str, list[StackFrame]] = field(default_factory=dict)
    specializations: list[Specialization] = field(default_factory=list)
    guard_costs: list[GuardCost] = field(default_factory=list)
    steps: Steps | None = None
    inlined: list[Frame] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    raw_targets: list[dict[str, Any]] = field(default_factory=list)
    passes: list[GraphPass] = field(default_factory=list)
    raw_steps: dict[str, Any] | None = None
    symbol_frames: dict[str, StackFrame | None] = field(default_factory=dict)

    @property
    def code(self) -> tuple[str, str, int]:
        """What tells the code object from others: name, file, first line."""
        return self.name, self.file, self.first_line

    def take_schedule(self, raw: dict[str, Any]) -> None:
        """Take in a schedule; what a branch calls is added to the graph that it is a branch of."""
        self.raw_schedules.append(raw)
        key = "post_grad", raw["direction"]
        for graph in reversed(self.raw_graphs):
            if (graph["stage"], graph["direction"]) == key:
                *nodes, output = graph["nodes"]
                graph["nodes"] = [*nodes, *raw.get("branch_nodes", ()), output]
                break

    def take_up(self, known: Compile) -> None:
        """Go on from what is known of a compile."""
        for name in _SHARED:
            value = getattr(known, name)
            setattr(self, name, value.copy() if isinstance(value, list | dict) else value)

    def finish(self, alias: str) -> Compile:
        """Return the finished compile."""
        attempts = [
            Attempt(attempt=number, status="restarted", reason=reason)
            for number, reason in enumerate(self.restart_reasons)
        ]
        attempts.append(Attempt(attempt=len(attempts), status=self.status, reason=self.reason))
        shared = {name: getattr(self, name) for name in _SHARED}
        return Compile(**shared, attempts=attempts, alias=alias)


#: The fields that a draft and a `Compile` have in common.
_SHARED = [item.name for item in fields(Draft) if item.name in Compile.__struct_fields__]
