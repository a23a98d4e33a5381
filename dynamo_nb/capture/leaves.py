"""The leaf modules of a model whose `forward` Dynamo left to Python."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from torch import nn

__all__ = ["eager_leaves"]

#: Containers of which all that is in them is called, once they are.
_HOLD_ALL = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def eager_leaves(frame: Any) -> list[str]:
    """Return `path (Class)` of the leaf modules that a skipped frame stands for, its own first.

    Dynamo asks once per code object: after the first `Linear.forward` it leaves alone all others
    run eagerly unasked. So the outermost module on the stack tells which of them have the same
    code and are called by the module they are in. Paths are those below it.
    """
    module = frame.f_locals.get("self")
    if frame.f_code.co_name != "forward" or not _is_leaf(module):
        return []
    root = _root(module)
    alike = [path for path, child in _reached(root, "") if _runs(child, frame.f_code)]
    own = next((path for path, child in root.named_modules() if child is module), "")
    paths = dict.fromkeys([own, *alike]) if own else [""]
    kind = type(module).__name__
    return [f"{path} ({kind})" if path else kind for path in paths]


def _is_leaf(module: Any) -> bool:
    return isinstance(module, nn.Module) and next(module.children(), None) is None


def _runs(module: nn.Module, code: CodeType) -> bool:
    return _is_leaf(module) and getattr(type(module).forward, "__code__", None) is code


def _root(module: nn.Module) -> nn.Module:
    """Return the outermost module whose call is on the stack."""
    root = module
    above: FrameType | None = sys._getframe()
    while above is not None:
        owner = above.f_locals.get("self") if above.f_code.co_name == "_call_impl" else None
        if isinstance(owner, nn.Module):
            root = owner
        above = above.f_back
    original = getattr(root, "_orig_mod", root)
    return original if isinstance(original, nn.Module) else root


def _reached(module: nn.Module, prefix: str) -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules below one that are called when it is, as far as can be told.

    `Sequential` calls all that it holds, and who names a list of modules all in it; any other
    `forward` calls what it names.
    """
    code = getattr(type(module).forward, "__code__", None)
    names = code.co_names if code is not None else ()
    holds_all = isinstance(module, _HOLD_ALL)
    for name, child in module.named_children():
        if holds_all or name in names:
            path = f"{prefix}{name}"
            yield path, child
            yield from _reached(child, f"{path}.")
