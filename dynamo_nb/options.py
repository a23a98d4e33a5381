"""What may stand on the magic's line: one parser feeds both parsing and the help text."""

from __future__ import annotations

import argparse
import ast
import difflib
import shlex
from typing import Any, NoReturn

from IPython.core import error
from msgspec import Struct

from dynamo_nb.target.devices import DEVICES

__all__ = [
    "COMPILE_MODES",
    "Options",
    "UsageError",
    "argument_parser",
    "close_matches",
    "help_text",
    "parse",
    "wants_help",
    "words",
]

COMPILE_MODES = ("auto", "as-is", "calls", "cell")
DYNAMIC = {"auto": None, "true": True, "false": False}

EXAMPLES = """\
Examples
--------
    %%dynamo                             what torch.compile does to this cell
    %%dynamo --fullgraph                 fail at the first graph break
    %%dynamo --backend eager             Dynamo only: graphs, guards, breaks
    %%dynamo --mode reduce-overhead      as torch.compile(mode=...)
    %%dynamo --dynamic true              as torch.compile(dynamic=True)
    %%dynamo --options max_autotune=True --options epilogue_fusion=False
    %%dynamo --as-is                     add nothing: watch what the cell compiles itself
    %%dynamo --fresh                     forget what was compiled before
    %%dynamo --check                     is it right? compare compiled calls with eager ones
    %%dynamo --time                      is it faster? measure compiled calls and eager ones
    %%dynamo --target cuda:90            the kernels for a GPU that is not there
    %%dynamo --config recompile_limit=2 --config inductor.triton.cudagraphs=true
    %%dynamo --save report.html          write the report, too (or .json, .json.gz)

Afterwards
----------
    %dynamo                 show the last report again
    %dynamo save FILE       write it: a page when FILE ends in .html, else the record as JSON
    %dynamo load FILE       show a record that was saved
    %dynamo would f(x)      which entry this call would hit, or which guards fail; nothing is run
    %dynamo try             run the mends for the last report's findings on copies, and compare;
                            each for --timeout SECONDS at most (a minute, and the cell's own time)
    %dynamo diff            what is different in the last report, compared to the one before
    %dynamo diff A B        the same for two reports by name; --times, --save FILE
    %dynamo guards f(x)     what checking this call's guards costs (it makes the call a few times)
    %dynamo reset           forget all reports and everything that was compiled

Each code that a report names (graph-break, recompile, ...) has a page: docs/findings/CODE.md
"""


class UsageError(error.UsageError, error.InputRejected):
    """What is wrong with a magic's line, shown without a traceback.

    It is an `InputRejected` too, so that an AST transformer may raise it and IPython then does not
    run the cell.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"UsageError: {self}"]


class Options(Struct, frozen=True, kw_only=True):
    """One `%%dynamo` line, parsed. `given` lists the flags that were written."""

    fullgraph: bool = False
    backend: str | None = None
    mode: str | None = None
    dynamic: bool | None = None
    options: dict[str, Any] = {}
    compile: str = "auto"
    fresh: bool = False
    check: bool = False
    time: bool = False
    target: list[str] = []
    sass: bool = False
    interpret: bool = False
    device: str | None = None
    config: dict[str, Any] = {}
    save: str | None = None
    view: str = "auto"
    name: str = ""
    given: tuple[str, ...] = ()

    def shown(self) -> dict[str, Any]:
        """Return what the record keeps: the options that differ from their defaults."""
        default = Options()
        return {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if name not in ("given", "save", "view", "name")
            and getattr(self, name) != getattr(default, name)
        }


def close_matches(name: str, names: list[str] | tuple[str, ...]) -> str:
    """Return ` Did you mean ...?` where some of `names` are close, else nothing."""
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(close)}?" if close else ""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%dynamo: {message}. %%dynamo? explains.")


def _literal(text: str) -> Any:
    """Read a value as Python does; `true`, `false` and `none` in any case; else it is text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name.strip(), _literal(value.strip())


