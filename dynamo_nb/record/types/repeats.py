"""What repeating the cell's calls showed: results compared, and times."""

from __future__ import annotations

from dynamo_nb.record.types.base import Data, StackFrame

__all__ = ["Check", "KernelTime", "Machine", "Measured", "Mismatch", "Timing"]


class Mismatch(Data, frozen=True):
    """One thing in which a compiled call differs from the eager one.

    `name` is the output (`output[0]`), argument (`dst`), buffer, parameter or gradient
    (`self.weight.grad`) and `what` says which of these it is. `kind` is `value`, `dtype`, `shape`,
    `stride`, `device`, `alias`, `missing` or `error`; `eager` and `compiled` are what was there.
    Values have the largest error, its index, and how many elements differ; `closer` is `eager` when
    a float64 reference says so. `frame` is the line that makes it, `kernel` the kernel that writes
    it. A tensor that is returned has its `position` among `outputs` of them.
    """

    name: str
    what: str
    kind: str
    eager: str = ""
    compiled: str = ""
    error: float | None = None
    index: list[int] = []
    count: int = 0
    of: int = 0
    closer: str = ""
    frame: StackFrame | None = None
    kernel: str = ""
    position: int = -1
    outputs: int = 0


class Check(Data, frozen=True):
    """Compiled calls of one line that were repeated on copies, eagerly and compiled (`--check`).

    `status` is `same`, `differs` or `not repeated`, then `reason` says why. `backend` is what was
    compared with eager; where it differs, `stage` is the first of the stages up to it that does, or
    `entry` when the call compiled anew does not differ: then the entry it hit lacks a guard.
    `casts` tells that it differs in roundings to a narrower dtype alone: Inductor agrees where it
    rounds after each operation as eager does, or is as near to a float64 reference.
    `gradients` tells that backward was run, too, `random` that the call draws random numbers.
    With a `target` (`cuda:90`) it is the target's Triton kernels that were run, in Triton's
    interpreter, and `unchecked` says what that can't tell of them.
    """

    name: str
    status: str
    line: int | None = None
    count: int = 1
    reason: str = ""
    backend: str = ""
    stage: str = ""
    casts: bool = False
    gradients: bool = False
    random: bool = False
    compile: str = ""
    mismatches: list[Mismatch] = []
    target: str = ""
    unchecked: list[str] = []


class Measured(Data, frozen=True):
    """The time of one call, in seconds: the median, and the distance of the quartiles."""

    median: float
    spread: float = 0.0
    runs: int = 0


class KernelTime(Data, frozen=True):
    """What a kernel took within one call: how often it ran, and the seconds of all its runs.

    `compile` and `graph` are empty where the profiler knows no more than the name.
    """

    name: str
    calls: float
    seconds: float
    compile: str = ""
    graph: str = ""


class Timing(Data, frozen=True):
    """Compiled calls of one line, measured on copies against eager (`--time`).

    `status` is `timed` or `not timed`, then `reason` says why. `gradients` tells that backward is
    in the time, too. Launches count kernels, extern calls and operators of one call, memory the
    bytes that it takes at most, on a GPU. `kernels` are those of the compiled call.
    """

    name: str
    status: str
    line: int | None = None
    count: int = 1
    reason: str = ""
    device: str = ""
    gradients: bool = False
    compile: str = ""
    eager: Measured | None = None
    compiled: Measured | None = None
    eager_launches: int | None = None
    compiled_launches: int | None = None
    eager_memory: int | None = None
    compiled_memory: int | None = None
    kernels: list[KernelTime] = []

    @property
    def speed_up(self) -> float | None:
        """How many compiled calls fit into the time of one eager call."""
        if self.eager is None or self.compiled is None or not self.compiled.median:
            return None
        return self.eager.median / self.compiled.median

    @property
    def is_clear(self) -> bool:
        """Whether the two medians are farther apart than what they vary by."""
        if self.eager is None or self.compiled is None:
            return False
        apart = abs(self.eager.median - self.compiled.median)
        return apart > (self.eager.spread + self.compiled.spread) / 2


class Machine(Data, frozen=True):
    """What a device does at best: bytes of memory and, by dtype, operations a second."""

    device: str
    name: str = ""
    bandwidth: float = 0.0
    flops: dict[str, float] = {}
    source: str = ""
