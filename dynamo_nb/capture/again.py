"""A recorded call, made again: on fresh copies of all it takes, in the state that was around it."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from dynamo_nb.capture.check_calls import RecordedCall
from dynamo_nb.capture.check_copies import Copier
from dynamo_nb.capture.check_effects import no_effects
from dynamo_nb.capture.check_leaves import leaves_of
from dynamo_nb.capture.check_reach import swapped

__all__ = ["Again", "first_line", "quietly", "run_backward"]

_SEED = 0


class Again:
    """Copies of what a call took and of what its code's names stood for; float64 with `widen`."""

    def __init__(self, call: RecordedCall, *, widen: bool = False) -> None:
        assert call.taken is not None
        assert call.around is not None
        self._copier = Copier(widen=widen)
        self._around = call.around
        self._widen = widen
        self.target = self._copier.copy(call.taken.target)
        self.args = self._copier.copy(call.taken.args)
        self.kwargs = self._copier.copy(call.taken.kwargs)
        self.bound = [(place, self._copier.copy(value)) for place, value in call.taken.bound]

    @property
    def leaves(self) -> Any:
        """The leaves of autograd among the copies."""
        return self._copier.leaves

    @property
    def tensors(self) -> list[torch.Tensor]:
        """All tensors among the copies."""
        return self._copier.tensors

    @contextmanager
    def inside(self, *, eager: bool) -> Iterator[list[str]]:
        """Run the block as the call was run; yields the effects that were prevented in it."""
        dtype = torch.float64 if self._widen else None
        with (
            swapped(self.bound),
            self._around.again(autocast=not self._widen, dtype=dtype),
            torch.compiler.set_stance("force_eager" if eager else "default"),
            no_effects() as effects,
        ):
            yield effects


def first_line(error: BaseException) -> str:
    """Return an exception as one line: its type, and the first sentence of what it says."""
    said = str(error).strip().partition("\n")[0].partition(". ")[0]
    return ": ".join(filter(None, (type(error).__name__, said)))


def run_backward(result: Any) -> None:
    """Run backward from all outputs that require grad, each with the same random cotangent."""
    leaves = leaves_of([("output", "output", result)], {})
    outputs = [
        leaf.value
        for leaf in leaves.values()
        if isinstance(leaf.value, torch.Tensor) and leaf.value.requires_grad
    ]
    if not outputs:
        return
    generator = torch.Generator().manual_seed(_SEED)
    cotangents = [_cotangent(output, generator) for output in outputs]
    torch.autograd.backward(outputs, cotangents)


def _cotangent(output: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return random numbers of unit norm, the same for a float64 output as for any other.

    A loss is a mean more often than a sum: gradients of that size round as they do in training.
    """
    numbers = torch.randn(output.shape, generator=generator, dtype=torch.float32, device="cpu")
    numbers /= max(1, output.numel()) ** 0.5
    return numbers.to(device=output.device, dtype=output.dtype)


@contextmanager
def quietly() -> Iterator[None]:
    """Swallow what repeated calls print: the user has seen it."""
    nothing = io.StringIO()
    with (
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
