"""Record the graphs that the front end's tests lay out: real models, captured for real.

    python widgets/scripts/record_fixtures.py [NAME ...]

Each becomes `tests/fixtures/NAME.json.gz`: a record without what no such test reads.
"""

from __future__ import annotations

import gzip
import linecache
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from dynamo_nb.record.types import CellRecord, Compile, Graph  # noqa: E402
from tests.models import MODELS, build_cell  # noqa: E402

TARGET = HERE.parent / "tests" / "fixtures"

TRANSFORMER = """\
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(64, nhead=4, dim_feedforward=128, dropout=0.0, batch_first=True)
model = nn.TransformerEncoder(layer, num_layers=24, enable_nested_tensor=False)
inputs = {"src": torch.randn(2, 16, 64)}
"""

DYNAMIC = """\
import torch

def attend(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ v

compiled = torch.compile(attend, dynamic=True)
q, k, v = torch.randn(3, 2, 5, 8)
compiled(q, k, v)
"""


@dataclass(frozen=True)
class Fixture:
    """A cell, and how much of its record is kept."""

    cell: str
    backend: str = "inductor"
    frames: bool = True


def _training(build: str, loss: str, backend: str) -> str:
    return (
        f"{build}\ncompiled = torch.compile(model, backend={backend!r})\n"
        f"output = compiled(**inputs)\nloss = {loss}\nloss.backward()\n"
    )


def _fixtures() -> dict[str, Fixture]:
    models = {model.name: model for model in MODELS}
    made = {
        name: Fixture(_training(build_cell(models[name]), models[name].loss, "inductor"))
        for name in ("encoder", "residual", "llama")
    }
    made["transformer24"] = Fixture(
        _training(TRANSFORMER, "output.pow(2).mean()", "aot_eager"), frames=False
    )
    made["dynamic"] = Fixture(DYNAMIC)
    return made


def record(cell: str) -> CellRecord:
    """Run a cell and return its record."""
    import torch

    from dynamo_nb.capture import Capture
    from dynamo_nb.record.build import build_record
    from dynamo_nb.record.run import Run, SourceCell

    torch._dynamo.reset()
    file = "<fixture>"
    linecache.cache[file] = (len(cell), None, cell.splitlines(keepends=True), file)
    with Capture() as capture:
        exec(compile(cell, file, "exec"), {"__name__": "__main__"})
    return build_record(capture.events, Run(cell=SourceCell(file=file, source=cell)))


def trimmed(whole: CellRecord, frames: bool) -> CellRecord:
    """Return a record with its graphs, kernels and links only."""
    return replace(
        whole,
        files={},
        frames=[],
        links=whole.links if frames else [],
        metrics={},
        compiles=[_trimmed_compile(one, frames) for one in whole.compiles],
    )


def _trimmed_compile(one: Compile, frames: bool) -> Compile:
    return replace(
        one,
        guards=[],
        guard_tree=None,
        output_code=[],
        bytecode=None,
        stages=[],
        metrics={},
        kernels=[replace(kernel, code="") for kernel in one.kernels],
        graphs=[_trimmed_graph(graph, frames) for graph in one.graphs],
    )


def _trimmed_graph(graph: Graph, frames: bool) -> Graph:
    nodes = [replace(node, frames=node.frames[-1:] if frames else []) for node in graph.nodes]
    return replace(graph, nodes=nodes)


def main() -> None:
    """Write the fixtures that are named, or all."""
    made = _fixtures()
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or made:
        fixture = made[name]
        data = msgspec.json.encode(trimmed(record(fixture.cell), fixture.frames))
        packed = gzip.compress(data, mtime=0)
        (TARGET / f"{name}.json.gz").write_bytes(packed)
        print(f"{name}: {len(data)} bytes, {len(packed)} compressed")


if __name__ == "__main__":
    main()
