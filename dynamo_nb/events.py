"""What the capture hands on: plain events, named as torch's structured trace names them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

__all__ = ["Event", "is_ignored"]


class Event(Struct, kw_only=True):
    """One thing that torch did, as plain data.

    `name` is torch's own event name where its structured trace has one (`compilation_metrics`,
    `artifact:recompile_reasons`); `data` is the event's metadata and `payload` its text. What the
    trace lacks comes under the capture's own names, with `data` shaped like the record's structs.
    `compile_id` is empty for what happens outside a compile; `generation` counts the resets of
    Dynamo, after which compile ids start anew. `time` is `time.perf_counter()`.
    """

    name: str
    compile_id: str = ""
    generation: int = 0
    attempt: int = 0
    data: Any = None
    payload: str | None = None
    time: float = 0.0


#: Events that are understood and add nothing to what hooks give.
_NAMES = frozenset(
    {
        "compile_subgraph_reason",
        "dynamo_start",
        "describe_storage",
        "describe_tensor",
        "describe_source",
        "dynamo_output_graph",
        "dynamo_cpp_guards_str",
        "aot_joint_graph",
        "aot_forward_graph",
        "aot_backward_graph",
        "aot_inference_graph",
        "inductor_post_grad_graph",
        "optimize_ddp_split_graph",
        "create_unbacked_symbol",
        "propagate_real_tensors_provenance",
        "guard_added",
        "expression_created",
        "artifact:before_pre_grad_graph",
        "artifact:after_pre_grad_graph",
        "artifact:before_joint_graph",
        "artifact:after_joint_graph",
        "artifact:before_post_grad_graph",
        "artifact:after_post_grad_graph",
        "artifact:inductor_post_grad_graph",
        "artifact:aot_forward_graph_fw_metadata",
        "artifact:aot_forward_graph_fw_subclass_metadata",
        "artifact:aot_inference_graph",
        "artifact:torch._functorch.config",
        "artifact:fx_graph_runnable",
        "artifact:runtime_wrapper_orchestration",
        "artifact:backward_prologue",
        "artifact:backward_epilogue",
        "artifact:compiled_function_forward",
        "artifact:compiled_function_backward",
        "artifact:compiled_fn_wrapper",
        "artifact:output_alias_wrapper",
        "artifact:synthetic_base_wrapper",
        "bwd_compilation_metrics_runtime",
        "compilation_metrics_runtime",
        "artifact:dedup_wrapper",
        "artifact:mutation_epilogue",
        "artifact:functionalized_rng_wrapper",
        "artifact:effect_tokens_wrapper",
        "artifact:debug_assert_wrapper",
        "artifact:dynamo_graph_break_reason",
        "artifact:recompile_reasons",
        "artifact:dynamo_error",
        "artifact:dynamo_side_effects",
        "artifact:torch_version",
        "artifact:inductor_provenance_tracking_node_mappings",
        "artifact:inductor_provenance_tracking_kernel_stack_traces",
    }
)

#: Artifacts whose name starts with that of a resume function.
_SUFFIXES = ("_ORIGINAL_BYTECODE", "_MODIFIED_BYTECODE")


def is_ignored(name: str) -> bool:
    """Tell whether an event is known to add nothing."""
    return name in _NAMES or name.endswith(_SUFFIXES)
