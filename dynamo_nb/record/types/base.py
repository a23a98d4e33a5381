"""What all of the record is made of: places in source code, references, links."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["CELL", "SCHEMA_VERSION", "Data", "Link", "Ref", "StackFrame"]

SCHEMA_VERSION = 1

#: The file name under which the recorded cell itself appears in every `StackFrame`.
CELL = "<cell>"


class Data(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all record structs: frozen, keyword-only, defaults left out of the JSON."""


class StackFrame(Data, frozen=True):
    """One place in source code.

    `file` is `CELL` for the recorded cell, `<cell N>` for the cell with execution count N, and a
    short path for a file on disk. Lines count from 1; columns count characters from 0, and
    `end_column` is exclusive. `name` is the function the place is in.
    """

    file: str
    line: int
    name: str = ""
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


class Ref(Struct, frozen=True, array_like=True):
    """The address of one thing in the record, unique within it.

    ============ ================================ =======================================
    artifact     key                              compile
    ============ ================================ =======================================
    line         `<file>:<line>`                  empty
    node         `<graph name>/<node name>`       key of the compile, e.g. `0/1`
    guard        index in `Compile.guards`        same
    break        index in `Compile.graph_breaks`  same
    recompile    index in `recompile_reasons`     same
    kernel       `<graph name>/<kernel name>`     same
    code         `<graph name>:<line>`            same (a line of output code)
    instruction  `before:<offset>`/`after:<...>`  same
    step         index in `Steps.steps`           same
    compile      empty                            same
    ============ ================================ =======================================
    """

    compile: str
    artifact: str
    key: str


class Link(Struct, frozen=True, array_like=True):
    """Two things that belong together. `kind` is `<artifact of a>-<artifact of b>`."""

    kind: str
    a: Ref
    b: Ref
