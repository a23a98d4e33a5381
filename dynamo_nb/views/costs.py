"""What guards cost: a measurement, shown as such, so with its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from dynamo_nb.record.naming import readable
from dynamo_nb.record.types import GuardCost, GuardCosts
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
    """Yield the dearest parts, those left over, and what no part accounts for: the whole check."""
    shown, left = costs.parts[:_SHOWN], costs.parts[_SHOWN:]
    for part in shown:
        within = f" and {plural(part.managers - 1, 'source')} below" if part.managers > 1 else ""
        source = brief(readable(part.source), 80)
        yield _row(costs, part.microseconds, f"{source}{within}")
    if left:
        yield _row(costs, _sum(left), f"… {len(left)} more")
    rest = costs.microseconds - _sum(costs.parts)
    if costs.parts and rest > 0:
        yield _row(costs, rest, "the rest: entering the check, and guards of no source")


def _row(costs: GuardCosts, microseconds: float, what: str) -> tuple[str, str, str]:
    share = microseconds / costs.microseconds if costs.microseconds else 0.0
    return _time(microseconds), f"{share:.0%}", what


def _sum(parts: list[GuardCost]) -> float:
    return sum(part.microseconds for part in parts)


def _rest(costs: GuardCosts) -> Iterator[str]:
    if not costs.parts:
        yield "Its parts were not measured: there are too many for the time."


def _time(microseconds: float) -> str:
    return f"{microseconds / 1000:.2f} ms" if microseconds >= 1000 else f"{microseconds:.2f} µs"
