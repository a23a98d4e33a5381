"""Links: the one list by which every pane lights up what belongs together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dynamo_nb.record.types import CELL, CellRecord, Compile, Link, Ref, StackFrame

__all__ = ["line_ref", "links_of"]


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
    return list(links), list(files)


def _compile_links(compile_: Compile) -> Iterator[tuple[Link, StackFrame | None]]:
    key = compile_.key
    for artifact, index, frames in _with_frames(compile_):
        here = Ref(key, artifact, index)
        for frame in _lines(frames):
            yield Link(f"{artifact}-line", here, line_ref(frame.file, frame.line)), frame
    for graph in compile_.graphs:
        for node in graph.nodes:
            here = Ref(key, "node", f"{graph.name}/{node.name}")
            for origin in node.origins:
                yield Link("node-node", here, Ref(key, "node", origin)), None
    for kernel in compile_.kernels:
        here = Ref(key, "kernel", f"{kernel.graph}/{kernel.name}")
        for name in kernel.nodes:
            yield Link("kernel-node", here, Ref(key, "node", f"{kernel.graph}/{name}")), None
        if kernel.code_line is not None:
            code = Ref(key, "code", f"{kernel.graph}:{kernel.code_line}")
            yield Link("kernel-code", here, code), None


def _with_frames(compile_: Compile) -> Iterator[tuple[str, str, list[StackFrame]]]:
    """Yield `(artifact, key, frames)` of everything in a compile that has a source place."""
    for graph in compile_.graphs:
        for node in graph.nodes:
            yield "node", f"{graph.name}/{node.name}", node.frames
    for index, guard in enumerate(compile_.guards):
        yield "guard", str(index), _some(guard.frame)
    for index, graph_break in enumerate(compile_.graph_breaks):
        yield "break", str(index), _some(graph_break.frame)
    for index, reason in enumerate(compile_.recompile_reasons):
        yield "recompile", str(index), _some(reason.frame)
    if compile_.bytecode is not None:
        for instruction in compile_.bytecode.before:
            yield "instruction", f"before:{instruction.offset}", _some(instruction.frame)


def _some(frame: StackFrame | None) -> list[StackFrame]:
    return [frame] if frame is not None else []


def _lines(frames: Iterable[StackFrame]) -> list[StackFrame]:
    """Return the frames to link to: those in the cell, and the innermost wherever it is."""
    frames = list(frames)
    chosen = [frame for frame in frames[:-1] if frame.file == CELL] + frames[-1:]
    return list({(frame.file, frame.line): frame for frame in chosen}.values())
