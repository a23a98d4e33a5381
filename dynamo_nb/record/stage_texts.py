"""The texts of a kernel's stages: the same in each run, with the source line of each line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["text_of"]

#: Where an assembler's text begins to hold debug data, as numbers that say nothing to a reader.
_DEBUG = re.compile(r'^\s*\.section\s+"?\.debug')

#: Where packages are installed: the rest of the path means the same on every machine.
_PACKAGES = re.compile(r"/[^\s\"]*/(?:site|dist)-packages/")

_LOC = re.compile(r"^\s*\.loc\s")
_SASS_LOC = re.compile(r"^\s*//## File ")
_INSTRUCTION = re.compile(r"^\s+(?!\.|//|;)\S")
_MLIR_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$")
_MLIR_NAME = re.compile(r"#loc\d*")
_LLVM_PLACE = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)")
_LLVM_CALLER = re.compile(r"inlinedAt: !(\d+)")
_LLVM_USE = re.compile(r"!dbg !(\d+)")

_DEPTH = 12  # calls that may be inlined into each other


def text_of(stage: str, text: str, kernel: str, file: str) -> dict[str, Any]:
    """Return a stage's text, and for each of its lines the line of the kernel's source, or 0.

    `file` is where the source was when it was compiled. What is inlined from triton's and
    Inductor's helpers counts for the line that calls it.
    """
    lines = list(_without_debug(text.splitlines()))
    name = Path(file).name
    return {
        "stage": stage,
        "text": "\n".join(_renamed(line, kernel, file) for line in lines),
        "lines": list(_LINES[stage](lines, re.compile(re.escape(name) + r'"?(?::|, line )(\d+)'))),
    }


def _renamed(line: str, kernel: str, file: str) -> str:
    """Put the kernel's name in place of the temporary file that its source was compiled from."""
    if ".py" not in line:
        return line
    folder, name = str(Path(file).parent), Path(file).name
    for written in (f'{folder}" "{name}', f"{folder}/{name}", name):
        line = line.replace(written, f"{kernel}.py")
    return _PACKAGES.sub("", line.replace(folder, ""))


def _without_debug(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if _DEBUG.match(line):
            return
        yield line


def _assembly(lines: list[str], place: re.Pattern[str]) -> Iterator[int]:
    """Read the marks that stand above the instructions they are for."""
    current = 0
    for line in lines:
        if _LOC.match(line) or _SASS_LOC.match(line):
            current = _last(place, line) or current
            yield 0
        else:
            yield current if _INSTRUCTION.match(line) else 0


def _mlir(lines: list[str], place: re.Pattern[str]) -> Iterator[int]:
    """Follow each line's `loc(#loc7)` through its aliases to a place in the kernel's source."""
    aliases = {match[1]: match[2] for line in lines if (match := _MLIR_ALIAS.match(line))}

    def line_of(text: str, depth: int = 0) -> int:
        own = _last(place, text)
        if own or depth > _DEPTH:
            return own
        names = _MLIR_NAME.findall(text)
        found = (line_of(aliases.get(name, ""), depth + 1) for name in reversed(names))
        return next(filter(None, found), 0)

    for line in lines:
        _, _, tail = line.rpartition(" loc(")
        yield 0 if line.startswith("#") else line_of(tail)


def _llvm(lines: list[str], place: re.Pattern[str]) -> Iterator[int]:
    """Follow each line's `!dbg !7` to the call that was not inlined any further."""
    places = {
        match[1]: (int(match[2]), _LLVM_CALLER.search(line))
        for line in lines
        if (match := _LLVM_PLACE.match(line))
    }
    for line in lines:
        used = _LLVM_USE.search(line)
        number, found = used[1] if used else "", 0
        for _ in range(_DEPTH):
            if number not in places:
                break
            found, caller = places[number]
            number = caller[1] if caller else ""
        yield found


def _last(place: re.Pattern[str], text: str) -> int:
    """Return the last of the places in a text: the outermost where calls were inlined."""
    numbers = place.findall(text)
    return int(numbers[-1]) if numbers else 0


_LINES: dict[str, Callable[[list[str], re.Pattern[str]], Iterator[int]]] = {
    "ttir": _mlir,
    "ttgir": _mlir,
    "llir": _llvm,
    "ptx": _assembly,
    "amdgcn": _assembly,
    "sass": _assembly,
}
