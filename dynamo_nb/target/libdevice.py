"""The math library of a GPU, for Triton's interpreter, which has none. In the worker only.

What a kernel calls here is torch's own function on the CPU, so a check says nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

__all__ = ["NAMES", "Libdevice"]

NAMES = ("triton.runtime.interpreter:TensorHandle",)

#: Functions whose name in torch is another one.
_RENAMED = {
    "nearbyint": "round",
    "rint": "round",
    "sqrt_rn": "sqrt",
    "div_rn": "div",
    "rsqrt_rn": "rsqrt",
    "fabs": "abs",
    "llrint": "round",
    "finitef": "isfinite",
    "isfinited": "isfinite",
}


class Libdevice:
    """Stands for `libdevice` in kernels; `used` names the functions that were called."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        known = _RENAMED.get(name, name)
        function = getattr(torch, known, None) or getattr(torch.special, known, None)
        if name.startswith("__") or function is None:
            raise AttributeError(f"the interpreter has no libdevice.{name}")

        def call(*given: Any) -> Any:
            self.used.add(name)
            return _called(function, given)

        return call


def _called(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """Call a function of torch on the interpreter's tensors, in double precision."""
    first = next(item for item in given if isinstance(item, tl.core.tensor))
    arrays = [item.handle.data if isinstance(item, tl.core.tensor) else item for item in given]
    tensors = [torch.as_tensor(np.ascontiguousarray(array)) for array in arrays]
    wide = [item.double() if item.is_floating_point() else item for item in tensors]
    result = function(*wide).numpy()
    kind = tl.int1 if result.dtype == bool else first.handle.dtype
    data = result if kind is tl.int1 else result.astype(arrays[given.index(first)].dtype)
    data = data.reshape(np.broadcast_shapes(*(np.shape(array) for array in arrays)))
    shape = tl.core.block_type(kind, list(first.shape)) if first.type.is_block() else kind
    return tl.core.tensor(TensorHandle(data, kind), shape)
