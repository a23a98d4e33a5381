"""Kernels: their code, and the post-grad nodes fused into each."""

from __future__ import annotations

from typing import Any

from dynamo_nb.capture.branches import node_name
from dynamo_nb.capture.recorder import Hooked

__all__ = ["extern_nodes", "install_kernel_code", "install_kernel_nodes", "is_view"]

#: Calls for which Inductor's generators write code without a word of where it is from, by class
#: (`torch/_inductor/ir.py`, 2.13), with the name that it has in the code where it has no other.
_SILENT = {
    "DeviceCopy": "aten.copy_",
    "IndexPutFallback": "aten.index_put_",
    "InplaceBernoulliFallback": "aten.bernoulli_",
    "InplaceCopyFallback": "aten.copy_",
    "ScatterFallback": "aten.scatter_",
}


def install_kernel_code(hooked: Hooked) -> None:
    """Watch `PythonWrapperCodegen.define_kernel` (`torch/_inductor/codegen/wrapper.py`, 2.13)."""
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    recorder = hooked.recorder

    def before(_: Any, kernel_name: str, kernel_body: str, *__: Any, **___: Any) -> None:
        recorder.emit(
            "kernel",
            {"name": kernel_name, "code": str(kernel_body), "direction": recorder.graph},
        )

    def defined(made: tuple[Any, ...], _: Any, kernel: Any, *__: Any, **___: Any) -> None:
        from dynamo_nb.capture.user_kernels import functions_of

        recorder.emit(
            "kernel_functions",
            {"name": made[0], "functions": functions_of(kernel), "direction": recorder.graph},
        )

    hooked.around(PythonWrapperCodegen, "define_kernel", before=before)
    hooked.around(PythonWrapperCodegen, "define_user_defined_triton_kernel", after=defined)


def install_kernel_nodes(hooked: Hooked) -> None:
    """Watch each kernel call site's provenance; needs no config, works for lazy backwards too.

    `torch/_inductor/debug.py: set_kernel_post_grad_provenance_tracing` (2.13) is imported by name
    into both code generators, so it is watched at each place. Some calls don't come by there, but
    each comes by `Scheduler.codegen_extern_call`.
    """
    from torch._inductor import debug, scheduler
    from torch._inductor.codegen import cpp, triton

    recorder = hooked.recorder

    def emit(schedule: Any, name: str, is_extern: bool) -> None:
        recorder.emit(
            "kernel_nodes",
            {
                "name": name,
                "is_extern": is_extern,
                "nodes": _extern_origins(schedule) if is_extern else _fused_origins(schedule),
                "ops": _operations(schedule, is_extern),
                "direction": recorder.graph,
            },
        )

    def before(
        schedule: Any, kernel_name: str, is_extern: bool = False, *_: Any, **__: Any
    ) -> None:
        if not (is_extern and is_view(schedule)):
            emit(schedule, kernel_name, bool(is_extern))

    def on_call(_: Any, __: Any, scheduled: Any, *___: Any, **____: Any) -> None:
        name = _silent_name(scheduled.node)
        if name:
            emit(scheduled.node, name, True)

    hooked.around(scheduler.Scheduler, "codegen_extern_call", after=on_call)
    for owner in (debug, cpp, triton):
        hooked.around(owner, "set_kernel_post_grad_provenance_tracing", before=before)


def is_view(kernel: Any) -> bool:
    """Tell whether an extern call only looks at memory in another way."""
    return bool(getattr(getattr(kernel, "op_overload", None), "is_view", False))


def _silent_name(kernel: Any) -> str:
    """Return what an extern call is in the code if nothing was said of it, else nothing."""
    kinds = [kind.__name__ for kind in type(kernel).__mro__ if kind.__name__ in _SILENT]
    if not kinds:
        return ""
    return str(getattr(kernel, "python_kernel_name", None) or _SILENT[kinds[0]])


def _extern_origins(kernel: Any) -> list[str]:
    """Return the nodes that an extern call computes: its own, not those that lead up to it."""
    return [node_name(node) for node in extern_nodes(kernel)]


def extern_nodes(kernel: Any) -> list[Any]:
    """Return the FX nodes that an extern call computes.

    `origin_node` is missing where it has several results or none; then `origins` holds what led to
    it, too.
    """
    if kernel.origin_node is not None:
        return [kernel.origin_node]
    operator = getattr(kernel, "op_overload", None)
    origins = [node for node in kernel.origins if _is_own(node)]
    own = [node for node in origins if operator is not None and node.target is operator]
    return own or [node for node in origins if not any(user in origins for user in node.users)]


def _operations(schedule: Any, is_extern: bool) -> list[str]:
    """Return the names of the scheduled operations that a kernel does: `op3`."""
    if is_extern:
        return [str(schedule.get_operation_name())]
    return [item.get_name() for item in schedule if getattr(item, "node", None) is not None]


def _fused_origins(schedule: Any) -> list[str]:
    nodes = [item.node for item in schedule if getattr(item, "node", None) is not None]
    origins = (origin for node in nodes for origin in node.origins if _is_own(origin))
    return list(dict.fromkeys(map(node_name, origins)))


def _is_own(node: Any) -> bool:
    """Tell whether a node is of the graph under way: a branch has those that lead up to it, too."""
    from torch._inductor.virtualized import V

    return node.graph is V.graph.module.graph
