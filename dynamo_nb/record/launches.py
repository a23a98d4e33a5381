"""A kernel's launch grid, read from the output code that launches it."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["grid_of"]

#: How Inductor writes a quotient that is rounded up, in Python.
_CEILED = re.compile(r"-\(\((\w+)\) // -\((\d+)\)\)")
_NAME = re.compile(r"[A-Za-z_]\w*")

#: The axes of a launch, each with its number of elements and the size of a block.
_AXES = (("xnumel", "XBLOCK"), ("ynumel", "YBLOCK"), ("znumel", "ZBLOCK"))


def grid_of(kernel: str, binary: dict[str, Any], code: str) -> list[str]:
    """Return the grid at a kernel's first launch: numbers where sizes are known, else formulas.

    Templates and the user's own kernels have formulas of their own, often just arguments that the
    launch has for it.
    """
    given = _arguments(kernel, code)
    extra = binary["extra"]
    names = [name for name, kind in binary["signature"].items() if kind != "constexpr"]
    values = dict(zip(names, given, strict=False))
    if str(binary["grid_type"]).startswith(("Grid1D", "Grid2D", "Grid3D")):
        sizes = binary["config"]
        return [
            _blocks(values.get(numel, "1"), sizes.get(block, 1))
            for numel, block in _AXES
            if numel in binary["signature"]
        ]
    if not given:
        return []
    values |= zip(extra, given[len(given) - len(extra) :], strict=False)
    grid = [_filled(formula, values) for formula in binary["grid"]]
    while len(grid) > 1 and grid[-1] == "1":
        grid.pop()
    return grid


def _filled(formula: str, values: dict[str, str]) -> str:
    """Put arguments into a formula of Inductor's, which has `-((n) // -(256))` for n / 256."""
    ceiled = _CEILED.sub(lambda match: _blocks(_value(match[1], values), int(match[2])), formula)
    if ceiled != formula:
        return ceiled
    return values.get(formula) or _NAME.sub(lambda match: _factor(match[0], values), formula)


def _value(name: str, values: dict[str, str]) -> str:
    return values.get(name, "1" if name.endswith("numel") else name)


def _factor(name: str, values: dict[str, str]) -> str:
    value = values.get(name, name)
    return value if value.isalnum() else f"({value})"


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
