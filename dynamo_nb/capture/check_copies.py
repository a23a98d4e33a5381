"""Copies of what a call takes, faithful to what Dynamo guards on: storages, strides, aliases."""

from __future__ import annotations

import copyreg
import enum
import re
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import _disable_current_modes

__all__ = ["CannotCopyError", "Copier", "Kept"]

#: What is the same in every copy: it holds no state of the program's, or its own bindings are
#: swapped by name (functions, classes).
_ATOMIC: tuple[type, ...] = (
    type(None),
    type(...),
    type(NotImplemented),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type,
    range,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.CodeType,
    property,
    re.Pattern,
    enum.Enum,
    weakref.ReferenceType,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    torch.Size,
    torch._ops.OpOverload,
    torch._ops.OpOverloadPacket,
)
_BASES = (torch.Tensor, torch.nn.Parameter)
_WIDE = {torch.complex64: torch.complex128}

#: A view of a storage this many times its size is copied without the rest of the storage.
_SPARSE_VIEW = 4


class CannotCopyError(Exception):
    """Why something can't be copied, as the end of a sentence."""


class Kept:
    """Copies of storages that live on from call to call: a parameter is copied once per version.

    `limit` returns the number of bytes that all of them may take on a device.
    """

    def __init__(self, limit: Callable[[torch.device], int]) -> None:
        self._limit = limit
        self._left: dict[torch.device, int] = {}
        self._copies: dict[tuple[Any, ...], tuple[StorageWeakRef, torch.UntypedStorage]] = {}

    def find(self, key: tuple[Any, ...]) -> torch.UntypedStorage | None:
        """Return the copy that was made of a storage, if it is still the same storage."""
        ref, copied = self._copies.get(key, (None, None))
        return copied if ref is not None and not ref.expired() else None

    def keep(self, key: tuple[Any, ...], of: Any, copied: torch.UntypedStorage) -> None:
        """Remember a copy."""
        self._copies[key] = (StorageWeakRef(of), copied)

    def take(self, size: int, device: torch.device) -> None:
        """Take bytes off what is left on a device; raise where they are too many."""
        if device not in self._left:
            self._left[device] = self._limit(device)
        if size > self._left[device]:
            msg = "its inputs are too large: their copies would take over a quarter of free memory"
            raise CannotCopyError(msg)
        self._left[device] -= size


