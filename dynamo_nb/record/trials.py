"""Mends for what a report found: those that were tried, with what came of them, and patterns."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

__all__ = ["Mark", "Mend", "Pattern", "Trial", "Trials"]


class _Data(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all structs here, as in the record."""


class Mark(_Data, frozen=True):
    """A dimension of a tensor to mark `dynamic` or `static` when a function's frame is compiled.

    `function` and `first_line` tell the frame, `source` the tensor as guards name it: `L['x']`.
    """

    kind: str
    function: str
    first_line: int
    source: str
    dim: int


class Mend(_Data, frozen=True):
    """Something that may help and needs no change of the code that is compiled.

    `paste` is the line to paste, `note` says where it goes or what it costs. A trial applies
    `code` (statements that run before the cell), `arguments` (of every torch.compile of the cell)
    and `marks`. `codes` and `lines` are those of the findings it is for.
    """

    paste: str
    note: str = ""
    code: list[str] = []
    arguments: dict[str, Any] = {}
    marks: list[Mark] = []
    codes: list[str] = []
    lines: list[int] = []


class Trial(_Data, frozen=True):
    """One run of the cell with some mends, or with none: the cell as it is.

    `counts` are those of the run by noun, as in `record.difference.Side`. `compile_seconds` and
    `run_seconds` (the rest of the run, calls of compiled code for the most part) are measured.
    `verdict` is `helps`, `changes` (it helps, and the cell then prints something else), `same`,
    `worse`, `mixed`, `failed` or `cut off`, compared to the cell as it is; `error` is what the run
    raised, or that it `was_cut_off` for the time it took. `differs` names what else is not as it
    was: `value`, `output`. `prevented` tells what the run was kept from doing, because it can't be
    taken back: `writes a file`.
    """

    mends: list[Mend] = []
    counts: dict[str, int] = {}
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    error: str = ""
    was_cut_off: bool = False
    verdict: str = ""
    differs: list[str] = []
    prevented: list[str] = []

    @property
    def paste(self) -> str:
        """The lines to paste; nothing for the cell as it is."""
        return "\n".join(mend.paste for mend in self.mends)


class Pattern(_Data, frozen=True):
    """A change of code that may help, as an example: it was not tried.

    `lines` are the cell's lines of the findings it is for.
    """

    title: str
    before: str
    after: str
    codes: list[str] = []
    lines: list[int] = []


class Trials(_Data, frozen=True):
    """What was tried for a report: the cell as it is, each mend alone, all that help together.

    `notes` say what the trials started from, and what was not tried, and why.
    """

    cell: int | None = None
    name: str = ""
    baseline: Trial | None = None
    trials: list[Trial] = []
    together: Trial | None = None
    patterns: list[Pattern] = []
    notes: list[str] = []

    @property
    def winners(self) -> list[Trial]:
        """The trials that help, the best first."""
        return [trial for trial in self.trials if trial.verdict == "helps"]

    def __str__(self) -> str:
        from dynamo_nb.views.trials import trials_text

        return trials_text(self)

    def _repr_html_(self) -> str:
        from dynamo_nb.views.trials import trials_html

        return trials_html(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))
