"""A record in parts, as the explorer asks for them: the core at once, the rest one by one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from dynamo_nb.record.types import CellRecord, Compile, Ref, Target

__all__ = ["Parts", "packed"]

_LEVEL = 3  # of gzip: half the time of the default for a tenth more bytes

_LEAST = 2_000  # bytes that are worth looking for a part to fill them

#: Kinds of parts in the order in which they are worth a place in a snapshot.
_WORTH = ("core", "links", "files", "graph", "guards", "code", "bytecode", "steps", "target")

#: Within the graphs: what a reader looks at first.
_STAGES = ("dynamo", "forward", "backward", "inference", "post_grad", "pre_grad", "joint")


class Parts:
    """The parts of one record, each made when it is asked for.

    A part's name is its kind, the compile's key and the graph's name, those that it has, joined by
    a bar: `core`, `guards|0/1`, `graph|0/1|post_grad.forward`.
    """

    def __init__(self, record: CellRecord) -> None:
        self.record = record
        self._makers = dict(_makers(record))

    @property
    def names(self) -> list[str]:
        """The names of all parts, the most useful first."""
        return sorted(self._makers, key=_worth)

    def json(self, name: str) -> bytes:
        """Return a part as JSON.

        Raises
        ------
        KeyError
            When there is no part of that name.
        """
        if name not in self._makers:
            msg = f"This report has no part {name!r}."
            raise KeyError(msg)
        return _encode(self._makers[name]())

    def compressed(self, name: str) -> bytes:
        """Return a part as JSON, compressed; the same bytes each time."""
        return gzip.compress(self.json(name), _LEVEL, mtime=0)

    def snapshot(self, budget: int) -> bytes:
        """Return the most useful parts that fit into so many bytes, as one compressed object."""
        chosen: dict[str, bytes] = {}
        left = budget
        for name in self.names:
            if left < _LEAST:
                break
            data = self.json(name)
            size = len(gzip.compress(data, _LEVEL))
            if size <= left:
                chosen[name] = data
                left -= size
        if "core" not in chosen:
            return b""  # nothing can be shown without it
        pairs = b",".join(json.dumps(name).encode() + b":" + data for name, data in chosen.items())
        return gzip.compress(b"{" + pairs + b"}", _LEVEL, mtime=0)


def _makers(record: CellRecord) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each part with what makes it."""
    yield "core", partial(_core, record)
    yield "links", partial(_links, record)
    yield "files", partial(_same, record.files)
    for entry in record.compiles:
        yield f"guards|{entry.key}", partial(_guards, entry)
        yield f"bytecode|{entry.key}", partial(_same, entry.bytecode or {})
        yield f"code|{entry.key}", partial(_code, entry)
        if entry.steps is not None:
            yield f"steps|{entry.key}", partial(_same, entry.steps)
        for target in entry.targets:
            yield f"target|{entry.key}|{target.spec}", partial(_same, target)
        for graph in entry.graphs:
            yield f"graph|{entry.key}|{graph.name}", partial(_same, graph)


def _same(value: Any) -> Any:
    return value


def _worth(name: str) -> tuple[int, int]:
    kind, _, rest = name.partition("|")
    stage = rest.rpartition("|")[2].partition(".")[0].partition("#")[0]
    return _WORTH.index(kind), _STAGES.index(stage) if stage in _STAGES else len(_STAGES)


def _core(record: CellRecord) -> dict[str, Any]:
    """Return a record without what has a part of its own, how much that is, and of which files."""
    compiles = [
        replace(
            entry,
            guards=[],
            guard_tree=None,
            shape_guards=[],
            symbols=[],
            specializations=[],
            bytecode=None,
            steps=None,
            buffers=[],
            folded=[],
            unfused=[],
            tunings=[],
            binaries=[],
            output_code=[replace(code, code="") for code in entry.output_code],
            kernels=[replace(kernel, code="") for kernel in entry.kernels],
            graphs=[replace(graph, nodes=[]) for graph in entry.graphs],
            targets=[_target_core(target) for target in entry.targets],
        )
        for entry in record.compiles
    ]
    sizes = {
        entry.key: {
            "guards": len(entry.guards),
            "symbols": len(entry.symbols),
            "steps": len(entry.steps.steps) if entry.steps else 0,
            "graphs": {graph.name: len(graph.nodes) for graph in entry.graphs},
        }
        for entry in record.compiles
    }
    return {
        "record": replace(record, compiles=compiles, links=[], files={}),
        "sizes": sizes,
        "files": list(record.files),
    }


def _target_core(target: Target) -> Target:
    return replace(
        target,
        graphs=[replace(graph, nodes=[]) for graph in target.graphs],
        kernels=[replace(kernel, code="") for kernel in target.kernels],
        output_code=[replace(code, code="") for code in target.output_code],
        buffers=[],
        folded=[],
        unfused=[],
        binaries=[replace(binary, texts=[], source_nodes={}) for binary in target.binaries],
    )


def _guards(entry: Compile) -> dict[str, Any]:
    return {
        "guards": entry.guards,
        "guard_tree": entry.guard_tree,
        "shape_guards": entry.shape_guards,
        "symbols": entry.symbols,
        "specializations": entry.specializations,
    }


def _code(entry: Compile) -> dict[str, Any]:
    return {
        "output": {code.graph: code.code for code in entry.output_code},
        "kernels": {f"{kernel.graph}/{kernel.name}": kernel.code for kernel in entry.kernels},
        "buffers": entry.buffers,
        "folded": entry.folded,
        "unfused": entry.unfused,
        "tunings": entry.tunings,
        "binaries": entry.binaries,
    }


def _links(record: CellRecord) -> dict[str, Any]:
    return packed((link.a, link.b) for link in record.links)


def packed(linked: Iterable[tuple[Ref, Ref]]) -> dict[str, Any]:
    """Return pairs of refs with each ref written once, and its positions for them."""
    positions: dict[Ref, int] = {}
    pairs: list[int] = []
    for pair in linked:
        pairs += (positions.setdefault(ref, len(positions)) for ref in pair)
    return {"refs": list(positions), "pairs": pairs}


def _encode(value: Any) -> bytes:
    """Return JSON, also of text that is no valid Unicode: lone surrogates are escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()
