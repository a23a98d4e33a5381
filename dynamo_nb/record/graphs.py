"""FX graphs and kernels of a compile, and where each node came from."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec

from dynamo_nb.record.definitions import definitions
from dynamo_nb.record.draft import Draft
from dynamo_nb.record.places import Places, innermost
from dynamo_nb.record.types import Graph, Kernel, Node, StackFrame, TensorValue

__all__ = ["finish_graphs", "finish_kernels"]

#: AOTAutograd's names of a graph's inputs: `primals_1` counts from 1, `arg0_1` from 0.
_INPUT = re.compile(r"(primals_|arg)(\d+)(?:_1)?")

#: The stage that a stage's nodes come from when nothing closer is known.
_EARLIER_STAGES = {
    "joint": ("dynamo",),
    "forward": ("joint", "dynamo"),
    "backward": ("joint", "dynamo"),
    "inference": ("dynamo",),
    "post_grad": ("forward", "backward", "inference"),
}
#: How the targets of nodes begin that launch a Triton kernel of the user's.
_USERS_KERNEL = "triton_kernel_wrapper"
_KERNEL_KIND = re.compile(r"\s*async_compile\.(\w+)\(")
_LANGUAGES = {"cpp_pybinding": "cpp", "cpp": "cpp", "triton": "triton"}


def finish_graphs(draft: Draft, places: Places) -> None:
    """Turn a draft's raw graphs into `Graph`s whose nodes name their origins and source frames."""
    names: Counter[str] = Counter()
    made = _Made()
    for graph in draft.graphs:  # of an earlier cell
        names[graph.name] += 1
        for node in graph.nodes:
            made.add(0, None, graph, node)
    for raw in draft.raw_graphs:
        stage, direction = raw["stage"], raw["direction"]
        name = f"{stage}.{direction}" if direction else stage
        names[name] += 1
        if names[name] > 1:
            name = f"{name}#{names[name]}"
        graph = Graph(name=name, stage=stage, direction=direction, nodes=[])
        draft.graphs.append(graph)
        for source in raw["nodes"]:
            node = _node(source, stage, direction, made, places)
            graph.nodes.append(node)
            made.add(raw["graph_id"], source["seq_nr"], graph, node)
        if stage == "post_grad":
            graph.nodes[:] = _all_placed(graph.nodes)


def _all_placed(nodes: list[Node]) -> list[Node]:
    """Return nodes of which those that a pass put in are where what uses them is, else its inputs.

    A pass of Inductor need not say what for it makes a node, as that which draws the seeds of all
    random numbers.
    """
    known = {node.name: node for node in nodes}
    users: dict[str, list[str]] = {}
    for node in nodes:
        for used in node.inputs:
            users.setdefault(used, []).append(node.name)
    for node in reversed(nodes):
        if node.op.startswith("call") and not node.frames:
            near = (known[name] for name in (*users.get(node.name, ()), *reversed(node.inputs)))
            placed = next((other for other in near if other.frames), None)
            if placed is not None:
                origins = node.origins or placed.origins
                known[node.name] = msgspec.structs.replace(
                    node, frames=placed.frames, origins=origins
                )
    return list(known.values())


class _Made:
    """The nodes made so far, by what later nodes know of them."""

    def __init__(self) -> None:
        self.by_graph_id: dict[tuple[int, str], str] = {}
        self.by_sequence: dict[int, str] = {}
        self.by_stage: dict[tuple[str, str], str] = {}
        self.nodes: dict[str, Node] = {}
        self.inputs: list[str] = []

    def add(self, graph_id: int, sequence: int | None, graph: Graph, node: Node) -> None:
        """Take in a finished node."""
        key = f"{graph.name}/{node.name}"
        self.nodes[key] = node
        self.by_graph_id[graph_id, node.name] = key
        self.by_stage[graph.stage, node.name] = key
        if graph.name == "dynamo" and node.op == "placeholder":
            self.inputs.append(key)
        if sequence is not None and sequence >= 0 and not node.is_backward and node.frames:
            self.by_sequence.setdefault(sequence, key)

    def dynamo_input(self, name: str, value: Any) -> str:
        """Return the Dynamo placeholder that an AOT input is; empty when shape or dtype differ."""
        match = _INPUT.fullmatch(name)
        index = int(match[2]) - (match[1] == "primals_") if match else len(self.inputs)
        if not 0 <= index < len(self.inputs):
            return ""
        seen = self.nodes[self.inputs[index]].value
        if not isinstance(seen, TensorValue) or not isinstance(value, TensorValue):
            return ""
        same = (seen.shape, seen.dtype) == (value.shape, value.dtype)
        return self.inputs[index] if same else ""

    def dynamo_origin(self, key: str) -> str:
        """Follow origins from a node back to Dynamo's graph; empty when there is no way."""
        while not key.startswith("dynamo"):
            earlier = self.nodes[key].origins if key in self.nodes else []
            if not earlier:
                return ""
            key = earlier[-1]
        return key


