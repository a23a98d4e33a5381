"""The answer to `would`: which entry a call hits, or which guards of each entry fail."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup, escape

from dynamo_nb.record.types import EntryCheck, RecompileReason, Would
from dynamo_nb.views.plain import brief, clean, one_line, place, scrub

__all__ = ["to_html", "to_text"]

#: A model of many layers fails in as many guards; the first say it.
_FAILURES = 8


def to_text(would: Would) -> str:
    """Return the answer as plain text."""
    lines = [_headline(would)]
    for check in would.entries:
        lines.append(f"  {check.entry}  {_standing(check)}")
        lines += [f"       {line}" for line in _failures(check)]
    lines += [f"  note: {note}" for note in would.notes]
    return scrub(clean("\n".join(lines)))


def to_html(would: Would) -> str:
    """Return the answer as a small table; nothing in it needs a script or a style sheet."""
    rows = Markup("").join(_row(check) for check in would.entries)
    notes = Markup("").join(Markup("<p>{}</p>").format(f"Note: {note}") for note in would.notes)
    table = Markup("<table><tr><th>entry</th><th></th></tr>{}</table>").format(rows)
    head = Markup("<p><b>{}</b></p>").format(scrub(clean(_headline(would))))
    return str(Markup("<div>{}{}{}</div>").format(head, table if would.entries else "", notes))


def _row(check: EntryCheck) -> Markup:
    cells = [_standing(check), *_failures(check)]
    text = Markup("<br>").join(escape(scrub(clean(line))) for line in cells)
    return Markup(
        '<tr><td style="vertical-align:top">{}</td><td style="text-align:left">{}</td>'
    ).format(check.entry, text) + Markup("</tr>")


def _headline(would: Would) -> str:
    if would.outcome == "hit":
        return f"{would.callee} would hit {would.entry}"
    if not would.entries:
        return f"{would.callee}: {would.reason}"
    return f"{would.callee} fits no entry: {would.reason}"


def _standing(check: EntryCheck) -> str:
    origin = f" (compiled by cell [{check.cell}])" if check.cell is not None else ""
    if check.invalidated:
        return f"invalidated: {one_line(check.invalidated)}{origin}"
    return f"{'fits' if check.fits else 'does not fit'}{origin}"


def _failures(check: EntryCheck) -> Iterator[str]:
    for failed in check.failed[:_FAILURES]:
        yield _failure(failed)
    left = len(check.failed) - _FAILURES
    if left > 0:
        yield f"… {left} more"


def _failure(failed: RecompileReason) -> str:
    what = failed.name or failed.guard or failed.text
    where = f" (read at {place(failed.frame)})" if failed.frame else ""
    if not failed.was and not failed.now:
        return f"{brief(what, 200)}{where}"
    then, now = one_line(failed.was) or "?", one_line(failed.now) or "?"
    return f"{brief(what, 120)}: {brief(then, 80)} -> {brief(now, 80)}{where}"
