"""What a compile would be on GPUs that are not there: from the worker's answers to `Target`s."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec.structs import replace

from dynamo_nb.record.draft import Draft
from dynamo_nb.record.graphs import finish_graphs, finish_kernels
from dynamo_nb.record.launches import grid_of
from dynamo_nb.record.naming import readable
from dynamo_nb.record.places import Places
from dynamo_nb.record.schedule import finish_schedule
from dynamo_nb.record.target_texts import error_text, left_behind
from dynamo_nb.record.types import (
    Binary,
    Buffer,
    Check,
    Folded,
    Graph,
    Kernel,
    Mismatch,
    Node,
    NotFused,
    OutputCode,
    StageText,
    Target,
)

__all__ = ["finish_targets"]

#: What Inductor calls the variables of a kernel.
_VARIABLE = re.compile(r"\btmp\d+\b")

#: How the code of one of Inductor's templates is marked.
_TEMPLATE = "@triton_heuristics.template("

_DYNAMO = "dynamo"

_OfGraph = TypeVar("_OfGraph", Buffer, Folded, Kernel, NotFused, OutputCode)


def finish_targets(draft: Draft, places: Places) -> list[Check]:
    """Turn a draft's answers of workers into `Target`s, whose nodes come from its Dynamo graph.

    Returns the checks of those that were interpreted.
    """
    draft.targets += [_target(raw, draft, places) for raw in draft.raw_targets]
    return [_check(raw, draft) for raw in draft.raw_targets if raw.get("interpreted")]


def _check(raw: dict[str, Any], draft: Draft) -> Check:
    """Return how a target's kernels compare with eager, in the terms of the compiled function."""
    told = raw["interpreted"]
    found = {key: told[key] for key in ("status", "reason", "casts", "gradients") if key in told}
    names = raw["inputs"]
    mismatches = [_mismatch(item, names) for item in told.get("mismatches", ())]
    return Check(
        **found,
        name=draft.resume_of or draft.name,
        line=draft.call_line,
        target=raw["spec"],
        backend="Triton's interpreter",
        stage="kernels" if mismatches else "",
        mismatches=mismatches,
        unchecked=told.get("unchecked", []),
    )


def _mismatch(item: dict[str, Any], names: dict[str, str]) -> Mismatch:
    """Return a mismatch that calls an input what the function calls it."""
    base, dot, rest = item["name"].partition(".")
    name = readable(names[base]) if base in names else base
    return Mismatch(**{**item, "name": f"{name}{dot}{rest}"})


def _target(raw: dict[str, Any], draft: Draft, places: Places) -> Target:
    shared = {key: raw[key] for key in ("spec", "device", "properties", "sources")}
    answer = raw.get("answer")
    if answer is None:
        return Target(**shared, error=error_text(raw, draft, places))
    there = _draft(answer, draft)
    finish_graphs(there, places)
    finish_kernels(there, places)
    finish_schedule(there)
    spec = raw["spec"]
    kernels = _renamed(there.kernels, spec)
    return Target(
        **shared,
        graphs=[_graph(graph, spec) for graph in there.graphs if graph.stage == "post_grad"],
        kernels=kernels,
        output_code=_renamed(there.output_code, spec),
        buffers=_renamed(there.buffers, spec),
        folded=_renamed(there.folded, spec),
        unfused=_renamed(there.unfused, spec),
        eager_operators={f"{spec}/{name}": n for name, n in there.eager_operators.items()},
        binaries=list(_binaries(answer, kernels, there, spec)),
        unknown=[*raw.get("unknown", ()), *answer.get("unknown", ())],
        left_behind=list(left_behind(answer, draft, places)),
    )


def _draft(answer: dict[str, Any], draft: Draft) -> Draft:
    """Return a draft that holds what the worker's capture saw of this compile's Dynamo graph."""
    there = Draft(draft.compile_id, draft.generation)
    for name, data in answer["events"]:
        _TAKE[name](there, data, draft)
    for direction, code in answer["output_code"].items():
        graph = f"post_grad.{direction}" if direction else "post_grad"
        there.output_code.append(OutputCode(graph=graph, code=code))
    return there


def _take_graph(there: Draft, data: dict[str, Any], draft: Draft) -> None:
    if data["stage"] == _DYNAMO:
        own = next((raw for raw in draft.raw_graphs if raw["stage"] == _DYNAMO), None)
        data = {**data, "nodes": own["nodes"] if own else []}
    there.raw_graphs.append(data)


def _take_kernel(there: Draft, data: dict[str, Any], _: Draft) -> None:
    there.kernel_code[data["direction"], data["name"]] = data["code"]


