"""What surrounds a call and is guarded for it: grad mode, autocast, default device, modes, ..."""

from __future__ import annotations

import json
import re
from typing import Any

from torch._C._dynamo.guards import GlobalStateGuard
from torch.overrides import _get_current_function_mode_stack
from torch.utils import _device

__all__ = ["STATE_KINDS", "changed_state", "global_state"]

#: The root's own guards of a tree, which no value of the call is behind.
STATE_KINDS = ("GLOBAL_STATE", "DEFAULT_DEVICE", "TORCH_FUNCTION_MODE_STACK")

_CHANGED = re.compile(r"GLOBAL_STATE changed:\s*(.*)")

#: Kinds of guards that have one value each → its name, which is also its key in the state.
_NAMES = {
    "DEFAULT_DEVICE": "default device",
    "TORCH_FUNCTION_MODE_STACK": "torch function modes",
}

#: `c10::ScalarType` of the types that can be the default.
_SCALAR_TYPES = {5: "float16", 6: "float32", 7: "float64", 15: "bfloat16"}


def global_state() -> dict[str, Any]:
    """Return the state that Dynamo guards for every frame: grad mode, autocast, default dtype, ...

    `GlobalStateGuard.__getstate__` is JSON (`torch/csrc/dynamo/guards.cpp`, 2.13). A default device
    is a torch function mode, too: of these it is left out.
    """
    state = json.loads(GlobalStateGuard().__getstate__())  # type: ignore[attr-defined]
    state.update(state.pop("autocast_state", {}))
    dtype = state.get("default_dtype")
    modes = [type(mode) for mode in _get_current_function_mode_stack()]
    return {
        **state,
        "default_dtype": _SCALAR_TYPES.get(dtype, dtype),
        "default device": str(_device.CURRENT_DEVICE),
        "torch function modes": ", ".join(
            mode.__name__ for mode in modes if mode is not _device.DeviceContext
        ),
    }


def changed_state(kind: str, text: str, then: dict[str, Any]) -> tuple[str, str, str]:
    """Return what changed of the global state: its name, its value then and now.

    `text` is what a guard of the kind says of its failure, `then` the state of the entry, empty
    where nobody saw it.
    """
    now = global_state()
    names = [name for name in now if name in then and then[name] != now[name]]
    if kind in _NAMES:
        others = (name for name in _NAMES.values() if name in names)
        name = _NAMES[kind] if _NAMES[kind] in names else next(others, _NAMES[kind])
        return name, str(then.get(name, "")) or "none", str(now[name]) or "none"
    told = _CHANGED.search(text)
    ours = [name for name in names if name not in _NAMES.values()]
    if not ours:
        return (told[1].strip() if told else ""), "", ""
    was, current = then[ours[0]], now[ours[0]]
    if told and isinstance(was, list) and isinstance(current, list):  # one value for each device
        was, current = next(pair for pair in zip(was, current, strict=False) if len({*pair}) > 1)
        return told[1].strip(), str(was), str(current)
    return ours[0], str(was), str(current)
