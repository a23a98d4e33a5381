"""Each recorded call is repeated on copies, eagerly and compiled, and the two are compared."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, NamedTuple

import torch

from dynamo_nb.capture.again import Again, first_line, quietly, run_backward
from dynamo_nb.capture.check_backward import watched_backward
from dynamo_nb.capture.check_calls import CheckedCalls, RecordedCall
from dynamo_nb.capture.check_compare import Reference, differences, for_casts
from dynamo_nb.capture.check_copies import CannotCopyError
from dynamo_nb.capture.check_effects import EffectError
from dynamo_nb.capture.check_leaves import Leaf, leaves_of
from dynamo_nb.capture.check_reach import ABSENT
from dynamo_nb.capture.check_stages import (
    Stage,
    compiled_anew,
    forget,
    last_stage,
    rounded_as_eager,
    stages_before,
    unseen_by_dynamo,
)
from dynamo_nb.capture.check_state import random_state, randomness
from dynamo_nb.capture.check_widening import WideCasts
from dynamo_nb.capture.replays import without_replays
from dynamo_nb.events import Event

__all__ = ["check"]

#: More differences of one call than these say nothing new.
_SHOWN = 8


class Outcome(NamedTuple):
    """What one repetition gave: its leaves or its error, and what it did on the way."""

    leaves: dict[str, Leaf]
    error: str = ""
    message: str = ""
    is_random: bool = False
    effects: tuple[str, ...] = ()


def check(recorded: CheckedCalls) -> list[Event]:
    """Return an event `check` for each recorded call, in the shape of the record's `Check`."""
    checker = _Checker(recorded.trains)
    events = []
    with unseen_by_dynamo(), randomness(), quietly(), without_replays():
        for call in recorded.calls:
            data = {
                "name": call.name,
                "user_stack": call.stack,
                "gradients": recorded.trains,
                **checker.verdict(call),
            }
            events.append(Event(name="check", data=data))
        checker.forget()
    return events


