"""What the runner asks of torch: compile this, is it compiled, set that for the cell alone."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, ModuleType
from typing import Any, Literal, get_args, get_origin

import torch
import torch._dynamo
import torch._inductor

from dynamo_nb.capture.memory import MEMORY
from dynamo_nb.capture.stacks import code_name
from dynamo_nb.record.types import Versions

__all__ = [
    "backends",
    "compile_problem",
    "compiled",
    "config_names",
    "described",
    "device_problem",
    "is_compiled",
    "is_disabled",
    "is_module",
    "is_tensor",
    "modes",
    "on_device",
    "option_names",
    "replaced_by",
    "reset",
    "settings",
    "takes_text",
    "untraced_lines",
    "versions",
]

#: Prefix on the magic's line → where torch keeps such settings, in the order they are looked up.
CONFIGS = {"dynamo": "torch._dynamo.config", "inductor": "torch._inductor.config"}

#: Attributes by which torch marks a callable that Dynamo has been told about already.
COMPILED, DISABLED = "_torchdynamo_orig_callable", "_torchdynamo_disable"


def versions() -> Versions:
    """Return the versions of what makes a record."""
    from importlib.metadata import PackageNotFoundError, version

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return ""

    return Versions(
        dynamo_nb=installed("dynamo_nb"),
        torch=str(torch.__version__),  # a subclass of str, which is no plain data
        python=".".join(map(str, sys.version_info[:3])),
        triton=installed("triton"),
    )


def described(code: CodeType) -> dict[str, Any]:
    """Return a code object as plain data: `name`, `file`, `first_line`, why it is `given_up`."""
    return {
        "name": code_name(code),
        "file": code.co_filename,
        "first_line": code.co_firstlineno,
        "given_up": MEMORY.left_alone(code),
    }


def compiled(target: Callable[..., Any], arguments: dict[str, Any]) -> Callable[..., Any]:
    """Return `torch.compile(target, **arguments)`, and leave no mark on a module."""
    before = set(getattr(target, "__dict__", ()))
    result: Callable[..., Any] = torch.compile(target, **arguments)
    if isinstance(target, torch.nn.Module):
        for name in set(target.__dict__) - before:
            del target.__dict__[name]
    return result


def replaced_by() -> str:
    """Return the name of what stands in the place of `torch.compile`, empty for torch's own."""
    function = torch.compile
    code = getattr(function, "__code__", None)
    if code is not None and code.co_filename == torch.__file__:
        return ""
    return code_name(code) if code is not None else type(function).__name__


def compile_problem(arguments: dict[str, Any]) -> str:
    """Return what torch.compile has against these arguments, or nothing."""
    try:
        torch.compile(lambda: None, **arguments)
    except Exception as exc:
        return str(exc) or type(exc).__name__
    return ""


def backends() -> list[str]:
    """Return the names of all backends, the debug and experimental ones included."""
    return torch.compiler.list_backends(None)


def modes() -> list[str]:
    """Return the names that `torch.compile(mode=...)` takes."""
    return list(torch._inductor.list_mode_options())


def option_names() -> list[str]:
    """Return the names that `torch.compile(options=...)` takes with Inductor."""
    return list(torch._inductor.list_options())


def is_tensor(value: object) -> bool:
    """Say whether `value` is a tensor."""
    return isinstance(value, torch.Tensor)


def is_module(value: object) -> bool:
    """Say whether `value` is an `nn.Module` that torch.compile can take."""
    return isinstance(value, torch.nn.Module) and not isinstance(value, torch.jit.ScriptModule)


def is_compiled(value: object) -> bool:
    """Say whether `value` came from torch.compile, or compiles itself."""
    if isinstance(value, torch._dynamo.OptimizedModule):
        return True
    if isinstance(value, torch.nn.Module):
        return value.__dict__.get("_compiled_call_impl") is not None
    marks = _marks(value)
    return COMPILED in marks and DISABLED not in marks


def is_disabled(value: object) -> bool:
    """Say whether Dynamo was told to leave `value` alone."""
    return DISABLED in _marks(value)


