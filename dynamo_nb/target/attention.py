"""Which attention kernel torch would call on a GPU, and that call. In the worker only.

The rules are those of torch 2.13 (`aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`), which
asks the driver. cuDNN's version is not known: that of torch's wheels (9.20) is taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from msgspec import Struct
from torch.backends import cuda
from torch.fx.experimental.symbolic_shapes import guard_or_false

from dynamo_nb.target.devices import Device

__all__ = ["CALLS", "NAMES", "Attention", "candidates"]

NAMES = ("torch.fx.experimental.symbolic_shapes:guard_or_false",)

_HALF = (torch.float16, torch.bfloat16)
_FLASH_HEAD, _FLASH_HEAD_AMD = 256, 512  # the widest head that flash attention takes
_CUDNN_HEAD, _CUDNN_HEAD_HOPPER = 128, 256
_CUDNN_PAIR = (192, 128)  # of queries and values, on Blackwell
_EFFICIENT_HEAD_AMD = 256
_DROPOUT_STEPS = 16  # cuDNN's dropout is a multiple of the reciprocal
_MOST = 65535  # sequences, and heads, that cuDNN takes
_ALIGNED = 8  # elements to which flash attention's heads are padded, and a mask's rows


class Attention(Struct, kw_only=True):
    """A call of `scaled_dot_product_attention`."""

    q: Any
    k: Any
    v: Any
    mask: Any = None
    dropout: float = 0.0
    causal: bool = False
    scale: float | None = None
    grouped: bool = False

    @property
    def trains(self) -> bool:
        """Whether backward will need it."""
        return torch.is_grad_enabled() and self.has_gradient

    @property
    def has_gradient(self) -> bool:
        """Whether a gradient of an input is asked for."""
        return any(t.requires_grad for t in (self.q, self.k, self.v))

    @property
    def heads(self) -> tuple[Any, Any]:
        """The widths of a head of queries and of values."""
        return self.q.shape[-1], self.v.shape[-1]

    def fits(self, *, groups: bool) -> bool:
        """Tell whether a kernel takes the sizes and layouts, apart from the widths of heads."""
        tensors = (self.q, self.k, self.v)
        if not all(t.dim() == 4 and guard_or_false(t.stride(-1) == 1) for t in tensors):
            return False
        heads = [t.shape[1] for t in tensors]
        alike = all(guard_or_false(count == heads[0]) for count in heads)
        shared = groups and self.grouped and _shares(*heads)
        return (alike or shared) and self.q.dtype == self.k.dtype == self.v.dtype


def candidates(device: Device, call: Attention) -> list[str]:
    """Return the kernels that take a call, torch's choice first; last comes the plain formula."""
    is_amd = device.backend == "hip"
    prefers_cudnn = device.capability[0] in (9, 10) and not is_amd
    if os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED") == "1":
        prefers_cudnn = False
    order = [*(["cudnn"] if prefers_cudnn else []), "flash", "efficient"]
    takes = _TAKES_AMD if is_amd else _TAKES
    return [*(name for name in order if takes[name](device.capability, call)), "math"]


_Capability = tuple[int, int]


def _cudnn(capability: _Capability, call: Attention) -> bool:
    if not cuda.cudnn_sdp_enabled() or torch.are_deterministic_algorithms_enabled():
        return False
    wide, values = call.heads
    limit = _CUDNN_HEAD_HOPPER if capability == (9, 0) else _CUDNN_HEAD
    if capability[0] == 10 and (wide, values) == _CUDNN_PAIR:
        limit = wide
    rows, columns = call.q.shape[2], call.k.shape[2]
    return (
        call.q.dtype in _HALF
        and call.fits(groups=True)
        and guard_or_false(call.k.shape[-1] == wide)
        and all(guard_or_false(size <= limit) for size in (wide, values))
        and all(guard_or_false(size % 8 == 0) for size in (wide, values))
        and all(guard_or_false(size <= _MOST) for size in call.q.shape[:2])
        and guard_or_false(columns != 1)
        and not (call.dropout and guard_or_false(rows == 1))
        and (call.dropout * _DROPOUT_STEPS).is_integer()
    )


def _flash(capability: _Capability, call: Attention) -> bool:
    wide, _ = call.heads
    is_wide = guard_or_false(wide > 192) and (call.dropout or not guard_or_false(wide > 224))
    if capability == (8, 9) and call.has_gradient and is_wide:
        return False  # its backward can't
    return capability >= (8, 0) and _flash_anywhere(call, _FLASH_HEAD)


