"""What torch and Inductor decide by asking the device, decided without it. In the worker only.

Each decision is a guess, or one of several that a device would choose from; `made` tells which were
taken, so that the report can say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch._C import DispatchKey
from torch._inductor.select_algorithm import AlgorithmSelectorCache

from dynamo_nb.target.attention import CALLS, Attention, candidates
from dynamo_nb.target.devices import Device

__all__ = ["NAMES", "Choices"]

NAMES = (
    "torch._C:DispatchKey",
    "torch._inductor.select_algorithm:AlgorithmSelectorCache.make_benchmark_fn",
    "torch._inductor.select_algorithm:AlgorithmSelectorCache.make_precompile_fn",
    "torch._inductor.select_algorithm:TritonTemplateCaller.info_dict",
    "torch._ops:OpOverload.py_impl",
    "torch:ops.aten.scaled_dot_product_attention.default._op_dk",
    "torch:ops.aten.scaled_dot_product_attention.default.py_kernels",
)

_ATTENTION = (
    "which attention kernel torch would call: {chosen} was taken, as for its dtypes and shapes on "
    "such a device"
)
_OLDER = "{text}, with the cuDNN of torch's wheels; with one up to 9.15 it would be {second}"
_KERNELS = {
    "cudnn": "cuDNN's attention",
    "flash": "flash attention",
    "efficient": "memory-efficient attention",
    "math": "the plain formula",
}
_AUTOTUNED = (
    "which of {count} candidates would be the fastest for `{op}`: {chosen} was taken, the largest "
    "tile of a template"
)

_ELEMENT = 4  # bytes of an element of a tile in shared memory, at most in what is common


class Choices:
    """The decisions taken for the graph under way."""

    def __init__(self, device: Device) -> None:
        self.made: list[str] = []
        self._device = device

    def install(self) -> None:
        """Decide from here on; nothing is put back."""
        self._choose_attention()
        self._choose_templates()

    def _note(self, text: str) -> None:
        if text not in self.made:
            self.made.append(text)

    # ------------------------------------------------------------------ attention

    def _choose_attention(self) -> None:
        """Replace the choice of `scaled_dot_product_attention`, which asks for a device's driver.

        Without one torch takes the plain formula, which no such GPU would run.
        """
        op = torch.ops.aten.scaled_dot_product_attention.default
        key = DispatchKey.CompositeImplicitAutograd

        def attention(
            q: Any,
            k: Any,
            v: Any,
            attn_mask: Any = None,
            dropout_p: float = 0.0,
            is_causal: bool = False,
            *,
            scale: float | None = None,
            enable_gqa: bool = False,
        ) -> Any:
            call = Attention(
                q=q,
                k=k,
                v=v,
                mask=attn_mask,
                dropout=dropout_p,
                causal=is_causal,
                scale=scale,
                grouped=enable_gqa,
            )
            chosen, *others = (
                candidates(self._device, call) if q.device.type == "cuda" else ["math"]
            )
            if chosen in CALLS:
                self._note(_attention_text(chosen, others[0]))
                return CALLS[chosen](call)
            given = (q, k, v, attn_mask, dropout_p, is_causal)
            return op._op_dk(key, *given, scale=scale, enable_gqa=enable_gqa)  # not this function

        op.py_kernels.pop(key, None)
        op._dispatch_cache.clear()
        op.py_impl(key)(attention)

    # ------------------------------------------------------------------ templates

    def _choose_templates(self) -> None:
        """Rank candidates of max-autotune without running them: the largest tiles come first."""

        def make_benchmark_fn(_: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
            def benchmark(choices: Any) -> dict[Any, float]:
                ranked = sorted(
                    choices, key=lambda choice: _rank(choice, self._device.block_shared)
                )
                op = ranked[0].name.rsplit("_", 1)[0]
                self._note(_AUTOTUNED.format(count=len(ranked), op=op, chosen=ranked[0].name))
                return {choice: 1.0 + place for place, choice in enumerate(ranked)}

            return benchmark

        AlgorithmSelectorCache.make_benchmark_fn = classmethod(make_benchmark_fn)
        AlgorithmSelectorCache.make_precompile_fn = lambda *_, **__: lambda *_, **__: {}


def _rank(choice: Any, shared: int) -> tuple[bool, int]:
    """Return where a candidate stands: templates whose tiles fit first, of these the largest."""
    facts = choice.info_dict() if hasattr(choice, "info_dict") else {}
    sides = [int(side) for side in re.findall(r"\d+", str(facts.get("tile_shape", "")))]
    if "triton" not in choice.name or len(sides) != 3:
        return True, 0
    rows, depth, columns = sides
    taken = int(facts.get("num_stages", 1)) * depth * (rows + columns) * _ELEMENT
    return taken > shared, -rows * columns


def _attention_text(chosen: str, second: str) -> str:
    text = _ATTENTION.format(chosen=_KERNELS[chosen])
    return _OLDER.format(text=text, second=_KERNELS[second]) if chosen == "cudnn" else text
