"""The compiled calls of a cell, recorded as they begin: what they take, copied beforehand."""

from __future__ import annotations

import inspect
import os
import sys
import threading
import types
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import torch

from dynamo_nb.capture.check_backward import watched_backward
from dynamo_nb.capture.check_copies import CannotCopyError, Copier, Kept
from dynamo_nb.capture.check_reach import Place, places_of
from dynamo_nb.capture.check_state import Surroundings, set_random_state
from dynamo_nb.capture.plain import Place as SourcePlace
from dynamo_nb.capture.recorder import Hook, Hooked
from dynamo_nb.capture.stacks import callable_name, code_name, user_stack, wrapper_frame

__all__ = ["CheckedCalls", "RecordedCall", "Taken"]

_SHARE_OF_MEMORY = 4
#: Taken to be free where the system does not tell.
_UNTOLD_MEMORY = 8 << 30


class Taken(NamedTuple):
    """All that a call takes: the callable, its arguments, and what its code's names stand for."""

    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    bound: list[tuple[Place, Any]]


class RecordedCall(NamedTuple):
    """One compiled call: `taken` holds copies from before it; `problem` says why there are none.

    `returned` tells that it raised nothing.
    """

    context: Any
    name: str
    stack: list[SourcePlace]
    names: list[str]
    around: Surroundings | None
    taken: Taken | None
    problem: str = ""
    returned: bool = False


class CheckedCalls:
    """Records calls of what torch.compile returned while its hook is installed."""

    def __init__(self) -> None:
        self.calls: list[RecordedCall] = []
        self._backwards: list[bool] = []
        self.hook = Hook("checks", "the check of results", self._install)
        self._kept = Kept(lambda device: _free_memory(device) // _SHARE_OF_MEMORY)
        self._lock = threading.Lock()
        self._open: dict[int, int] = {}

    @property
    def trains(self) -> bool:
        """Whether the cell ran a backward, inside of a compiled call or outside."""
        return bool(self._backwards)

    def _install(self, hooked: Hooked) -> None:
        """Watch where compiled callables are entered.

        `compile_wrapper` asks for its callback just before it runs the function, with Dynamo
        switched off (`torch/_dynamo/eval_frame.py: _TorchDynamoContext.__call__`, 2.13). It sets
        Dynamo back last of all, and then has a `result` unless the function raised.
        """
        from torch._dynamo import eval_frame

        def on_entry(callback: Any) -> None:
            frame = wrapper_frame(sys._getframe())
            if frame is not None and callback is not None and not _is_nested(frame):
                self._record(frame)

        def on_exit(*_: Any) -> None:
            frame = wrapper_frame(sys._getframe())
            if frame is not None and id(frame) in self._open and "result" in frame.f_locals:
                at = self._open.pop(id(frame))
                self.calls[at] = self.calls[at]._replace(returned=True)

        hooked.around(eval_frame, "_callback_from_stance", before=on_entry)
        hooked.around(eval_frame, "_maybe_set_eval_frame", before=on_exit)
        hooked.undo.enter_context(watched_backward(self._backwards.append))

    def _record(self, frame: FrameType) -> None:
        local = frame.f_locals
        function, args, kwargs = local["fn"], local["args"], local["kwargs"]
        target = _target(function)
        around, taken, problem = None, None, ""
        with self._lock:
            try:
                around = Surroundings()
                taken = _taken(target, args, kwargs, self._kept)
            except CannotCopyError as error:
                problem = str(error)
            except Exception as error:
                problem = f"its inputs could not be copied ({type(error).__name__}: {error})"
            finally:
                if around is not None:
                    set_random_state(around.random)
        self._open[id(frame)] = len(self.calls)
        self.calls.append(
            RecordedCall(
                context=local["self"],
                name=_name(target, function),
                stack=user_stack(frame),
                names=_argument_names(target, args, kwargs),
                around=around,
                taken=taken,
                problem=problem,
            )
        )


def _taken(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], kept: Kept) -> Taken:
    copier = Copier(kept)
    copies = copier.copy(target), copier.copy(args), copier.copy(kwargs)
    return Taken(*copies, bound=_bound(copier))


def _bound(copier: Copier) -> list[tuple[Place, Any]]:
    """Copy what is bound to the names of all code that was met, and of what that leads to."""
    found: dict[tuple[str, int, str], tuple[Place, Any]] = {}
    seen: set[int] = set()
    while copier.met:
        item = copier.met.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        for place in places_of(item):
            if not isinstance(place, Place):
                copier.met.append(place)
            elif place.identity not in found:
                found[place.identity] = place, _copied(copier, place)
    return list(found.values())


def _copied(copier: Copier, place: Place) -> Any:
    try:
        return copier.copy(place.get())
    except CannotCopyError as error:
        msg = f"`{place.name}` ({place.kind}): {error}"
        raise CannotCopyError(msg) from error


def _free_memory(device: torch.device) -> int:
    """Return the bytes that are free on a device, on a GPU with those that torch holds unused."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0] + unused)
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return _UNTOLD_MEMORY


def _is_nested(frame: FrameType) -> bool:
    """Tell whether a compiled call runs within another one."""
    code, above = frame.f_code, frame.f_back
    while above is not None:
        if above.f_code is code:
            return True
        above = above.f_back
    return False


def _target(function: Any) -> Any:
    """Return what the user gave to torch.compile: a module, a function or a method."""
    if isinstance(function, types.FunctionType):
        if function.__code__.co_filename.endswith("external_utils.py"):
            cells = dict(
                zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            )
            return _target(cells["fn"].cell_contents) if "fn" in cells else function
        return function
    owner = getattr(function, "__self__", None)
    if isinstance(owner, torch.nn.Module) and function.__name__ in (
        "__call__",
        "_call_impl",
        "_wrapped_call_impl",
    ):
        return owner
    return function


def _name(target: Any, function: Any) -> str:
    if isinstance(target, torch.nn.Module):
        return f"{type(target).__name__}.forward"
    inner = getattr(target, "__func__", target)
    code = getattr(inner, "__code__", None)
    return code_name(code) if code is not None else callable_name(function, function.__code__)


def _argument_names(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return the names of the positional arguments as the callee knows them."""
    function: Callable[..., Any] = getattr(target, "forward", target)
    names: list[str] = []
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(len(args) - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names += [f"argument {i}" for i in range(len(names), len(args))]
    return names[: len(args)]
