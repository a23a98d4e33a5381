"""The user's part of the Python stack, from where a hook runs."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch.utils._traceback import shorten_filename

from dynamo_nb.capture.plain import Place
from dynamo_nb.capture.wrapping import known_name

__all__ = [
    "OURS",
    "RUNNERS",
    "callable_name",
    "code_name",
    "is_internal",
    "resume_origin",
    "user_stack",
    "without_own_place",
    "wrapped_by",
    "wrapper_frame",
]

#: The folder of this package.
OURS = str(Path(__file__).resolve().parent.parent) + os.sep
_INTERNAL = (
    str(Path(torch.__file__).parent) + os.sep,
    OURS,
    "<frozen",
    "<eval_with_key",
)
#: How torch shortens the names of our files.
_OWN_PLACE = shorten_filename(OURS)
#: What runs the notebook; none of it is imported here.
RUNNERS = tuple(
    str(Path(spec.origin).parent) + os.sep
    for spec in map(find_spec, ("IPython", "ipykernel", "traitlets"))
    if spec is not None and spec.origin
)
#: More frames than this are never the user's way to a call.
_LIMIT = 80


def is_internal(file: str) -> bool:
    """Tell whether a file is torch's own or ours."""
    return file.startswith(_INTERNAL)


def without_own_place(text: str) -> str:
    """Return a guard's text without torch's comment where that names a file of ours.

    A guard that no line asked for has the innermost frame of all as its place
    (`torch/_dynamo/guards.py: get_verbose_code_part`, 2.13), and that may be a hook's.
    """
    code, mark, place = text.partition("  # ")
    return code.rstrip() if mark and place.startswith(_OWN_PLACE) else text


def user_stack(frame: FrameType | None) -> list[Place]:
    """Return the places of the user's frames from `frame` upwards, outermost first.

    Frames of torch and IPython are left out, and in a notebook what started it.
    """
    places: list[Place] = []
    in_cell = 0  # how many places lie within the outermost frame of IPython
    count = 0
    while frame is not None and count < _LIMIT:
        code = frame.f_code
        if code.co_filename.startswith(RUNNERS):
            in_cell = len(places)
        elif not is_internal(code.co_filename):
            places.append((code.co_filename, frame.f_lineno or 0, code.co_name, None, None, None))
        frame = frame.f_back
        count += 1
    places = places[: in_cell or None]
    places.reverse()
    return places


def wrapper_frame(frame: FrameType | None) -> FrameType | None:
    """Return the frame of `compile_wrapper` that is at work, None where something else is.

    It is where what torch.compile returned is entered (`torch/_dynamo/eval_frame.py:
    _TorchDynamoContext.__call__`, 2.13).
    """
    for _ in range(6):
        if frame is None or frame.f_code.co_name == "compile_wrapper":
            return frame
        frame = frame.f_back
    return None


def code_name(code: CodeType) -> str:
    """Return a code object's name with its class (Python 3.11 and newer): `Net.forward`.

    A library's `wrapper` has the name of what it wraps, where that was learned.
    """
    if wrapped := known_name(code):
        return wrapped
    name: str = getattr(code, "co_qualname", code.co_name)
    return name.rsplit("<locals>.", 1)[-1]


def callable_name(function: Any, code: CodeType) -> str:
    """Return the name of what a frame of `code` runs.

    A module of torch's own is compiled through a wrapper (`torch/_dynamo/external_utils.py:
    wrap_inline`, 2.13), which is named after the `function` it wraps.
    """
    if function is None or not code.co_filename.endswith("external_utils.py"):
        return code_name(code)
    owner = getattr(function, "__self__", function)
    return str(getattr(owner, "__qualname__", type(owner).__name__))


def wrapped_by(callee: Any) -> Any:
    """Return what torch's inlining wrapper closes over as `fn`, None for anything else."""
    code, cells = getattr(callee, "__code__", None), getattr(callee, "__closure__", None) or ()
    names = code.co_freevars if code is not None else ()
    return next(
        (c.cell_contents for name, c in zip(names, cells, strict=False) if name == "fn"), None
    )


def resume_origin(code: CodeType) -> str:
    """Return the name of the function that a resume function continues, else an empty text.

    Resume functions of resume functions are followed to the user's own
    (`torch/_dynamo/resume_execution.py: ContinueExecutionCache.generated_code_metadata`, 2.13).
    """
    from torch._dynamo.resume_execution import ContinueExecutionCache

    known = ContinueExecutionCache.generated_code_metadata
    name = ""
    while code in known:
        code = known[code].code
        name = code_name(code)
    return name
