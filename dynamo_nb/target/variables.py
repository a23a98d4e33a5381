"""Which nodes each variable of a Triton kernel computes. In the worker only.

Inductor writes a kernel buffer by buffer, and knows of each buffer the nodes it came from; of a
single line it keeps nothing. So the variables that are made meanwhile get those nodes.
"""

from __future__ import annotations

from typing import Any

from torch._inductor.codegen.common import CSE
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.virtualized import V

from dynamo_nb.capture.branches import node_name
from dynamo_nb.capture.recorder import Hook, Hooked

__all__ = ["HOOK", "NAMES"]

NAMES = (
    "torch._inductor.codegen.common:CSE.generate",
    "torch._inductor.codegen.triton:TritonScheduling.define_kernel",
    "torch._inductor.virtualized:V",
)

_NOTED = "_dynamo_nb_variables"


def _install(hooked: Hooked) -> None:
    def made(variable: Any, *_: Any, **__: Any) -> None:
        kernel = V.kernel
        schedule = getattr(kernel, "current_node", None)
        buffer = getattr(schedule, "node", None)
        if buffer is None:
            return
        noted = kernel.__dict__.setdefault(_NOTED, {})
        noted.setdefault(str(variable), list(map(node_name, buffer.origins)))

    def defined(name: str, _: Any, source: str, schedule: Any, kernel: Any, *__: Any) -> None:
        variables = getattr(kernel, _NOTED, None)
        if variables:
            data = {"name": name, "direction": hooked.recorder.graph, "variables": variables}
            hooked.recorder.emit("kernel_variables", data)

    hooked.around(CSE, "generate", after=made)
    hooked.around(TritonScheduling, "define_kernel", after=defined)


HOOK = Hook("kernel-variables", "the nodes of each line of a kernel", _install)
