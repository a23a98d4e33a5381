"""How Inductor launches a Triton kernel: its configuration, its arguments, its grid."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

__all__ = ["launch_of", "plain", "settings"]


def launch_of(kernel: Any, config: Any) -> dict[str, Any]:
    """Return what tells how a kernel is launched with a configuration, as plain data.

    `grid` are formulas of its arguments (`signature`), and of those that its launcher takes after
    them (`extra`), as `torch/_inductor/runtime/triton_heuristics.py: GridExpr` has them (2.13);
    empty where it has none.
    """
    meta = kernel.inductor_meta
    return {
        "config": plain({**_constants(kernel), **settings(config)}),
        "signature": {name: str(kind) for name, kind in kernel.triton_meta["signature"].items()},
        "grid_type": str(meta.get("grid_type", "")),
        "grid": _grid(meta, config),
        "extra": [str(name) for name in meta.get("extra_launcher_args", ())],
    }


def settings(config: Any) -> dict[str, Any]:
    """Return a configuration of Triton's as a dict: block sizes, warps, stages."""
    return {key: value for key, value in config.all_kwargs().items() if value is not None}


def plain(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration whose values can be written as JSON."""
    return {
        key: value if isinstance(value, bool | int | float | str) else str(value)
        for key, value in config.items()
    }


def _constants(kernel: Any) -> dict[str, Any]:
    """Return the constants that a template has in its code, or a user's kernel was called with."""
    constants = kernel.triton_meta.get("constants", {})
    named = kernel.inductor_meta.get("declared_constexpr_names") or ()
    return {
        **(kernel.inductor_meta.get("config_args") or {}),
        **{name: constants[name] for name in named if name in constants},
    }


def _grid(meta: dict[str, Any], config: Any) -> list[str]:
    from torch._inductor.runtime.triton_heuristics import GridExpr

    with suppress(KeyError, AssertionError):  # no grid, or none for this configuration
        grid = GridExpr.from_meta(meta, config)
        if not grid.prefix:
            return [str(axis) for axis in (grid.x_grid, grid.y_grid, grid.z_grid)]
    return []
