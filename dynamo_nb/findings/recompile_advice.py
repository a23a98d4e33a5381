"""What to do about a recompile, by what changed."""

from __future__ import annotations

from dynamo_nb.record.causes import RecompileCause

__all__ = ["BACKEND", "INVALIDATED", "dynamic_advice", "is_number", "recompile_advice"]

#: The kind that stands for an entry whose guarded object died, in place of a guard's.
INVALIDATED = "INVALIDATED"

#: The kind that stands for an entry of another backend, in place of a guard's.
BACKEND = "BACKEND_MATCH"

_ALIASING = (
    "Pass one tensor under both names in all calls or in none, or accept one entry for each."
)

#: By a mark in torch's own hint, the guard's kind, or the name of what changed.
_BY_MARK = (
    (
        "allow_unspec_int_on_nn_module",
        "An integer attribute of a module is a constant to torch.compile. Make it dynamic with "
        "torch._dynamo.config.allow_unspec_int_on_nn_module = True, or keep it in a tensor.",
    ),
    (
        BACKEND,
        "Nothing has to be done where another backend is meant; else pass the same backend, the "
        "very same object where it is a function, each time.",
    ),
    (INVALIDATED, "Keep the object alive between the calls, or make the class once."),
    (
        "GLOBAL_STATE",
        "Make all calls under the same global state (grad mode, autocast, default dtype), or "
        "accept one entry for each.",
    ),
    ("DEFAULT_DEVICE", "Make all calls under one default device, or accept one entry for each."),
    (
        "TORCH_FUNCTION_MODE_STACK",
        "Make all calls under the same torch function modes (a default device is one), or accept "
        "one entry for each.",
    ),
    ("NO_TENSOR_ALIASING", _ALIASING),
    ("DUPLICATE_INPUT", _ALIASING),
    (
        ".training",
        "Call train() and eval() outside of the loop that calls the model, or accept one entry "
        "for each mode.",
    ),
    (".dtype", "Convert the tensor before the call, so that all calls have the same dtype."),
    (".dim()", "Pass tensors with the same number of dimensions, or accept one entry for each."),
    (
        "HASATTR",
        "Give every object the attribute (None, say, where it has no value), or accept one entry "
        "for each.",
    ),
    ("_CONTAINS", "Build it with the same keys each time, or accept one entry for each."),
    ("list(", "Build the dict with the same keys in the same order each time."),
    (
        ".grad)",
        "A parameter has no gradient until the first backward. Accept the entry of the first step, "
        "or give gradients before it (`p.grad = torch.zeros_like(p)`) and clear them with "
        "`zero_grad(set_to_none=False)`.",
    ),
    ("type(", "Pass the same type each time, or accept one entry for each."),
    (
        ".size()",
        "Mark the dimension with torch._dynamo.mark_dynamic, or compile with dynamic=True.",
    ),
    (".stride()", "Pass tensors of the same memory layout: contiguous() before the call."),
    (".requires_grad", "Pass tensors that agree in requires_grad, or accept one entry for each."),
    (".device", "Accept one entry for each device, or move the tensor before the call."),
    (
        "_hooks",
        "Register and remove hooks before the first call, or accept one entry for each set.",
    ),
    ("len(", "Pass the same number each time, or keep what grows out of the compiled function."),
)

#: The same, of a NumPy array, which torch wraps in a tensor that nobody else sees.
_BY_MARK_OF_ARRAY = (
    (".dtype", "Convert the array before the call (astype), so that all calls have one dtype."),
    (".ndim", "Pass arrays with the same number of dimensions, or accept one entry for each."),
    (
        ".shape[",
        "Compile with dynamic=True, or pass torch.from_numpy(array) with the dimension marked by "
        "torch._dynamo.mark_dynamic.",
    ),
    (".stride()", "Pass arrays of the same memory layout: numpy.ascontiguousarray."),
)

_UNKNOWN = "Keep it constant, or accept one entry for each value."
_NUMBER = "Keep it constant, pass it as a tensor, or accept one entry for each value."
_FLAG = (
    "Accept one entry for each of the two values. To have one for both, compute both sides and "
    "choose with torch.where."
)
_TEXT = "Choose by the text before the call, or accept one entry for each text."
_ANOTHER = (
    "Pass the very same object each time (make it once, before the calls), or accept one entry "
    "for each."
)
_CLASS_AGAIN = (
    "Make the class once, before the calls: one that is defined again is another class, whatever "
    "its name."
)
_CHOICE = (
    "Accept one entry for each: with each the code is another graph. Or choose before the call."
)
_CONTENTS = (
    "Pass the same contents each time, or accept one entry for each. What changes with each call "
    "belongs into tensors."
)
_SMALL_SIZE = (
    "Torch compiles the sizes 0 and 1 apart from all others: accept one entry more, or avoid it "
    "with torch._dynamo.decorators.mark_unbacked."
)

#: What became dynamic, by a mark in its name: how to spare the first compile.
_DYNAMIC_BY_MARK = (
    (
        ".size()",
        "torch._dynamo.mark_dynamic on that dimension before the first call saves the first "
        "compile.",
    ),
    (".stride()", "Compiling with dynamic=True saves the first compile."),
    (
        ".shape[",
        "Compiling with dynamic=True saves the first compile, as does torch.from_numpy(array) with "
        "the dimension marked by torch._dynamo.mark_dynamic.",
    ),
)


def recompile_advice(cause: RecompileCause) -> str:
    """Return what to do about a value that changed, and for which the new entry has no symbol."""
    reason = cause.first
    if cause.name.endswith("]") and ".size()" in cause.name and reason.now in ("0", "1"):
        return _SMALL_SIZE
    if cause.name.startswith("type(") and reason.now.startswith("another "):
        return _CLASS_AGAIN
    hint = "allow_unspec_int_on_nn_module" if "allow_unspec_int_on" in reason.text else ""
    clues = f"{hint} {reason.kind} {cause.name}"
    rows = _BY_MARK_OF_ARRAY if "___from_numpy(" in reason.source else _BY_MARK
    return next((advice for mark, advice in rows if mark in clues), "") or _by_value(cause)


def _by_value(cause: RecompileCause) -> str:
    """Return what to do about a value of this kind: only numbers have a place in a tensor."""
    was, now = cause.first.was, cause.first.now
    if {was, now} <= {"True", "False"}:
        return _FLAG
    if was.startswith(("'", '"', "b'", 'b"')):
        return _TEXT
    if is_number(was) or is_number(now):
        return _NUMBER
    if not was and not now:
        return _UNKNOWN
    if "ID_MATCH" in cause.first.kind:
        return _ANOTHER if now.startswith("another ") else _CHOICE
    return _CONTENTS


def is_number(value: str) -> bool:
    """Tell whether a value's text is a number's."""
    try:
        complex(value)
    except ValueError:
        return False
    return True


def dynamic_advice(cause: RecompileCause) -> str:
    """Return what to do about a value that became dynamic."""
    rows = (advice for mark, advice in _DYNAMIC_BY_MARK if mark in cause.name)
    saves = next(rows, "Passing it as a tensor saves the first compile.")
    return f"Nothing has to be done. {saves}"
