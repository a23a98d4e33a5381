"""What autotuning measured: the candidates for an operator, the configurations of a kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from dynamo_nb.capture.launch import settings
from dynamo_nb.capture.recorder import Hooked

__all__ = ["install_kernel_tuning", "install_operator_tuning", "kernel_name"]


def install_operator_tuning(hooked: Hooked) -> None:
    """Listen to what max-autotune measures for a matmul, convolution or attention, CPU included.

    Feedback functions get the times of all candidates, those read from a cache too
    (`torch/_inductor/select_algorithm.py: AlgorithmSelectorCache`, 2.13). On a GPU that is when
    operators are fused, long after the node was lowered: it is known by the list of its inputs.
    """
    from torch._inductor.select_algorithm import (
        AlgorithmSelectorCache,
        get_algorithm_selector_cache,
    )
    from torch._inductor.virtualized import V

    recorder = hooked.recorder
    asked: dict[int, tuple[Any, str]] = {}  # the list, which keeps its id, and the node's name

    def asks(*args: Any, **kwargs: Any) -> None:
        inputs = kwargs.get("input_nodes") or args[3]  # after the cache, the name and the choices
        asked[id(inputs)] = inputs, getattr(V.graph.current_node, "name", "")

    def measured(timings: dict[Any, float], name: str, inputs: list[Any], *_: Any) -> None:
        with recorder.apart(hooked.hook):
            sizes = ["x".join(map(str, node.get_size())) for node in inputs]
            recorder.emit(
                "tuning",
                {
                    "direction": recorder.graph,
                    "operation": name,
                    "sizes": sizes,
                    "node": asked[id(inputs)][1] if id(inputs) in asked else "",
                    "choices": _choices((c.name, c.description, t) for c, t in timings.items()),
                },
            )

    hooked.around(AlgorithmSelectorCache, "__call__", before=asks)
    savers = get_algorithm_selector_cache().feedback_saver_fns
    savers.append(measured)

    def forget() -> None:
        with suppress(ValueError):  # the cell cleared them
            savers.remove(measured)

    hooked.undo.callback(forget)


def install_kernel_tuning(hooked: Hooked) -> None:
    """Watch a Triton kernel try its configurations, at its first launch.

    `CachingAutotuner.benchmark_all_configs` returns a time for each launcher, infinite where it
    does not fit (`torch/_inductor/runtime/triton_heuristics.py`, 2.13).
    """
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    recorder = hooked.recorder

    def after(timings: dict[Any, float], kernel: Any, *_: Any, **__: Any) -> None:
        told = ((_words(launcher.config), _takes(launcher), t) for launcher, t in timings.items())
        recorder.emit(
            "tuning",
            {
                "is_backward": bool(kernel.is_backward),
                "kernel": kernel_name(kernel),
                "choices": _choices(told),
            },
            compile_id=str(kernel.compile_id or ""),
        )

    hooked.around(CachingAutotuner, "benchmark_all_configs", after=after)


def kernel_name(kernel: Any) -> str:
    """Return what Inductor calls a Triton kernel in its output code."""
    return str(kernel.inductor_meta.get("kernel_name") or kernel.fn.__name__)


def _words(config: Any) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings(config).items())


def _takes(launcher: Any) -> str:
    facts = {"registers": launcher.n_regs, "spilled": launcher.n_spills, "shared": launcher.shared}
    return ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)


def _choices(timed: Iterable[tuple[str, str, float]]) -> list[dict[str, Any]]:
    """Return candidates, the fastest first; those that could not run have no time.

    Inductor measures in milliseconds.
    """
    found = sorted(timed, key=lambda item: item[2])
    return [
        {
            "name": name,
            "detail": detail,
            "microseconds": milliseconds * 1e3 if math.isfinite(milliseconds) else None,
        }
        for name, detail, milliseconds in found
    ]
