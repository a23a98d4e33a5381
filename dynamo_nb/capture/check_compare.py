"""How an eager and a compiled call differ: values, dtypes, shapes, strides, aliases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._comparison import default_tolerances

from dynamo_nb.capture.check_leaves import Leaf
from dynamo_nb.capture.check_widening import NARROW

__all__ = ["Reference", "aliases_of", "differences", "for_casts"]

#: Returns the leaves of the same call in float64, with the casts inside of it as they are or (True)
#: in float64, too; None where it does not run in float64.
Reference = Callable[[bool], "dict[str, Leaf] | None"]

#: An element may be this many times as far from the float64 reference as the worst of eager's:
#: another order of operations rounds differently (`torch/_dynamo/utils.py: same` allows 2 to 10).
_SLACK = 5.0
_PYTHON_TOLERANCE = 1e-5


def differences(
    eager: dict[str, Leaf], compiled: dict[str, Leaf], reference: Reference
) -> list[dict[str, Any]]:
    """Return all differences, in the shape of the record's `Difference`, outputs first."""
    found = []
    for name, leaf in eager.items():
        if name not in compiled:
            found.append(_told(name, leaf, "missing", _shown(leaf.value), "missing"))
        else:
            found += _leaf_differences(name, leaf, compiled[name], reference)
    for name, leaf in compiled.items():
        if name not in eager:
            found.append(_told(name, leaf, "missing", "missing", _shown(leaf.value)))
    return found + list(_alias_differences(eager, compiled))


def for_casts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return differences by casts alone, without what a reference with these casts says of them."""
    return [{**item, "closer": ""} if item["kind"] == "value" else item for item in found]


def _leaf_differences(
    name: str, eager: Leaf, compiled: Leaf, reference: Reference
) -> Iterator[dict[str, Any]]:
    one, other = eager.value, compiled.value
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        if not _same_plain(one, other):
            yield _told(name, eager, "value", _shown(one), _shown(other))
        return
    properties: tuple[tuple[str, Any, Any], ...] = (
        ("dtype", one.dtype, other.dtype),
        ("device", one.device, other.device),
        ("shape", tuple(one.shape), tuple(other.shape)),
    )
    for kind, was, now in properties:
        if was != now:
            yield _told(name, eager, kind, str(was), str(now))
            return
    if eager.kind != "gradient" and _steps(one) != _steps(other):
        yield _told(name, eager, "stride", str(one.stride()), str(other.stride()))
    yield from _value_differences(name, eager, other, reference)


def _value_differences(
    name: str, leaf: Leaf, compiled: torch.Tensor, reference: Reference
) -> Iterator[dict[str, Any]]:
    eager = leaf.value
    if eager.device.type == "meta" or eager.numel() == 0:
        return
    rtol, atol = default_tolerances(eager.dtype)
    if _is_surely_close(eager.detach(), compiled.detach(), rtol, atol):
        return
    one, other = _exact(eager), _exact(compiled)
    off = ~torch.isclose(other, one, rtol=rtol, atol=atol, equal_nan=True)
    if not off.any():
        return
    # What is narrow itself is compared as what comes from narrow inputs is: wide all through, and
    # so is a gradient. A wide result of narrow casts has them in what it is compared with.
    leaves = reference(eager.dtype in NARROW or leaf.kind == "gradient")
    wide = leaves.get(name) if leaves is not None else None
    closer = _closer(wide, one, other, (rtol, atol))
    if closer == "compiled":
        return
    error = torch.nan_to_num((other - one).abs().to(torch.float64), nan=math.inf)
    error = torch.where(off, error, torch.zeros_like(error))
    flat = int(error.argmax())
    index = [int(at) for at in torch.unravel_index(torch.tensor(flat), error.shape)]
    yield {
        **_told(name, leaf, "value", _number(one, index), _number(other, index)),
        "error": float(error.flatten()[flat]),
        "index": index,
        "count": int(off.sum()),
        "of": one.numel(),
        "closer": closer,
    }


def _is_surely_close(eager: torch.Tensor, compiled: torch.Tensor, rtol: float, atol: float) -> bool:
    """Tell quickly, in the tensors' own dtype, that they agree; False says nothing."""
    if eager.layout is not torch.strided or eager.is_quantized:
        return False
    if torch.equal(eager, compiled):
        return True
    if eager.dtype not in (torch.float32, torch.float64):
        return False
    excess = (compiled - eager).abs_().sub_(eager.abs().mul_(rtol))
    return bool(excess.max() <= atol)  # not for a NaN


