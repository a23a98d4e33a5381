"""Run the casebook on the torch that is installed, or compare two such runs.

    python scripts/casebook.py run > 2.13.json
    python scripts/casebook.py compare 2.13.json 2.14.json

The comparison lists, case by case, what a record's summary says differently.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"

#: What is compared of a finding: its sentence may quote torch, whose words change.
_FINDING = ("code", "line")
_MEASURED = {"slow-compile"}  # depends on how busy the machine is


def run() -> dict[str, Any]:
    """Return torch's version, and for each case what its record's summary says."""
    sys.path.insert(0, str(ROOT))
    import torch
    from IPython.core.interactiveshell import InteractiveShell

    from tests.conftest import Shell

    warnings.simplefilter("ignore")
    summaries: dict[str, Any] = {}
    for path in sorted(CASES.glob("*.cell")):
        torch._dynamo.reset()
        shell = Shell().load()
        ran = shell.run(path.read_text())
        raised = type(ran.error).__name__ if ran.error is not None else None
        summaries[path.stem] = {"raised": raised, **shell.record.summary()}
        shell.run("%unload_ext dynamo_nb")
        shell.ip.restore_sys_module_state()
        InteractiveShell.clear_instance()
        print(path.stem, file=sys.stderr, flush=True)
    return {"torch": torch.__version__, "cases": summaries}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return a sentence for each thing that two summaries of a case say differently."""
    found = []
    for key in sorted(one.keys() | other.keys()):
        was, now = _plain(key, one.get(key)), _plain(key, other.get(key))
        if was != now:
            found.append(f"{key}: {_text(was)} → {_text(now)}")
    return found


def _plain(key: str, value: Any) -> Any:
    if key == "findings":
        findings = [item for item in value or () if item["code"] not in _MEASURED]
        return sorted([finding.get(name) for name in _FINDING] for finding in findings)
    return value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def compare(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return a Markdown list of the cases that differ."""
    cases, others = one["cases"], other["cases"]
    lines = [f"{len(cases)} cases on torch {one['torch']} and {other['torch']}:", ""]
    for name in sorted(cases.keys() & others.keys()):
        lines += [f"- `{name}`: {text}" for text in differences(cases[name], others[name])]
    if len(lines) == 2:
        lines.append("none differs.")
    return "\n".join(lines)


def main() -> None:
    """Run or compare."""
    parser = argparse.ArgumentParser(description="Run the casebook, or compare two runs.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="run every case and print the summaries as JSON")
    both = commands.add_parser("compare", help="say what differs between two runs")
    both.add_argument("runs", nargs=2, type=Path)
    options = parser.parse_args()
    if options.command == "run":
        print(json.dumps(run(), indent=1, default=str))
    else:
        print(compare(*(json.loads(path.read_text()) for path in options.runs)))


if __name__ == "__main__":
    main()
