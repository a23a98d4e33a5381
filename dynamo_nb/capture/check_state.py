"""The state of torch and of the random generators around a call: taken, set again, put back."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

__all__ = ["Surroundings", "random_state", "randomness", "set_random_state"]


def _devices() -> list[str]:
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def _default_device() -> torch.device:
    """Return the default device as it was given: `get_default_device` makes `cuda:0` of `cuda`."""
    modes = _get_current_function_mode_stack()
    given = [mode.device for mode in modes if isinstance(mode, DeviceContext)]
    return given[-1] if given else torch.device("cpu")


def random_state() -> dict[str, Any]:
    """Return the state of every random generator that a program has without asking."""
    numpy = sys.modules.get("numpy")
    state: dict[str, Any] = {"python": random.getstate(), "cpu": torch.get_rng_state()}
    if numpy is not None:
        state["numpy"] = numpy.random.get_state()
    if torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Set what `random_state` returned."""
    random.setstate(state["python"])
    torch.set_rng_state(state["cpu"])
    if "numpy" in state:
        sys.modules["numpy"].random.set_state(state["numpy"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])


@contextmanager
def randomness() -> Iterator[None]:
    """Leave the random generators as they were."""
    before = random_state()
    try:
        yield
    finally:
        set_random_state(before)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Run the block under these environment variables."""
    before = dict(os.environ)
    if variables == before:
        yield
        return
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Surroundings:
    """What a call depends on besides its arguments and names: modes, defaults, random state."""

    def __init__(self) -> None:
        self.random = random_state()
        self._environment = dict(os.environ)
        self._grad = torch.is_grad_enabled()
        self._inference = torch.is_inference_mode_enabled()
        self._dtype = torch.get_default_dtype()
        self._device = _default_device()
        self._cache = torch.is_autocast_cache_enabled()
        self._autocast = [
            (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
            for device in _devices()
        ]

    @contextmanager
    def again(self, *, autocast: bool = True, dtype: torch.dtype | None = None) -> Iterator[None]:
        """Run the block in this state; `dtype` replaces the default one."""
        before = torch.get_default_dtype()
        with ExitStack() as stack:
            stack.enter_context(_environment(self._environment))
            stack.enter_context(torch.inference_mode(self._inference))
            stack.enter_context(torch.set_grad_enabled(self._grad))
            if self._device != _default_device():
                stack.enter_context(self._device)
            for device, enabled, kind in self._autocast:
                if enabled or torch.is_autocast_enabled(device):
                    on = enabled and autocast
                    stack.enter_context(torch.autocast(device, kind, on, self._cache))
            stack.callback(torch.set_default_dtype, before)
            torch.set_default_dtype(dtype or self._dtype)
            set_random_state(self.random)
            yield
