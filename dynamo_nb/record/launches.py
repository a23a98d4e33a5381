"""A kernel's launch grid, read from the output code that launches it."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["grid_of"]

#: The axes of a launch, each with its number of elements and the size of a block.
_AXES = (("xnumel", "XBLOCK"), ("ynumel", "YBLOCK"), ("znumel", "ZBLOCK"))


def grid_of(kernel: str, binary: dict[str, Any], code: str) -> list[str]:
    """Return the grid at a kernel's first launch: numbers where sizes are known, else formulas.

    Empty where the grid is not that of elements cut into blocks: templates and the user's own
    kernels have their own.
    """
    if not str(binary["grid_type"]).startswith(("Grid1D", "Grid2D", "Grid3D")):
        return []
    given = _arguments(kernel, code)
    names = [name for name, kind in binary["signature"].items() if kind != "constexpr"]
    values = dict(zip(names, given, strict=False))
    grid = []
    for numel, block in _AXES:
        if numel in binary["signature"]:
            size = binary["config"].get(block, 1)
            grid.append(_blocks(values.get(numel, "1"), size))
    return grid


def _arguments(kernel: str, code: str) -> list[str]:
    """Return what the first launch of a kernel passes, its numbers by their formulas."""
    match = re.search(rf"^\s*{re.escape(kernel)}\.run\((.*), stream=\w+\)$", code, re.MULTILINE)
    if match is None:
        return []
    formulas = dict(re.findall(r"^\s*(\w+numel) = (.+)$", code, re.MULTILINE))
    return [formulas.get(part, part) for part in _parts(match[1])]


def _parts(text: str) -> list[str]:
    """Split arguments at the commas that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def _blocks(elements: str, size: int) -> str:
    if elements.isdigit():
        return str(-(-int(elements) // size))
    return f"ceil({elements} / {size})" if size > 1 else elements
