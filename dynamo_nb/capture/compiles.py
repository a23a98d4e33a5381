"""Compiles: when one starts and ends, how, and the bytecode it leaves."""

from __future__ import annotations

import dis
import sys
from contextlib import AbstractContextManager, ExitStack
from types import CellType, CodeType
from typing import Any

from dynamo_nb.capture.ambient import global_state
from dynamo_nb.capture.breaks import explained, filled
from dynamo_nb.capture.memory import MEMORY
from dynamo_nb.capture.plain import (
    Place,
    place_of_positions,
    place_of_summary,
    places_of_stack,
)
from dynamo_nb.capture.recorder import Hooked
from dynamo_nb.capture.stacks import callable_name, resume_origin, user_stack
from dynamo_nb.capture.wrapping import learn_name

__all__ = ["argument_text", "install_bytecode", "install_compiles", "install_fresh_code"]


def install_compiles(hooked: Hooked) -> None:
    """Watch `torch._dynamo.convert_frame._compile` (2.13): one call is one compile id.

    It must be this function and none further out: `ConvertFrameAssert.__call__` looks at the
    frames above it to honour `disable(recursive=False)`, and a wrapper there would hide them.
    """
    from torch._dynamo import convert_frame

    recorder = hooked.recorder

    def before(
        code: CodeType,
        _globals: dict[str, Any],
        f_locals: dict[str, Any],
        _builtins: dict[str, Any],
        closure: tuple[CellType, ...],
        *_: Any,
        compile_id: Any = None,
        **__: Any,
    ) -> None:
        recorder.generation = MEMORY.begin(str(compile_id))
        recorder.meet(code)
        learn_name(code, closure)
        recorder.emit(
            "compile_start",
            {
                "name": callable_name(f_locals.get("fn"), code),
                "file": code.co_filename,
                "first_line": code.co_firstlineno,
                "resume_of": resume_origin(code),
                "user_stack": user_stack(sys._getframe()),
                "state": global_state(),
            },
            compile_id=str(compile_id),
            attempt=0,
        )
        recorder.progress(str(compile_id), code.co_name, "dynamo")

    def end(compile_id: Any, **data: Any) -> None:
        recorder.emit("compile_end", data, compile_id=str(compile_id), attempt=0)
        recorder.progress("", "", "")

    def after(result: Any, _: CodeType, *__: Any, compile_id: Any = None, **___: Any) -> None:
        compiled = getattr(result, "guarded_code", None) is not None
        reason = getattr(result, "skip_reason", None) or ""
        end(compile_id, status="ok" if compiled else "skipped", reason=reason)

    def failed(
        error: BaseException, _: CodeType, *__: Any, compile_id: Any = None, **___: Any
    ) -> None:
        end(compile_id, status="failed", reason="", error=error_data(error))

    hooked.around(convert_frame, "_compile", before=before, after=after, failed=failed)


def error_data(error: BaseException) -> dict[str, Any]:
    """Return an exception of Dynamo in the shape of the record's `CompileError`.

    What torch knows of it comes from its own fields: `gb_type` and `real_stack` of `Unsupported`,
    `innermost_user_frame_summary`, `inner_exception` of `BackendCompilerFailed` (2.13).
    """
    message = str(getattr(error, "msg", None) or error)
    parts = explained(message)
    kind = getattr(error, "gb_type", None) or parts.get("kind", "")
    parts = filled(kind, parts)
    stack = places_of_stack(getattr(error, "real_stack", None))
    innermost = getattr(error, "innermost_user_frame_summary", None)
    frame: Place | None = place_of_summary(innermost) if innermost is not None else None
    return {
        "type": type(error).__name__,
        "message": message,
        "kind": kind,
        "explanation": parts["explanation"],
        "hints": parts["hints"],
        "frame": frame or (stack[-1] if stack else None),
        "user_stack": stack,
    }


def install_bytecode(hooked: Hooked) -> None:
    """Register torch's own bytecode hook; instructions are read when the capture ends."""
    from torch._dynamo.convert_frame import register_bytecode_hook

    def on_bytecode(old: CodeType, new: CodeType) -> None:
        with hooked.recorder.apart(hooked.hook):
            hooked.recorder.emit(
                "bytecode", lambda: {"before": listing(old), "after": listing(new)}
            )

    hooked.undo.callback(register_bytecode_hook(on_bytecode).remove)


def listing(code: CodeType) -> list[dict[str, Any]]:
    """Return a code object's instructions in the shape of the record's `Instruction`."""
    return [
        {
            "offset": instruction.offset,
            "opname": instruction.opname,
            "argument": argument_text(instruction),
            "frame": place_of_positions(
                code, getattr(instruction, "positions", None)
            ),  # 3.11 and newer
        }
        for instruction in dis.get_instructions(code)
    ]


def argument_text(instruction: dis.Instruction) -> str:
    """Return an argument's text; code objects by name, since their repr has an address."""
    if isinstance(instruction.argval, CodeType):
        return f"<code {instruction.argval.co_name}>"
    return instruction.argrepr


def _without_caches() -> AbstractContextManager[Any]:
    """Turn off the two caches that replay text instead of compiling; kernels' own stay on."""
    import torch._functorch.config as functorch_config
    import torch._inductor.config as inductor_config

    stack = ExitStack()
    stack.enter_context(inductor_config.patch({"fx_graph_cache": False}))
    stack.enter_context(functorch_config.patch({"enable_autograd_cache": False}))
    return stack


def install_fresh_code(hooked: Hooked) -> None:
    """Make generated code visible though Inductor's and AOTAutograd's caches are warm.

    Config values are context variables (2.12 and newer), so they are patched around the very call
    that reads them, on its own thread: a lazy backward compiles on autograd's.
    """
    from torch._dynamo import convert_frame
    from torch._inductor import compile_fx

    for owner, name in ((convert_frame, "_compile"), (compile_fx, "_compile_fx_inner")):
        hooked.inside(owner, name, lambda *_, **__: _without_caches())
