"""Nodes that Inductor's patterns put in, and what they stand for: torch gives them no origin."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import fx

from dynamo_nb.capture.recorder import Hooked

__all__ = ["install_replacements", "origin_meta", "replaced_names"]

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
    "stack_trace",
)


class _Replaced(NamedTuple):
    """A node that a pattern took out."""

    name: str
    meta: dict[str, Any]


def install_replacements(hooked: Hooked) -> None:
    """Watch `ReplacementPatternEntry.replace_with_graph` (`torch/_inductor/pattern_matcher.py`).

    It gives an origin only to a node that stands for exactly one other (2.13). A node within, as
    the one that computes maximum and sum of a softmax at once, stands for all that the pattern
    matched.
    """
    from torch._inductor.pattern_matcher import ReplacementPatternEntry

    def on_replaced(added: list[fx.Node], match: Any, *_: Any, **__: Any) -> None:
        removed = [item for node in match.nodes for item in _told(node)]
        for node in added:
            if removed and not node.meta.get("stack_trace"):
                node.meta[_KEY] = removed

    hooked.around(ReplacementPatternEntry, "replace_with_graph", after=on_replaced)


def origin_meta(node: fx.Node) -> Mapping[str, Any]:
    """Return a node's `meta`, with the origin of what it replaced before its own."""
    replaced: list[_Replaced] = node.meta.get(_KEY, [])
    return ChainMap(*(item.meta for item in replaced), node.meta)


def replaced_names(node: fx.Node) -> list[str]:
    """Return the names of the nodes in whose place a pattern put this one."""
    return [item.name for item in node.meta.get(_KEY, ())]


def _told(node: fx.Node) -> list[_Replaced]:
    if not node.meta.get("stack_trace"):
        return list(node.meta.get(_KEY, ()))
    meta = {key: node.meta[key] for key in _ORIGIN if key in node.meta}
    return [_Replaced(node.name, meta)]
