"""Dimensions that were to be dynamic, and that a line of the code turned into constants."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_nb.findings.errors import constraint_violations
from dynamo_nb.findings.wording import cell_lines, chain, function, names, place
from dynamo_nb.record.causes import RecompileCause, own_compiles, recompile_causes
from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import (
    CELL,
    CellRecord,
    Compile,
    Finding,
    Ref,
    Specialization,
    StackFrame,
)

__all__ = ["specialized_dim"]

_ADVICE = (
    "Write the line without that constant: what takes the size from the tensor itself stays "
    "dynamic. If one size is all that there is, mark the dimension with "
    "torch._dynamo.mark_static."
)
_ADVICE_RECOMPILED = (
    "Write the line so that it works for any size (no range() over it, no comparison with a "
    "number), pad to a few sizes, or accept one entry for each."
)


def specialized_dim(record: CellRecord) -> Iterator[Finding]:
    """A dimension that was to be dynamic has one size only in this code.

    It is an error where the dimension is marked, a warning where it changes and so costs a compile
    for each size, and information where it was only allowed to be dynamic.
    """
    yield from constraint_violations(record)
    causes = [cause for cause in recompile_causes(record) if _frame(cause) is not None]
    yield from map(_recompiled, causes)
    told = {change.compiled.key for cause in causes for change in cause.changes}
    grouped: dict[tuple[str, int], list[tuple[Compile, Specialization]]] = {}
    for compiled in own_compiles(record):
        for item in compiled.specializations:
            if compiled.status == "ok" and compiled.key not in told and _is_size(item):
                frame = item.frame or StackFrame(file=compiled.file, line=compiled.first_line)
                grouped.setdefault((frame.file, frame.line), []).append((compiled, item))
    yield from map(_allowed, grouped.values())


def _frame(cause: RecompileCause) -> StackFrame | None:
    return cause.specialization.frame if cause.specialization else None


def _is_size(item: Specialization) -> bool:
    return any(".size()[" in source for source in item.sources)


def _recompiled(cause: RecompileCause) -> Finding:
    frame, first = _frame(cause), cause.changes[0]
    line = frame.line if frame and frame.file == CELL else None
    where = "this line" if line else place(frame)
    return Finding(
        code="specialized-dim",
        severity="warning",
        message=(
            f"`{cause.name}` was to become dynamic, and {where} makes it a constant: "
            f"`{function(first.compiled.name)}` was compiled again for each value "
            f"({chain(cause.values)})."
        ),
        advice=_ADVICE_RECOMPILED,
        line=line or cause.line,
        lines=cell_lines(line, *cause.call_lines),
        count=len(cause.changes),
        frame=frame,
        refs=[Ref(c.compiled.key, "recompile", str(c.index)) for c in cause.changes],
    )


def _allowed(items: list[tuple[Compile, Specialization]]) -> Finding:
    compiled, first = items[0]
    frame = first.frame
    line = frame.line if frame and frame.file == CELL else None
    sizes = dict.fromkeys(
        (readable(source), item.value)
        for _, item in items
        for source in item.sources
        if ".size()[" in source
    )
    values = names([value for _, value in sizes]).replace("`", "")
    constant = f"the constant {values}" if len(sizes) == 1 else f"the constants {values}"
    return Finding(
        code="specialized-dim",
        severity="info",
        message=(
            f"{names([name for name, _ in sizes])} could be dynamic in "
            f"`{function(compiled.name)}`, and {'this line' if line else place(frame)} makes it "
            f"{constant}."
        ),
        advice=_ADVICE,
        line=line or compiled.call_line,
        lines=cell_lines(line, compiled.call_line),
        frame=frame,
        refs=[Ref(owner.key, "compile", "") for owner, _ in items[:1]],
    )
