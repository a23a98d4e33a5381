"""Graph breaks: torch's explanation and hints, and the exact instruction."""

from __future__ import annotations

from typing import Any

from dynamo_nb.capture.plain import place_of_instruction, places_of_stack
from dynamo_nb.capture.recorder import Hooked
from dynamo_nb.capture.registry import by_kind

__all__ = ["explained", "filled", "install_breaks", "install_explanations"]

#: The structured parts of the messages formatted lately, by the whole text.
_PARTS: dict[str, dict[str, Any]] = {}
_PARTS_LIMIT = 512


def install_explanations(hooked: Hooked) -> None:
    """Keep the four parts of each message that `exc.format_graph_break_message` puts together."""
    from torch._dynamo import exc

    def after(message: str, gb_type: str, context: str, explanation: str, hints: list[str]) -> None:
        if len(_PARTS) >= _PARTS_LIMIT:
            _PARTS.clear()
        _PARTS[message] = {
            "kind": gb_type,
            "context": context,
            "explanation": explanation,
            "hints": list(hints),
        }

    hooked.undo.callback(_PARTS.clear)
    hooked.around(exc, "format_graph_break_message", after=after)


def explained(message: str) -> dict[str, Any]:
    """Return the parts of a message: `kind`, `context`, `explanation`, `hints`; empty if unknown.

    A break raised while another was handled has both texts; the last one is its own.
    """
    exact = _PARTS.get(message)
    if exact is not None:
        return exact
    inner = [parts for text, parts in _PARTS.items() if text in message]
    return inner[-1] if inner else {}


def filled(kind: str, parts: dict[str, Any]) -> dict[str, Any]:
    """Return a break's parts, those that it lacks taken from torch's registry."""
    known = by_kind(kind)
    explanation = known.explanation if known is not None else ""
    hints = known.hints if known is not None else []
    return {
        **parts,
        "explanation": parts.get("explanation") or explanation,
        "hints": parts.get("hints") or hints,
    }


def install_breaks(hooked: Hooked) -> None:
    """Watch `InstructionTranslatorBase.log_graph_break` (2.13), where the translator still stands.

    It is not reached with `fullgraph=True`; there the exception itself carries the place.
    """
    from torch._dynamo.exc import get_gbid_documentation_link
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    def before(tx: Any, code_options: Any, reason: str, exc: Any, *_: Any, **__: Any) -> None:
        if exc.logged:
            return
        parts = explained(str(getattr(exc, "msg", None) or exc)) or explained(reason)
        kind = parts.get("kind") or getattr(exc, "gb_type", None) or type(exc).__name__
        parts = filled(kind, parts)
        url = get_gbid_documentation_link(kind) or ""
        stack = places_of_stack(getattr(exc, "real_stack", None))
        hooked.recorder.emit(
            "graph_break",
            {
                "kind": kind,
                "reason": reason,
                "explanation": parts["explanation"],
                "hints": parts["hints"],
                "context": parts.get("context", ""),
                "id": url.rstrip("/").rsplit("/", 1)[-1].removesuffix(".html").upper(),
                "url": url,
                "frame": stack[-1] if stack else place_of_instruction(tx),
                "user_stack": stack or [place_of_instruction(tx)],
            },
        )

    hooked.around(InstructionTranslatorBase, "log_graph_break", before=before)
