"""Recordings of CUDA graphs while calls are repeated: a replay writes over what the last gave."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._inductor import cudagraph_trees
from torch._inductor.cudagraph_trees import CUDAGraphTreeManager

__all__ = ["outputs_are_alive", "without_replays"]


@contextmanager
def without_replays() -> Iterator[None]:
    """Run the kernels of CUDA graphs without the graphs: what the user holds of them stays.

    That is what torch does itself with a function that can't be recorded
    (`torch/_inductor/cudagraph_trees.py: CUDAGraphTreeManager._run`, 2.13).
    """

    def run(self: Any, inputs: Any, function_id: Any) -> Any:
        return self.ids_to_funcs[function_id].model(inputs)

    original = CUDAGraphTreeManager._run
    CUDAGraphTreeManager._run = run
    try:
        yield
    finally:
        CUDAGraphTreeManager._run = original


def outputs_are_alive() -> bool:
    """Tell whether somebody holds what a CUDA graph returned: another call would overwrite it.

    The node that ran last knows it of all that ran before it in its path.
    """
    containers = getattr(cudagraph_trees.local, "tree_manager_containers", {})
    managers = (container.tree_manager for container in containers.values())
    nodes = (manager.current_node for manager in managers if manager is not None)
    return any(node is not None and not node.all_outputs_are_dead() for node in nodes)
