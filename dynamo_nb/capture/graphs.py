"""FX graphs of every stage, as torch has them the moment it logs them itself."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torch import fx

from dynamo_nb.capture.nodes import graph_nodes
from dynamo_nb.capture.operators import count_operators
from dynamo_nb.capture.plain import Place, place_of_instruction
from dynamo_nb.capture.recorder import Hooked, Recorder

__all__ = ["install_aot_graphs", "install_dynamo_graph", "install_post_grad_graph"]

#: Source places of the nodes of the graph under way, by node: Dynamo renames nodes later.
_PLACES: dict[fx.Node, list[Place]] = {}


def _emit_graph(
    recorder: Recorder, stage: str, module: fx.GraphModule, direction: str = ""
) -> None:
    graph = module.graph
    recorder.emit(
        "graph",
        {
            "stage": stage,
            "direction": direction,
            "graph_id": id(graph),
            "nodes": graph_nodes(graph, _PLACES if stage == "dynamo" else {}),
            "operators": count_operators(graph, stage),
        },
    )


def install_dynamo_graph(hooked: Hooked) -> None:
    """Watch each node as Dynamo makes it, for its columns, and the graph it hands to the backend.

    `SubgraphTracer.create_proxy` and `OutputGraph.call_user_compiler`
    (`torch/_dynamo/output_graph.py`, 2.13).
    """
    from torch._dynamo.output_graph import OutputGraph, SubgraphTracer

    def on_proxy(proxy: Any, tracer: Any, *_: Any, **__: Any) -> None:
        places: list[Place] = []
        tx = tracer.output_graph.current_tx
        while tx is not None:
            places.append(place_of_instruction(tx))
            tx = getattr(tx, "parent", None)
        places.reverse()
        _PLACES[proxy.node] = places

    def on_graph(output_graph: Any, module: fx.GraphModule, *_: Any, **__: Any) -> None:
        _emit_graph(hooked.recorder, "dynamo", module)
        reason = output_graph.compile_subgraph_reason
        if reason is not None:
            hooked.recorder.emit("compile_subgraph_reason", {"reason": str(reason.reason)})
        _PLACES.clear()

    hooked.undo.callback(_PLACES.clear)
    hooked.around(SubgraphTracer, "create_proxy", after=on_proxy)
    hooked.around(OutputGraph, "call_user_compiler", before=on_graph)


def install_aot_graphs(hooked: Hooked) -> None:
    """Watch the three functions in which AOTAutograd logs its graphs; any AOT backend uses them.

    `_log_joint_graph`, `_log_fw_bw_graphs`, `_log_inference_graph`
    (`torch/_functorch/_aot_autograd/graph_compile.py`, 2.13).
    """
    from torch._functorch._aot_autograd import graph_compile

    recorder = hooked.recorder

    def on_joint(module: fx.GraphModule, *_: Any, **__: Any) -> None:
        _emit_graph(recorder, "joint", module)

    def on_partitioned(
        forward: fx.GraphModule, backward: fx.GraphModule, *_: Any, **__: Any
    ) -> None:
        _emit_graph(recorder, "forward", forward)
        _emit_graph(recorder, "backward", backward)

    def on_inference(module: fx.GraphModule, *_: Any, **__: Any) -> None:
        _emit_graph(recorder, "inference", module)

    hooked.around(graph_compile, "_log_joint_graph", before=on_joint)
    hooked.around(graph_compile, "_log_fw_bw_graphs", before=on_partitioned)
    hooked.around(graph_compile, "_log_inference_graph", before=on_inference)


def install_post_grad_graph(hooked: Hooked) -> None:
    """Watch the graph that leaves Inductor's post-grad passes, and which graph it was.

    `V.debug.fx_graph_transformed` is looked up through `DebugContext.__getattr__`
    (`torch/_inductor/debug.py`, 2.13): a real attribute of the class wins, and calls on.
    """
    from torch._inductor import compile_fx
    from torch._inductor.debug import DebugContext

    recorder = hooked.recorder

    def direction(*_: Any, **options: Any) -> AbstractContextManager[None]:
        if options.get("is_backward"):
            return recorder.inside_graph("backward")
        return recorder.inside_graph("inference" if options.get("is_inference") else "forward")

    def fx_graph_transformed(self: Any, module: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        with recorder.apart(hooked.hook):
            _emit_graph(recorder, "post_grad", module, recorder.graph)
        return DebugContext.__getattr__(self, "fx_graph_transformed")(module, *args, **kwargs)

    hooked.inside(compile_fx, "_compile_fx_inner", direction)
    hooked.replace(DebugContext, "fx_graph_transformed", fx_graph_transformed)
