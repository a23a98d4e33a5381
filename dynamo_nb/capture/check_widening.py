"""A float64 reference that stays one: casts to narrower dtypes inside of the call are widened."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["NARROW", "WideCasts"]

#: What eager rounds to after each operation, and Inductor after each fused kernel.
NARROW = (torch.float16, torch.bfloat16)

_WIDER = {
    **dict.fromkeys((*NARROW, torch.float32), torch.float64),
    **dict.fromkeys((torch.complex32, torch.complex64), torch.complex128),
}


class WideCasts(TorchDispatchMode):
    """Makes float64 of what is cast, or made, as a narrower floating-point dtype.

    Random numbers stay: those of another dtype are others.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        is_random = torch.Tag.nondeterministic_seeded in func.tags
        if kwargs.get("dtype") in _WIDER and not is_random:
            kwargs["dtype"] = _WIDER[kwargs["dtype"]]
        return func(*args, **kwargs)
