"""The stages of torch.compile, each as a context of its own cache region."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._C._dynamo.eval_frame import _get_cache_entries_for_region
from torch._dynamo import convert_frame, eval_frame
from torch._dynamo.guards import DeletedGuardManagerWrapper
from torch._dynamo.utils import counters

__all__ = [
    "Stage",
    "compiled_anew",
    "forget",
    "last_stage",
    "rounded_as_eager",
    "stages_before",
    "unseen_by_dynamo",
]

#: Backends that do what Inductor does up to some point, in order
#: (`torch/_dynamo/backends/debugging.py`, 2.13).
_PARTIAL = ("eager", "aot_eager", "aot_eager_decomp_partition")
#: What a partial backend's own check needs: those that come before it.
_BEFORE = {name: _PARTIAL[:at] for at, name in enumerate(_PARTIAL)}


class Stage:
    """A way to compile: its name, and a context as `torch._dynamo.optimize` returns it.

    Contexts are in a cache region of their own (`isolate_recompiles`, 2.13): they read the user's
    cache entries, which are those that ran, and never add to them.
    """

    def __init__(self, name: str, context: Any) -> None:
        self.name = name
        self._context = context

    @property
    def region(self) -> int:
        """The number of its cache region."""
        region: int = self._context._isolate_recompiles_id
        return region

    def compiled(self, target: Any) -> Any:
        """Return the callable, compiled at this stage."""
        return self._context(target)


def _backend(context: Any) -> Any:
    return eval_frame.innermost_backend(context.callback)


def _name(backend: Any) -> str:
    """Return a backend's name as `torch.compile(backend=...)` takes it."""
    named = getattr(backend, "compiler_name", "") or getattr(backend, "__name__", "")
    return str(named or type(backend).__name__)


def last_stage(context: Any, *, is_random: bool) -> Stage:
    """Return the stage of a user's own context, with the entries that it compiled.

    With `is_random`, Inductor is asked for eager's random numbers (`fallback_random`), and so
    compiles anew.
    """
    if is_random and (stage := _inductor_with(context, fallback_random=True)) is not None:
        return stage
    backend = _backend(context)
    own = copy.copy(context)
    own._isolate_recompiles_id = next(eval_frame._next_isolate_recompiles_id)
    return Stage(_name(backend), own)


def rounded_as_eager(context: Any, *, is_random: bool) -> Stage | None:
    """Return the stage of Inductor where it rounds after each operation, as eager does.

    `torch._inductor.config.emulate_precision_casts` (2.13); None for another backend.
    """
    return _inductor_with(context, emulate_precision_casts=True, fallback_random=is_random)


def _inductor_with(context: Any, **config: bool) -> Stage | None:
    """Return the stage of a user's own context with settings of Inductor: it compiles anew."""
    backend = _backend(context)
    if not isinstance(backend, torch._TorchCompileInductorWrapper):
        return None
    again = copy.copy(backend)
    again.config = {**backend.config, **config}
    return Stage(_name(backend), _optimize(context, again))


def compiled_anew(context: Any) -> Stage:
    """Return the stage of a user's own context without the entries that it compiled.

    Dynamo takes an entry whose backend equals the one asked for: a wrapper equals nothing.
    """
    backend = _backend(context)

    def again(*args: Any, **kwargs: Any) -> Any:
        return backend(*args, **kwargs)

    return Stage(_name(backend), _optimize(context, again))


def forget(stages: Iterable[Stage]) -> None:
    """Empty the cache entries that stages made.

    Entries can't be taken out of a code object one by one; emptied they hold nothing, and they lie
    in regions that no look-up visits again (`torch/csrc/dynamo/extra_state.cpp: invalidate`, 2.13).
    """
    regions = [stage.region for stage in stages]
    deleted = DeletedGuardManagerWrapper("made by a check that is over")
    for code in list(convert_frame.input_codes.seen):
        for region in regions:
            for entry in _get_cache_entries_for_region(code(), region) if code() else ():
                if entry.guard_manager.extra_state is not None:  # else torch invalidated it
                    entry.guard_manager.extra_state.invalidate(entry, deleted)


def stages_before(context: Any) -> Iterator[Stage]:
    """Yield the stages that come before the user's own, the first one first."""
    backend = _backend(context)
    name = _name(backend)
    before = _PARTIAL if name == "inductor" else _BEFORE.get(name, _PARTIAL[:1])
    for partial in before:
        yield Stage(partial, _optimize(context, partial))


def _optimize(context: Any, backend: Any) -> Any:
    return torch._dynamo.optimize(
        backend,
        nopython=context.fullgraph,
        dynamic=context._dynamic,
        isolate_recompiles=True,
    )


@contextmanager
def unseen_by_dynamo() -> Iterator[None]:
    """Leave Dynamo's numbering of compiles and its counters as they were."""
    frames = convert_frame.FRAME_COUNTER
    compiles = convert_frame.FRAME_COMPILE_COUNTER.copy()
    counted = copy.deepcopy(counters)
    with torch.compiler.set_stance("default"):
        try:
            yield
        finally:
            convert_frame.FRAME_COUNTER = frames
            convert_frame.FRAME_COMPILE_COUNTER.clear()
            convert_frame.FRAME_COMPILE_COUNTER.update(compiles)
            counters.clear()
            counters.update(counted)
