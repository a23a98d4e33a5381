"""Each recorded call is repeated on copies, eagerly and compiled, and both are measured."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch._dynamo import convert_frame
from torch.utils import _pytree
from torch.utils.benchmark import Timer

from dynamo_nb.capture.again import Again, first_line, quietly
from dynamo_nb.capture.check_backward import watched_backward
from dynamo_nb.capture.check_calls import CheckedCalls, RecordedCall
from dynamo_nb.capture.check_copies import CannotCopyError
from dynamo_nb.capture.check_effects import EffectError
from dynamo_nb.capture.check_leaves import leaves_of
from dynamo_nb.capture.check_stages import Stage, forget, last_stage, unseen_by_dynamo
from dynamo_nb.capture.check_state import randomness
from dynamo_nb.capture.replays import outputs_are_alive
from dynamo_nb.capture.time_kernels import kernel_times, launches
from dynamo_nb.capture.time_machine import machine
from dynamo_nb.events import Event

__all__ = ["measure"]

#: Distinct calls that are measured; a cell with more has its first ones measured.
_CALLS = 8
#: Seconds of measuring on each side, and the least and most of its blocks.
_SECONDS = 0.5
_BLOCK_SECONDS = 0.01
_BLOCKS = (5, 50)
_ALIVE = (
    "the cell still holds what a CUDA graph returned, and another call would overwrite it: "
    "clone or delete it at the end of the cell"
)
#: Calls that come first: what is set up at the first one, and at the second.
_WARM_UP = 3


class _CannotTimeError(Exception):
    """Why a call is not measured."""


def measure(recorded: CheckedCalls) -> list[Event]:
    """Return an event `timing` for each distinct call, and one for the machine's own figures."""
    stages: dict[int, Stage] = {}
    events = []
    alive = outputs_are_alive()
    with unseen_by_dynamo(), randomness(), quietly():
        for number, calls in enumerate(_alike(recorded.calls)):
            call = calls[0]
            data = {
                "name": call.name,
                "user_stack": call.stack,
                "count": len(calls),
                "gradients": recorded.trains,
                **(
                    _untimed(_ALIVE)
                    if alive
                    else _timed(call, stages, recorded.trains)
                    if number < _CALLS
                    else _beyond()
                ),
            }
            events.append(Event(name="timing", data=data))
        forget(stages.values())
        for device in sorted({item.data["device"] for item in events if "device" in item.data}):
            with suppress(RuntimeError):  # its memory is too full: then no floor is known
                events.append(Event(name="machine", data=machine(device)))
    return events


def _alike(calls: list[RecordedCall]) -> list[list[RecordedCall]]:
    """Return the calls in groups that do the same: same place, same shapes."""
    groups: dict[Any, list[RecordedCall]] = {}
    for call in calls:
        key = id(call.context), call.name, tuple(call.stack), _shapes(call)
        groups.setdefault(key, []).append(call)
    return list(groups.values())


def _shapes(call: RecordedCall) -> str:
    if call.taken is None:
        return ""
    leaves = _pytree.tree_leaves((call.taken.args, call.taken.kwargs))
    return str([(leaf.shape, leaf.dtype) for leaf in leaves if isinstance(leaf, torch.Tensor)])


def _timed(call: RecordedCall, stages: dict[int, Stage], trains: bool) -> dict[str, Any]:
    """Return what was measured of a call, in the shape of the record's `Timing`."""
    if call.taken is None:
        return _untimed(call.problem)
    stage = stages.setdefault(id(call.context), last_stage(call.context, is_random=False))
    try:
        frees_its_graph, device = _looked_at(call)
        outside = not frees_its_graph and trains
        eager, compiled = (_Side(call, each, outside, device) for each in (None, stage))
        eager.warm_up()
        compiled.warm_up()
        return {"status": "timed", **_figures(eager, compiled)}
    except (_CannotTimeError, CannotCopyError) as error:
        return _untimed(str(error))
    except KeyboardInterrupt:
        return _untimed("the measuring was interrupted")
    except Exception as error:
        return _untimed(f"the measuring failed: {first_line(error)}")


def _figures(eager: _Side, compiled: _Side) -> dict[str, Any]:
    _take_turns(eager, compiled)
    figures: dict[str, Any] = {"device": eager.device.type}
    for name, side in (("eager", eager), ("compiled", compiled)):
        figures[name] = side.measured()
        with side.running() as work:
            figures[f"{name}_launches"] = launches(work, side.device.type)
        figures[f"{name}_memory"] = side.peak_memory()
    with compiled.running() as work:
        figures["kernels"] = kernel_times(work, compiled.device.type)
    return figures


