"""A job, done in Triton's interpreter: a target's kernels on the cell's inputs, against eager.

Inductor writes the code for the absent GPU as in `compiling`, but its kernels run: on the CPU, on
tensors of the CPU. In a worker of its own, because triton decides at its import whether it
compiles or interprets.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch._inductor.runtime.triton_helpers as triton_helpers
from torch._inductor.codecache import PyCodeCache
from torch.utils._python_dispatch import TorchDispatchMode

from dynamo_nb.capture import arrived_operators, graph_text, portable
from dynamo_nb.capture.check_compare import Reference, differences, for_casts
from dynamo_nb.capture.check_leaves import Leaf
from dynamo_nb.capture.check_widening import WideCasts
from dynamo_nb.capture.graph_inputs import unpack_inputs
from dynamo_nb.capture.graph_module import graph_module
from dynamo_nb.capture.graph_text import Taken
from dynamo_nb.target import pretence
from dynamo_nb.target.choices import Choices
from dynamo_nb.target.devices import DEVICES
from dynamo_nb.target.jobs import Job
from dynamo_nb.target.libdevice import Libdevice
from dynamo_nb.target.lower import lower
from dynamo_nb.target.stand_ins import STAND_INS

__all__ = ["NAMES", "Interpreting"]

NAMES = (
    "torch._C._dynamo.guards:_empty_strided_cpu",
    "torch._inductor.codecache:PyCodeCache.load",
    "torch._inductor.runtime.triton_helpers:libdevice",
    "torch.amp.autocast_mode:_enter_autocast",
    "torch.cuda:_DeviceGuard",
)

_SEED = 0
_SHOWN = 8

_USER_KERNEL = "it launches a Triton kernel of yours, which has no eager form to compare with"
_OPERATOR = "it calls `{name}`, which only the notebook can run"
_AUTOCAST = "it runs under autocast, which casts otherwise on a GPU than on the CPU"
_FLOAT8 = "it computes with float8, which Triton's interpreter does not"
_RANDOM = "it draws random numbers, which a GPU draws otherwise"
_LIBDEVICE = "the math library of the GPU: torch's own {names} stood for it"
_LIBRARY = "library calls: the CPU's own {names} stood for the GPU's"
_ATTENTION = "attention kernels: the CPU's stood for the GPU's"


#: Calls that compute nothing: views, and memory.
_NO_WORK = ("as_strided", "empty", "empty_strided", "reinterpret_tensor", "set_", "view", "detach")
#: How the output code calls what is no kernel of its own.
_CALL = re.compile(r"^[^#\n]*\b(?:extern_kernels|torch\.ops\.aten)\.(\w+)[\w.]*\(", re.MULTILINE)


class Interpreting:
    """Does jobs for one target."""

    def __init__(self, spec: str) -> None:
        self._device = DEVICES[spec]
        if self._device.backend == "hip":
            pretence.as_amd()
        self._launched: list[str] = []
        self._has_float8 = False
        self._called: set[str] = set()
        self._libdevice = triton_helpers.libdevice = Libdevice()
        pretence.pretend(self._device, self._loaded)
        self._choices = Choices(self._device)
        self._choices.install()
        _run_on_the_cpu()

    def warm_up(self) -> None:
        """Do nothing: a check is awaited anyway."""

    def _loaded(self, name: str, source: str) -> Any:
        self._launched.append(name)
        self._has_float8 |= "tl.float8" in source
        return getattr(PyCodeCache.load(source), name)

    def __call__(self, job: Job) -> dict[str, Any]:
        """Return whether the target's kernels agree with eager, in the shape of a `Check`."""
        portable.apply(job.ambient)
        self._libdevice.used.clear()
        self._launched.clear()
        self._has_float8 = False
        self._called.clear()
        self._choices.made.clear()
        assert job.inputs is not None
        taken = graph_text.unpack(job.graph)
        found = self._checked(taken, job)
        return {**found, "unchecked": self._unchecked()}

    def _unchecked(self) -> list[str]:
        texts = []
        if self._libdevice.used:
            names = ", ".join(sorted(self._libdevice.used))
            texts.append(_LIBDEVICE.format(names=names))
        if self._called:
            texts.append(_LIBRARY.format(names=", ".join(sorted(self._called))))
        if any("attention" in text for text in self._choices.made):
            texts.append(_ATTENTION)
        return texts

    def _checked(self, taken: Taken, job: Job) -> dict[str, Any]:
        if taken.has_user_kernels or any(operator.body for operator in taken.operators):
            return {"status": "not repeated", "reason": _USER_KERNEL}
        for call in arrived_operators.unknown_calls(taken.outcomes):
            return {"status": "not repeated", "reason": _OPERATOR.format(name=call.name)}
        if _is_autocast(taken):
            return {"status": "not repeated", "reason": _AUTOCAST}
        run = functools.partial(_run, taken, job)
        before = torch.get_rng_state()
        eager = run(graph_module(taken.graph, "cpu"))
        if not torch.equal(before, torch.get_rng_state()):
            return {"status": "not repeated", "reason": _RANDOM}
        lowered = lower(taken, job.settings)
        self._called.update(_library_calls(lowered.output_code.values()))
        if not self._launched:
            return {"status": "not repeated", "reason": "the graph became no Triton kernel"}
        if self._has_float8:
            return {"status": "not repeated", "reason": _FLOAT8}
        compiled = run(lowered.compiled, mode=_OnCpu())
        wide = functools.cache(functools.partial(_in_float64, taken, job))
        found = _found(eager, compiled, wide)
        casts = bool(found) and not _found(eager, compiled, lambda _: wide(True))
        found = for_casts(found) if casts else found
        return {
            "status": "differs" if found else "same",
            "casts": casts,
            "gradients": any(leaf.kind == "gradient" for leaf in eager.values()),
            "mismatches": [_positioned(item, eager) for item in found[:_SHOWN]],
        }


