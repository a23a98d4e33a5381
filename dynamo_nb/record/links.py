"""Links: the one list by which every pane lights up what belongs together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dynamo_nb.record.blamed import blamed
from dynamo_nb.record.definitions import defined_lines
from dynamo_nb.record.types import (
    CELL,
    CellRecord,
    Compile,
    Graph,
    Kernel,
    Link,
    Ref,
    StackFrame,
)

__all__ = ["line_ref", "links_of"]


#: Where Triton keeps what launches a kernel: Dynamo steps through it, and nobody looks for it.
_LAUNCHER = "triton/runtime/"

#: Files that are nobody's own.
_LIBRARY = ("torch/", _LAUNCHER, "<")


def line_ref(file: str, line: int) -> Ref:
    """Return the address of a source line."""
    return Ref("", "line", f"{file}:{line}")


def links_of(record: CellRecord) -> tuple[list[Link], list[str]]:
    """Return a record's links, and the files outside the cell that they lead to."""
    links: dict[Link, None] = {}
    files: dict[str, None] = {}
    for compile_ in record.compiles:
        for link, frame in _compile_links(compile_):
            links[link] = None
            if frame is not None and frame.file != CELL:
                files[frame.file] = None
        links.update(dict.fromkeys(_recompile_links(compile_, record)))
        links.update(dict.fromkeys(_instruction_links(compile_, record)))
        files.update(dict.fromkeys(_own_files(compile_)))
    return list(links), list(files)


def _compile_links(compile_: Compile) -> Iterator[tuple[Link, StackFrame | None]]:
    key = compile_.key
    for artifact, index, frames in _with_frames(compile_):
        here = Ref(key, artifact, index)
        for frame in _lines(frames):
            yield Link(f"{artifact}-line", here, line_ref(frame.file, frame.line)), frame
    for graph in _graphs(compile_):
        for node in graph.nodes:
            here = Ref(key, "node", f"{graph.name}/{node.name}")
            for origin in node.origins:
                yield Link("node-node", here, Ref(key, "node", origin)), None
    for kernel in _kernels(compile_):
        here = Ref(key, "kernel", f"{kernel.graph}/{kernel.name}")
        for name in kernel.nodes:
            yield Link("kernel-node", here, Ref(key, "node", f"{kernel.graph}/{name}")), None
        for number, frame in defined_lines(kernel):
            line = line_ref(frame.file, frame.line)
            code = Ref(key, "code", f"{kernel.graph}/{kernel.name}:{number}")
            yield Link("kernel-line", here, line), frame
            yield Link("code-line", code, line), None
        if kernel.code_line is not None:
            code = Ref(key, "code", f"{kernel.graph}:{kernel.code_line}")
            yield Link("kernel-code", here, code), None
    for frame in _lines_of(compile_):
        yield (
            Link("compile-line", Ref(key, "compile", ""), line_ref(frame.file, frame.line)),
            frame,
        )


def _lines_of(compile_: Compile) -> Iterator[StackFrame]:
    """Yield the places that a compile as a whole stands for: those of its graph, where it ended."""
    for graph in compile_.graphs:
        if graph.stage == "dynamo":
            for node in graph.nodes:
                yield from _lines(node.frames)
    for ended in (*compile_.graph_breaks, compile_.error):
        yield from _some(ended.frame if ended else None)


def _recompile_links(compile_: Compile, record: CellRecord) -> Iterator[Link]:
    """Yield what a recompile leads to: its own compile, and the other entry's guard that failed."""
    compiles = {entry.key: entry for entry in record.compiles}
    for index, reason in enumerate(compile_.recompile_reasons):
        here = Ref(compile_.key, "recompile", str(index))
        yield Link("recompile-compile", here, Ref(compile_.key, "compile", ""))
        entry = compiles.get(reason.entry)
        for number in blamed(reason, entry.guards if entry else []):
            yield Link("recompile-guard", here, Ref(reason.entry, "guard", str(number)))


def _instruction_links(compile_: Compile, record: CellRecord) -> Iterator[Link]:
    """Yield which compile the modified bytecode leads to: its own graph, or a resume function."""
    for item in compile_.bytecode.after if compile_.bytecode else ():
        here = Ref(compile_.key, "instruction", f"after:{item.offset}")
        if "__compiled_fn" in item.argument:
            yield Link("instruction-compile", here, Ref(compile_.key, "compile", ""))
        elif "__resume_at" in item.argument and item.frame is not None:
            at, origin = f"_at_{item.frame.line}", compile_.resume_of or compile_.name
            for entry in record.compiles:
                if entry.resume_of == origin and entry.name.endswith(at):
                    yield Link("instruction-compile", here, Ref(entry.key, "compile", ""))


def _own_files(compile_: Compile) -> list[str]:
    """Return the user's files that Dynamo stepped through, whether they made a node or not."""
    codes = compile_.steps.codes if compile_.steps else ()
    files = (code.file for code in codes)
    return [file for file in files if file != CELL and not file.startswith(_LIBRARY)]


def _with_frames(compile_: Compile) -> Iterator[tuple[str, str, list[StackFrame]]]:
    """Yield `(artifact, key, frames)` of everything in a compile that has a source place."""
    for graph in _graphs(compile_):
        for node in graph.nodes:
            for frames in (node.frames, *([frame] for frame in node.also)):
                yield "node", f"{graph.name}/{node.name}", frames
    for index, guard in enumerate(compile_.guards):
        yield "guard", str(index), _some(guard.frame)
    for index, graph_break in enumerate(compile_.graph_breaks):
        yield "break", str(index), _some(graph_break.frame)
    for index, reason in enumerate(compile_.recompile_reasons):
        yield "recompile", str(index), _some(reason.frame)
    if compile_.bytecode is not None:
        for instruction in compile_.bytecode.before:
            yield "instruction", f"before:{instruction.offset}", _some(instruction.frame)


def _graphs(compile_: Compile) -> list[Graph]:
    return [*compile_.graphs, *(graph for target in compile_.targets for graph in target.graphs)]


def _kernels(compile_: Compile) -> list[Kernel]:
    return [*compile_.kernels, *(kernel for item in compile_.targets for kernel in item.kernels)]


def _some(frame: StackFrame | None) -> list[StackFrame]:
    return [frame] if frame is not None else []


def _lines(frames: Iterable[StackFrame]) -> list[StackFrame]:
    """Return the frames to link to: those in the cell, and the innermost wherever it is."""
    frames = [frame for frame in frames if not frame.file.startswith(_LAUNCHER)]
    chosen = [frame for frame in frames[:-1] if frame.file == CELL] + frames[-1:]
    return list({(frame.file, frame.line): frame for frame in chosen}.values())
