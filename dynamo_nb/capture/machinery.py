"""Frames that nobody means to compile: what runs the notebook, Dynamo's own, and ours."""

from __future__ import annotations

import os
from pathlib import Path
from types import CodeType, FrameType

import torch

from dynamo_nb.capture.check_reach import is_library
from dynamo_nb.capture.stacks import OURS, RUNNERS

__all__ = ["is_machinery"]

_TORCH = Path(torch.__file__).parent
_DYNAMO = (str(_TORCH / "_dynamo") + os.sep, str(_TORCH / "_compile.py"))
#: Whose frames stand between a hook and the caller of a frame that Dynamo is asked about.
_ASKING = (OURS, str(_TORCH / "_dynamo" / "convert_frame.py"))


def is_machinery(code: CodeType, hook: FrameType | None, *, compiled: bool) -> bool:
    """Tell whether a frame that Dynamo is asked about is not of the user's doing.

    It is code of Dynamo itself, or called by what runs the notebook: `print` writes to a socket, on
    another thread. What the user had compiled is neither, wherever it lies. `hook` is the frame of
    the hook that was told.
    """
    caller = hook
    while caller is not None and caller.f_code.co_filename.startswith(_ASKING):
        caller = caller.f_back
    if _is_entry(caller):
        return False
    file = code.co_filename
    if file.startswith(_DYNAMO) and not compiled:
        return True
    while is_library(file) and not file.startswith((OURS, *RUNNERS)):
        if caller is None or _is_entry(caller):
            return False
        file, caller = caller.f_code.co_filename, caller.f_back
    return is_library(file)


def _is_entry(frame: FrameType | None) -> bool:
    """Tell whether a frame is that in which what torch.compile returned is entered.

    `torch/_dynamo/eval_frame.py: _TorchDynamoContext.__call__` (2.13).
    """
    return frame is not None and frame.f_code.co_name == "compile_wrapper"
