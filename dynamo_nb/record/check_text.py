"""What a check found, in words: the same in findings and in every view."""

from __future__ import annotations

from dynamo_nb.record.types import Check, Mismatch

__all__ = ["check_text", "difference_text"]


def check_text(check: Check) -> str:
    """Return the outcome of a check, without the differences themselves."""
    if check.target:
        return _interpreted_text(check)
    times = f" ({check.count} calls)" if check.count > 1 else ""
    if check.status == "not repeated":
        return f"not checked: {check.reason}{times}"
    compared = "results and gradients" if check.gradients else "results"
    drawn = ", with eager's random numbers" if check.random else ""
    if check.status == "same":
        return f"{compared} agree with eager (backend {check.backend}{drawn}){times}"
    stage = "the cache entry alone" if check.stage == "entry" else f"the stage {check.stage}"
    return f"{compared} differ from eager, first at {stage} (backend {check.backend}{drawn}){times}"


def _interpreted_text(check: Check) -> str:
    """Return the outcome of a target's kernels that were run in Triton's interpreter."""
    kernels = f"the Triton kernels for {check.target}"
    if check.status == "not repeated":
        return f"{kernels} were not interpreted: {check.reason}"
    compared = "results and gradients" if check.gradients else "results"
    verb = "agree with" if check.status == "same" else "differ from"
    but = f"; not checked: {'; '.join(check.unchecked)}" if check.unchecked else ""
    return f"{compared} of {kernels}, interpreted, {verb} eager{but}"


def difference_text(item: Mismatch) -> str:
    """Return what differs in words: ``argument `dst` is 1 at [0, 0], eagerly 0``."""
    subject = "it" if item.what == "call" else f"{item.what} `{item.name}`"
    if item.what == "output" and item.name == "output":
        subject = "the returned value"
    if item.kind == "error":
        return f"{subject} {item.compiled}, eagerly it {item.eager}"
    if item.kind == "alias":
        return f"{subject} {item.compiled}, eagerly it {item.eager}"
    if item.kind != "value":
        return f"{subject} has {item.kind} {item.compiled}, eagerly {item.eager}"
    if not item.of:
        return f"{subject} is {item.compiled}, eagerly {item.eager}"
    at = f" at {item.index}" if item.index else ""
    which = "closer to a float64 reference" if item.closer == "eager" else ""
    close = f"; eager is {which}" if which else ""
    return (
        f"{subject} is {item.compiled}{at}, eagerly {item.eager} "
        f"({item.count} of {item.of} elements differ, the largest error is {item.error:.3g}{close})"
    )
