"""Stand-ins for what only a GPU gives, on which torch's own methods run."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, ClassVar

from torch._guards import CompileId
from torch._inductor.cudagraph_trees import (
    CompilationMode,
    CUDAGraphTreeManager,
    ExecutionState,
    FunctionID,
)
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch._inductor.select_algorithm import get_algorithm_selector_cache
from torch._inductor.virtualized import V

FIRST = CompileId(frame_id=0, frame_compile_id=0)


class Config:
    num_warps = 4

    def __init__(self, block: int) -> None:
        self.block = block

    def all_kwargs(self) -> dict[str, Any]:
        return {"XBLOCK": self.block, "num_warps": self.num_warps, "maxnreg": None}


class Launcher:
    n_regs, n_spills = 24, 0

    def __init__(self, block: int) -> None:
        self.config, self.shared = Config(block), block


class Autotuner:
    """What torch's methods ask of a `CachingAutotuner` once its kernels are compiled."""

    reset_to_zero_args = _make_launchers = _dynamic_scale_rblock = lambda *_, **__: None
    _precompile_worker = _close_static_launcher = reset_to_zero_args
    is_statically_launchable = reset_to_zero_args
    device_props = SimpleNamespace(warp_size_or_default=32)
    triton_meta: ClassVar[dict[str, Any]] = {"signature": {}}
    coordesc_tuner = SimpleNamespace(cache_benchmark_result=lambda *_: None)

    def __init__(self, name: str, compile_id: Any, milliseconds: dict[int, float]) -> None:
        self.inductor_meta = {"kernel_name": name}
        self.fn, self.filename = SimpleNamespace(fn=tune, __name__=name), __file__
        self.compile_id, self.is_backward = compile_id, False
        self.lock, self._plugins = threading.Lock(), ()
        self.milliseconds = milliseconds
        self.launchers = [Launcher(block) for block in milliseconds]
        asm = {"ptx": ".target sm_90\n\tret;", "cubin": b"1234"}
        self.compile_results = [
            SimpleNamespace(config=launcher.config, kernel=SimpleNamespace(asm=asm))
            for launcher in self.launchers
        ]

    def bench(self, launcher: Any, *_: Any, **__: Any) -> float:
        return self.milliseconds[launcher.config.block]


def tune() -> None:
    """Let max-autotune tell of an operator, and a Triton kernel try its only configuration."""
    with V.set_graph_handler(SimpleNamespace(current_node=None)):
        for told in get_algorithm_selector_cache().feedback_saver_fns:
            told({}, "mm", [], [], None, {})
    kernel = Autotuner("triton_poi", FIRST, {64: 1.0})
    CachingAutotuner.precompile(kernel)
    CachingAutotuner.benchmark_all_configs(kernel)


def replay() -> None:
    """Run a function of a CUDA graph tree, which is not recorded."""
    manager = object.__new__(CUDAGraphTreeManager)
    first = FunctionID(0)
    vars(manager).update(
        graph=object(),
        id_to_mode={first: CompilationMode.INFERENCE},
        id_to_compile_id={first: FIRST},
        ids_to_funcs={first: SimpleNamespace(model=lambda inputs: None)},
        non_cudagraph_managed_mutation_hint={None: {first: True}},
        path_state=ExecutionState.NONE,
        has_live_user_visible_output_cloning=False,  # of torch 2.14
        _current_node=None,
    )
    manager.run([], first)
