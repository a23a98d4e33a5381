"""Text made fit to show: cleaned, scrubbed of what differs between runs, clipped, aligned."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

from dynamo_nb.record.naming import file_text, place
from dynamo_nb.record.types import CELL, CellRecord, StackFrame, TensorValue

__all__ = [
    "brief",
    "clean",
    "clip",
    "compact_lines",
    "excerpt",
    "one_line",
    "percent_text",
    "place",
    "plural",
    "rate_text",
    "scrub",
    "size_text",
    "some",
    "source_line",
    "span_text",
    "spot",
    "time_text",
    "value_text",
]

_TAB = "    "
_WIDTH = 96

#: Parts of a path that are another in each process: torch's caches, IPython's cells, `tempfile`'s.
_TEMPORARY = r"torchinductor_|ipykernel_|\b(?:tmp|dynamo_nb-)[a-z0-9_]{8}\b"

#: What torch's texts hold that differs between runs of the same cell, and what stands in for it.
#: A user's own numbers and strings may look alike, so each is known by what stands around it.
_VARYING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:(?<=\bat )|(?<=\bid=))0x[0-9a-fA-F]{6,}|\b0x[0-9a-fA-F]{11,}"), "0x…"),
    (re.compile(r"(_id\([^\n]*?, |\bid[=: ]+)\d{12,}\b"), r"\1…"),
    (re.compile(r"_[0-9a-f]{8}(?:[_-][0-9a-f]{4}){3}[_-][0-9a-f]{12}"), ""),
    (re.compile(r"\b(?=[0-9]*[a-fA-F])(?=[a-fA-F]*\d)[0-9a-fA-F]{32,}\b"), "…"),
    (re.compile(r"(__compiled_fn|__resume_at_\d+|__builtins_dict__)_\d+"), r"\1"),
    (re.compile(rf"(?<![\w.)\]])/[^\s'\"]*?(?:{_TEMPORARY})[^\s'\"]*"), "<tmp>"),
    # torch cuts off where its own folder would be, also from paths that lie elsewhere
    (re.compile(r"[^\s'\"<]*ipykernel_\d+/[^\s'\"]*"), "<tmp>"),
)

#: torch's own abbreviations of dtypes, as its printed graphs have them.
_DTYPES = {
    "bfloat16": "bf16",
    "bool": "b8",
    "complex128": "c128",
    "complex64": "c64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "int8": "i8",
    "uint8": "u8",
}


def clean(text: str) -> str:
    """Return `text` with every character that can't be seen, or that reorders text, made visible.

    Newlines and tabs stay; each other character stays one character, so columns do not move.
    """
    if text.isprintable():
        return text
    if "\n" in text:
        return "\n".join(map(clean, text.split("\n")))
    return "".join(map(_visible, text))


def _visible(char: str) -> str:
    code = ord(char)
    if char in "\n\t" or char.isprintable():
        return char
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return char if unicodedata.category(char) == "Zs" else "\ufffd"


def scrub(text: str) -> str:
    """Return text of torch's without addresses, object ids, unique names and temporary paths.

    Quoted source is never scrubbed: it is what the user wrote, and columns count in it.
    """
    for pattern, substitute in _VARYING:
        text = pattern.sub(substitute, text)
    return text


def clip(text: str, limit: int) -> str:
    """Return `text`, cut to `limit` characters, with an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"


def brief(text: str, limit: int) -> str:
    """Return text of torch's on one line, scrubbed before it is cut."""
    return clip(scrub(one_line(text)), limit)


def plural(count: int, noun: str) -> str:
    """Return the count with its noun: `1 guard`, `3 guards`."""
    ending = "" if count == 1 else "es" if noun.endswith(("s", "x", "ch")) else "s"
    return f"{count} {noun}{ending}"


def compact_lines(lines: Iterable[int], limit: int = 6) -> str:
    """Return line numbers as `line 5` or `lines 5-7, 9`; beyond `limit` ranges, how many more."""
    ordered = sorted(set(lines))
    if not ordered:
        return ""
    ranges: list[list[int]] = []
    for line in ordered:
        if ranges and line == ranges[-1][1] + 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    shown = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges[:limit])
    more = f", … {len(ranges) - limit} more" if len(ranges) > limit else ""
    return f"line{'s' if len(ordered) > 1 else ''} {shown}{more}"


def source_line(record: CellRecord, file: str, line: int) -> str | None:
    """Return a line of the cell or of a file that the record holds, or None."""
    text = record.source if file == CELL else record.files.get(file, "")
    lines = text.split("\n")
    return lines[line - 1] if 0 < line <= len(lines) and text else None


