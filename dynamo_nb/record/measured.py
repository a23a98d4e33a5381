"""What the run itself told of kernels: what autotuning measured, and the binaries that ran."""

from __future__ import annotations

from typing import Any

from dynamo_nb.record.draft import Draft
from dynamo_nb.record.launches import grid_of
from dynamo_nb.record.schedule import graph_of
from dynamo_nb.record.stage_texts import text_of
from dynamo_nb.record.types import Binary, Choice, Kernel, StageText, Tuning

__all__ = ["finish_measured"]


def finish_measured(draft: Draft) -> None:
    """Give a draft's raw tunings and binaries their kernels; those of no kernel are left out."""
    for raw in draft.raw_tunings:
        kernel = _kernel(draft, raw) if "kernel" in raw else None
        if kernel is not None or "kernel" not in raw:
            draft.tunings.append(_tuning(raw, kernel))
    for raw in draft.raw_binaries:
        kernel = _kernel(draft, raw)
        if kernel is not None:
            draft.binaries.append(_binary(raw, kernel, draft))


def _kernel(draft: Draft, raw: dict[str, Any]) -> Kernel | None:
    """Return the kernel of that name in the backward or in the other graph."""
    for kernel in draft.kernels:
        if kernel.name == raw["kernel"] and kernel.graph.endswith("backward") == raw["is_backward"]:
            return kernel
    return None


def _tuning(raw: dict[str, Any], kernel: Kernel | None) -> Tuning:
    choices = [Choice(**choice) for choice in raw["choices"]]
    if kernel is not None:
        return Tuning(graph=kernel.graph, kernel=kernel.name, choices=choices)
    told = {name: raw[name] for name in ("operation", "node", "sizes")}
    return Tuning(graph=graph_of(raw["direction"]), choices=choices, **told)


def _binary(raw: dict[str, Any], kernel: Kernel, draft: Draft) -> Binary:
    code = next((output.code for output in draft.output_code if output.graph == kernel.graph), "")
    told = {name: raw[name] for name in ("config", "threads", "shared", "resources", "size")}
    texts = [
        StageText(**text_of(stage, text, kernel.name, raw["file"]))
        for stage, text in raw["stages"].items()
    ]
    grid = grid_of(kernel.name, raw, code)
    return Binary(kernel=kernel.name, graph=kernel.graph, grid=grid, texts=texts, **told)
