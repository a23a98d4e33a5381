"""Nodes that Inductor's patterns put in, and what they stand for: torch gives them no origin."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import fx

from dynamo_nb.capture.recorder import Hooked

__all__ = ["install_replacements", "is_backward", "origin_meta", "replaced_by", "replaced_names"]

#: The key in a node's `meta`, which passes hand on when they copy a node.
_KEY = "dynamo_nb.replaced"

#: What of a node's `meta` tells where it is from.
_ORIGIN = (
    "autograd_backward",
    "from_node",
    "nn_module_stack",
    "original_aten",
    "partitioner_tag",
    "seq_nr",
    "source_fn_stack",
    "fwd_source_fn_stack",
    "stack_trace",
)


class Replaced(NamedTuple):
    """A node that a pattern took out."""

    name: str
    meta: dict[str, Any]


def install_replacements(hooked: Hooked) -> None:
    """Watch `ReplacementPatternEntry.replace_with_graph` (`torch/_inductor/pattern_matcher.py`).

    It gives a node that is a result the origin of one other, and nodes within none (2.13). Each
    stands for all that the pattern matched: `addmm` for a product and a sum, the one that computes
    maximum and sum of a softmax at once for both and more.
    """
    from torch._inductor.pattern_matcher import ReplacementPatternEntry

    def on_replaced(added: list[fx.Node], match: Any, *_: Any, **__: Any) -> None:
        removed = [item for node in reversed(match.nodes) for item in _told(node)]
        for node in added:
            node.meta[_KEY] = removed

    hooked.around(ReplacementPatternEntry, "replace_with_graph", after=on_replaced)


def origin_meta(node: fx.Node) -> Mapping[str, Any]:
    """Return a node's `meta`; where it has no origin, with that of what it replaced before."""
    replaced = replaced_by(node)
    if not replaced or node.meta.get("stack_trace"):
        return node.meta
    return ChainMap(*(item.meta for item in replaced), node.meta)


def is_backward(meta: Mapping[str, Any]) -> bool:
    """Tell whether a node is of the backward part, by its `meta`."""
    return bool(meta.get("autograd_backward")) or meta.get("partitioner_tag") == "is_backward"


def replaced_by(node: fx.Node) -> list[Replaced]:
    """Return the nodes in whose place a pattern put this one, the last one first."""
    return list(node.meta.get(_KEY, ()))


def replaced_names(node: fx.Node) -> list[str]:
    """Return the names of the nodes in whose place a pattern put this one, the last one first."""
    return [item.name for item in replaced_by(node)]


def _told(node: fx.Node) -> list[Replaced]:
    if _KEY in node.meta or not node.meta.get("stack_trace"):
        return list(node.meta.get(_KEY, ()))
    meta = {key: node.meta[key] for key in _ORIGIN if key in node.meta}
    return [Replaced(node.name, meta)]
