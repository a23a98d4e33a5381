"""The table of rules, and their findings in order of what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dynamo_nb.findings.breaks import graph_break
from dynamo_nb.findings.calls import never_entered
from dynamo_nb.findings.cudagraphs import cudagraph_skipped
from dynamo_nb.findings.differs import result_differs
from dynamo_nb.findings.dims import specialized_dim
from dynamo_nb.findings.eager import not_compiled
from dynamo_nb.findings.errors import compile_error
from dynamo_nb.findings.fusion import kernel_not_fused
from dynamo_nb.findings.hooks import unguarded_hook
from dynamo_nb.findings.loops import unrolled_loop
from dynamo_nb.findings.recompiles import (
    became_dynamic,
    recompile,
    recompile_limit,
    self_invalidating_guard,
)
from dynamo_nb.findings.slow import slow_compile
from dynamo_nb.record.types import CellRecord, Finding

__all__ = ["CODES", "RULES", "find"]

Rule = Callable[[CellRecord], Iterable[Finding]]

#: All rules by code. Findings of the same severity and count keep this order, the dearest first:
#: what does not run compiled at all, what is compiled over and over, what runs in pieces.
RULES: dict[str, Rule] = {
    "compile-error": compile_error,
    "result-differs": result_differs,
    "specialized-dim": specialized_dim,
    "never-entered": never_entered,
    "unguarded-hook": unguarded_hook,
    "recompile-limit": recompile_limit,
    "not-compiled": not_compiled,
    "self-invalidating-guard": self_invalidating_guard,
    "recompile": recompile,
    "graph-break": graph_break,
    "unrolled-loop": unrolled_loop,
    "became-dynamic": became_dynamic,
    "cudagraph-skipped": cudagraph_skipped,
    "kernel-not-fused": kernel_not_fused,
    "slow-compile": slow_compile,
}

CODES = tuple(RULES)

_SEVERITIES = ("error", "warning", "info")


def find(record: CellRecord) -> list[Finding]:
    """Return the record's findings: errors, then warnings, then information, the dearest first."""
    return sorted((f for rule in RULES.values() for f in rule(record)), key=_rank)


def _rank(finding: Finding) -> tuple[int, int, int, int]:
    return (
        _SEVERITIES.index(finding.severity),
        CODES.index(finding.code),
        -finding.count,
        finding.line or 0,
    )