def _found(
    eager: dict[str, Leaf], compiled: dict[str, Leaf], reference: Reference
) -> list[dict[str, Any]]:
    return [item for item in differences(eager, compiled, reference) if item["kind"] != "stride"]


def _in_float64(taken: Taken, job: Job, casts: bool) -> dict[str, Leaf]:
    mode = WideCasts() if casts else None
    return _run(taken, job, graph_module(taken.graph, "cpu"), mode=mode, widen=True)


def _library_calls(output_code: Iterable[str]) -> set[str]:
    """Return what output code calls by name, but for attention, which is told of apart."""
    names = {name for text in output_code for name in _CALL.findall(text)}
    return {name for name in names if "attention" not in name and name not in _NO_WORK}


def _is_autocast(taken: Taken) -> bool:
    """Tell whether an autocast is around the graph, or in it."""
    enter = torch.amp.autocast_mode._enter_autocast
    return taken.autocast is not None or any(node.target is enter for node in taken.graph.nodes)


def _run(
    taken: Taken,
    job: Job,
    function: Callable[..., Any],
    *,
    mode: Any = None,
    widen: bool = False,
) -> dict[str, Leaf]:
    """Call a graph on fresh copies of the inputs, and backward; return all that it gives."""
    inputs = unpack_inputs(job.inputs or b"", widen=widen)
    with torch.set_grad_enabled(taken.grad), mode or contextlib.nullcontext():
        outputs = [item for item in function(*inputs)]  # noqa: C416 a lazy sequence may come
        _backward(outputs)
    names = [given.name for given in taken.inputs]
    leaves = {
        _output_name(place, outputs): Leaf("output", item) for place, item in enumerate(outputs)
    }
    for name, item in zip(names, inputs, strict=True):
        if isinstance(item, torch.Tensor):
            leaves[name] = Leaf("argument", item)
            if item.grad is not None:
                leaves[f"{name}.grad"] = Leaf("gradient", item.grad)
    return leaves


def _output_name(place: int, outputs: list[Any]) -> str:
    return f"output[{place}]" if len(outputs) > 1 else "output"


def _backward(outputs: list[Any]) -> None:
    trained = [item for item in outputs if isinstance(item, torch.Tensor) and item.requires_grad]
    if not trained:
        return
    generator = torch.Generator().manual_seed(_SEED)
    cotangents = [
        (torch.randn(item.shape, generator=generator) / max(item.numel(), 1) ** 0.5).to(item.dtype)
        for item in trained
    ]
    torch.autograd.backward(trained, cotangents)


def _positioned(item: dict[str, Any], leaves: dict[str, Leaf]) -> dict[str, Any]:
    outputs = [name for name, leaf in leaves.items() if leaf.kind == "output"]
    if item["name"] not in outputs:
        return item
    return {**item, "position": outputs.index(item["name"]), "outputs": len(outputs)}


# ------------------------------------------------------------------ on the CPU after all


def _run_on_the_cpu() -> None:
    """Have what the output code asks of the device done on the CPU."""
    guards = torch._C._dynamo.guards
    guards._empty_strided_cuda = guards._empty_strided_cpu
    torch.cuda._DeviceGuard = lambda _: contextlib.nullcontext()
    torch.cuda.set_device = lambda _: None
    torch.cuda.synchronize = lambda _=None: None


class _OnCpu(TorchDispatchMode):
    """Does on the CPU what the output code calls by name: factories, and attention."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        wanted = kwargs.get("device")
        if wanted is not None and torch.device(wanted).type == "cuda":
            kwargs["device"] = torch.device("cpu")
        return STAND_INS.get(func, func)(*args, **kwargs)