def _node(raw: dict[str, Any], stage: str, direction: str, made: _Made, places: Places) -> Node:
    value = _value(raw["value"])
    origins = _origins(raw, stage, direction, made)
    if raw["op"] == "placeholder" and not origins and stage != "dynamo":
        origins = [key for key in [made.dynamo_input(raw["name"], value)] if key]
    frames = places.frames(raw["frames"])
    if origins and not any(frame.column is not None for frame in frames):
        frames = _origin_frames(origins, made) or frames
    fields = {
        key: raw[key]
        for key in (
            "name",
            "op",
            "target",
            "inputs",
            "module_stack",
            "original_aten",
            "is_backward",
        )
    }
    also = _other_places(frames, origins, made)
    return Node(**fields, value=value, frames=frames, origins=origins, also=also)


def _other_places(frames: list[StackFrame], origins: list[str], made: _Made) -> list[StackFrame]:
    """Return where else the nodes of Dynamo's graph are that a node stands for."""
    own = {(frame.file, frame.line) for frame in frames}
    nodes = (made.nodes[key] for key in origins if key.startswith("dynamo") and key in made.nodes)
    places = (innermost(node.frames) for node in nodes)
    return list(
        {
            (frame.file, frame.line): frame
            for frame in places
            if frame is not None and (frame.file, frame.line) not in own
        }.values()
    )


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return msgspec.convert(value, TensorValue)
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value


def _origins(raw: dict[str, Any], stage: str, direction: str, made: _Made) -> list[str]:
    """Return the nodes that a node came from: the nearest earlier stage first, Dynamo's last.

    Where it stands for several, its own of Dynamo's is the very last.
    """
    found: list[str] = []
    stages = (direction,) if direction else _EARLIER_STAGES.get(stage, ())
    names = [raw["name"], *raw.get("replaced", ())]
    if stages[:1] == ("dynamo",) and raw["op"].startswith("call"):
        names = []  # AOTAutograd traces anew: `mul` there may be another one than Dynamo's
    same_name = [made.by_stage.get((earlier, name)) for name in names for earlier in stages[:1]]
    by_id = [made.by_graph_id.get((graph_id, name)) for graph_id, name in raw["from_node"]]
    if stage != "dynamo":
        found += [key for key in same_name if key]
        found += [key for key in by_id if key]
    if not any(map(made.dynamo_origin, found)) and raw["seq_nr"] in made.by_sequence:
        found.append(made.by_sequence[raw["seq_nr"]])  # a backward node: its forward node
    first, *others = dict.fromkeys(filter(None, map(made.dynamo_origin, found))) or [""]
    last = [*others, first] if first else []
    return [key for key in dict.fromkeys(found) if key not in last] + last


def _origin_frames(origins: list[str], made: _Made) -> list[StackFrame]:
    for key in reversed(origins):
        node = made.nodes.get(key)
        if node is not None and node.frames:
            return node.frames
    return []


def finish_kernels(draft: Draft, places: Places) -> None:
    """Join kernel code with the nodes fused into each kernel, in the order of their call sites."""
    starts = {output.graph: _definition_lines(output.code) for output in draft.output_code}
    keys = list(dict.fromkeys([*draft.kernel_nodes, *draft.kernel_code]))
    calls = _called(draft)
    for direction, name in keys:
        body = draft.kernel_code.get((direction, name), "")
        graph = f"post_grad.{direction}" if direction else "post_grad"
        code = _kernel_code(body)
        functions = draft.kernel_functions.get((direction, name), ())
        draft.kernels.append(
            Kernel(
                name=name,
                language=_language(body, (direction, name) in draft.extern_kernels),
                graph=graph,
                code=code,
                nodes=_computed(draft, (direction, name), calls.get(direction, set())),
                calls=draft.kernel_calls.get((direction, name), 0),
                code_line=starts.get(graph, {}).get(name),
                definitions=definitions(functions, code, places),
            )
        )


def _called(draft: Draft) -> dict[str, set[str]]:
    """Return the nodes that are calls of their own, of a library or of a kernel of the user's."""
    found: dict[str, set[str]] = {}
    for graph in draft.graphs:
        if graph.stage == "post_grad":
            own = (node for node in graph.nodes if node.target.startswith(_USERS_KERNEL))
            found[graph.direction] = {node.name for node in own}
    for direction, name in draft.extern_kernels:
        found.setdefault(direction, set()).update(draft.kernel_nodes.get((direction, name), ()))
    return found


def _computed(draft: Draft, key: tuple[str, str], calls: set[str]) -> list[str]:
    """Return the nodes that a kernel computes.

    Inductor names among them the call that a buffer is made for; it is that call's own kernel which
    computes it. A kernel that only brings an input into shape has no other.
    """
    nodes = draft.kernel_nodes.get(key, [])
    if key in draft.extern_kernels:
        return nodes
    return [name for name in nodes if name not in calls] or nodes


def _language(body: str, is_extern: bool) -> str:
    match = _KERNEL_KIND.match(body)
    if match:
        return _LANGUAGES.get(match[1], match[1])
    return "extern" if is_extern or not body else "cpp"


def _kernel_code(body: str) -> str:
    """Return the code in the triple quotes of `async_compile.triton('name', '''code''')`."""
    first, last = body.find("'''"), body.rfind("'''")
    return body[first + 3 : last].strip("\n") if first < last else body


def _definition_lines(code: str) -> dict[str, int]:
    lines: dict[str, int] = {}
    for number, line in enumerate(code.splitlines(), 1):
        name, separator, _ = line.partition(" = async_compile.")
        if separator and name.isidentifier():
            lines[name] = number
    return lines