def _flash_anywhere(call: Attention, widest: int) -> bool:
    wide, values = call.heads
    return (
        cuda.flash_sdp_enabled()
        and call.q.dtype in _HALF
        and call.mask is None
        and call.fits(groups=True)
        and guard_or_false(wide <= widest)
        and all(guard_or_false(size == wide) for size in (call.k.shape[-1], values))
        and not (call.causal and not guard_or_false(call.q.shape[2] == call.k.shape[2]))
    )


def _efficient(capability: _Capability, call: Attention) -> bool:
    is_half, is_new = call.q.dtype in _HALF, capability >= (8, 0)
    if call.q.dtype not in ((*_HALF, torch.float32) if is_new else (torch.float16, torch.float32)):
        return False
    aligned = 8 if is_half else 4 if is_new else 1
    tensors = (call.q, call.k, call.v)
    return (
        cuda.mem_efficient_sdp_enabled()
        and call.fits(groups=False)
        and guard_or_false(call.k.shape[-1] == call.q.shape[-1])
        and all(guard_or_false(size % aligned == 0) for size in call.heads)
        and not (is_new and any(guard_or_false(t.storage_offset() % aligned != 0) for t in tensors))
    )


def _efficient_amd(_: _Capability, call: Attention) -> bool:
    """Tell whether AOTriton's memory-efficient attention takes a call."""
    wide, values = call.heads
    return (
        cuda.mem_efficient_sdp_enabled()
        and call.q.dtype in (*_HALF, torch.float32)
        and call.fits(groups=False)
        and guard_or_false(wide <= _EFFICIENT_HEAD_AMD)
        and guard_or_false(wide % 8 == 0)
        and all(guard_or_false(size == wide) for size in (call.k.shape[-1], values))
    )


_Takes = dict[str, Callable[[_Capability, Attention], bool]]

_TAKES: _Takes = {"cudnn": _cudnn, "flash": _flash, "efficient": _efficient}
_TAKES_AMD: _Takes = {
    "flash": lambda _, call: _flash_anywhere(call, _FLASH_HEAD_AMD),
    "efficient": _efficient_amd,
}


def _shares(queries: Any, keys: Any, values: Any) -> bool:
    """Tell whether heads of queries share those of keys and values."""
    return all(guard_or_false(queries % count == 0) for count in (keys, values))


# ------------------------------------------------------------------ the calls


def _call_cudnn(call: Attention) -> Any:
    op = torch.ops.aten._scaled_dot_product_cudnn_attention.default
    given = call.q, call.k, call.v, _added(call), call.trains, call.dropout, call.causal
    return op(*given, scale=call.scale)[0]


def _call_flash(call: Attention) -> Any:
    width = call.q.shape[-1]
    factor = call.scale if call.scale is not None else width**-0.5
    tensors = call.q, call.k, call.v
    padding = -width % _ALIGNED
    if padding:
        tensors = tuple(torch.nn.functional.pad(t, (0, padding)) for t in tensors)
    op = torch.ops.aten._scaled_dot_product_flash_attention.default
    output = op(*tensors, call.dropout, call.causal, False, scale=factor)[0]
    return output[..., :width] if padding else output


def _call_efficient(call: Attention) -> Any:
    mask = _added(call)
    if mask is not None:
        columns = call.k.shape[2]
        padding = -columns % _ALIGNED
        if not guard_or_false(padding == 0):
            mask = torch.nn.functional.pad(mask, (0, padding))[..., :columns]
        mask = mask.expand(*call.q.shape[:3], columns)
    op = torch.ops.aten._scaled_dot_product_efficient_attention.default
    given = call.q, call.k, call.v, mask, call.trains, call.dropout, call.causal
    return op(*given, scale=call.scale)[0]


def _added(call: Attention) -> Any:
    """Return a mask as what is added: one of booleans becomes 0 where it is true, else -inf."""
    mask = call.mask
    if mask is None or mask.dtype != torch.bool:
        return mask
    made = {"dtype": call.q.dtype, "device": mask.device}
    hidden, shown = (torch.scalar_tensor(value, **made) for value in (float("-inf"), 0.0))
    return torch.where(mask, shown, hidden)


#: How each of the candidates is called, the plain formula apart.
CALLS: dict[str, Callable[[Attention], Any]] = {
    "cudnn": _call_cudnn,
    "flash": _call_flash,
    "efficient": _call_efficient,
}