def _target(text: str) -> str:
    if text not in DEVICES:
        hint = close_matches(text, list(DEVICES))
        known = ", ".join(DEVICES)
        raise argparse.ArgumentTypeError(f"no target {text!r}.{hint} There are: {known}")
    return text


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of the `%%dynamo` line."""
    parser = _Parser(
        prog="%%dynamo",
        description="Run the cell through torch.compile and report what happened, line by line.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    _add_compile_arguments(parser.add_argument_group("as torch.compile's arguments"))
    _add_run_arguments(parser.add_argument_group("how the cell runs"))
    _add_target_arguments(parser.add_argument_group("for a GPU that need not be there"))
    _add_report_arguments(parser.add_argument_group("the report"))
    return parser


def _add_compile_arguments(what: argparse._ArgumentGroup) -> None:
    what.add_argument("--fullgraph", action="store_true", help="a graph break is an error")
    what.add_argument(
        "--backend",
        metavar="NAME",
        help="a backend that torch knows, or a name of the notebook that holds a callable",
    )
    what.add_argument("--mode", metavar="NAME", help="default, reduce-overhead, max-autotune, ...")
    what.add_argument(
        "--dynamic", choices=DYNAMIC, help="dynamic shapes: when needed (auto), always or never"
    )
    what.add_argument(
        "--options",
        metavar="NAME=VALUE",
        action="append",
        type=_setting,
        help="an Inductor option (repeatable)",
    )


def _add_run_arguments(how: argparse._ArgumentGroup) -> None:
    how.add_argument(
        "--compile",
        choices=COMPILE_MODES,
        default="auto",
        help="what is compiled: nothing that the cell does not compile itself (as-is), the calls "
        "it makes (calls), its whole body (cell), or what fits the cell (auto)",
    )
    how.add_argument("--as-is", action="store_true", help="short for --compile as-is")
    how.add_argument(
        "--fresh", action="store_true", help="call torch.compiler.reset() before the cell"
    )
    how.add_argument(
        "--check",
        action="store_true",
        help="afterwards repeat each compiled call on copies of its inputs, eagerly and compiled, "
        "and compare all that it returns, writes and differentiates",
    )
    how.add_argument(
        "--time",
        action="store_true",
        help="afterwards measure each compiled call on copies of its inputs, eagerly and compiled: "
        "times, kernels, launches",
    )
    how.add_argument("--device", metavar="NAME", help="run under torch.device(NAME)")
    how.add_argument(
        "--config",
        metavar="NAME=VALUE",
        action="append",
        type=_setting,
        help="a torch._dynamo.config or torch._inductor.config setting, for this cell alone "
        "(repeatable)",
    )


def _add_target_arguments(target: argparse._ArgumentGroup) -> None:
    target.add_argument(
        "--target",
        metavar="SPEC",
        action="append",
        type=_target,
        help="beside the run, generate and compile the kernels for it "
        f"(repeatable): {', '.join(DEVICES)}",
    )
    target.add_argument(
        "--sass", action="store_true", help="with --target, disassemble the binaries of CUDA, too"
    )
    target.add_argument(
        "--interpret",
        action="store_true",
        help="with --target, run the Triton kernels on the cell's inputs in Triton's interpreter, "
        "on the CPU, and compare with eager",
    )


def _add_report_arguments(then: argparse._ArgumentGroup) -> None:
    then.add_argument("--save", metavar="FILE", help="write it to FILE: .html, .json or .json.gz")
    then.add_argument(
        "--view",
        choices=("auto", "html", "text"),
        default="auto",
        help="how it is displayed: auto adds the interactive explorer in a notebook",
    )
    then.add_argument("--name", metavar="NAME", default="", help="keep it under this name")


def wants_help(line: str) -> bool:
    """Say whether a magic's line asks what may stand on it."""
    return any(word in ("-h", "--help") for word in line.split())


def help_text() -> str:
    """Return the text that `%%dynamo?` shows."""
    return argument_parser().format_help()


def _flags(parser: argparse.ArgumentParser) -> list[str]:
    return [flag for action in parser._actions for flag in action.option_strings]


def words(line: str) -> list[str]:
    """Split a magic's line as a shell does; a `#` begins a comment."""
    try:
        return shlex.split(line, comments=True)
    except ValueError as exc:
        raise UsageError(f"%%dynamo: {exc} in {line.strip()!r}.") from exc


def parse(line: str) -> Options:
    """Read the text after `%%dynamo`; raise a `UsageError` that says what is wrong with it."""
    parser = argument_parser()
    written = words(line)
    known, unknown = parser.parse_known_args(written)
    if unknown:
        flags = _flags(parser)
        hint = close_matches(unknown[0], flags) or f" There are: {' '.join(flags)}."
        raise UsageError(f"%%dynamo: unknown argument {unknown[0]!r}.{hint} %%dynamo? explains.")
    if known.as_is and known.compile not in ("auto", "as-is"):
        raise UsageError(f"%%dynamo: --as-is and --compile {known.compile} contradict each other.")
    if known.mode is not None and known.options:
        raise UsageError("%%dynamo: torch.compile takes either --mode or --options, not both.")
    for flag in ("sass", "interpret"):
        if getattr(known, flag) and not known.target:
            raise UsageError(f"%%dynamo: --{flag} needs a target: --target cuda:90 --{flag}.")
    return Options(
        fullgraph=known.fullgraph,
        backend=known.backend,
        mode=known.mode,
        dynamic=DYNAMIC[known.dynamic or "auto"],
        options=dict(known.options or ()),
        compile="as-is" if known.as_is else known.compile,
        fresh=known.fresh,
        check=known.check,
        time=known.time,
        target=list(dict.fromkeys(known.target or ())),
        sass=known.sass,
        interpret=known.interpret,
        device=known.device,
        config=dict(known.config or ()),
        save=known.save,
        view=known.view,
        name=known.name,
        given=tuple(dict.fromkeys(w.partition("=")[0] for w in written if w.startswith("--"))),
    )
