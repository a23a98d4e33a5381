"""Recompiles: one finding per thing that changed."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_nb.findings.wording import cell_lines, chain, def_line, function
from dynamo_nb.record.causes import (
    RecompileCause,
    hit_recompile_limit,
    own_compiles,
    recompile_causes,
)
from dynamo_nb.record.types import CellRecord, Compile, Finding, Ref

__all__ = ["became_dynamic", "recompile", "recompile_limit"]


def recompile(record: CellRecord) -> Iterator[Finding]:
    """A call found no entry that fits, because of this, and compiled again.

    Not reported for what a call passes and the new entry has a symbol for: more values of it fit
    from then on. A closure's, a module's or an object's value is a constant in the code's eyes, so
    that it changed is worth knowing even then.
    """
    for cause in recompile_causes(record):
        if cause.symbol is None or not _is_passed(cause):
            yield _finding(cause, "recompile", "warning", _recompile_message(cause), _advice(cause))


def became_dynamic(record: CellRecord) -> Iterator[Finding]:
    """A value or size changed, and the new entry has a symbol for it."""
    for cause in recompile_causes(record):
        if cause.symbol is not None:
            message = (
                f"`{cause.name}` changed ({chain(cause.values)}), and the new entry of "
                f"`{function(cause.changes[0].compiled.name)}` has the symbol {cause.symbol.name} "
                "for it: further values need no recompile."
            )
            yield _finding(cause, "became-dynamic", "info", message, _dynamic_advice(cause))


def recompile_limit(record: CellRecord) -> Iterator[Finding]:
    """Dynamo gave a code object up, because it has too many entries."""
    refused: dict[tuple[str, str, int], list[Compile]] = {}
    for compiled in own_compiles(record):
        if hit_recompile_limit(compiled):
            refused.setdefault((compiled.name, compiled.file, compiled.first_line), []).append(
                compiled
            )
    for compiles in refused.values():
        yield _limit_finding(compiles)


def _limit_finding(compiles: list[Compile]) -> Finding:
    compiled = compiles[0]
    name = function(compiled.name)
    reasons = compiled.recompile_reasons
    causes = [reason.frame.line for reason in reasons if reason.frame is not None]
    return Finding(
        code="recompile-limit",
        severity="warning",
        message=(
            f"`{name}` reached torch's recompile limit: calls that fit none of its entries now "
            "run eagerly."
        ),
        advice=(
            "Remove the cause of the recompiles. If all of these entries are needed, raise "
            "torch._dynamo.config.recompile_limit."
        ),
        line=def_line(compiled) or compiled.call_line,
        lines=cell_lines(def_line(compiled), *(c.call_line for c in compiles), *causes),
        count=len(compiles),
        refs=[Ref(c.key, "compile", "") for c in compiles],
    )


def _finding(cause: RecompileCause, code: str, severity: str, message: str, advice: str) -> Finding:
    return Finding(
        code=code,
        severity=severity,
        message=message,
        advice=advice,
        line=cause.line,
        lines=cell_lines(cause.line, *cause.call_lines),
        count=len(cause.changes),
        frame=cause.frame,
        refs=[Ref(c.compiled.key, "recompile", str(c.index)) for c in cause.changes],
    )


def _is_passed(cause: RecompileCause) -> bool:
    """Tell whether the call passes what changed: an argument, or a size of one."""
    source = cause.first.source.partition(".size()")[0].partition(".stride()")[0]
    return source.startswith("L['") and source.count("[") == 1 and source.endswith("']")


def _recompile_message(cause: RecompileCause) -> str:
    name = function(cause.changes[0].compiled.name)
    values = f" ({chain(cause.values)})" if cause.values else ""
    return f"`{name}` was compiled again because `{cause.name}` changed{values}."


def _advice(cause: RecompileCause) -> str:
    reason = cause.first
    clues = f"{reason.kind} {reason.guard} {reason.text} {cause.name}"
    return next((advice for mark, advice in _ADVICE if mark in clues), _OTHER_ADVICE)


#: What to do, by a mark in the guard's kind, its code, torch's wording or what changed.
_ADVICE = (
    (
        "allow_unspec_int_on_nn_module",
        "An integer attribute of a module is a constant to torch.compile. Make it dynamic with "
        "torch._dynamo.config.allow_unspec_int_on_nn_module = True, or keep it in a tensor.",
    ),
    (
        "GLOBAL_STATE",
        "Make all calls under the same global state (grad mode, inference mode, autocast), or "
        "accept one entry for each.",
    ),
    (".dtype", "Convert the tensor before the call, so that all calls have the same dtype."),
    (
        ".size()",
        "Mark the dimension with torch._dynamo.mark_dynamic, or compile with dynamic=True.",
    ),
    (".requires_grad", "Pass tensors that agree in requires_grad, or accept one entry for each."),
    ("len(", "Keep what grows out of the compiled function, or preallocate it as a tensor."),
)
_OTHER_ADVICE = "Keep it constant, pass it as a tensor, or accept one entry for each value."


def _dynamic_advice(cause: RecompileCause) -> str:
    if ".size()" in cause.name:
        return (
            "Nothing has to be done. torch._dynamo.mark_dynamic on that dimension before the "
            "first call saves the first compile."
        )
    return "Nothing has to be done. Passing it as a tensor saves the first compile."