class _Checker:
    """Checks the calls of one cell. Contexts, and so cache regions, are shared by its calls."""

    def __init__(self, trains: bool) -> None:
        self._trains = trains
        self._stages: dict[tuple[int, bool], Stage] = {}
        self._before: dict[int, list[Stage]] = {}
        self._interrupted = False

    def verdict(self, call: RecordedCall) -> dict[str, Any]:
        """Return whether compiled and eager agree, or why the call was not repeated."""
        if self._interrupted:
            return _not_repeated("the check was interrupted")
        if call.taken is None:
            return _not_repeated(call.problem)
        try:
            return self._compared(call)
        except KeyboardInterrupt:
            self._interrupted = True
            return _not_repeated("the check was interrupted")
        except CannotCopyError as error:
            return _not_repeated(str(error))
        except Exception as error:
            return _not_repeated(f"the check itself failed: {first_line(error)}")

    def forget(self) -> None:
        """Leave no cache entries behind."""
        forget(
            [*self._stages.values(), *(stage for some in self._before.values() for stage in some)]
        )

    def _compared(self, call: RecordedCall) -> dict[str, Any]:
        eager = self._run(call, None)
        if eager.effects:
            return _not_repeated(f"the call {' and '.join(dict.fromkeys(eager.effects))}")
        last = self._last(call, eager.is_random)
        compiled = self._run(call, last)
        verdict = {"status": "same", "backend": last.name, "random": eager.is_random}
        if not _found(eager, compiled, _no_reference):
            if eager.error:
                return _not_repeated(f"repeated eagerly, it raised {eager.message}")
            return verdict
        if call.returned and compiled.error and not eager.error:  # the copies may be at fault
            reason = (
                f"repeated compiled, it raised {compiled.message}, which it did not in the cell"
            )
            return _not_repeated(reason)
        if _found(eager, self._run(call, None), _no_reference):
            return _not_repeated("two eager runs of it on the same inputs give different results")
        reference = functools.cache(functools.partial(self._in_float64, call))
        found = _found(eager, compiled, reference)
        if not found:
            return verdict
        stage = self._first_different(call, eager, reference)
        casts = stage == last.name and self._is_for_casts(call, eager, compiled, reference)
        found = for_casts(found) if casts else found
        return {
            **verdict,
            "status": "differs",
            "stage": stage,
            "casts": casts,
            "backend": last.name,
            "mismatches": [_positioned(item, eager.leaves) for item in found[:_SHOWN]],
        }

    def _last(self, call: RecordedCall, is_random: bool) -> Stage:
        key = id(call.context), is_random
        if key not in self._stages:
            self._stages[key] = last_stage(call.context, is_random=is_random)
        return self._stages[key]

    def _first_different(self, call: RecordedCall, eager: Outcome, reference: Reference) -> str:
        """Return the first stage that differs; `entry` where none of them does, compiled anew."""
        if id(call.context) not in self._before:
            last = compiled_anew(call.context)
            if eager.is_random:
                last = self._last(call, is_random=True)
            self._before[id(call.context)] = [*stages_before(call.context), last]
        for stage in self._before[id(call.context)]:
            if _found(eager, self._run(call, stage), reference):
                return stage.name
        return "entry"

    def _is_for_casts(
        self, call: RecordedCall, eager: Outcome, compiled: Outcome, reference: Reference
    ) -> bool:
        """Tell whether Inductor agrees where it rounds after each operation, as eager does.

        Sums may still run in another order: then it must be as near to a reference that rounds
        nowhere as eager is.
        """
        stage = rounded_as_eager(call.context, is_random=eager.is_random)
        if stage is None:
            return False
        if not _found(eager, compiled, lambda _: reference(True)):
            return True
        try:
            return not _found(eager, self._run(call, stage), reference)
        finally:
            forget([stage])

    def _in_float64(self, call: RecordedCall, casts: bool) -> dict[str, Leaf] | None:
        with WideCasts() if casts else contextlib.nullcontext():
            outcome = self._run(call, None, widen=True)
        return None if outcome.error or outcome.effects else outcome.leaves

    def _run(self, call: RecordedCall, stage: Stage | None, *, widen: bool = False) -> Outcome:
        """Run a call once on fresh copies: eagerly, or at a stage."""
        again = Again(call, widen=widen)
        target, args, kwargs = again.target, again.args, again.kwargs
        error, message, result, is_random = "", "", None, False
        freed: list[bool] = []
        with again.inside(eager=stage is None) as effects:
            before = random_state()
            try:
                with watched_backward(freed.append):
                    result = (target if stage is None else stage.compiled(target))(*args, **kwargs)
                is_random = _has_drawn(before)
                if self._trains and not any(freed):
                    run_backward(result)
            except EffectError:
                pass
            except Exception as exc:
                error, message = type(exc).__name__, first_line(exc)
            written = [(place, place.get()) for place, _ in again.bound]
        if error:
            return Outcome({}, error, message, effects=tuple(effects))
        if effects:
            return Outcome({}, effects=tuple(effects))
        names = [*zip(call.names, args, strict=True), *kwargs.items()]
        roots = [("output", "output", result)]
        roots += [(name, "argument", item) for name, item in names]
        roots += _target_roots(target)
        roots += [(place.name, place.kind, value) for place, value in written if _is_state(value)]
        return Outcome(leaves_of(roots, again.leaves), is_random=is_random)


def _positioned(item: dict[str, Any], leaves: dict[str, Leaf]) -> dict[str, Any]:
    """Add which of the returned tensors something is."""
    outputs = [
        name
        for name, leaf in leaves.items()
        if leaf.kind == "output" and isinstance(leaf.value, torch.Tensor)
    ]
    if item["name"] not in outputs:
        return item
    return {**item, "position": outputs.index(item["name"]), "outputs": len(outputs)}


def _is_state(value: Any) -> bool:
    return isinstance(value, torch.nn.Module) or (value is not ABSENT and not callable(value))


def _target_roots(target: Any) -> list[tuple[str, str, Any]]:
    if isinstance(target, torch.nn.Module):
        return [("self", "attribute", target)]
    owner = getattr(target, "__self__", None)
    return [("self", "attribute", owner)] if owner is not None else []


def _found(eager: Outcome, other: Outcome, reference: Reference) -> list[dict[str, Any]]:
    if eager.error != other.error:
        return [
            {
                "name": "the call",
                "what": "call",
                "kind": "error",
                "eager": f"raises {eager.error}" if eager.error else "returns",
                "compiled": f"raises {other.error}" if other.error else "returns",
            }
        ]
    return differences(eager.leaves, other.leaves, reference)


def _has_drawn(before: dict[str, Any]) -> bool:
    """Tell whether torch's generators have moved since."""
    now = random_state()
    pairs = zip(before.get("cuda", ()), now.get("cuda", ()), strict=False)
    same = (torch.equal(then, state) for then, state in [(before["cpu"], now["cpu"]), *pairs])
    return not all(same)


def _no_reference(_: bool) -> None:
    return None


def _not_repeated(reason: str) -> dict[str, Any]:
    return {"status": "not repeated", "reason": reason}
