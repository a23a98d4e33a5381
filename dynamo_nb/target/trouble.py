"""What went wrong on the way to an absent GPU, in a sentence. In the worker only."""

from __future__ import annotations

import re
import traceback
from typing import Any

__all__ = ["node_of", "of_a_graph", "of_a_kernel", "places_of"]

#: What torch says, and what it means where the device is absent.
_MEANT = {
    "Torch not compiled with CUDA enabled": (
        "an operator of it asks for the device itself, which is not there"
    ),
    "SkipFrame: BF16 is not supported": (
        "torch skips a graph whose inputs or results are bfloat16 on a GPU without it, "
        "so the function would run eagerly"
    ),
}


def of_a_graph(exc: BaseException) -> str:
    """Return the first line of what went wrong, and the operator that Inductor names below it."""
    text = str(exc).strip()
    for said, meant in _MEANT.items():
        if said in text:
            return meant
    if type(exc).__name__ == "UntakableError":  # a sentence of ours; its module imports torch
        return text
    if isinstance(exc, ModuleNotFoundError) and exc.name:
        return f"it needs {exc.name}, which is not installed: pip install {exc.name}"
    first = text.splitlines()[0] if text else ""
    operator = _OPERATOR.search(text)
    if operator is not None:
        first = f"{first.rstrip(': ')} in {operator[1]}"
    return f"{type(exc).__name__}: {first}" if first else type(exc).__name__


#: How torch names the node at which it failed, and what stands above the node's stack trace.
_OPERATOR = re.compile(r"^  target: (\S+)$", re.MULTILINE)
_NODE = re.compile(r"While executing %?(\w+)")
_TRACES = ("Original traceback:", "Found from :")


def node_of(exc: BaseException) -> str:
    """Return the node at which a graph failed: the innermost one that torch names, or nothing."""
    found = _NODE.search(str(exc))
    return str(getattr(exc, "node", "")) or (found[1] if found else "")


def places_of(exc: BaseException) -> list[Any]:
    """Return where the code is that a graph failed at, outermost first."""
    from dynamo_nb.capture.plain import parse_stack_trace

    for title in _TRACES:
        _, found, rest = str(exc).partition(title)
        if found:
            lines = rest.strip().splitlines()
            ends = next((at for at, line in enumerate(lines) if not line.strip()), len(lines))
            return parse_stack_trace("\n".join(lines[:ends]))
    return []


def of_a_kernel(exc: BaseException) -> str:
    """Return what a compiler of kernels says: Triton shows the place first and the reason last."""
    lines = "".join(traceback.format_exception_only(exc)).strip().splitlines()
    name, _, _ = lines[0].partition(":")
    is_placed = lines[0].partition(": ")[2].startswith("at ") and len(lines) > 1
    return f"{name.rpartition('.')[2]}: {lines[-1]}" if is_placed else lines[0]