def _marks(value: object) -> dict[str, Any]:
    function = getattr(value, "__func__", value) if inspect.ismethod(value) else value
    return function.__dict__ if inspect.isfunction(function) else {}


_RESUMED = re.compile(r"torch_dynamo_resume_in_(?P<name>.+)_at_(?P<line>\d+)$")


def untraced_lines(error: BaseException, code: CodeType) -> tuple[int, int]:
    """Return up to which line a function's code has run, and the line that Dynamo failed to trace.

    The first is 0 when nothing of it has run: it was not a resume function that was traced. Both
    are 0 when the error is not Dynamo's, or is of other code.
    """
    stack = getattr(error, "real_stack", None)
    if not stack or not isinstance(error, torch._dynamo.exc.TorchDynamoException):
        return 0, 0
    outer = stack[0]
    resumed = _RESUMED.match(outer.name)
    name = resumed["name"] if resumed else outer.name
    if (outer.filename, name) != (code.co_filename, code.co_name):
        return 0, 0
    return int(resumed["line"]) if resumed else 0, outer.lineno or 0


def reset() -> None:
    """Forget everything that was compiled."""
    torch.compiler.reset()


def device_problem(name: str) -> str:
    """Return what is wrong with the device `name`, or nothing."""
    try:
        device = torch.device(name)
    except RuntimeError as exc:
        return str(exc).splitlines()[0]
    if device.type in ("cpu", "meta"):
        return ""
    try:
        module = torch.get_device_module(device.type)
        count = module.device_count() if module.is_available() else 0
    except (RuntimeError, AttributeError):
        count = 0
    if not count:
        return f"{device.type} is not available here"
    if (device.index or 0) >= count:
        return f"{device.type} devices here: {count}, counted from 0"
    return ""


@contextmanager
def on_device(name: str) -> Iterator[None]:
    """Make tensors on the device `name` unless the code says otherwise."""
    with torch.device(name):
        yield


def default_device() -> str:
    """Return the device on which tensors are made now."""
    return str(torch.get_default_device())


def config_names() -> dict[str, list[str]]:
    """Return the settings of each config module, by the prefix used on the magic's line."""
    return {prefix: sorted(_config(prefix).get_config_copy()) for prefix in CONFIGS}


def _config(prefix: str) -> Any:
    module: ModuleType = __import__(CONFIGS[prefix], fromlist=["_"])
    return module


def _owner(prefix: str, name: str) -> tuple[Any, str]:
    """Return the object that holds a setting, and its attribute: names may be nested."""
    owner = _config(prefix)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    return owner, last


def setting(prefix: str, name: str) -> Any:
    """Return the value of a setting."""
    owner, last = _owner(prefix, name)
    return getattr(owner, last)


def takes_text(prefix: str, name: str) -> bool:
    """Say whether a setting may hold text: by its annotation, where torch has one."""
    try:
        kind: Any = _config(prefix).get_type(name)
    except (AttributeError, KeyError):  # a torch that does not tell
        return True
    if kind is type(None):  # no annotation: any value may be meant
        return True
    members = [member for part in get_args(kind) or (kind,) for member in (part, *_texts(part))]
    return str in members or any(isinstance(member, str) for member in members)


def _texts(kind: Any) -> tuple[Any, ...]:
    """Return the values of a `Literal`."""
    return get_args(kind) if get_origin(kind) is Literal else ()


@contextmanager
def settings(values: dict[tuple[str, str], Any]) -> Iterator[None]:
    """Set `(prefix, name)` to the value given, and put the prior value back afterwards.

    Plain assignment, because torch keeps these in context variables: leaving may happen in another
    context than entering (an awaited cell), where nothing was changed and nothing is touched.
    """
    prior = []
    try:
        for key, value in values.items():
            owner, last = _owner(*key)
            prior.append((owner, last, getattr(owner, last)))
            setattr(owner, last, value)
        yield
    finally:
        for owner, last, value in reversed(prior):
            if getattr(owner, last) != value:
                setattr(owner, last, value)
