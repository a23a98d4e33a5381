"""What the magic's options mean to torch, checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from dynamo_nb.options import Options, UsageError, close_matches

__all__ = ["Arguments", "checked", "settings"]


class Arguments(NamedTuple):
    """Options that torch has agreed to: torch.compile's arguments, and settings by place."""

    compile: dict[str, Any]
    settings: dict[tuple[str, str], Any]


def checked(options: Options, namespace: dict[str, Any]) -> Arguments:
    """Return what the options ask of torch; raise a `UsageError` for what it does not have."""
    _check_file(options)
    _check_device(options)
    _check_targets(options)
    return Arguments(_compile_arguments(options, namespace), settings(options.config, namespace))


def _check_file(options: Options) -> None:
    if options.save and not Path(options.save).expanduser().parent.is_dir():
        raise UsageError(f"%%dynamo: no folder {str(Path(options.save).parent)!r} to save to.")


def _check_device(options: Options) -> None:
    from dynamo_nb.capture import compiler

    if options.device and (problem := compiler.device_problem(options.device)):
        raise UsageError(f"%%dynamo: no device {options.device!r}: {problem}")


def _check_targets(options: Options) -> None:
    from dynamo_nb.target import client
    from dynamo_nb.target.jobs import COMPILE, INTERPRET

    kinds = [COMPILE, INTERPRET] if options.interpret else [COMPILE]
    problems = (client.problem(spec, kinds) for spec in options.target)
    if problem := next(filter(None, problems), ""):
        raise UsageError(f"%%dynamo: {problem}")


def _compile_arguments(options: Options, namespace: dict[str, Any]) -> dict[str, Any]:
    from dynamo_nb.capture import compiler

    if options.mode is not None and options.mode not in compiler.modes():
        known = ", ".join(compiler.modes())
        raise UsageError(f"%%dynamo: no mode {options.mode!r}. There are: {known}.")
    arguments: dict[str, Any] = {
        "fullgraph": options.fullgraph,
        "dynamic": options.dynamic,
        "mode": options.mode,
    }
    if options.backend is not None:
        arguments["backend"] = _backend(options.backend, namespace)
    arguments["options"] = options.options or None
    if options.options and options.backend in (None, "inductor"):
        arguments["options"] = _inductor_options(options.options, namespace)
    if problem := compiler.compile_problem(arguments):
        raise UsageError(f"%%dynamo: torch.compile does not take these arguments: {problem}")
    return arguments


def _inductor_options(given: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    from dynamo_nb.capture import compiler

    known = compiler.option_names()
    for name in given:
        if name.replace("-", "_") not in known:
            hint = close_matches(name, known)
            all_names = "torch._inductor.list_options() lists all."
            raise UsageError(f"%%dynamo: Inductor has no option {name!r}.{hint} {all_names}")
    return {
        name: _held(name, value, ("inductor", name.replace("-", "_")), namespace)
        for name, value in given.items()
    }


def _backend(name: str, namespace: dict[str, Any]) -> str | Callable[..., Any]:
    from dynamo_nb.capture import compiler

    known = compiler.backends()
    if name in known:
        return name
    if name not in namespace:
        hint = close_matches(name, known)
        raise UsageError(
            f"%%dynamo: no backend {name!r}, and no name {name!r} in the notebook.{hint} "
            f"Backends: {', '.join(known)}."
        )
    value: Callable[..., Any] = namespace[name]
    if not callable(value):
        raise UsageError(
            f"%%dynamo: `{name}` is no backend: it holds {_a(type(value).__name__)}, which cannot "
            "be called. A backend takes a GraphModule and example inputs."
        )
    return value


def settings(config: dict[str, Any], namespace: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Return what `--config` asks for as `(prefix, name) → value`.

    A name of the notebook stands for what it holds where the setting holds an object, not text.
    """
    from dynamo_nb.capture import compiler

    if not config:
        return {}
    names = compiler.config_names()
    places = {name: _setting(name, names) for name in config}
    return {place: _held(name, config[name], place, namespace) for name, place in places.items()}


def _setting(name: str, names: dict[str, list[str]]) -> tuple[str, str]:
    prefix, _, rest = name.partition(".")
    prefixed = prefix in names and bool(rest)
    places = [(prefix, rest)] if prefixed else [(key, name) for key in names]
    place = next(((key, setting) for key, setting in places if setting in names[key]), None)
    if place is None:
        every = [setting for key, _ in places for setting in names[key]]
        hint = close_matches(rest if prefixed else name, every)
        hint = hint or " See torch._dynamo.config and torch._inductor.config."
        raise UsageError(f"%%dynamo: torch has no setting {name!r}.{hint}")
    return place


def _held(name: str, value: Any, place: tuple[str, str], namespace: dict[str, Any]) -> Any:
    """Return what a setting is to hold: the value written, or what it names in the notebook."""
    from dynamo_nb.capture import compiler

    now = compiler.setting(*place)
    if isinstance(now, (bool, int, float, str)):
        if not _fits(value, now):
            kind = _a(type(now).__name__)
            raise UsageError(f"%%dynamo: {name} is {kind} (now {now!r}), which {value!r} is not.")
        return value
    if not isinstance(value, str) or compiler.takes_text(*place):
        return value
    if value not in namespace:
        hint = close_matches(value, [known for known in namespace if not known.startswith("_")])
        raise UsageError(
            f"%%dynamo: {name} takes no text (now {now!r}), and there is no name {value!r} in the "
            f"notebook.{hint}"
        )
    return namespace[value]


def _fits(value: Any, now: Any) -> bool:
    """Say whether a value may stand where `now` stands; torch itself takes anything."""
    is_number = type(now) is float and type(value) is int
    return value is None or is_number or type(value) is type(now)


def _a(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"
