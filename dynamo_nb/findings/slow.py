"""Compiles that took long, and the stage that took most of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from dynamo_nb.findings.sources import def_line
from dynamo_nb.findings.wording import cell_lines, function
from dynamo_nb.record.causes import own_compiles
from dynamo_nb.record.types import CellRecord, Compile, Finding, Ref, StageTime

__all__ = ["SLOW_SECONDS", "slow_compile"]

#: A compile shorter than this is nobody's trouble: the first C++ kernel alone takes ten seconds.
SLOW_SECONDS = 30.0


class _Part(Struct, frozen=True):
    """A part of the stack: what it does, and what shortens it."""

    what: str
    advice: str


_SMALLER = (
    "Compile less at once: the repeated part alone (torch.compile on one layer), not the whole."
)
_TRACING = _Part(
    "Dynamo's tracing of the Python code",
    "Look for loops that Dynamo unrolls and for code without tensors, and move what can run "
    f"before the compiled function out of it. {_SMALLER}",
)
_GUARDS = _Part(
    "the building of guards",
    "Look at the list of guards for the source that has most of them: large lists, dicts and "
    "modules are guarded item by item.",
)
_BACKEND = _Part(
    "the backend", "The backend is not Inductor: what it does in there is its own affair."
)
_AOT = _Part("AOTAutograd's tracing of the joint graph", _SMALLER)
_PASSES = _Part(
    "Inductor's passes over the graph",
    f"The number of nodes decides. {_SMALLER}",
)
_LOWERING = _Part("Inductor's lowering and fusion", f"The number of nodes decides. {_SMALLER}")
_KERNELS = _Part(
    "the compiling of kernels (C++ or Triton)",
    "Kernels are cached on disk: the next process finds them, unless the code or the machine "
    "changes. Fewer graphs and fewer distinct shapes give fewer kernels; max-autotune compiles "
    "many candidates of each.",
)

#: The stages of torch's own trace (`dynamo_timed` and its passes, 2.13) by the part that they
#: belong to; a stage that is not listed belongs to the one around it.
_PARTS = {
    "entire_frame_compile": _TRACING,
    "build_guards": _GUARDS,
    "backend_compile": _BACKEND,
    "create_aot_dispatcher_function": _AOT,
    "aot_trace_joint_graph": _AOT,
    "entire_backward_compile": _AOT,
    "_recursive_pre_grad_passes": _PASSES,
    "_recursive_joint_graph_passes": _PASSES,
    "_recursive_post_grad_passes": _PASSES,
    "inductor_compile": _LOWERING,
    "GraphLowering.run": _LOWERING,
    "Scheduler.codegen": _LOWERING,
    "PyCodeCache.load_by_key_path": _KERNELS,
    "async_compile.wait": _KERNELS,
    "compile_file": _KERNELS,
}


def slow_compile(record: CellRecord) -> Iterator[Finding]:
    """One compile took long; the longest part of it is named.

    Times differ from run to run, so the finding is `measured` and names none.
    """
    for compiled in own_compiles(record):
        parts = _own_seconds(compiled.stages)
        if sum(parts.values()) >= SLOW_SECONDS:
            yield _finding(record, compiled, max(parts, key=lambda part: parts[part]))


def _own_seconds(stages: Sequence[StageTime]) -> dict[_Part, float]:
    """Return the seconds of each part, without those of the parts that run inside it."""
    seconds: dict[_Part, float] = {}
    around: list[tuple[float, _Part | None]] = []
    for stage in sorted(stages, key=lambda stage: (stage.start, -stage.seconds)):
        while around and stage.start >= around[-1][0]:
            around.pop()
        outer = around[-1][1] if around else None
        part = _PARTS.get(stage.name, outer)
        if part is not None and part is not outer:
            seconds[part] = seconds.get(part, 0.0) + stage.seconds
            if outer is not None:
                seconds[outer] -= stage.seconds
        around.append((stage.start + stage.seconds, part))
    return seconds


def _finding(record: CellRecord, compiled: Compile, part: _Part) -> Finding:
    start = def_line(record, compiled)
    nodes = sum(len(graph.nodes) for graph in compiled.graphs if graph.stage == "dynamo")
    return Finding(
        code="slow-compile",
        severity="info",
        message=(
            f"Compile {compiled.key} of `{function(compiled.name)}` took long, most of it in "
            f"{part.what}; its graph has {nodes} nodes."
        ),
        advice=part.advice,
        line=start or compiled.call_line,
        lines=cell_lines(start, compiled.call_line),
        refs=[Ref(compiled.key, "compile", "")],
        measured=True,
    )