def excerpt(
    record: CellRecord, frame: StackFrame, *, width: int = _WIDTH, is_named: bool = False
) -> list[str]:
    """Return the frame's source line and, where its columns are known, carets under them.

    A line that is not the cell's follows the name of its file, unless the place `is_named` already.
    """
    text = source_line(record, frame.file, frame.line)
    if text is None or not text.strip():
        return []
    number = f"{frame.line:>5} | "
    line, carets = spot(text, frame, width - len(number))
    under = [" " * (len(number) - 2) + "| " + carets] if carets else []
    file = "" if is_named or frame.file == CELL else f"      in {file_text(frame.file)}"
    return [*([clip(file, width)] if file else []), (number + line).rstrip(), *under]


def spot(text: str, frame: StackFrame, width: int = _WIDTH) -> tuple[str, str]:
    """Return a source line as displayed within `width`, and its caret line (may be empty).

    Columns count characters; tabs take four cells and wide characters two, as terminals show them.
    A place that goes on over further lines is marked to the end of its first.
    """
    text = text.rstrip()
    line = _displayed(text)
    if frame.column is None or frame.column >= len(text):
        return clip(line, width), ""
    same_line = frame.end_line in (None, frame.line)
    end = frame.end_column if same_line and frame.end_column is not None else len(text)
    start, stop = _cells(text[: frame.column]), _cells(text[:end])
    return _window(line, start, max(stop - start, 1), width)


def _window(line: str, start: int, length: int, width: int) -> tuple[str, str]:
    """Cut a long line so that its marked part stays in sight."""
    length = min(length, width)
    if start + length <= width:
        return clip(line, width), " " * start + "^" * length
    cut = start + length - width + 1
    return clip("…" + line[cut + 1 :], width), " " * (start - cut) + "^" * length


def _displayed(text: str) -> str:
    return clean(text.replace("\t", _TAB))


def _cells(text: str) -> int:
    """Return how many terminal cells a text takes."""
    return sum(
        len(_TAB)
        if char == "\t"
        else 0
        if unicodedata.combining(char)
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )


def value_text(value: TensorValue | Sequence[object] | str | None) -> str:
    """Return a node's value in torch's short form: `f32[8, s77]`, with a device unless the CPU."""
    if value is None:
        return ""
    if isinstance(value, TensorValue):
        dtype = value.dtype.removeprefix("torch.")
        shape = ", ".join(map(str, value.shape))
        device = "" if value.device == "cpu" else f" {value.device}"
        return f"{_DTYPES.get(dtype, dtype)}[{shape}]{device}"
    if isinstance(value, str):
        return value
    return "(" + ", ".join(_part_text(part) for part in value) + ")"


def _part_text(part: object) -> str:
    """Return one value of a node with several; a record read from JSON has them as plain dicts."""
    if isinstance(part, dict) and "shape" in part:
        keys = ("shape", "dtype", "device")
        return value_text(TensorValue(**{key: part[key] for key in keys if key in part}))
    return value_text(part) if isinstance(part, TensorValue | list | tuple) else str(part)


def size_text(size: int) -> str:
    """Return a number of bytes: `640 B`, `8.4 MB`; nothing for none."""
    if not size:
        return ""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def time_text(seconds: float) -> str:
    """Return a time with three digits: `1.23 ms`."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def rate_text(rate: float, what: str) -> str:
    """Return a rate a second with three digits: `67 TFLOP/s` of `FLOP`, `3.35 TB/s` of `B`."""
    for unit, factor in (("T", 1e12), ("G", 1e9)):
        if rate >= factor:
            return f"{rate / factor:.3g} {unit}{what}/s"
    return f"{rate / 1e6:.3g} M{what}/s"


def span_text(frames: Sequence[StackFrame]) -> str:
    """Return the columns of the innermost place in the cell: `9-21`; nothing where unknown."""
    own = [frame for frame in frames if frame.file == CELL and frame.column is not None]
    return f"{own[-1].column}-{own[-1].end_column}" if own else ""


def some(items: Iterable[str], limit: int = 4) -> str:
    """Return the first items, separated by commas, and how many more there are."""
    items = list(items)
    more = [f"… {len(items) - limit} more"] if len(items) > limit else []
    return ", ".join([*items[:limit], *more])


def one_line(text: str) -> str:
    """Return `text` with every run of whitespace as one blank."""
    return " ".join(text.split())


def percent_text(share: float) -> str:
    """Return a share in percent; halves are rounded up, as the explorer does."""
    return f"{math.floor(share * 100 + 0.5)}%"
