"""The exception that ended a cell: the line of the cell it came from, and what raised it."""

from __future__ import annotations

import re
import traceback
from types import CodeType, TracebackType

from dynamo_nb.record.types import COMPILER, OPERATOR, CellError

__all__ = ["error_of"]

#: The parts of torch that stand between a graph's call and its operators.
_COMPILER = re.compile(r"\btorch[/\\]_(?:dynamo|functorch|inductor)[/\\].*")

#: Where Dynamo compiles a frame.
_COMPILING = re.compile(r"\btorch[/\\]_dynamo[/\\]convert_frame\.py$")

#: Torch's files, and code that it makes.
_TORCHS = re.compile(r"\btorch[/\\]|^<eval_with_key>|\btorchinductor_")

#: Torch's compiler in a message about what has no frame of its own.
_IN_MESSAGE = re.compile(r"\btorch\._(?:functorch|inductor)\.")


def error_of(exc: BaseException | None, file: str) -> CellError | None:
    """Return the exception that ended a cell, with the innermost line of the cell it came from.

    Code that Dynamo made has no line for the call of its graph: then it is the line of the call.
    """
    if exc is None:
        return None
    line = exc.lineno if isinstance(exc, SyntaxError) and exc.filename == file else None
    for frame, lineno in traceback.walk_tb(exc.__traceback__):
        if frame.f_code.co_filename == file and not _is_at_graph(frame.f_code, lineno):
            line = lineno
    message = str(exc)
    raised_by = _raised_by(exc.__traceback__, message)
    return CellError(type=type(exc).__name__, message=message, line=line, raised_by=raised_by)


def _raised_by(trace: TracebackType | None, message: str) -> str:
    """Return what raised below the call of a graph, empty where no graph raised.

    Dynamo's code calls the user's Python, too: what broke the graph, a custom operator.
    """
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(trace)]
    calls = [index for index, (code, _) in enumerate(frames) if _calls_graph(code)]
    below = frames[calls[-1] + 1 :] if calls else []
    if not below or not all(_TORCHS.search(code.co_filename) for code, _ in below):
        return ""
    if any(_COMPILING.search(code.co_filename) for code, _ in below):
        return ""  # what follows a graph break could not be compiled
    code, line = below[-1]
    compiler = _COMPILER.search(code.co_filename)
    if compiler:
        return f"{compiler[0]}:{line}".replace("\\", "/")
    return COMPILER if _IN_MESSAGE.search(message) else OPERATOR


def _is_at_graph(code: CodeType, line: int) -> bool:
    """Say whether a place in code that Dynamo made is the call of its graph.

    That call is given the first line of the code, whatever the graph was at.
    """
    return _calls_graph(code) and line == code.co_firstlineno


def _calls_graph(code: CodeType) -> bool:
    return any(name.startswith("__compiled_fn") for name in code.co_names)
