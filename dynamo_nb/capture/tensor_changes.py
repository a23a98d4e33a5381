"""What a tensor has that its guard does not allow: every property that differs, then and now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dynamo_nb.capture.memory import Seen

__all__ = ["tensor_changes", "told_change"]

#: Properties that are one value, in the order in which a difference is worth telling.
_PROPERTIES = ("dtype", "device", "requires_grad")
#: The sizes and strides that a tensor's guard holds, `None` for those it leaves open (2.13).
_HELD = re.compile(r"\b(size|stride)=\[(.*?)\]")
#: What `TensorCheck::check_verbose` says (`torch/csrc/dynamo/guards.cpp`, 2.13) → what changed.
_MISMATCHES = tuple(
    (re.compile(rf"{told} mismatch{at}. expected (.+?), actual (.+?)$"), what)
    for told, at, what in (
        ("size", r" at index (\d+)", "{}.size()[{}]"),
        ("stride", r" at index (\d+)", "{}.stride()[{}]"),
        ("rank", "", "{}.dim()"),
        ("dtype", "", "{}.dtype"),
    )
)
#: `c10::ScalarType`'s own names → torch's.
_DTYPES = {
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Float": "float32",
    "Double": "float64",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Byte": "uint8",
    "Bool": "bool",
}

Change = tuple[str, str, str]


def tensor_changes(
    name: str, was: dict[str, Any], now: dict[str, Any], condition: str
) -> list[Change]:
    """Return `(what, value then, value now)` of all that differs and that the guard holds.

    Torch's own check stops at the first. `condition` is the guard's code.
    """
    found = [
        (f"{name}.{key}", str(was[key]), str(now[key]))
        for key in _PROPERTIES
        if was[key] != now[key]
    ]
    sizes, others = was["shape"], now["shape"]
    if sizes is not None and others is not None and len(sizes) != len(others):
        return [*found, (f"{name}.dim()", str(len(sizes)), str(len(others)))]
    held = {key: values.split(", ") for key, values in _HELD.findall(condition)}
    found += list(_numbers(name, "size", sizes, others, held)) or list(
        _numbers(name, "stride", was["stride"], now["stride"], held)
    )  # strides follow sizes
    return found or [(f"{name} (tensor type or dispatch keys)", "", "")]


def _numbers(
    name: str, method: str, was: Any, now: Any, held: dict[str, list[str]]
) -> Iterator[Change]:
    for index, (then, current) in enumerate(zip(was or (), now or (), strict=False)):
        known = held.get(method, [])
        is_open = index < len(known) and known[index] == "None"
        if then != current and not is_open:
            yield f"{name}.{method}()[{index}]", str(then), str(current)


def told_change(name: str, text: str, now: Seen) -> Change:
    """Return what changed of a tensor whose entry nobody saw: from torch's own message."""
    for pattern, what in _MISMATCHES:
        told = pattern.search(text)
        if told:
            *where, was, current = told.groups()
            return what.format(name, *where), _DTYPES.get(was, was), _DTYPES.get(current, current)
    if "requires_grad mismatch" in text and now.tensor is not None:
        current = now.tensor["requires_grad"]
        return f"{name}.requires_grad", str(not current), str(current)
    return name, "", now.text
