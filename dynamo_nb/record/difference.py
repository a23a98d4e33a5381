"""The difference of two records, as plain data: `dynamo_nb.record.diff` makes it.

`before` and `after` name what was in the first record and what is in the second. A thing that is in
one of them only has an empty `before` or `after`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dynamo_nb.record.types import Ref, TensorValue

__all__ = [
    "BreakChange",
    "Counterpart",
    "FindingChange",
    "GraphChange",
    "GuardChange",
    "KernelChange",
    "LineChange",
    "NodeChange",
    "RecompileChange",
    "RecordDiff",
    "Side",
    "TargetChange",
    "TimeChange",
]


class _Data(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all structs here, as in the record."""


class _Located(_Data, frozen=True, kw_only=True):
    """Base of what is about things of the records: their addresses in the first, in the second."""

    refs_before: list[Ref] = []
    refs_after: list[Ref] = []


class Counterpart(_Data, frozen=True):
    """A thing of the first record, and what stands for it in the second."""

    before: Ref
    after: Ref


class Side(_Data, frozen=True):
    """One of the two records in short; `counts` are by noun: `graph`, `graph break`, ..."""

    name: str = ""
    cell: int | None = None
    mode: str = ""
    torch: str = ""
    device: str = ""
    options: dict[str, Any] = {}
    counts: dict[str, int] = {}
    error: str = ""


class LineChange(_Data, frozen=True):
    """A line of the cell's source, `change` is `same`, `added` or `removed`; lines count from 1."""

    change: str
    text: str = ""
    before: int | None = None
    after: int | None = None


class BreakChange(_Located, frozen=True):
    """A place of graph breaks that is `gone` or `new`; `line` is of the record that has it."""

    change: str
    kind: str
    function: str = ""
    line: int | None = None
    place: str = ""
    count: int = 1


class RecompileChange(_Located, frozen=True):
    """A cause of recompiles that is `gone`, `new`, or led to `fewer` or `more` of them."""

    change: str
    name: str
    function: str = ""
    values: list[str] = []
    line: int | None = None
    before: int = 0
    after: int = 0


class NodeChange(_Located, frozen=True):
    """A node that was `added`, `removed`, `changed` in its value, or `moved` to another graph.

    `before` and `after` are `<compile> <graph>/<node>`; `fields` says what is different in the
    value: `shape`, `stride`, `dtype`, `device`, `requires_grad`, `value`.
    """

    change: str
    target: str
    op: str = ""
    before: str = ""
    after: str = ""
    line: int | None = None
    fields: list[str] = []
    was: TensorValue | list[Any] | str | None = None
    now: TensorValue | list[Any] | str | None = None


class GraphChange(_Data, frozen=True):
    """Two graphs that correspond, or one that is in one record only.

    `before` and `after` are `<compile> <graph>`; `same` counts the nodes that are alike. A node
    that moved stands with the graph that it is in now.
    """

    stage: str
    function: str = ""
    before: str = ""
    after: str = ""
    same: int = 0
    nodes: list[NodeChange] = []

    @property
    def change(self) -> str:
        """`same`, `changed`, `added` or `removed`."""
        if not self.before or not self.after:
            return "added" if self.after else "removed"
        return "changed" if self.nodes else "same"


class GuardChange(_Located, frozen=True):
    """A guard of a function, over all its entries: `added`, `removed`, or its code `changed`.

    `before` and `after` are the conditions that only one of the records has.
    """

    change: str
    kind: str
    source: str = ""
    function: str = ""
    line: int | None = None
    before: list[str] = []
    after: list[str] = []


class KernelChange(_Located, frozen=True):
    """Kernels that correspond, as `<compile> <name>`.

    `change` is `merged` (several became one), `split` (one became several), `regrouped` (several
    became several others), `changed` (other nodes, or other code), `added` or `removed`.
    """

    change: str
    before: list[str] = []
    after: list[str] = []
    nodes_before: int = 0
    nodes_after: int = 0
    lines: list[int] = []


class TargetChange(_Located, frozen=True):
    """A kernel for a GPU that is not there: `added`, `removed`, or `changed`.

    `spec_before` and `spec_after` are the targets that are compared, `before` and `after` the
    kernel as `<compile> <name>`. `was` and `now` hold what is different: `registers`, `spills`,
    `shared memory`, `occupancy`, `grid`, `threads`, `nodes`, `calls`, the settings of its
    configuration, or the `error` of a compile, or of a kernel, that has none. Where two targets of
    different specs have the same kernels, one is `same` and has their number.
    """

    change: str
    spec_before: str
    spec_after: str
    before: str = ""
    after: str = ""
    was: dict[str, Any] = {}
    now: dict[str, Any] = {}
    lines: list[int] = []


class FindingChange(_Data, frozen=True):
    """A finding that is `gone` or `new`."""

    change: str
    code: str
    severity: str
    message: str = ""
    line: int | None = None


class TimeChange(_Data, frozen=True):
    """How long a stage took in all compiles of each record, in seconds: a measurement."""

    stage: str
    before: float = 0.0
    after: float = 0.0


class RecordDiff(_Data, frozen=True):
    """What is different in the second of two records.

    All lists but `source`, `times` and `counterparts` hold differences only; of `graphs` those that
    are the same are there, too. `counterparts` are lines, compiles, nodes, kernels, guards, breaks
    and recompiles, whether they changed or not.
    """

    before: Side = Side()
    after: Side = Side()
    source: list[LineChange] = []
    findings: list[FindingChange] = []
    breaks: list[BreakChange] = []
    recompiles: list[RecompileChange] = []
    graphs: list[GraphChange] = []
    guards: list[GuardChange] = []
    kernels: list[KernelChange] = []
    targets: list[TargetChange] = []
    times: list[TimeChange] = []
    counterparts: list[Counterpart] = []

    def to_json(self) -> bytes:
        """Return the difference as JSON."""
        import msgspec

        return msgspec.json.encode(self)

    def __str__(self) -> str:
        from dynamo_nb.views.diff import diff_text

        return diff_text(self)

    def _repr_html_(self) -> str:
        from dynamo_nb.views.diff import diff_html

        return diff_html(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))
