"""Compiled calls whose results are not those of the eager call (`%%dynamo --check`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dynamo_nb.findings.sources import enclosing_function, parse
from dynamo_nb.findings.wording import cell_lines, function
from dynamo_nb.record.causes import cell_frame
from dynamo_nb.record.check_text import difference_text
from dynamo_nb.record.types import CELL, CellRecord, Check, Finding, Mismatch, Ref

__all__ = ["result_differs"]

#: What the first stage that differs means.
_STAGES = {
    "eager": (
        "No compiler takes part at this stage: the code behaves otherwise while Dynamo traces it "
        "(`torch.compiler.is_compiling()`), or Dynamo traces it wrongly."
    ),
    "aot_eager": (
        "AOTAutograd is at fault: look at mutated inputs, views and custom autograd functions."
    ),
    "aot_eager_decomp_partition": (
        "A decomposition or the split into forward and backward is at fault."
    ),
    "inductor": "Inductor is at fault: with `--backend aot_eager` the result is right.",
}
_ENTRY = (
    "Compiled anew it is right: the cache entry lacks a guard for what has changed since. "
    "Pass that in as an argument, or call torch._dynamo.reset() when it changes."
)
_INTERPRETED = (
    "The code that Inductor wrote for the GPU is at fault, or Triton's interpreter: read the "
    "kernel, and run it on the device before you trust either."
)
#: What sets a state that tensors are made by, and that a graph does not take along.
_SETTERS = ("set_default_dtype", "set_default_tensor_type", "inference_mode")
_STATE = (
    "`{name}` in line {line} is inside of what is compiled, and AOTAutograd makes its graphs under "
    "the state outside. Set the state before the compiled call, or give the dtype where the tensor "
    "is made."
)
_CASTS = (
    "Inductor computes fused operations in float32 and rounds once, where eager rounds after each "
    "of them: most often the compiled result is the more exact one. Compare with a tolerance of "
    "the narrow dtype, or have eager's rounding, but for the order of sums, with "
    "`options={'emulate_precision_casts': True}`."
)
_OWN = "The backend is at fault: up to its call the result is right."
_UNTIL_MENDED = " Until it is mended, keep this code out with `torch.compiler.disable`."


def result_differs(record: CellRecord) -> Iterator[Finding]:
    """A compiled call gives another result than the same call made eagerly."""
    for check in record.checks:
        if check.status == "differs" and check.mismatches:
            yield _finding(record, check)


def _finding(record: CellRecord, check: Check) -> Finding:
    first, *rest = check.mismatches
    frame = cell_frame([first.frame])
    more = (
        f" {len(rest)} more {'things differ' if len(rest) > 1 else 'thing differs'}."
        if rest
        else ""
    )
    written = f"; {first.kernel} writes it" if first.kernel else ""
    return Finding(
        code="result-differs",
        severity="warning" if check.casts else "error",
        message=(
            f"`{function(check.name)}` compiled is not what it is eagerly: "
            f"{difference_text(first)}. {_where(check)}{written}.{more}"
        ),
        advice=_advice(record, check),
        line=frame.line if frame else check.line,
        lines=cell_lines(frame.line if frame else None, check.line),
        count=check.count,
        frame=first.frame,
        refs=_refs(record, check, first),
    )


def _where(check: Check) -> str:
    why = ", which leaves out roundings to a narrower dtype" if check.casts else ""
    if check.target:
        kernels = f"the Triton kernels for {check.target}{why and ' (Inductor' + why[1:] + ')'}"
        return f"It is what {kernels} give when they are interpreted"
    if check.stage == "entry":
        return f"The cache entry {check.compile or 'that it hits'} is wrong for this call"
    return f"First different at the stage {check.stage}{why}"


def _advice(record: CellRecord, check: Check) -> str:
    if check.casts:
        return _CASTS
    if check.target:
        return _INTERPRETED
    if check.stage == "entry":
        return _ENTRY
    setter = _state_setter(record, check)
    if setter is not None:
        return _STATE.format(name=setter.attr, line=setter.lineno)
    return _STAGES.get(check.stage, _OWN) + _UNTIL_MENDED


def _state_setter(record: CellRecord, check: Check) -> ast.Attribute | None:
    """Return what in the compiled code sets a state that its tensors are made by."""
    tree = parse(record, CELL)
    compiled = record.compile(check.compile) if check.compile else None
    scope: ast.AST | None = tree
    if tree is not None and compiled is not None and compiled.name != CELL:
        scope = enclosing_function(tree, compiled.first_line) if compiled.file == CELL else None
    found = (node for node in ast.walk(scope or ast.Module([], [])))
    return next((n for n in found if isinstance(n, ast.Attribute) and n.attr in _SETTERS), None)


def _refs(record: CellRecord, check: Check, mismatch: Mismatch) -> list[Ref]:
    if not check.compile:
        return []
    entry = record.compile(check.compile)
    there = [target.kernels for target in entry.targets if target.spec == check.target]
    kernels = [
        Ref(check.compile, "kernel", f"{kernel.graph}/{kernel.name}")
        for kernel in (there[0] if there else entry.kernels)
        if mismatch.kernel == kernel.name
    ]
    return [*kernels, Ref(check.compile, "compile", "")]
