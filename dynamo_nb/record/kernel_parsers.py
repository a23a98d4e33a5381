"""Parsers of what Inductor makes: kernels, output code, schedules, what was measured of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dynamo_nb.events import Event
from dynamo_nb.record.places import innermost
from dynamo_nb.record.schedule import graph_of
from dynamo_nb.record.timings import timing_of
from dynamo_nb.record.types import CudagraphUse, Machine, OutputCode, SkippedCudagraph

if TYPE_CHECKING:
    from dynamo_nb.record.build import Builder

__all__ = ["KERNEL_PARSERS"]


def _kernel(builder: Builder, event: Event) -> None:
    data = event.data
    builder.draft(event).kernel_code[data["direction"], data["name"]] = data["code"]


def _kernel_functions(builder: Builder, event: Event) -> None:
    data = event.data
    builder.draft(event).kernel_functions[data["direction"], data["name"]] = data["functions"]


def _kernel_nodes(builder: Builder, event: Event) -> None:
    draft, data = builder.draft(event), event.data
    key = (data["direction"], data["name"])
    nodes = draft.kernel_nodes.setdefault(key, [])
    nodes += [node for node in data["nodes"] if node not in nodes]
    draft.kernel_ops.setdefault(key, []).append(data.get("ops", []))
    draft.kernel_calls[key] = draft.kernel_calls.get(key, 0) + 1
    if data["is_extern"]:
        draft.extern_kernels.add(key)


def _schedule(builder: Builder, event: Event) -> None:
    builder.draft(event).take_schedule(event.data)


def _cudagraph_skipped(builder: Builder, event: Event) -> None:
    stack = builder.places.frames(event.data["user_stack"])
    skipped = SkippedCudagraph(
        graph=graph_of(event.data["direction"]),
        reason=event.data["reason"],
        frame=innermost(stack),
        user_stack=stack,
    )
    builder.draft(event).skipped_cudagraphs.append(skipped)


def _cudagraph(builder: Builder, event: Event) -> None:
    told = {**event.data}
    graph = graph_of(told.pop("direction"))
    if builder.knows(event):
        builder.draft(event).cudagraphs.append(CudagraphUse(graph=graph, **told))


def _tuning(builder: Builder, event: Event) -> None:
    if builder.knows(event):
        builder.draft(event).raw_tunings.append(event.data)


def _binary(builder: Builder, event: Event) -> None:
    if builder.knows(event):
        builder.draft(event).raw_binaries.append(event.data)


def _target(builder: Builder, event: Event) -> None:
    builder.draft(event).raw_targets.append(event.data)


def _output_code(builder: Builder, event: Event) -> None:
    draft = builder.draft(event)
    direction = event.data.get("direction", "")
    draft.output_code.append(OutputCode(graph=graph_of(direction), code=event.payload or ""))


def _timing(builder: Builder, event: Event) -> None:
    builder.timings.append(timing_of(builder.places, event.data))


def _machine(builder: Builder, event: Event) -> None:
    builder.machines.append(Machine(**event.data))


KERNEL_PARSERS: dict[str, Callable[[Builder, Event], None]] = {
    "kernel": _kernel,
    "kernel_functions": _kernel_functions,
    "kernel_nodes": _kernel_nodes,
    "schedule": _schedule,
    "cudagraph_skipped": _cudagraph_skipped,
    "cudagraph": _cudagraph,
    "tuning": _tuning,
    "binary": _binary,
    "target": _target,
    "inductor_output_code": _output_code,
    "timing": _timing,
    "machine": _machine,
}
