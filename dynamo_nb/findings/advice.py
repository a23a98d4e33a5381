"""What to do about what Dynamo can't put in a graph: ours where torch's own hint does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dynamo_nb.findings.wording import advice_from, first_sentence

__all__ = ["advice", "explained"]

_SPARSE = (
    "Keep sparse tensors out of the compiled function: let a helper under torch.compiler.disable "
    "hold and use them, one that takes and returns dense tensors."
)
_BACKWARD = (
    "Call backward() outside of the compiled function: the backward graph is compiled all the "
    "same. Or set torch._dynamo.config.trace_autograd_ops = True, and return no tensor of that "
    "graph: `loss.detach()` in place of `loss`."
)
_GRAD = (
    "Set torch._dynamo.config.trace_autograd_ops = True, and return no tensor that is "
    "differentiated: `loss.detach()` in place of `loss`."
)
_CONSUMED = (
    "Return no tensor of that graph: `loss.detach()` in place of `loss`. Or call backward() "
    "outside of the compiled function."
)

_RECURRENT_KIND = "Attempted to wrap RNN, GRU, or LSTM"
_RECURRENT = (
    "Compile what comes before and after it as functions of their own. Or set "
    "`torch._dynamo.config.allow_rnn = True`, which lets torch.compile try (experimental)."
)

#: What torch means, where its own words do not say it, by its name for the break.
_MEANINGS = {
    _RECURRENT_KIND: "torch.compile leaves nn.RNN, nn.GRU and nn.LSTM to eager by default",
}

#: By what begins torch's name for the break.
_BY_KIND = (
    (
        "Operator does not support running with fake tensors",
        "Tell torch the output's shape and dtype with torch.library.register_fake.",
    ),
    ("Unsupported Tensor.backward() call", _BACKWARD),
    ("using `torch.autograd.grad` with", _GRAD),
    ("autograd.grad consumed returned tensor's grad_fn", _CONSUMED),
    ("Attempted to wrap sparse Tensor", _SPARSE),
    (_RECURRENT_KIND, _RECURRENT),
)

#: By the function that can't be traced, which torch's explanation names.
_BY_CALLEE = (
    (
        re.compile(r"`(?:sys\.exit|os\._exit|os\.abort)\b"),
        "Return to the caller, and let it end the program.",
    ),
    (
        re.compile("`RLock` context manager"),
        "Keep locks out of the compiled function. functools.cached_property takes one before "
        "Python 3.12: read the property once before the compiled call, and it is a plain "
        "attribute from then on.",
    ),
)


def advice(kind: str, explanation: str, hints: Iterable[str], otherwise: str = "") -> str:
    """Return what to do about a break or an error of this kind."""
    own = next((text for start, text in _BY_KIND if kind.startswith(start)), "")
    own = own or next((text for name, text in _BY_CALLEE if name.search(explanation)), "")
    return own or advice_from(hints, otherwise)


def explained(kind: str, explanation: str) -> str:
    """Return what stopped Dynamo, without a full stop: torch's name for it and its first reason."""
    own = _MEANINGS.get(kind)
    return own or ". ".join(filter(None, [kind, first_sentence(explanation)]))