class Copier:
    """Copies objects so that what was shared between them is shared between their copies.

    Parameters
    ----------
    kept
        For the copies that are taken before a call and only copied from again.
    widen
        Makes floating point tensors float64 (and complex ones complex128), for a reference.

    Attributes
    ----------
    met
        The functions and classes that were come across, which are not copied.
    leaves
        For the copy of a tensor that autograd made, by its id: the leaf that it comes from.
    """

    def __init__(self, kept: Kept | None = None, *, widen: bool = False) -> None:
        self.met: list[Any] = []
        self.leaves: dict[int, torch.Tensor] = {}
        self._kept = kept
        self._widen = widen
        self._memo: dict[int, Any] = {}
        self._alive: list[Any] = []
        self._storages: dict[tuple[Any, ...], torch.UntypedStorage] = {}
        self._parts: dict[int, set[tuple[int, int]]] = {}

    def copy(self, item: Any) -> Any:
        """Return the copy of an object, the same for the same object each time."""
        if id(item) in self._memo:
            return self._memo[id(item)]
        copied = self._copied(item)
        self._remember(item, copied)
        return copied

    @property
    def tensors(self) -> list[torch.Tensor]:
        """All tensors among the copies, and the leaves that some of them come from."""
        copies = [item for item in self._memo.values() if isinstance(item, torch.Tensor)]
        return [*copies, *self.leaves.values()]

    def _remember(self, item: Any, copied: Any) -> None:
        self._memo[id(item)] = copied
        self._alive.append(item)

    def _copied(self, item: Any) -> Any:
        kind = type(item)
        if isinstance(item, types.FunctionType | type):
            self.met.append(item)
            return item
        if isinstance(item, _ATOMIC) or kind is object or _is_kernel(kind):
            return item
        if isinstance(item, torch.Tensor):
            return self._tensor(item)
        if isinstance(item, torch._dynamo.OptimizedModule):
            return self.copy(item._orig_mod)
        handler = _HANDLERS.get(kind)
        return handler(self, item) if handler is not None else self._object(item)

    # Containers, whose copies are known before what they hold is copied: they may hold themselves.

    def _list(self, item: list[Any]) -> list[Any]:
        copied: list[Any] = []
        self._remember(item, copied)
        copied.extend(self.copy(part) for part in item)
        return copied

    def _tuple(self, item: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self.copy(part) for part in item)

    def _dict(self, item: dict[Any, Any]) -> dict[Any, Any]:
        copied: dict[Any, Any] = {}
        self._remember(item, copied)
        copied.update((self.copy(key), self.copy(value)) for key, value in item.items())
        return copied

    def _set(self, item: Any) -> Any:
        return type(item)(self.copy(part) for part in item)

    def _method(self, item: types.MethodType) -> types.MethodType:
        return types.MethodType(self.copy(item.__func__), self.copy(item.__self__))

    def _generator(self, item: torch.Generator) -> torch.Generator:
        return item.clone_state()

    def _object(self, item: Any) -> Any:
        """Copy any other object as `copy.deepcopy` does, by what it tells pickle."""
        self.met.append(type(item))
        try:
            reduce = copyreg.dispatch_table.get(type(item))
            told = reduce(item) if reduce is not None else item.__reduce_ex__(4)
        except Exception as exc:
            msg = f"it holds an object of type {type(item).__name__}, which cannot be copied"
            raise CannotCopyError(msg) from exc
        if isinstance(told, str):
            return item
        copied = self._rebuilt(item, *told)
        if isinstance(copied, torch.nn.Module):
            copied.__dict__.pop("_compiled_call_impl", None)
        return copied

    def _rebuilt(
        self,
        item: Any,
        make: Callable[..., Any],
        arguments: tuple[Any, ...],
        state: Any = None,
        items: Iterator[Any] | None = None,
        pairs: Iterator[tuple[Any, Any]] | None = None,
        *_: Any,
    ) -> Any:
        copied = make(*(self.copy(argument) for argument in arguments))
        self._remember(item, copied)
        if state is not None:
            self._set_state(copied, self.copy(state))
        for part in items or ():
            copied.append(self.copy(part))
        for key, value in pairs or ():
            copied[self.copy(key)] = self.copy(value)
        return copied

    @staticmethod
    def _set_state(copied: Any, state: Any) -> None:
        if hasattr(copied, "__setstate__"):
            copied.__setstate__(state)
            return
        attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        copied.__dict__.update(attributes or {})
        for name, value in (slots or {}).items():
            setattr(copied, name, value)

    # Tensors.

    def _tensor(self, item: torch.Tensor) -> torch.Tensor:
        if isinstance(item, FakeTensor):
            msg = "it is called with a fake tensor"
            raise CannotCopyError(msg)
        with _plainly(item):
            copied = self._data(item)
            if isinstance(item, torch.nn.Parameter):
                copied = torch.Tensor._make_subclass(type(item), copied, item.requires_grad)
            elif type(item) is not torch.Tensor and type(copied) is torch.Tensor:
                copied = copied.as_subclass(type(item))
            copied.__dict__.update(item.__dict__)
            if not item.requires_grad:
                return copied
            copied.requires_grad_(True)
            if not item.is_leaf:
                return self._made_by_autograd(copied)
            if item.grad is not None:
                copied.grad = self._data(item.grad)
        return copied

    def _made_by_autograd(self, leaf: torch.Tensor) -> torch.Tensor:
        """Return a tensor that is no leaf, as the original is none: it may be written to."""
        with torch.enable_grad():
            copied = leaf.view_as(leaf) if self._kept is not None else leaf.clone()
        if copied.stride() != leaf.stride():
            return leaf
        copied.__dict__.update(leaf.__dict__)
        self.leaves[id(copied)] = leaf
        return copied

    def _data(self, item: torch.Tensor) -> torch.Tensor:
        if hasattr(item, "__tensor_flatten__"):
            return self._wrapper(item)
        if item.layout is not torch.strided or item.is_quantized or item.is_conj() or item.is_neg():
            self._take(item.numel() * item.element_size(), item.device)
            return item.detach().clone()
        dtype = self._dtype(item.dtype)
        storage, start = self._storage(item)
        base = self._base(item) if start == 0 else None
        if base is not None and base.untyped_storage()._cdata == storage._cdata:
            with torch.enable_grad():  # a view that autograd knows: AOTAutograd asks for its base
                return base.as_strided(item.size(), item.stride(), item.storage_offset())
        empty = torch.empty(0, dtype=dtype, device=item.device)
        return empty.set_(storage, item.storage_offset() - start, item.size(), item.stride())

    def _base(self, item: torch.Tensor) -> torch.Tensor | None:
        """Return the copy of the plain tensor that a tensor is a view of, None where it is none."""
        base = item._base
        if base is None or item.requires_grad or base.requires_grad or base.dtype != item.dtype:
            return None
        if type(base) not in _BASES or base.layout is not torch.strided:
            return None
        if base.is_quantized or base.is_conj() or base.is_neg():
            return None
        copied: torch.Tensor = self.copy(base)
        return copied

    def _wrapper(self, item: Any) -> torch.Tensor:
        """Copy a subclass that wraps other tensors (`torch.utils._python_dispatch`, 2.13)."""
        names, context = item.__tensor_flatten__()
        inner = {name: self.copy(getattr(item, name)) for name in names}
        copied: torch.Tensor = type(item).__tensor_unflatten__(
            inner, context, item.size(), item.stride()
        )
        return copied

    def _dtype(self, dtype: torch.dtype) -> torch.dtype:
        if not self._widen:
            return dtype
        return torch.float64 if dtype.is_floating_point else _WIDE.get(dtype, dtype)

    def _storage(self, item: torch.Tensor) -> tuple[torch.UntypedStorage, int]:
        """Return the copy of a tensor's storage, and the element at which it begins."""
        storage = item.untyped_storage()
        size = item.element_size()
        start, end = _span(item)
        if storage.nbytes() <= _SPARSE_VIEW * (end - start) * size:
            start, end = 0, storage.nbytes() // size
        self._tell_apart(storage._cdata, start * size, end * size)
        key = (storage._cdata, start, end, item.dtype if self._widen else size)
        if key not in self._storages:
            self._storages[key] = self._new_storage(item, (start, end), key)
            self._alive.append(storage)
        return self._storages[key], start

    def _tell_apart(self, storage: int, start: int, end: int) -> None:
        """Raise where a part of a storage overlaps another one: their copies would be two."""
        parts = self._parts.setdefault(storage, set())
        if any(one < end and start < other for one, other in parts - {(start, end)}):
            msg = "two of its inputs overlap in a tensor that is much larger than they are"
            raise CannotCopyError(msg)
        parts.add((start, end))

    def _new_storage(
        self, item: torch.Tensor, span: tuple[int, int], key: tuple[Any, ...]
    ) -> torch.UntypedStorage:
        version = None if self._kept is None or item.is_inference() else item._version
        if self._kept is not None and version is not None:
            found = self._kept.find((*key, version))
            if found is not None:
                return found
        start, end = span
        self._take((end - start) * item.element_size(), item.device)
        flat = torch.empty(0, dtype=item.dtype, device=item.device)
        flat.set_(item.untyped_storage(), start, (end - start,), (1,))
        copied = flat.to(self._dtype(item.dtype), copy=True).untyped_storage()
        if self._kept is not None and version is not None:
            self._kept.keep((*key, version), item.untyped_storage(), copied)
        return copied

    def _take(self, size: int, device: torch.device) -> None:
        if self._kept is not None:
            self._kept.take(size, device)


def _is_kernel(kind: type) -> bool:
    """Tell whether a class is that of a user's Triton kernels: they are code."""
    return kind.__module__.partition(".")[0] == "triton"


def _span(item: torch.Tensor) -> tuple[int, int]:
    """Return the first and the last element (exclusive) of its storage that a tensor covers."""
    start = item.storage_offset()
    if item.numel() == 0:
        return start, start
    steps = zip(item.size(), item.stride(), strict=True)
    return start, start + sum((size - 1) * stride for size, stride in steps) + 1


@contextmanager
def _plainly(item: torch.Tensor) -> Iterator[None]:
    """Copy outside autograd, dispatch modes and `__torch_function__`, in the tensor's own mode."""
    with (
        _disable_current_modes(),
        torch._C.DisableTorchFunction(),
        torch.inference_mode(item.is_inference()),
        torch.no_grad(),
    ):
        yield


_HANDLERS: dict[type, Callable[[Copier, Any], Any]] = {
    list: Copier._list,
    tuple: Copier._tuple,
    dict: Copier._dict,
    set: Copier._set,
    frozenset: Copier._set,
    types.MethodType: Copier._method,
    torch.Generator: Copier._generator,
}
