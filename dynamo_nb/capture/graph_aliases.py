"""Inputs of a graph that share memory: taken elsewhere as parts of one base, as AOTAutograd asks.

It computes on what they are views of where one of them is written to
(`torch/_functorch/_aot_autograd/runtime_wrappers.py: merge_view_inputs`, 2.13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import torch
from msgspec import Struct
from torch.multiprocessing.reductions import StorageWeakRef

__all__ = ["Base", "Part", "Shared", "overlap_apart", "part_of", "shared"]


class Base(Struct, kw_only=True):
    """What inputs are parts of: a tensor that they are views of, or else a storage, flat."""

    size: Any
    stride: Any
    dtype: Any
    are_views: bool


class Part(Struct, kw_only=True):
    """Where an input lies in the base of that number; `is_whole` tells that it is the base."""

    base: int
    size: Any = ()
    stride: Any = ()
    offset: Any = 0
    is_whole: bool = False


class Shared(Struct):
    """Tensors of one storage by their places in a list; `base` is what they are views of."""

    tensors: dict[int, torch.Tensor]
    base: torch.Tensor | None

    def described(self, expression: Callable[[Any], Any]) -> Base:
        """Return the base, its numbers as `expression` gives them."""
        first = next(iter(self.tensors.values()))
        size: Sequence[Any]
        if self.base is None:
            size, stride = [first.untyped_storage().nbytes() // first.element_size()], [1]
        else:
            size, stride = self.base.size(), self.base.stride()
        return Base(
            size=[expression(number) for number in size],
            stride=[expression(number) for number in stride],
            dtype=first.dtype,
            are_views=self.base is not None,
        )

    def flat(self) -> torch.Tensor:
        """Return the values of the base on the CPU."""
        first = next(iter(self.tensors.values())).detach()
        if self.base is not None:
            item = self.base
            copied = torch.empty_strided(item.size(), item.stride(), dtype=item.dtype)
            return copied.copy_(item)
        storage = first.untyped_storage()
        flat = torch.empty(0, dtype=first.dtype, device=first.device)
        flat.set_(storage, 0, (storage.nbytes() // first.element_size(),), (1,))
        return flat.to("cpu", copy=True)

    def part(self, place: int, number: int, expression: Callable[[Any], Any]) -> Part:
        """Return where one of the tensors lies in the base, which has this number."""
        item = self.tensors[place]
        return Part(
            base=number,
            size=[expression(size) for size in item.size()],
            stride=[expression(stride) for stride in item.stride()],
            offset=expression(item.storage_offset()),
            is_whole=item is self.base,
        )


def shared(items: Sequence[Any]) -> list[Shared]:
    """Return the tensors of a list that share a storage, but for those that autograd goes through.

    Those of several dtypes are left out, too.
    """
    found = []
    for tensors in _by_storage(items):
        is_trained = any(item.requires_grad for item in tensors.values())
        if not is_trained and len({item.dtype for item in tensors.values()}) == 1:
            found.append(Shared(tensors, _common_base(list(tensors.values()))))
    return found


def overlap_apart(items: Sequence[Any]) -> bool:
    """Tell whether tensors that `shared` leaves out lie over one another."""
    taken = {place for group in shared(items) for place in group.tensors}
    for tensors in _by_storage(items):
        apart = [item for place, item in tensors.items() if place not in taken]
        if any(_overlap(one, other) for one, other in combinations(apart, 2)):
            return True
    return False


def part_of(base: torch.Tensor, are_views: bool, part: Part, size: Callable[[Any], Any]) -> Any:
    """Return a part of a base, as a view of it or beside it; `size` makes numbers of its terms."""
    if part.is_whole:
        return base
    sizes, strides = [size(item) for item in part.size], [size(item) for item in part.stride]
    view = base.as_strided(sizes, strides, size(part.offset))
    return view if are_views else view.detach()


def _by_storage(items: Sequence[Any]) -> Iterator[dict[int, torch.Tensor]]:
    storages: dict[Any, dict[int, torch.Tensor]] = {}
    for place, item in enumerate(items):
        if isinstance(item, torch.Tensor) and item.layout is torch.strided:
            storages.setdefault(StorageWeakRef(item.untyped_storage()), {})[place] = item
    return (tensors for tensors in storages.values() if len(tensors) > 1)


def _common_base(tensors: list[torch.Tensor]) -> torch.Tensor | None:
    """Return the tensor that each of them is a view of, or is; None where there is no such one."""
    base = next((item._base for item in tensors if item._base is not None), None)
    if base is None or base.requires_grad or base.dtype != tensors[0].dtype:
        return None
    is_at_start = isinstance(base.storage_offset(), int) and base.storage_offset() == 0
    if not is_at_start or not all(item is base or item._base is base for item in tensors):
        return None
    return base


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tell whether two tensors have an element in common, of several dtypes whether they may."""
    (start, end), (begin, stop) = _span(one), _span(other)
    if not (start < stop and begin < end):
        return False
    if one.dtype != other.dtype:
        return True
    first, last = min(start, begin), max(end, stop)
    places = torch.arange((last - first) // one.element_size())
    covered = torch.zeros(places.shape, dtype=torch.bool)
    mine, its = (
        places.as_strided(
            item.size(), item.stride(), item.storage_offset() - first // item.element_size()
        )
        for item in (one, other)
    )
    covered[mine] = True
    return bool(covered[its].any())


def _span(item: torch.Tensor) -> tuple[int, int]:
    """Return the first byte of its storage that a tensor covers, and the one after the last."""
    start = item.storage_offset()
    steps = zip(item.size(), item.stride(), strict=True)
    end = start + sum((size - 1) * stride for size, stride in steps) + 1 if item.numel() else start
    return start * item.element_size(), end * item.element_size()
