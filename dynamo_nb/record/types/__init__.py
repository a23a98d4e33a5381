"""The record: plain, frozen data that says what torch.compile did to one cell.

Everything a view shows comes from here. The names are torch's own; nothing in this package imports
torch or IPython. All structs tolerate unknown keys and fill in missing ones, so that a file written
by another version still opens.
"""

from __future__ import annotations

from dynamo_nb.record.types.base import CELL, SCHEMA_VERSION, Link, Ref, StackFrame
from dynamo_nb.record.types.breaks import Attempt, CompileError, GraphBreak, RecompileReason
from dynamo_nb.record.types.calls import (
    Bypass,
    CacheEntry,
    CacheState,
    Call,
    CompiledObject,
    EntryCheck,
    Would,
)
from dynamo_nb.record.types.cell import (
    COMPILER,
    OPERATOR,
    CellError,
    CellRecord,
    Finding,
    Note,
    Versions,
)
from dynamo_nb.record.types.compiles import Compile, Frame, StageTime
from dynamo_nb.record.types.graphs import Graph, GraphPass, Node, PassRow, TensorValue
from dynamo_nb.record.types.guards import (
    Guard,
    GuardCost,
    GuardCosts,
    GuardTree,
    LeafGuard,
    ShapeGuard,
    Specialization,
    Symbol,
)
from dynamo_nb.record.types.kernels import (
    Buffer,
    Choice,
    CudagraphUse,
    Definition,
    Folded,
    Kernel,
    NotFused,
    OutputCode,
    SkippedCudagraph,
    Tuning,
)
from dynamo_nb.record.types.repeats import Check, KernelTime, Machine, Measured, Mismatch, Timing
from dynamo_nb.record.types.steps import Bytecode, Instruction, Step, StepCode, StepFrame, Steps
from dynamo_nb.record.types.targets import Binary, StageText, Target

__all__ = [
    "CELL",
    "COMPILER",
    "OPERATOR",
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
    "Choice",
    "Compile",
    "CompileError",
    "CompiledObject",
    "CudagraphUse",
    "Definition",
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
    "Tuning",
    "Versions",
    "Would",
]
