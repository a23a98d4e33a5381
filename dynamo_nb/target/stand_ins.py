"""Attention on the CPU in place of the GPU's own kernels, for `interpreting`. In the worker only.

Each function has the signature and the results of the operator it stands for, in its layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["STAND_INS"]

_aten = torch.ops.aten
_forward = _aten._scaled_dot_product_flash_attention_for_cpu.default
_backward = _aten._scaled_dot_product_flash_attention_for_cpu_backward.default

_LOG_STEP = 32  # memory-efficient attention rounds the rows of its log-sum-exp up to this


def _laid_out(item: torch.Tensor) -> torch.Tensor:
    """Return a tensor by batch, head, row, width that lies in memory by batch, row, head, width."""
    return item.transpose(1, 2).contiguous().transpose(1, 2)


def _as(like: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(like).copy_(item)


def _flash(
    q: Any, k: Any, v: Any, dropout: float = 0.0, causal: bool = False, *_: Any, **options: Any
) -> Any:
    output, log = _forward(q, k, v, dropout, causal, scale=options.get("scale"))
    state = torch.zeros(2, dtype=torch.uint64), torch.zeros((), dtype=torch.uint64)
    return _as(q, output), log.contiguous(), None, None, q.shape[2], k.shape[2], *state, None


def _flash_backward(
    grad: Any, q: Any, k: Any, v: Any, out: Any, log: Any, *rest: Any, **options: Any
) -> Any:
    dropout, causal = rest[4:6]
    grads = _backward(grad, q, k, v, out, log, dropout, causal, scale=options.get("scale"))
    return tuple(map(_as, (q, k, v), grads))


def _efficient(q: Any, k: Any, v: Any, mask: Any, trains: bool, *rest: Any, **options: Any) -> Any:
    dropout, causal = rest + (0.0, False)[len(rest) :]
    output, log = _forward(q, k, v, dropout, causal, attn_mask=mask, scale=options.get("scale"))
    rows = -(-q.shape[2] // _LOG_STEP) * _LOG_STEP if trains else 0
    padded = log.new_zeros(*log.shape[:2], rows)
    if trains:
        padded[..., : q.shape[2]] = log
    state = torch.zeros((), dtype=torch.int64), torch.zeros((), dtype=torch.int64)
    return _laid_out(output), padded, *state


def _efficient_backward(
    grad: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, log: Any, *rest: Any, **options: Any
) -> Any:
    dropout, causal = rest[2], rest[4] if len(rest) > 4 else False
    given = grad, q, k, v, out, log[..., : q.shape[2]].contiguous(), dropout, causal
    grads = _backward(*given, attn_mask=mask, scale=options.get("scale"))
    return (*map(_laid_out, grads), None)


def _cudnn(q: Any, k: Any, v: Any, mask: Any, _: bool, *rest: Any, **options: Any) -> Any:
    dropout, causal = (*rest, *(0.0, False)[len(rest) :])[:2]
    output, log = _forward(q, k, v, dropout, causal, attn_mask=mask, scale=options.get("scale"))
    state = torch.zeros((), dtype=torch.int64), torch.zeros((), dtype=torch.int64)
    log = log.contiguous().unsqueeze(-1)
    return _as(q, output), log, None, None, q.shape[2], k.shape[2], *state, None


def _cudnn_backward(
    grad: Any, q: Any, k: Any, v: Any, out: Any, log: Any, *rest: Any, **options: Any
) -> Any:
    _, _, mask, _, _, _, _, dropout, causal = rest
    given = grad, q, k, v, out, log.squeeze(-1), dropout, causal
    grads = _backward(*given, attn_mask=mask, scale=options.get("scale"))
    return tuple(map(_as, (q, k, v), grads))


STAND_INS: dict[Any, Callable[..., Any]] = {
    _aten._scaled_dot_product_flash_attention.default: _flash,
    _aten._scaled_dot_product_flash_attention_backward.default: _flash_backward,
    _aten._scaled_dot_product_cudnn_attention.default: _cudnn,
    _aten._scaled_dot_product_cudnn_attention_backward.default: _cudnn_backward,
    _aten._scaled_dot_product_efficient_attention.default: _efficient,
    _aten._scaled_dot_product_efficient_attention_backward.default: _efficient_backward,
}