def _take_functions(there: Draft, data: dict[str, Any], _: Draft) -> None:
    there.kernel_functions[data["direction"], data["name"]] = data["functions"]


def _take_nodes(there: Draft, data: dict[str, Any], _: Draft) -> None:
    key = data["direction"], data["name"]
    nodes = there.kernel_nodes.setdefault(key, [])
    nodes += [name for name in data["nodes"] if name not in nodes]
    there.kernel_ops.setdefault(key, []).append(data["ops"])
    there.kernel_calls[key] = there.kernel_calls.get(key, 0) + 1
    if data["is_extern"]:
        there.extern_kernels.add(key)


def _take_schedule(there: Draft, data: dict[str, Any], _: Draft) -> None:
    there.take_schedule(data)


def _take_nothing(there: Draft, data: dict[str, Any], draft: Draft) -> None:
    """Leave what belongs to the binaries."""


_TAKE = {
    "graph": _take_graph,
    "kernel": _take_kernel,
    "kernel_functions": _take_functions,
    "kernel_nodes": _take_nodes,
    "schedule": _take_schedule,
    "kernel_variables": _take_nothing,
}


def _graph(graph: Graph, spec: str) -> Graph:
    nodes = [_node(node) for node in graph.nodes]
    return replace(graph, name=f"{spec}/{graph.name}", nodes=nodes)


def _node(node: Node) -> Node:
    """Return a node whose origins are those that the record has: the Dynamo graph's."""
    kept = [origin for origin in node.origins if origin.startswith(f"{_DYNAMO}/")]
    return replace(node, origins=kept)


def _renamed(things: list[_OfGraph], spec: str) -> list[_OfGraph]:
    """Return what belongs to graphs, with the names that these have in the record."""
    return [replace(thing, graph=f"{spec}/{thing.graph}") for thing in things]


def _binaries(
    answer: dict[str, Any], kernels: list[Kernel], there: Draft, spec: str
) -> Iterator[Binary]:
    variables = {
        (data["direction"], data["name"]): data["variables"]
        for name, data in answer["events"]
        if name == "kernel_variables"
    }
    known = {(kernel.graph, kernel.name): kernel for kernel in kernels}
    for raw in answer["binaries"]:
        direction = raw["direction"]
        graph = f"{spec}/post_grad.{direction}" if direction else f"{spec}/post_grad"
        kernel = known.get((graph, raw["name"]))
        if kernel is not None:
            named = variables.get((direction, kernel.name), {})
            yield _binary(kernel, raw, there, named)


def _binary(
    kernel: Kernel, raw: dict[str, Any], there: Draft, variables: dict[str, list[str]]
) -> Binary:
    if "error" in raw:
        return Binary(kernel=kernel.name, graph=kernel.graph, error=raw["error"])
    code = next((c.code for c in there.output_code if kernel.graph.endswith(f"/{c.graph}")), "")
    occupancy = raw["occupancy"]
    return Binary(
        kernel=kernel.name,
        graph=kernel.graph,
        config=raw["config"],
        candidates=raw["candidates"],
        grid=grid_of(kernel.name, raw, code),
        threads=raw["threads"],
        shared=raw["shared"],
        resources=raw["resources"],
        occupancy=occupancy["share"],
        limited_by=occupancy["limited_by"],
        size=raw["binary_size"],
        texts=[StageText(**text) for text in raw["texts"]],
        source_nodes=dict(_source_nodes(kernel, variables)),
    )


def _source_nodes(
    kernel: Kernel, variables: dict[str, list[str]]
) -> Iterator[tuple[str, list[str]]]:
    """Yield lines of the kernel's source with the nodes that they compute, or that they store.

    A template's own lines compute what was fused into it from no variable. What led to a branch, or
    to a call that a buffer is made for, is none of its nodes.
    """
    lines = kernel.code.splitlines()
    start = next(
        (at for at, line in enumerate(lines, 1) if line.startswith(_definition(kernel))), 0
    )
    known = {name for names in variables.values() for name in names}
    own = [name for name in kernel.nodes if name not in known] if _TEMPLATE in kernel.code else []
    for number, line in enumerate(lines[start:], start + 1):
        text = line.strip()
        used = _VARIABLE.findall(text)
        if used and text.startswith((f"{used[0]} = ", "tl.store(", "tl.atomic_add(")):
            named = [name for name in variables.get(used[0], ()) if name in kernel.nodes]
            yield str(number), named or own
        elif own and text and not text.startswith("#"):
            yield str(number), own


def _definition(kernel: Kernel) -> str:
    return f"def {kernel.name}("
