"""What a compile would be on a GPU that is not there."""

from __future__ import annotations

from typing import Any

from dynamo_nb.record.types.base import Data
from dynamo_nb.record.types.graphs import Graph
from dynamo_nb.record.types.kernels import Buffer, Folded, Kernel, NotFused, OutputCode
from dynamo_nb.record.types.repeats import Machine

__all__ = ["Binary", "StageText", "Target"]


class StageText(Data, frozen=True):
    """What one stage of Triton's compiler made of a kernel: `ttir`, `ttgir`, `llir`, `ptx`, ....

    `lines` has for each line of the text the line of the kernel's source it comes from, or 0.
    """

    stage: str
    text: str
    lines: list[int] = []


class Binary(Data, frozen=True):
    """A Triton kernel compiled for a GPU, with what its binary says of it.

    `kernel` and `graph` are the kernel's name and graph. `config` is the configuration that was
    compiled, and `candidates` all those among which an autotuner would measure. `grid` is the
    launch grid, `threads` the size of a block, `shared` its bytes of shared memory. `resources` has
    `registers` a thread, the bytes of `spill_stores`, `spill_loads` and `stack`. `occupancy` is the
    share of a multiprocessor's warps that are resident, `limited_by` what keeps it below 1.
    `source_nodes` maps lines of the kernel's source to the nodes that they compute. `error` says
    why there is no binary.
    """

    kernel: str
    graph: str = ""
    config: dict[str, Any] = {}
    candidates: list[dict[str, Any]] = []
    grid: list[str] = []
    threads: int = 0
    shared: int = 0
    resources: dict[str, int] = {}
    occupancy: float | None = None
    limited_by: str = ""
    size: int = 0
    texts: list[StageText] = []
    source_nodes: dict[str, list[str]] = {}
    error: str = ""


class Target(Data, frozen=True):
    """What a compile would be on a GPU that is not there: predicted, neither run nor autotuned.

    `spec` is what was asked for (`cuda:90`), `device` the GPU that stands for it and `properties`
    its figures, with their `sources`. Names of its `graphs` begin with the spec, as in
    `cuda:90/post_grad.forward`, so that they are unique within the compile. `buffers`, `folded`,
    `unfused` and `eager_operators` are what a `Compile` has under these names. `error` says why
    there is nothing, `unknown` what can't be known without the device, `left_behind` what only the
    notebook knows.
    """

    spec: str
    device: str = ""
    properties: dict[str, Any] = {}
    sources: list[str] = []
    graphs: list[Graph] = []
    kernels: list[Kernel] = []
    output_code: list[OutputCode] = []
    buffers: list[Buffer] = []
    folded: list[Folded] = []
    unfused: list[NotFused] = []
    eager_operators: dict[str, int] = {}
    binaries: list[Binary] = []
    unknown: list[str] = []
    left_behind: list[str] = []
    error: str = ""

    @property
    def machine(self) -> Machine:
        """What the device does at best, by its data sheet."""
        return Machine(
            device=self.spec,
            name=self.device,
            bandwidth=self.properties.get("bandwidth", 0.0),
            flops=self.properties.get("flops", {}),
            source="data sheet",
        )

    def binary(self, kernel: Kernel) -> Binary | None:
        """Return a kernel's binary; None for an extern call."""
        key = kernel.name, kernel.graph
        return next((item for item in self.binaries if (item.kernel, item.graph) == key), None)