class _Side:
    """One way to make a call, over and over on the same copies."""

    def __init__(
        self, call: RecordedCall, stage: Stage | None, trains: bool, device: torch.device
    ) -> None:
        self.device = device
        self._again = Again(call)
        target = self._again.target
        function = target if stage is None else stage.compiled(target)
        self._work = _work(function, self._again, trains)
        self._is_eager = stage is None
        on_gpu = device.type == "cuda"
        self._block = functools.partial(_cuda_block, device) if on_gpu else _timer_block
        self._number = 1
        self.seconds: list[float] = []

    @contextmanager
    def running(self) -> Iterator[Callable[[], None]]:
        """Yield what makes the call once, while all is as it was for the recorded one."""
        with self._again.inside(eager=self._is_eager):
            yield self._work

    def warm_up(self) -> None:
        """Make the first calls; the last of them tells how long one takes."""
        with self.running() as work:
            for _ in range(_WARM_UP):
                _wait(self.device)
                compiles, began = _compiles(), time.perf_counter()
                work()
                _wait(self.device)
                seconds = time.perf_counter() - began
        if not self._is_eager and _compiles() != compiles:
            msg = "each repetition compiles anew: the call changes what it is guarded on"
            raise _CannotTimeError(msg)
        self._number = max(1, int(_BLOCK_SECONDS / max(seconds, 1e-7)))

    def run_block(self) -> None:
        """Measure one block of calls."""
        with self.running() as work:
            self.seconds.append(self._block(work, self._number))

    def is_done(self) -> bool:
        """Whether enough was measured."""
        least, most = _BLOCKS
        spent = sum(self.seconds) * self._number
        return len(self.seconds) >= most or (len(self.seconds) >= least and spent >= _SECONDS)

    def measured(self) -> dict[str, Any]:
        """Return the median and spread of the blocks, in the shape of the record's `Measured`."""
        times = torch.tensor(self.seconds, dtype=torch.float64)
        low, median, high = torch.quantile(times, torch.tensor([0.25, 0.5, 0.75]).double()).tolist()
        runs = len(self.seconds) * self._number
        return {"median": median, "spread": high - low, "runs": runs}

    def peak_memory(self) -> int | None:
        """Return the bytes that one call needs at most, beyond what was there; on a GPU only."""
        if self.device.type != "cuda":
            return None
        with self.running() as work:
            _wait(self.device)
            before = torch.cuda.memory_allocated(self.device)
            torch.cuda.reset_peak_memory_stats(self.device)
            work()
            _wait(self.device)
            return int(torch.cuda.max_memory_allocated(self.device) - before)


def _work(function: Callable[..., Any], again: Again, trains: bool) -> Callable[[], None]:
    """Return what makes one call, and backward from what it returns where the cell ran one.

    Gradients are new each time, as after `zero_grad()`: a CUDA graph can't add to its own.
    """
    leaves = [tensor for tensor in again.tensors if tensor.is_leaf and tensor.requires_grad]
    fresh = [leaf for leaf in leaves if leaf.grad is None] if trains else []
    ones: list[torch.Tensor] = []  # no part of the call

    def work() -> None:
        for leaf in fresh:
            leaf.grad = None
        result = function(*again.args, **again.kwargs)
        outputs = [tensor for tensor in _tensors(result) if tensor.requires_grad] if trains else []
        if outputs and not ones:
            ones.extend(map(torch.ones_like, outputs))
        if outputs:
            torch.autograd.backward(outputs, ones)

    return work


def _tensors(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    if not isinstance(result, tuple | list):
        result = [leaf.value for leaf in leaves_of([("output", "output", result)], {}).values()]
    return [item for item in _pytree.tree_leaves(result) if isinstance(item, torch.Tensor)]


def _looked_at(call: RecordedCall) -> tuple[bool, torch.device]:
    """Make the call once eagerly; return whether it ran a backward itself, and its device.

    With such a backward it leaves none to run. It may do what can't be taken back, or raise: then
    it is not measured.
    """
    again = Again(call)
    freed: list[bool] = []
    made: list[torch.Tensor] = []
    with again.inside(eager=True) as effects, watched_backward(freed.append):
        try:
            made = _tensors(again.target(*again.args, **again.kwargs))
        except EffectError:
            pass
        except Exception as error:
            if not effects:
                msg = f"repeated eagerly, it raised {first_line(error)}"
                raise _CannotTimeError(msg) from error
    if effects:
        raise _CannotTimeError(f"the call {' and '.join(dict.fromkeys(effects))}")
    return any(freed), _device([*again.tensors, *made])


def _device(tensors: list[torch.Tensor]) -> torch.device:
    """Return the GPU that tensors are on, else the CPU; several can't be measured as one."""
    gpus = {tensor.device for tensor in tensors if tensor.device.type == "cuda"}
    if len(gpus) > 1:
        msg = f"it is at work on several GPUs: {', '.join(sorted(map(str, gpus)))}"
        raise _CannotTimeError(msg)
    return gpus.pop() if gpus else torch.device("cpu")


def _take_turns(*sides: _Side) -> None:
    """Measure the sides in turns, so that a machine that gets slower does so for both."""
    while not all(side.is_done() for side in sides):
        for side in sides:
            side.run_block()


def _timer_block(work: Callable[[], None], number: int) -> float:
    timer = Timer("work()", globals={"work": work}, num_threads=torch.get_num_threads())
    return float(timer.timeit(number).mean)


def _cuda_block(device: torch.device, work: Callable[[], None], number: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream = torch.cuda.current_stream(device)
    _wait(device)
    begin.record(stream)
    for _ in range(number):
        work()
    end.record(stream)
    _wait(device)
    return float(begin.elapsed_time(end)) / 1e3 / number


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _compiles() -> int:
    return sum(convert_frame.FRAME_COMPILE_COUNTER.values())


def _beyond() -> dict[str, Any]:
    return _untimed(f"only the first {_CALLS} distinct calls are measured")


def _untimed(reason: str) -> dict[str, Any]:
    return {"status": "not timed", "reason": reason}
