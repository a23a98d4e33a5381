"""What guards cost: a measurement, shown as such, so with its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import GuardCosts
from dynamo_nb.views.plain import brief, clean, plural, scrub

__all__ = ["to_html", "to_text"]

_SHOWN = 12


def to_text(costs: GuardCosts) -> str:
    """Return the measurement as plain text."""
    lines = [
        _headline(costs),
        *(f"  {cost:>9}  {share:>4}  {source}" for cost, share, source in _rows(costs)),
    ]
    return scrub(clean("\n".join([*lines, *(f"  {line}" for line in _rest(costs))])))


def to_html(costs: GuardCosts) -> str:
    """Return the measurement as a small table."""
    row = Markup('<tr><td>{}</td><td>{}</td><td style="text-align:left">{}</td></tr>')
    rows = Markup("").join(row.format(*map(scrub, map(clean, cells))) for cells in _rows(costs))
    head = Markup("<p><b>{}</b></p>").format(scrub(clean(_headline(costs))))
    rest = Markup("").join(Markup("<p>{}</p>").format(line) for line in _rest(costs))
    return str(Markup("<div>{}<table>{}</table>{}</div>").format(head, rows, rest))


def _headline(costs: GuardCosts) -> str:
    return (
        f"{costs.callee} {costs.entry}: one check of its guards takes {_time(costs.microseconds)}, "
        f"{costs.share:.0%} of a call ({_time(costs.call_microseconds)})"
    )


def _rows(costs: GuardCosts) -> Iterator[tuple[str, str, str]]:
    for part in costs.parts[:_SHOWN]:
        within = f" and {plural(part.managers - 1, 'source')} below" if part.managers > 1 else ""
        share = part.microseconds / costs.microseconds if costs.microseconds else 0.0
        source = brief(readable(part.source), 80)
        yield _time(part.microseconds), f"{share:.0%}", f"{source}{within}"


def _rest(costs: GuardCosts) -> Iterator[str]:
    left = costs.parts[_SHOWN:]
    if left:
        yield f"… {len(left)} more, together {_time(sum(part.microseconds for part in left))}"


def _time(microseconds: float) -> str:
    return f"{microseconds / 1000:.2f} ms" if microseconds >= 1000 else f"{microseconds:.2f} µs"
