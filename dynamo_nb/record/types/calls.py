"""Calls of compiled functions, and the cache that they look into."""

from __future__ import annotations

from dynamo_nb.record.types.base import Data, StackFrame
from dynamo_nb.record.types.breaks import RecompileReason

__all__ = ["Bypass", "CacheEntry", "CacheState", "Call", "CompiledObject", "EntryCheck", "Would"]


class Call(Data, frozen=True):
    """What one call site of the cell did, over all its runs.

    `hits` maps the keys of the entries that were reused to how often; `compiles` are the keys
    compiled there; `eager` counts runs of frames that fell back, and `reason` says why.
    `hits_from` maps the key of an entry that an earlier cell compiled to that cell's number.
    `eager_modules` are the `path (Class)` of the callee's modules that ran outside every graph.
    `tensor_calls` counts the eager calls that took tensors of a function that Dynamo had given up
    before; `unreached` is work of it that the call then traced did not come to. `uncompiled` says
    why the magic compiles nothing here.
    """

    line: int
    name: str = ""
    compiles: list[str] = []
    hits: dict[str, int] = {}
    hits_from: dict[str, int] = {}
    eager: int = 0
    reason: str = ""
    eager_modules: list[str] = []
    tensor_calls: int = 0
    unreached: StackFrame | None = None
    uncompiled: str = ""


class CacheEntry(Data, frozen=True):
    """One entry of a code object's cache, as the cell left it.

    `entry` is the key of its compile, `cell` the number of the earlier cell that compiled it.
    `hits` counts this cell's calls that it served, at the call lines `lines`. `invalidated` says
    why torch will not use it again (an object that it was guarded on is gone).
    """

    entry: str
    cell: int | None = None
    hits: int = 0
    lines: list[int] = []
    invalidated: str = ""


class CacheState(Data, frozen=True):
    """The cache of one code object after the cell: its entries in the order of the next look-up.

    `resume_of` names the function that a resume function continues.
    """

    name: str
    file: str = ""
    first_line: int = 0
    resume_of: str = ""
    entries: list[CacheEntry] = []


class EntryCheck(Data, frozen=True):
    """How one cache entry stands to the arguments of a call: it fits, or these guards fail."""

    entry: str
    cell: int | None = None
    fits: bool = False
    invalidated: str = ""
    failed: list[RecompileReason] = []


class Would(Data, frozen=True):
    """What a call would do, told without making it.

    `outcome` is `hit`, `compile`, `eager`, `error` or `unknown`; `entry` is the entry that is hit,
    `reason` says the rest in a sentence. `entries` are in the order of the look-up, which ends at
    the first that fits; `notes` say what can't be known.
    """

    callee: str
    outcome: str
    entry: str = ""
    reason: str = ""
    entries: list[EntryCheck] = []
    notes: list[str] = []

    def __str__(self) -> str:
        """Return the answer as text."""
        from dynamo_nb.views.would import to_text

        return to_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the answer as a notebook shows it."""
        from dynamo_nb.views.would import to_html

        return to_html(self)


class Bypass(Data, frozen=True):
    """A call that goes around a compiled object: `line` of the cell, `callee` as it is written."""

    line: int
    callee: str


class CompiledObject(Data, frozen=True):
    """A variable that holds something torch.compile returned, and whether it was ever entered.

    `callee` names what is compiled (`Writer.forward`), `line` is the cell line that assigned the
    variable, `entered` counts the frames of it that Dynamo was asked about while the cell ran.
    `calls` are the lines at the cell's top level that call it in any case, and `given_up` is why
    Dynamo leaves its code alone since an earlier call.
    """

    name: str
    callee: str = ""
    line: int | None = None
    entered: int = 0
    bypasses: list[Bypass] = []
    calls: list[int] = []
    given_up: str = ""
