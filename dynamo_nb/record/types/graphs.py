"""FX graphs, and what graph passes did to them."""

from __future__ import annotations

from dynamo_nb.record.types.base import Data, StackFrame

__all__ = ["Graph", "GraphPass", "Node", "PassRow", "TensorValue"]


class TensorValue(Data, frozen=True):
    """What a graph node holds when it is a tensor. Symbolic sizes are text, e.g. `s77`."""

    shape: list[int | str]
    dtype: str
    device: str = "cpu"
    stride: list[int | str] | None = None
    requires_grad: bool = False


class Node(Data, frozen=True):
    """One FX node. `frames` are its source frames, outermost first.

    `value` is a tensor, a list of values for a node with several results, or short text for
    anything else. `module_stack` holds `[path, class name]` pairs, outermost first. `origins` are
    the names of the nodes of earlier graphs that it came from, as `<graph name>/<node name>`.
    `also` are places besides its own, where a pass made one node of several.
    """

    name: str
    op: str
    target: str
    inputs: list[str] = []
    value: TensorValue | list[TensorValue | str | None] | str | None = None
    frames: list[StackFrame] = []
    module_stack: list[list[str]] = []
    original_aten: str = ""
    is_backward: bool = False
    origins: list[str] = []
    also: list[StackFrame] = []


class Graph(Data, frozen=True):
    """One FX graph at one stage of the stack.

    `stage` is one of `dynamo`, `pre_grad`, `joint`, `forward`, `backward`, `inference`,
    `post_grad`. `direction` (`forward`, `backward`, `inference`) tells post-grad graphs apart.
    `name` is unique within its compile: the stage, with the direction after a dot where there is
    one (`post_grad.backward`), and a number where the same comes twice (`dynamo#2`).
    """

    name: str
    stage: str
    direction: str = ""
    nodes: list[Node] = []


class PassRow(Data, frozen=True):
    """A node that a graph pass `added`, `removed` or `changed` (its `kind`).

    `before` and `after` are what the node computes, as `target(arguments) -> value`; empty where
    it is not. `frame` is the source line that it comes from.
    """

    kind: str
    node: str
    before: str = ""
    after: str = ""
    frame: StackFrame | None = None


class GraphPass(Data, frozen=True):
    """What a pass over a graph did to it.

    `name` is Inductor's: `pre_grad`, `joint`, `post_grad` for a whole group of passes, or the
    setting that holds a custom pass (`post_grad_custom_pre_pass`). A custom pass has its
    `function` and the `frame` where that is defined. `rows` are the nodes that differ, in the order
    of the graph, `same` counts the others. `error` says that the pass raised, or left a graph that
    FX calls broken.
    """

    name: str
    direction: str = ""
    function: str = ""
    frame: StackFrame | None = None
    rows: list[PassRow] = []
    same: int = 0
    error: str = ""
