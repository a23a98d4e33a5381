"""The table of hooks: what the capture attaches to torch, and what each is for."""

from __future__ import annotations

from dynamo_nb.capture.binaries import install_binaries
from dynamo_nb.capture.breaks import install_breaks, install_explanations
from dynamo_nb.capture.cache import install_cache
from dynamo_nb.capture.compiles import install_bytecode, install_compiles, install_fresh_code
from dynamo_nb.capture.cudagraphs import install_cudagraphs, install_recordings
from dynamo_nb.capture.entries import install_entries
from dynamo_nb.capture.frames import install_calls, install_frames
from dynamo_nb.capture.graphs import (
    install_aot_graphs,
    install_dynamo_graph,
    install_post_grad_graph,
)
from dynamo_nb.capture.guards import install_guards, install_recompiles
from dynamo_nb.capture.kernels import install_kernel_code, install_kernel_nodes
from dynamo_nb.capture.passes import install_passes
from dynamo_nb.capture.recorder import Hook
from dynamo_nb.capture.replacements import install_replacements
from dynamo_nb.capture.schedule import install_schedule
from dynamo_nb.capture.steps import install_steps
from dynamo_nb.capture.trace import install_trace
from dynamo_nb.capture.tuning import install_kernel_tuning, install_operator_tuning

__all__ = ["HOOKS"]

#: In the order of installation; they are taken off in the reverse order.
HOOKS: tuple[Hook, ...] = (
    Hook("fresh-code", "generated code when Inductor's caches are warm", install_fresh_code),
    Hook("trace", "times, metrics and symbols", install_trace),
    Hook("frames", "frames that Dynamo skipped", install_frames),
    Hook("compiles", "compiles and their outcome", install_compiles),
    Hook("bytecode", "bytecode", install_bytecode),
    Hook("recompiles", "recompile reasons", install_recompiles),
    Hook("guards", "guards", install_guards),
    Hook("explanations", "explanations and hints of graph breaks", install_explanations),
    Hook("breaks", "graph breaks", install_breaks),
    Hook("dynamo-graph", "Dynamo's FX graphs", install_dynamo_graph),
    Hook("aot-graphs", "joint, forward, backward and inference graphs", install_aot_graphs),
    Hook("passes", "graph passes", install_passes),
    Hook("replacements", "lines of nodes that patterns put in", install_replacements),
    Hook("post-grad-graph", "post-grad graphs", install_post_grad_graph),
    Hook("kernel-code", "kernel code", install_kernel_code),
    Hook("kernel-nodes", "the nodes fused into each kernel", install_kernel_nodes),
    Hook("schedule", "what kernels read and write, and what was not fused", install_schedule),
    Hook("cudagraphs", "why no CUDA graph is recorded", install_cudagraphs),
    Hook("recordings", "how often CUDA graphs are recorded and replayed", install_recordings),
    Hook("operator-tuning", "what max-autotune measured", install_operator_tuning),
    Hook("kernel-tuning", "what tuning of Triton kernels measured", install_kernel_tuning),
    Hook("binaries", "the binaries of kernels that ran on a GPU", install_binaries),
    Hook("steps", "the bytecode stepper", install_steps),
    Hook("calls", "which call hit which entry", install_calls),
    Hook("entries", "calls of functions that Dynamo gave up before", install_entries),
    Hook("cache", "the entries of each code object", install_cache),
)