def _closer(
    leaf: Leaf | None,
    eager: torch.Tensor,
    compiled: torch.Tensor,
    tolerances: tuple[float, float],
) -> str:
    """Return which of two results is right by the float64 reference, nothing if it can't be told.

    `compiled` means that it is as near as rounding lets the eager one be.
    """
    if leaf is None or not isinstance(leaf.value, torch.Tensor):
        return ""
    wide = _exact(leaf.value)
    if wide.shape != eager.shape or wide.dtype != eager.dtype:
        return ""
    if not torch.equal(wide.isnan(), compiled.isnan()):
        return "eager" if torch.equal(wide.isnan(), eager.isnan()) else ""
    rtol, atol = tolerances
    own = _errors(eager, wide)
    worst = own[own.isfinite()].max() if own.isfinite().any() else own.new_zeros(())
    allowed = torch.maximum(_SLACK * worst, atol + rtol * wide.abs())
    right = (_errors(compiled, wide) <= allowed) | (compiled == eager)
    return "compiled" if bool(right.all()) else "eager"


def _errors(one: torch.Tensor, wide: torch.Tensor) -> torch.Tensor:
    """Return how far each element is off, 0 where both are the same infinity or no number."""
    off = (one - wide).abs().to(torch.float64)
    return torch.where((one == wide) | off.isnan(), 0.0, off)


def _exact(item: torch.Tensor) -> torch.Tensor:
    """Return a tensor's values on the CPU in a type that holds them all."""
    item = item.detach().to("cpu")
    if item.layout is not torch.strided:
        item = item.to_dense()
    if item.is_quantized:
        item = item.dequantize()
    if item.is_complex():
        return item.to(torch.complex128)
    return item.to(torch.float64 if item.is_floating_point() else torch.int64)


def _steps(item: torch.Tensor) -> list[int]:
    """Return the strides that matter: those of dimensions with more than one element."""
    if item.layout is not torch.strided or item.numel() == 0:
        return []
    return [step for size, step in zip(item.shape, item.stride(), strict=True) if size > 1]


def aliases_of(leaves: dict[str, Leaf]) -> dict[str, list[str]]:
    """Return, for each tensor that is an output, the other leaves that share its memory."""
    storages: dict[int, list[str]] = {}
    for name, leaf in leaves.items():
        if _has_storage(leaf.value) and leaf.kind != "gradient":
            storages.setdefault(leaf.value.untyped_storage()._cdata, []).append(name)
    return {
        name: [other for other in sharing if other != name]
        for sharing in storages.values()
        for name in sharing
        if leaves[name].kind == "output"
    }


def _has_storage(item: Any) -> bool:
    if not isinstance(item, torch.Tensor) or hasattr(item, "__tensor_flatten__"):
        return False
    return item.layout is torch.strided and item.untyped_storage().nbytes() > 0


def _alias_differences(
    eager: dict[str, Leaf], compiled: dict[str, Leaf]
) -> Iterator[dict[str, Any]]:
    one, other = aliases_of(eager), aliases_of(compiled)
    for name in one:
        if name in other and one[name] != other[name]:
            yield _told(name, eager[name], "alias", _sharing(one[name]), _sharing(other[name]))


def _sharing(names: list[str]) -> str:
    return f"shares memory with {', '.join(names)}" if names else "has memory of its own"


def _same_plain(one: Any, other: Any) -> bool:
    if type(one) is float and type(other) is float:
        close = math.isclose(one, other, rel_tol=_PYTHON_TOLERANCE, abs_tol=_PYTHON_TOLERANCE)
        return close or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and bool(one == other)


def _told(name: str, leaf: Leaf, kind: str, eager: str, compiled: str) -> dict[str, Any]:
    return {"name": name, "what": leaf.kind, "kind": kind, "eager": eager, "compiled": compiled}


def _number(item: torch.Tensor, index: list[int]) -> str:
    value = item[tuple(index)].item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _shown(item: Any) -> str:
    if isinstance(item, torch.Tensor):
        return f"a tensor of shape {tuple(item.shape)}"
    text = repr(item)
    return text if len(text) <= 60 else text[:57] + "..."
