"""What a cell leaves behind, and whether two runs of it left the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

from tests.conftest import Shell

__all__ = ["Outcome", "differences", "run"]

#: Names that Dynamo itself installs in the globals of what it compiles.
DYNAMOS = re.compile(
    r"__import_\w+|__compiled_fn_|__resume_at_|torch_dynamo_resume_in_|__builtins_dict__"
    r"|_\w*\d{5,}_c\d+$"  # by the id of what it holds, and a counter
)
#: IPython's names for the cell's text, which the magic's line is a part of.
INPUTS = re.compile(r"In$|_ih$|_i+$|_i\d+$")
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
CELL_FILE = re.compile(r"<ipython-input-\d+-[0-9a-f]+>")
#: In a traceback, the frame of the wrapper that torch.compile puts around what it compiles.
WRAPPER = re.compile(r"File \S+/torch/_dynamo/eval_frame\.py:.*?\n\n", re.DOTALL)


@dataclass
class Outcome:
    """All that a cell did that its user can see."""

    stdout: str
    stderr: str
    displays: list[Any]
    value: Any
    error: tuple[str, str]
    namespace: dict[str, Any]


def steady(text: str) -> str:
    """Return a text without addresses and without the file name that IPython gives a cell."""
    return ADDRESS.sub("0x...", CELL_FILE.sub("<cell>", text))


def run(shell: Shell, cell: str, *, reports: int = 0) -> Outcome:
    """Run a cell with seeded randomness; `reports` is how many displays are not its own."""
    torch.manual_seed(0)
    ran = shell.run(cell)
    shown = [display for display in ran.displays if display]  # an empty one shows as nothing
    error = ran.error
    return Outcome(
        stdout=WRAPPER.sub("", steady(ran.stdout)),
        stderr=steady(re.sub(r"\r\x1b\[K[^\r\n]*", "", ran.stderr)),  # the progress line, erased
        displays=shown[: len(shown) - reports],
        value=ran.value,
        error=(type(error).__name__, steady(str(error))),
        namespace={
            name: value
            for name, value in shell.ip.user_ns.items()
            if not DYNAMOS.match(name) and not INPUTS.match(name)
        },
    )


def differences(one: Outcome, other: Outcome, *, tolerance: float = 0.0) -> list[str]:
    """Return where two outcomes differ, as paths such as `namespace['net'].weight`."""
    found = []
    compare = _Comparison(tolerance)
    for name in ("stdout", "stderr", "displays", "value", "error", "namespace"):
        found += compare.unlike(name, getattr(one, name), getattr(other, name))
    return found


class _Comparison:
    """Walks two values side by side; what is reached twice is compared once."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._seen: set[tuple[int, int]] = set()

    def unlike(self, path: str, one: Any, other: Any) -> Iterator[str]:
        """Yield the paths at which two values differ."""
        if one is other or (id(one), id(other)) in self._seen:
            return
        self._seen.add((id(one), id(other)))
        if _kind(one) != _kind(other):
            yield f"{path}: {_kind(one)} and {_kind(other)}"
            return
        for kinds, compare in _COMPARE:
            if isinstance(one, kinds):
                yield from compare(self, path, one, other)
                return

    def tensors(self, path: str, one: torch.Tensor, other: torch.Tensor) -> Iterator[str]:
        for name in ("shape", "dtype", "device", "requires_grad", "is_leaf", "layout"):
            if getattr(one, name) != getattr(other, name):
                yield f"{path}.{name}: {getattr(one, name)} and {getattr(other, name)}"
                return
        limits = {"rtol": self._tolerance, "atol": self._tolerance, "equal_nan": True}
        with torch._C.DisableTorchFunctionSubclass():  # a subclass may not know allclose
            same = torch.allclose(one.detach(), other.detach(), **limits)
        if not same:
            yield f"{path}: values differ"
        if one.is_leaf:
            yield from self.unlike(f"{path}.grad", one.grad, other.grad)

    def arrays(self, path: str, one: Any, other: Any) -> Iterator[str]:
        if not np.array_equal(one, other):
            yield f"{path}: {one!r} and {other!r}"

    def numbers(self, path: str, one: Any, other: Any) -> Iterator[str]:
        if not np.isclose(one, other, rtol=self._tolerance, atol=self._tolerance, equal_nan=True):
            yield f"{path}: {one!r} and {other!r}"

    def mappings(self, path: str, one: Any, other: Any) -> Iterator[str]:
        if path.endswith("_hooks']"):  # by number, and torch counts hooks through the process
            yield from self.sequences(path, list(one.values()), list(other.values()))
            return
        keys, others = list(map(str, one)), list(map(str, other))
        if sorted(keys) != sorted(others):
            yield f"{path}: names {sorted(set(keys) ^ set(others))}"
        for key in one:
            if key in other:
                yield from self.unlike(f"{path}[{key!r}]", one[key], other[key])

    def sequences(self, path: str, one: Any, other: Any) -> Iterator[str]:
        if len(one) != len(other):
            yield f"{path}: {len(one)} and {len(other)} items"
        for index, (left, right) in enumerate(zip(one, other, strict=False)):
            yield from self.unlike(f"{path}[{index}]", left, right)

    def functions(self, path: str, one: FunctionType, other: FunctionType) -> Iterator[str]:
        if one.__qualname__ != other.__qualname__:
            yield f"{path}: {one.__qualname__} and {other.__qualname__}"
        elif one.__code__.co_code != other.__code__.co_code:
            yield f"{path}: bytecode differs"
        elif one.__code__.co_firstlineno != other.__code__.co_firstlineno:
            yield f"{path}: line differs"
        elif one.__globals__.get("__name__") == "__main__":
            yield from self.unlike(f"{path}.__closure__", _cells(one), _cells(other))

    def methods(self, path: str, one: MethodType, other: MethodType) -> Iterator[str]:
        yield from self.unlike(f"{path}.__func__", one.__func__, other.__func__)
        yield from self.unlike(f"{path}.__self__", one.__self__, other.__self__)

    def compiled(self, path: str, one: Any, other: Any) -> Iterator[str]:
        yield from self.unlike(f"{path}._orig_mod", one._orig_mod, other._orig_mod)

    def objects(self, path: str, one: Any, other: Any) -> Iterator[str]:
        if type(one).__module__.startswith(("torch", "IPython", "transformers")) and not isinstance(
            one, torch.nn.Module | torch.optim.Optimizer
        ):
            return  # a library's own state, not the cell's
        if hasattr(one, "__dict__"):
            yield from self.unlike(path, vars(one), vars(other))
        elif steady(repr(one)) != steady(repr(other)):
            yield f"{path}: {one!r} and {other!r}"

    def names(self, path: str, one: type, other: type) -> Iterator[str]:
        if one.__qualname__ != other.__qualname__:
            yield f"{path}: {one.__qualname__} and {other.__qualname__}"

    def modules(self, path: str, one: ModuleType, other: ModuleType) -> Iterator[str]:
        if one.__name__ != other.__name__:
            yield f"{path}: {one.__name__} and {other.__name__}"


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _cells(function: FunctionType) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or ()]


#: How to compare, by type; the first row that fits.
_COMPARE: list[tuple[Any, Any]] = [
    (torch.Tensor, _Comparison.tensors),
    (np.ndarray, _Comparison.arrays),
    (bool | int | float | complex | np.number, _Comparison.numbers),
    (dict, _Comparison.mappings),
    (list | tuple, _Comparison.sequences),
    (FunctionType, _Comparison.functions),
    (MethodType, _Comparison.methods),
    (torch._dynamo.eval_frame.OptimizedModule, _Comparison.compiled),
    (ModuleType, _Comparison.modules),
    (type, _Comparison.names),
    (object, _Comparison.objects),
]
