"""What torch is made of, before and after: everything that a capture could leave changed.

It is taken without a look at the capture's hook table: every function and class attribute of every
loaded module of torch's compiler counts, whether a hook is known to touch it or not.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

__all__ = ["Snapshot", "differences", "foreign_callables", "take"]

PACKAGES = (
    "torch._dynamo",
    "torch._inductor",
    "torch._functorch",
    "torch._guards",
    "torch._logging",
    "torch._compile",
    "torch.compiler",
    "torch.fx",
    "torch.nn.modules.module",
    "torch.utils._config_module",
)
GENERATED = "torch._inductor.runtime.compile_tasks."  # Inductor's output code, loaded as modules
CONFIGS = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")

#: State that torch itself keeps in a module's attribute and that a hook goes by.
HOOK_SLOTS = (
    ("torch._dynamo.guards", "guard_manager_testing_hook_fn"),
    ("torch._dynamo.convert_frame", "_bytecode_hooks"),
    ("torch._dynamo.callback", "callback_handler"),
)

Snapshot = dict[str, Any]


def modules() -> dict[str, ModuleType]:
    """Return the loaded modules of torch's compiler, by name."""
    return {
        name: module
        for name, module in sorted(sys.modules.items())
        if isinstance(module, ModuleType)
        and not name.startswith(GENERATED)
        and any(name == package or name.startswith(f"{package}.") for package in PACKAGES)
    }


def attributes() -> dict[str, Any]:
    """Return every function, class and class attribute of these modules."""
    found: dict[str, Any] = {}
    for name, module in modules().items():
        for key, item in vars(module).items():
            if callable(item):
                found[f"{name}.{key}"] = item
            if isinstance(item, type) and item.__module__ == name:
                for attribute, value in vars(item).items():
                    if callable(value) or isinstance(value, staticmethod | classmethod | property):
                        found[f"{name}.{key}.{attribute}"] = value
    return found


def loggers() -> dict[str, Any]:
    """Return handlers, filters, level and flags of torch's loggers and of the root."""
    found = {}
    for name, logger in {**logging.Logger.manager.loggerDict, "": logging.root}.items():
        if isinstance(logger, logging.Logger) and (not name or name.startswith("torch")):
            found[name] = (
                # torch's lazy handler takes itself out at the first record that it sees
                [one for one in logger.handlers if type(one).__name__ != "LazyTraceHandler"],
                list(logger.filters),
                logger.level,
                logger.propagate,
                logger.disabled,
            )
    return found


def configs() -> dict[str, Any]:
    """Return every value of torch's compiler configs."""
    found: dict[str, Any] = {}
    for name in CONFIGS:
        module = sys.modules.get(name)
        if module is not None:
            values = module.get_config_copy()
            found |= {f"{name}.{key}": value for key, value in values.items()}
    return found


def slots() -> dict[str, Any]:
    """Return what is registered in torch's own places for hooks."""
    found: dict[str, Any] = {}
    for name, key in HOOK_SLOTS:
        item = getattr(sys.modules.get(name), key, None)
        if key == "callback_handler" and item is not None:
            item = (tuple(item.start_callbacks), tuple(item.end_callbacks))
        elif isinstance(item, dict):
            item = tuple(item.values())
        found[f"{name}.{key}"] = item
    with contextlib.suppress(ImportError):
        from torch._C._dynamo.eval_frame import set_guard_complete_hook

        hook = set_guard_complete_hook(None)
        set_guard_complete_hook(hook)
        found["guard complete hook"] = hook
    return found


def modes() -> dict[str, Any]:
    """Return global state of torch that a cell may set and a runner must put back."""
    return {
        "default device": torch.get_default_device(),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "function modes": torch._C._len_torch_function_stack(),
    }


def take() -> Snapshot:
    """Return what torch's compiler is made of now."""
    return {
        "attributes": attributes(),
        "loggers": loggers(),
        "configs": configs(),
        "slots": slots(),
        "modes": modes(),
    }


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the names of what changed; modules that were imported in between don't count."""
    changed = []
    for section, old in before.items():
        new = after[section]
        same = _identical if section == "attributes" else _equal
        changed += [
            f"{section}: {name}"
            for name in old
            if name not in new or not same(old[name], new[name])
        ]
    changed += [f"attributes: {name}" for name in foreign_callables(after["attributes"])]
    return sorted(set(changed))


def foreign_callables(found: dict[str, Any]) -> list[str]:
    """Return the attributes of torch that are code of this package."""
    return [name for name, item in found.items() if _is_ours(item)]


def _identical(old: Any, new: Any) -> bool:
    return old is new


def _equal(old: Any, new: Any) -> bool:
    try:
        return bool(old == new)
    except Exception:
        return old is new


def _is_ours(item: Any) -> bool:
    item = getattr(item, "__func__", item)
    if isinstance(item, FunctionType | MethodType):
        code = getattr(item, "__code__", None)
        return code is not None and "dynamo_nb" in code.co_filename.split("/")
    return str(getattr(item, "__module__", "")).startswith("dynamo_nb")
