"""The texts of a kernel's stages: the same in each run, with the source line of each line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["sass_of", "text_of"]

#: Where an assembler's text begins to hold debug data, as numbers that say nothing to a reader.
_DEBUG = re.compile(r'^\s*\.section\s+"?\.debug')

#: Where packages are installed: the rest of the path means the same on every machine.
_PACKAGES = re.compile(r"/[^\s\"]*/(?:site|dist)-packages/")

_LOC = re.compile(r"^\s*\.loc\s+(\d+ \d+(?: \d+)?)(?:.*\binlined_at (\d+ \d+ \d+))?")
_ASM = re.compile(r"(?:begin inline asm|#ASMSTART)|(end inline asm|#ASMEND)")
_INSTRUCTION = re.compile(r"^\s+(?!\.|//|;)\S")
_PTX_LINE = re.compile(r'^\s*//## File "\.nv_debug_ptx_txt", line (\d+)')
_MLIR_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$")
_MLIR_NAME = re.compile(r"#loc\d*")
_LLVM_PLACE = re.compile(
    r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+).*?scope: !(\d+)(?:, inlinedAt: !(\d+))?"
)
_LLVM_SCOPE = re.compile(r"^!(\d+) = (?:distinct )?!DI(?:Subprogram|Lexical\w+)\(.*\bfile: !(\d+)")
_LLVM_FILE = re.compile(r'^!(\d+) = !DIFile\(filename: "([^"]*)"')
_LLVM_USE = re.compile(r"!dbg !(\d+)")

_DEPTH = 12  # calls that may be inlined into each other


def text_of(stage: str, text: str, kernel: str, file: str) -> dict[str, Any]:
    """Return a stage's text, and for each of its lines the line of the kernel's source, or 0.

    `file` is where the source was when it was compiled. What is inlined, from triton's and
    Inductor's helpers or from functions beside the kernel, counts for the line that calls it.
    """
    lines = list(_without_debug(text.splitlines()))
    return {
        "stage": stage,
        "text": "\n".join(_renamed(line, kernel, file) for line in lines),
        "lines": list(_LINES[stage](lines, Path(file).name)),
    }


def sass_of(text: str, ptx: dict[str, Any], kernel: str) -> dict[str, Any]:
    """Return SASS that was disassembled with its lines of PTX, with the lines that these have.

    A cubin also knows places in the source, but those of assembly within PTX are wrong there: each
    of its lines counts for one more line of the source.
    """
    shown: list[str] = []
    lines: list[int] = []
    said, now = 0, 0
    for line in text.splitlines():
        mark = _PTX_LINE.match(line)
        if mark:
            now = _at(ptx["lines"], int(mark[1]))
            continue
        is_code = _INSTRUCTION.match(line) is not None
        number = now if is_code else 0
        if is_code and number != said:
            named = f'File "{kernel}.py", line {number}' if number else "no line"
            shown.append(f"\t//## {named}")
            lines.append(0)
            said = number
        shown.append(line)
        lines.append(number)
    return {"stage": "sass", "text": "\n".join(shown), "lines": lines}


def _at(lines: list[int], number: int) -> int:
    return lines[number - 1] if 0 < number <= len(lines) else 0


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


def _assembly(lines: list[str], name: str) -> Iterator[int]:
    """Read the marks that stand above the instructions they are for."""
    places = _locs(lines, _pattern(name))
    current, inside = 0, False
    for at, line in enumerate(lines):
        asm = _ASM.search(line)
        inside = inside if asm is None else not asm[1]
        # LLVM counts each line of such assembly as one further down: the first is right.
        if at in places and not inside:
            current = places[at]
        yield current if at not in places and _INSTRUCTION.match(line) else 0


def _locs(lines: list[str], place: re.Pattern[str]) -> dict[int, int]:
    """Return the line of the kernel's source that each `.loc` stands for, or 0.

    A comment names the place, on AMD with all its callers. PTX names one caller, by numbers that
    stood in a `.loc` above. Where these were inlined into several lines which go on further down,
    it can't be known for which of them this is.
    """
    marks = {at: match for at, line in enumerate(lines) if (match := _LOC.match(line))}
    last = {match.groups(): at for at, match in marks.items()}
    seen: dict[str, dict[int, int]] = {}  # numbers: lines they stood for, and where these end
    found = {}
    for at, match in marks.items():
        here, caller = match.groups()
        line = _last(place, lines[at])
        if caller in seen:
            *others, line = seen[caller]
            line = 0 if any(seen[caller][other] > at for other in others) else line
        found[at] = line
        if line:
            ends = seen.setdefault(here, {})
            ends.pop(line, None)  # the last of them is the one above
            ends[line] = last[here, caller]
    return found


def _mlir(lines: list[str], name: str) -> Iterator[int]:
    """Follow each line's `loc(#loc7)` through its aliases to a place in the kernel's source."""
    place = _pattern(name)
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


def _llvm(lines: list[str], name: str) -> Iterator[int]:
    """Follow each line's `!dbg !7` to the call in the kernel's file that led to it."""
    files = {match[1]: match[2] for line in lines if (match := _LLVM_FILE.match(line))}
    scopes = {match[1]: match[2] for line in lines if (match := _LLVM_SCOPE.match(line))}
    places = {match[1]: match.groups()[1:] for line in lines if (match := _LLVM_PLACE.match(line))}
    for line in lines:
        used = _LLVM_USE.search(line)
        number, found = used[1] if used else "", 0
        for _ in range(_DEPTH):
            if number not in places:
                break
            at, scope, number = places[number]
            if files.get(scopes.get(scope, "")) == name:
                found = int(at)
        yield found


def _pattern(name: str) -> re.Pattern[str]:
    """Return how a place in the kernel's file is written, with its line."""
    return re.compile(re.escape(name) + r'"?:(\d+)')


def _last(place: re.Pattern[str], text: str) -> int:
    """Return the last of the places in a text: the outermost where calls were inlined."""
    numbers = place.findall(text)
    return int(numbers[-1]) if numbers else 0


_LINES: dict[str, Callable[[list[str], str], Iterator[int]]] = {
    "ttir": _mlir,
    "ttgir": _mlir,
    "llir": _llvm,
    "ptx": _assembly,
    "amdgcn": _assembly,
}
