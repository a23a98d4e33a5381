"""A graphviz digraph that says what to install when the `dot` program is missing."""

from __future__ import annotations

from typing import Any

import graphviz

__all__ = ["Digraph"]

_MISSING = (
    "Drawing needs Graphviz's `dot` program, which is not on the PATH. Install it "
    "(`apt install graphviz`, `brew install graphviz`, `conda install graphviz`); "
    "the text in `.source` is complete without it."
)


class Digraph(graphviz.Digraph):  # type: ignore[misc]  # graphviz has no types
    """`graphviz.Digraph` with a clearer error; its text needs no program at all."""

    def pipe(self, *args: Any, **kwargs: Any) -> Any:
        """Return the drawing, e.g. as SVG; notebooks call this to show it."""
        try:
            return super().pipe(*args, **kwargs)
        except graphviz.ExecutableNotFound as error:
            raise RuntimeError(_MISSING) from error

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Draw into a file."""
        try:
            return super().render(*args, **kwargs)
        except graphviz.ExecutableNotFound as error:
            raise RuntimeError(_MISSING) from error
