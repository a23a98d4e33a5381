"""Patterns: changes of code that mend what no switch does, as small examples."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from msgspec import Struct

from dynamo_nb.record.break_places import break_places
from dynamo_nb.record.causes import own_compiles
from dynamo_nb.record.trials import Pattern
from dynamo_nb.record.types import CellRecord, Finding

__all__ = ["patterns"]


class _Example(Struct, frozen=True, kw_only=True):
    """A pattern, and the clues by which a finding asks for it: any of them is enough."""

    code: str
    clues: tuple[str, ...]
    title: str
    before: str
    after: str


def patterns(record: CellRecord) -> list[Pattern]:
    """Return the patterns for the record's findings, each once."""
    found: dict[str, list[Finding]] = {}
    for finding in record.findings:
        clues = _clues(record, finding)
        for index, example in enumerate(_EXAMPLES):
            if example.code in _codes(finding) and any(clue in clues for clue in example.clues):
                found.setdefault(str(index), []).append(finding)
                break
    return [_pattern(_EXAMPLES[int(index)], findings) for index, findings in found.items()]


def _pattern(example: _Example, findings: list[Finding]) -> Pattern:
    return Pattern(
        title=example.title,
        before=textwrap.dedent(example.before).strip("\n"),
        after=textwrap.dedent(example.after).strip("\n"),
        codes=[example.code],
        lines=sorted({finding.line for finding in findings if finding.line}),
    )


def _clues(record: CellRecord, finding: Finding) -> str:
    """Return the text in which the clues of examples are looked for."""
    parts = [finding.message, finding.advice]
    make = _MORE_CLUES.get(finding.code)
    return "\n".join([*parts, *(make(record, finding) if make else ())])


def _codes(finding: Finding) -> tuple[str, ...]:
    """Return the codes that a finding stands for: with `fullgraph` a break is an error."""
    is_break = finding.code == "compile-error" and "Unsupported" in finding.message
    return (finding.code, "graph-break") if is_break else (finding.code,)


def _error_clues(record: CellRecord, finding: Finding) -> Iterator[str]:
    keys = {ref.compile for ref in finding.refs}
    for entry in own_compiles(record):
        if entry.error is not None and entry.key in keys:
            yield entry.error.message


def _break_clues(record: CellRecord, finding: Finding) -> Iterator[str]:
    for place in break_places(record):
        if place.line == finding.line:
            yield place.first.kind
            yield place.first.context


_MORE_CLUES: dict[str, Callable[[CellRecord, Finding], Iterator[str]]] = {
    "compile-error": _error_clues,
    "graph-break": _break_clues,
}

#: In the order in which they are looked at: the first that fits a finding is its pattern.
_EXAMPLES = (
    _Example(
        code="graph-break",
        clues=("ata-dependent branching", "Data-dependent jump", "data-dependent control flow"),
        title="Choose by value, not by branch: torch.where, or torch.cond for whole functions",
        before="""
            if b.sum() < 0:
                b = b * -1
        """,
        after="""
            b = torch.where(b.sum() < 0, b * -1, b)
            # or, where only one side may be computed:
            b = torch.cond(b.sum() < 0, lambda b: b * -1, lambda b: b.clone(), (b,))
        """,
    ),
    _Example(
        code="graph-break",
        clues=("Tensor.item()", "capture_scalar_outputs"),
        title="Keep the number in a tensor",
        before="""
            total = x.sum().item()
            return x * total
        """,
        after="""
            total = x.sum()
            return x * total
        """,
    ),
    _Example(
        code="graph-break",
        clues=("tolist",),
        title="Index and compute with the tensor instead of a list of its numbers",
        before="""
            numbers = y.tolist()
            return x + numbers[0]
        """,
        after="""
            return x + y[0]
        """,
    ),
    _Example(
        code="graph-break",
        clues=("Dynamic shape operator", "capture_dynamic_output_shape_ops"),
        title="Keep the shape: set to zero what is not wanted, instead of leaving it out",
        before="""
            return t[t > 0.5] * 2
        """,
        after="""
            return torch.where(t > 0.5, t * 2, 0)
        """,
    ),
    _Example(
        code="graph-break",
        clues=("builtin print ", "module: _warnings,", "logging.Logger method"),
        title="Say it outside of the compiled function, or only when it is not compiled",
        before="""
            y = x * 2
            print("doubled")
        """,
        after="""
            y = x * 2
            if not torch.compiler.is_compiling():
                print("doubled")
        """,
    ),
    _Example(
        code="self-invalidating-guard",
        clues=("`len(",),
        title="Return what is new, and let the caller keep it",
        before="""
            def remember(x):
                history.append(x + 1)
        """,
        after="""
            def remember(x):
                return x + 1

            history.append(remember(x))  # outside of the compiled function
        """,
    ),
    _Example(
        code="self-invalidating-guard",
        clues=("changes `",),
        title="Count in a tensor, which is not guarded by its value",
        before="""
            def __init__(self):
                self.counter = 0

            def forward(self, x):
                self.counter += 1
        """,
        after="""
            def __init__(self):
                self.register_buffer("counter", torch.zeros((), dtype=torch.long))

            def forward(self, x):
                self.counter += 1
        """,
    ),
    _Example(
        code="recompile",
        clues=(".dtype`",),
        title="Convert before the call",
        before="""
            f(x)
            f(y)  # float16
        """,
        after="""
            f(x)
            f(y.float())
        """,
    ),
    _Example(
        code="recompile",
        clues=("`len(",),
        title="Pass what grows as one tensor",
        before="""
            def f(parts): return sum(p.sum() for p in parts)
        """,
        after="""
            def f(stacked): return stacked.sum()

            f(torch.stack(parts))  # and mark_dynamic(stacked, 0)
        """,
    ),
    _Example(
        code="recompile",
        clues=("keep it in a tensor", "as a tensor"),
        title="Pass a number that changes as a tensor",
        before="""
            f(x, factor)
        """,
        after="""
            f(x, torch.tensor(factor))
        """,
    ),
    _Example(
        code="compile-error",
        clues=("register_fake",),
        title="Tell torch what the operator returns",
        before="""
            @custom_op("mine::twice", mutates_args=())
            def twice(x: Tensor) -> Tensor: ...
        """,
        after="""
            @twice.register_fake
            def _(x):
                return torch.empty_like(x)
        """,
    ),
)
