"""CUDA graphs that were asked for and are not recorded."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_nb.findings.wording import cell_lines, function
from dynamo_nb.record.causes import own_compiles
from dynamo_nb.record.types import CELL, CellRecord, Compile, Finding, Ref, SkippedCudagraph

__all__ = ["cudagraph_skipped"]

#: What can be done, by how torch's reason begins.
_ADVICE = {
    "nothing in it runs on a GPU": "CUDA graphs need a GPU: leave the mode out, or move the model "
    "and its inputs there.",
    "cpu device": "A CUDA graph replays work of one GPU: move that tensor there, or make it there.",
    "multiple devices": "A CUDA graph replays work of one GPU: keep the graph on one.",
    "mutated inputs": "A replay would write into the recording's own memory: return the new value "
    "instead of writing into the argument, or mark it with torch._dynamo.mark_static_address.",
    "graph with symbolic shapes": "Each size would need a recording of its own: compile with "
    "dynamic=False, or pad to few sizes.",
    "incompatible op": "Leave that operator out of the compiled function.",
}


def cudagraph_skipped(record: CellRecord) -> Iterator[Finding]:
    """No CUDA graph of a function is recorded; the graphs of one reason are one finding."""
    found: dict[tuple[str, str, int, str], list[tuple[Compile, SkippedCudagraph]]] = {}
    for compiled in own_compiles(record):
        for item in compiled.skipped_cudagraphs:
            why = item.reason.partition(" (")[0]
            key = (compiled.name, compiled.file, compiled.first_line, why)
            found.setdefault(key, []).append((compiled, item))
    for items in found.values():
        yield _finding(items)


def _finding(items: list[tuple[Compile, SkippedCudagraph]]) -> Finding:
    compiled, item = next((pair for pair in items if pair[1].frame is not None), items[0])
    line = item.frame.line if item.frame is not None and item.frame.file == CELL else None
    advice = (told for begin, told in _ADVICE.items() if item.reason.startswith(begin))
    return Finding(
        code="cudagraph-skipped",
        severity="warning",
        message=(
            f"No CUDA graph of `{function(compiled.name)}` is recorded, though it was asked for: "
            f"{item.reason}."
        ),
        advice=next(advice, ""),
        line=line or compiled.call_line,
        lines=cell_lines(line, compiled.call_line),
        count=len(items),
        frame=item.frame if line is None else None,
        refs=[Ref(key, "compile", "") for key in dict.fromkeys(each.key for each, _ in items)],
    )
