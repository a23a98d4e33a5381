"""`%dynamo diff` and `dynamo_nb.diff`: which two reports are meant, and how the answer is shown."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from dynamo_nb.options import UsageError, close_matches
from dynamo_nb.record.difference import RecordDiff
from dynamo_nb.record.types import CellRecord
from dynamo_nb.runner.report import PAGE, Reporter
from dynamo_nb.session import Session

__all__ = ["difference", "show"]

USAGE = "%dynamo diff [A [B]] [--times] [--save FILE]"


def difference(
    session: Session, a: CellRecord | str | None = None, b: CellRecord | str | None = None
) -> RecordDiff:
    """Return what is different in `b`, compared to `a`: records, or names that reports have.

    Without `b` it is the last report; without both, the last is compared to the one before.

    Raises
    ------
    ValueError
        When there are not two reports, or none of that name.
    """
    from dynamo_nb.record.diff import diff

    if a is None and b is None:
        if len(session.records) < 2:
            have = "is only one report" if session.records else "is no report"
            msg = f"there {have} yet: two are compared. Put %%dynamo on top of two cells."
            raise ValueError(msg)
        return diff(session.records[-2], session.records[-1])
    last = session.last()
    before = _found(session, a) if a is not None else last
    after = _found(session, b) if b is not None else last
    if before is None or after is None:
        raise ValueError("there is no report yet to compare with. Put %%dynamo on top of a cell.")
    if before is after and b is None:
        msg = f"{a!r} is the last report itself. Name the report to compare it with, too."
        raise ValueError(msg)
    return diff(before, after)


def _found(session: Session, wanted: CellRecord | str) -> CellRecord:
    if isinstance(wanted, CellRecord):
        return wanted
    if not isinstance(wanted, str):
        msg = f"a report is given by its record or its name, not by a {type(wanted).__name__}."
        raise ValueError(msg)
    record = session.last(wanted) if wanted else None
    if record is None:
        names = sorted({record.name for record in session.records if record.name})
        hint = close_matches(wanted, names)
        known = f"There are: {', '.join(names)}." if names else "None has a name yet."
        msg = f"no report {wanted!r}.{hint} {known} Names are given with %%dynamo --name NAME."
        raise ValueError(msg)
    return record


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%dynamo diff: {message}. Usage: {USAGE}")


def show(session: Session, reporter: Reporter, words: list[str]) -> None:
    """Carry out `%dynamo diff` followed by `words`."""
    parser = _Parser(prog="%dynamo diff", add_help=False, allow_abbrev=False)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--save", metavar="FILE")
    asked = parser.parse_args(words)
    if len(asked.names) > 2:
        raise UsageError(f"%dynamo diff: two names at most are expected. Usage: {USAGE}")
    try:
        found = difference(session, *asked.names)
        if asked.save:
            _write(found, asked.save)
    except (OSError, ValueError) as exc:
        raise UsageError(f"%dynamo diff: {exc}") from exc
    from dynamo_nb.views.diff import diff_html, diff_text

    reporter.display(
        diff_text(found, with_times=asked.times), diff_html(found, with_times=asked.times)
    )


def _write(found: RecordDiff, path: str) -> None:
    """Write a single-file page where the name ends in `.html`, else the difference as JSON."""
    from dynamo_nb.views.diff import diff_page

    file = Path(path).expanduser()
    is_page = file.suffix.lower() in PAGE
    file.write_bytes(diff_page(found).encode() if is_page else found.to_json())
