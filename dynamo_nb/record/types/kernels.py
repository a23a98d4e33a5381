"""What Inductor made: kernels, buffers, output code."""

from __future__ import annotations

from dynamo_nb.record.types.base import Data, StackFrame

__all__ = [
    "Buffer",
    "Choice",
    "CudagraphUse",
    "Definition",
    "Folded",
    "Kernel",
    "NotFused",
    "OutputCode",
    "SkippedCudagraph",
    "Tuning",
]


class Definition(Data, frozen=True):
    """A function that the user wrote, in the code of a Triton kernel.

    Its `count` lines begin at `code_line` of the kernel's code, and at `line` of `file`.
    """

    name: str
    file: str
    line: int
    code_line: int
    count: int


class Kernel(Data, frozen=True):
    """One generated kernel or extern call.

    `language` is `cpp`, `triton` or `extern`; `graph` is the name of the post-grad graph whose
    `nodes` were fused into it; `calls` counts its call sites in the output code.

    Over all its call sites, `reads` and `writes` have the bytes of each buffer: those elements that
    a launch comes to, each counted once, also where several of its loops do. What one of its loops
    leaves for another is both written and read. `flops` are the floating-point operations, None
    where torch has no formula for an operator; sizes that are symbols count with the values seen.
    `dtype` is the one by which a device's rate for them is found: what is multiplied, `tf32` where
    float32 may be rounded to it. `replaces` is of how many operators that eager would run, one
    launch each, it computes all or part. `definitions` are the functions of the user's that it
    consists of, where it was not generated.
    """

    name: str
    language: str
    graph: str = ""
    code: str = ""
    nodes: list[str] = []
    calls: int = 0
    code_line: int | None = None
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    flops: int | None = None
    dtype: str = "float32"
    replaces: int = 0
    definitions: list[Definition] = []

    @property
    def bytes(self) -> int:
        """The bytes that it reads and writes."""
        return sum(self.reads.values()) + sum(self.writes.values())

    @property
    def intensity(self) -> float | None:
        """Arithmetic operations a byte; None where either is not known."""
        return self.flops / self.bytes if self.bytes and self.flops is not None else None


class Buffer(Data, frozen=True):
    """A piece of memory that kernels of a graph read or write, under each name that it has.

    `role` is `input`, `constant`, `intermediate` or `output`, `node` the post-grad node that it
    holds. `reuses` is the buffer whose memory it takes over, `in_place` tells that the kernel which
    writes it reads that one. `saved` tells that the forward keeps it for backward. `mutates` and
    `views` are buffers whose memory it is.
    """

    name: str
    graph: str
    role: str
    node: str = ""
    shape: list[int | str] = []
    stride: list[int | str] = []
    dtype: str = ""
    device: str = "cpu"
    bytes: int = 0
    reuses: str = ""
    in_place: bool = False
    saved: bool = False
    mutates: list[str] = []
    views: list[str] = []


class Folded(Data, frozen=True):
    """A call node of a post-grad graph that no kernel computes, and why.

    `why` is `view` (another way to look at memory), `result` (one of several results of a call),
    `size` (arithmetic on sizes, done in Python), `memory` (memory that is allocated), `constant`
    (put in where it is used), `dead` (nothing uses it), `effect` (it returns nothing), `empty` (its
    result has no elements), `graphs` (it runs graphs that have kernels of their own); empty where
    that is not known.
    """

    graph: str
    node: str
    why: str = ""


class NotFused(Data, frozen=True):
    """Two groups of operations that stay apart though one reads what the other writes.

    `writer` and `reader` are the kernels that they are in, which may be the same where it has
    several loops. `reason` is Inductor's, empty where its backend declined without one. `bytes` is
    what `buffers` make the two write and read; the nodes are those that do so, and `loops` the
    sizes of the loops of these.
    """

    graph: str
    writer: str
    reader: str
    reason: str = ""
    buffers: list[str] = []
    bytes: int = 0
    writer_nodes: list[str] = []
    reader_nodes: list[str] = []
    loops: list[str] = []


class SkippedCudagraph(Data, frozen=True):
    """A graph of which no CUDA graph will be recorded though it was asked for, and torch's reason.

    `frame` is the line that torch found to be the cause.
    """

    graph: str
    reason: str
    frame: StackFrame | None = None
    user_stack: list[StackFrame] = []


class CudagraphUse(Data, frozen=True):
    """What became of a graph's CUDA graph in this run: how often it was warmed up, ....

    `reasons` are torch's for recording it again.
    """

    graph: str
    warm_ups: int = 0
    recordings: int = 0
    replays: int = 0
    reasons: list[str] = []


class Choice(Data, frozen=True):
    """A candidate of autotuning: its time, None where it could not run."""

    name: str
    detail: str = ""
    microseconds: float | None = None


class Tuning(Data, frozen=True):
    """What autotuning measured, the fastest of its `choices` first.

    Either for an `operation` on inputs of `sizes`, which is the post-grad `node`, or, where there
    is no operation, for the configurations of a Triton `kernel`.
    """

    graph: str
    kernel: str = ""
    operation: str = ""
    node: str = ""
    sizes: list[str] = []
    choices: list[Choice] = []

    def is_of(self, kernel: Kernel) -> bool:
        """Tell whether it chose how this kernel runs."""
        same = self.kernel == kernel.name or (self.node != "" and self.node in kernel.nodes)
        return self.graph == kernel.graph and same


class OutputCode(Data, frozen=True):
    """The Python module that Inductor wrote for one graph."""

    graph: str
    code: str
