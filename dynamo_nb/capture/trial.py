"""What a trial does to torch, in a process of its own: nothing here is used in the notebook's."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
import torch._dynamo

from dynamo_nb.capture import portable
from dynamo_nb.capture.stacks import code_name
from dynamo_nb.capture.wrapping import learn_name

__all__ = ["Mark", "alike", "apart", "plain", "warm_up"]

_SEED = 20


class Mark(NamedTuple):
    """A dimension to mark, as in `record.trials.Mark`."""

    kind: str
    function: str
    first_line: int
    source: str
    dim: int


@contextmanager
def apart(
    ambient: portable.Ambient, arguments: dict[str, Any], marks: list[Mark]
) -> Iterator[None]:
    """Run a trial with empty caches, the notebook's configuration, and its own arguments and marks.

    Every trial starts from the same random state.
    """
    torch.compiler.reset()
    portable.apply(ambient)
    _seed()
    with ExitStack() as stack:
        stack.enter_context(_fresh_cache())
        stack.enter_context(_with_arguments(arguments))
        stack.enter_context(_with_marks(marks))
        try:
            yield
        finally:
            portable.apply(ambient)


def _seed() -> None:
    torch.manual_seed(_SEED)
    random.seed(_SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_SEED)


def _fresh_cache() -> Any:
    """Return a context in which Inductor's caches on disk are empty, so that times compare."""
    from torch._inductor import utils

    fresh = getattr(utils, "fresh_cache", None) or utils.fresh_inductor_cache
    return fresh()


@contextmanager
def _with_arguments(arguments: dict[str, Any]) -> Iterator[None]:
    """Make every torch.compile have these arguments, whatever it is called with."""
    original = torch.compile

    @functools.wraps(original)
    def compile_(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **{**kwargs, **arguments})

    torch.compile = compile_ if arguments else original
    try:
        yield
    finally:
        torch.compile = original


_MARKS: dict[str, Callable[[torch.Tensor, int], None]] = {
    "dynamic": lambda tensor, dim: torch._dynamo.mark_dynamic(tensor, dim),
    "static": lambda tensor, dim: torch._dynamo.mark_static(tensor, dim),
}


@contextmanager
def _with_marks(marks: list[Mark]) -> Iterator[None]:
    """Mark dimensions of what a frame is given, just before Dynamo compiles it.

    A call that hits an entry needs no mark: it fits already (`CatchErrorsWrapper`, 2.13).
    """
    from torch._dynamo.convert_frame import CatchErrorsWrapper

    original = CatchErrorsWrapper.__call__

    def marking(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        learn_name(frame.f_code, getattr(frame, "closure", None))
        for mark in marks:
            if _is_of(frame.f_code, mark):
                _mark(frame, mark)
        return original(self, frame, *args, **kwargs)

    if marks:
        CatchErrorsWrapper.__call__ = marking
    try:
        yield
    finally:
        CatchErrorsWrapper.__call__ = original


def _is_of(code: Any, mark: Mark) -> bool:
    names = {code.co_name, code_name(code).rpartition(".")[2]}
    return mark.function.rpartition(".")[2] in names and code.co_firstlineno == mark.first_line


def _mark(frame: Any, mark: Mark) -> None:
    scope = {"L": frame.f_locals, "G": frame.f_globals, "__builtins__": {}}
    try:
        tensor = eval(mark.source, scope)
    except Exception:
        return  # this call has no such argument
    if isinstance(tensor, torch.Tensor) and mark.dim < tensor.dim():
        _MARKS[mark.kind](tensor, mark.dim)


def warm_up(backend: Any) -> None:
    """Compile something small, so that no trial pays for what torch imports at first use."""
    try:
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    except Exception:
        return  # the backend's own trouble: the trials will tell


def plain(value: Any) -> Any:
    """Return a value with its tensors detached and copied, to be compared later."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if type(value) in (list, tuple):
        return [plain(item) for item in value]
    if type(value) is dict:
        return {key: plain(item) for key, item in value.items()}
    return value


def alike(a: Any, b: Any) -> bool:
    """Tell whether two values are the same within torch's tolerances; objects by their type."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        try:
            torch.testing.assert_close(a, b, equal_nan=True)
        except AssertionError:
            return False
        return True
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if a is None or isinstance(a, bool | int | float | str):
        return type(a) is type(b) and (a == b or a != a)
    return type(a).__qualname__ == type(b).__qualname__
