"""What torch.compile does to a notebook cell, line by line: `%load_ext dynamo_nb`, `%%dynamo`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamo_nb.record.difference import RecordDiff
    from dynamo_nb.record.types import CellRecord, GuardCosts, Would
    from dynamo_nb.runner.script import ScriptCapture

__all__ = [
    "capture",
    "diff",
    "guard_costs",
    "last",
    "load",
    "load_ipython_extension",
    "unload_ipython_extension",
    "would",
]


class _Callable(ModuleType):
    def __call__(self, name: str = "") -> ScriptCapture:
        return _capture(name)


class _Package(ModuleType):
    """The package, whose function `capture` and whose part of that name can both be called.

    Importing the part `dynamo_nb.capture` puts that module where the function was.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "capture" and isinstance(value, ModuleType):
            value.__class__ = _Callable
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

_ATTRIBUTE = "_dynamo_nb_extension"


def load_ipython_extension(shell: Any) -> None:
    """Add `%%dynamo` and `%dynamo` to an IPython shell."""
    from dynamo_nb.magic import Extension

    unload_ipython_extension(shell)
    extension = Extension(shell)
    extension.install()
    setattr(shell, _ATTRIBUTE, extension)


def unload_ipython_extension(shell: Any) -> None:
    """Take away all that `load_ipython_extension` added."""
    extension = getattr(shell, _ATTRIBUTE, None)
    if extension is not None:
        delattr(shell, _ATTRIBUTE)
        extension.uninstall()


def capture(name: str = "") -> ScriptCapture:
    """Return a context manager that watches torch.compile in a script.

    `with dynamo_nb.capture() as capture: ...`, then `capture.record`. Nothing is compiled that the
    block does not compile itself.
    """
    from dynamo_nb.runner.script import ScriptCapture
    from dynamo_nb.session import current

    return ScriptCapture(name, current())


_capture = capture  # the name itself may come to mean the part


def would(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Would:
    """Say what `f(*args, **kwargs)` would do: which cache entry it hits, or which guards fail.

    Nothing is run or compiled. `f` is anything that was compiled: what `torch.compile` returned, or
    a function, method or module that a `%%dynamo` cell called. The global state (grad mode,
    autocast, ...) counts as it is now, and so does the `--config` of the last `%%dynamo` cell.

    Raises
    ------
    ValueError
        When `f` has no cache entry, because it was never compiled, or is no Python function.
    TypeError
        When `f` does not take these arguments.
    """
    from dynamo_nb.runner.would import would as answer
    from dynamo_nb.session import current

    return answer(current(), f, args, kwargs)


def diff(a: CellRecord | str | None = None, b: CellRecord | str | None = None) -> RecordDiff:
    """Return what is different in the report `b`, compared to `a`: two records, or their names.

    Without `b` it is the last report; without both, the last is compared to the one before.

    Raises
    ------
    ValueError
        When there are not two reports, or none of that name; the message lists those known.
    """
    from dynamo_nb.runner.diffing import difference
    from dynamo_nb.session import current

    return difference(current(), a, b)


def guard_costs(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> GuardCosts:
    """Measure what checking the guards costs for a call that hits an entry, and by which source.

    The call is made, once, to know what share of it the guards are.

    Raises
    ------
    ValueError
        When the call hits no entry.
    """
    from dynamo_nb.runner.would import guard_costs as measured
    from dynamo_nb.session import current

    return measured(current(), f, args, kwargs)


def last(name: str = "") -> CellRecord | None:
    """Return the record of the last report, or the last one of that name."""
    from dynamo_nb.session import current

    return current().last(name)


def load(path: str) -> CellRecord:
    """Return the record that was saved in a file; raise `RecordError` if it holds none."""
    from dynamo_nb.record.io import load as load_record

    return load_record(path)
