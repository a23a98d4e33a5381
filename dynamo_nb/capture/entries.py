"""Calls of compiled callables whose code Dynamo leaves alone: torch says nothing of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

import torch

from dynamo_nb.capture.memory import MEMORY
from dynamo_nb.capture.plain import Place
from dynamo_nb.capture.recorder import Hooked
from dynamo_nb.capture.stacks import callable_name, user_stack, wrapped_by, wrapper_frame

__all__ = ["install_entries"]

#: How deep arguments are searched for tensors, and how many items of each.
_DEPTH, _ITEMS = 3, 100


def install_entries(hooked: Hooked) -> None:
    """Watch where compiled callables are entered (`eval_frame._callback_from_stance`, 2.13).

    A call counts when Dynamo was not asked about its code until the next one came: it had given
    the code up before. (`torch._dynamo.reset()` has it asked again.)
    """
    from torch._dynamo import eval_frame

    recorder = hooked.recorder
    counts: Counter[_Silent] = Counter()
    pending: dict[int, tuple[CodeType, _Silent, int]] = {}

    def settle(key: int) -> None:
        known = pending.pop(key, None)
        if known is not None and MEMORY.asked(known[0]) == known[2]:
            counts[known[1]] += 1

    def on_entry(callback: Any) -> None:
        frame = wrapper_frame(sys._getframe())
        code = _code(frame.f_locals.get("fn")) if frame is not None and callback else None
        if frame is None or code is None:
            return
        settle(id(code))
        given_up = MEMORY.left_alone(code)
        if given_up:
            local = frame.f_locals
            silent = _Silent(
                name=callable_name(wrapped_by(local["fn"]), code),
                file=code.co_filename,
                first_line=code.co_firstlineno,
                given_up=given_up,
                has_tensors=_holds_tensor((local["args"], local["kwargs"]), _DEPTH),
                user_stack=tuple(user_stack(frame)),
            )
            pending[id(code)] = code, silent, MEMORY.asked(code)

    def hand_over() -> None:
        for key in list(pending):
            settle(key)
        for silent, count in counts.items():
            recorder.emit("left_alone", {**silent._asdict(), "count": count}, attempt=0)

    hooked.undo.callback(hand_over)
    hooked.around(eval_frame, "_callback_from_stance", before=on_entry)


class _Silent(NamedTuple):
    """A call that Dynamo was not asked about; those that are alike are counted."""

    name: str
    file: str
    first_line: int
    given_up: str
    has_tensors: bool
    user_stack: tuple[Place, ...]


def _code(function: Any) -> CodeType | None:
    """Return the code that Dynamo is asked about when what torch.compile got is called."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        function = type(owner).forward
    return getattr(getattr(function, "__func__", function), "__code__", None)


def _holds_tensor(value: Any, depth: int) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    return depth > 0 and any(_holds_tensor(item, depth - 1) for item in _items(value))


def _items(value: Any) -> Iterator[Any]:
    if type(value) is dict:
        value = list(value.values())
    if isinstance(value, list | tuple):
        yield from value[:_ITEMS]
