"""What was tried for a report's findings, as text and as HTML.

Unlike a report, this has times: it is a measurement.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from msgspec import Struct

from dynamo_nb.record.trials import Mend, Pattern, Trial, Trials
from dynamo_nb.views.html import environment
from dynamo_nb.views.limits import CELL_OUTPUT
from dynamo_nb.views.plain import brief, clean, clip, compact_lines, one_line, plural

__all__ = ["trials_html", "trials_text"]

_WIDTH = 100
_AS_IT_IS = "the cell as it is"

#: Column heads, and the counts under them; the first three are always shown.
_COUNTS = {
    "graphs": "graph",
    "breaks": "graph break",
    "recompiles": "recompile",
    "eager": "eager run",
    "kernels": "kernel",
}
_ALWAYS = 3

#: The columns that are measured.
_TIMES = 2

#: The costs that a verdict rests on, as `dynamo_nb.runner.trying` compares them.
_COSTS = ("eager run", "graph break", "recompile")

_VERDICTS = {
    "helps": "helps",
    "changes": "changes what is printed",
    "mixed": "helps in one, harms in another",
    "same": "no help",
    "worse": "makes it worse",
    "failed": "fails",
    "cut off": "cut off",
}


_CHANGING = "Fewer costs, but the cell then prints something else"


class _Row(Struct, frozen=True, kw_only=True):
    """A run as a row of the table."""

    name: str
    verdict: str = ""
    cells: list[str]
    style: str = ""


def _columns(found: Trials) -> dict[str, str]:
    runs = _runs(found)
    return {
        head: noun
        for index, (head, noun) in enumerate(_COUNTS.items())
        if index < _ALWAYS or any(run.counts.get(noun) for run in runs)
    }


def _runs(found: Trials) -> list[Trial]:
    return [run for run in (found.baseline, *found.trials, found.together) if run is not None]


def _rows(found: Trials) -> list[_Row]:
    columns = _columns(found)
    return [
        _Row(
            name=_name(run, found),
            verdict=_VERDICTS.get(run.verdict, ""),
            cells=[
                *(str(run.counts.get(noun, "")) for noun in columns.values()),
                f"{run.compile_seconds:.2f} s",
                f"{run.run_seconds:.2f} s",
            ]
            if run.counts and run.verdict not in ("failed", "cut off")
            else [""] * (len(columns) + _TIMES),
            style="new" if run.verdict == "helps" else "",
        )
        for run in _runs(found)
    ]


def _heads(found: Trials) -> list[str]:
    return [*_columns(found), "compiling", "the rest"]


def _name(run: Trial, found: Trials) -> str:
    if run is found.together:
        return "those that help, together"
    return one_line(run.paste) or _AS_IT_IS


def _headline(found: Trials) -> str:
    report = f"cell [{found.cell}]" if found.cell is not None else "the last report"
    if not found.trials:
        return f"nothing could be tried for {report}"
    winners = plural(len(found.winners), "mend") if found.winners else "none"
    verb = "helps" if len(found.winners) == 1 else "help"
    return f"{plural(len(found.trials), 'mend')} tried for {report}: {winners} {verb}"


def _effect(run: Trial, found: Trials) -> str:
    """Return what a mend changed: `recompiles 7 -> 1, eager runs 2 -> 0`."""
    if run.error:
        return brief(run.error, 200)
    before = found.baseline.counts if found.baseline else {}
    pairs = ((noun, before.get(noun, 0), run.counts.get(noun, 0)) for noun in _COSTS)
    facts = [f"{noun}s {was} -> {now}" for noun, was, now in pairs if was != now]
    if found.baseline and found.baseline.error:
        facts.insert(0, "the error is gone")
    facts += [f"its {what} is not the same" for what in run.differs]
    return ", ".join(facts) or "the same counts"


def _together(found: Trials) -> str:
    run = found.together
    if run is None:
        return ""
    names = " and ".join(f"`{one_line(mend.paste)}`" for mend in run.mends)
    return f"Together, {names}: {_effect(run, found)}."


def _to_paste(mends: list[Mend]) -> list[str]:
    """Return the lines to paste, with the imports that they need."""
    lines = (line for mend in mends for line in (mend.code or [mend.paste]))
    return list(dict.fromkeys(lines))


# ------------------------------------------------------------------ text


def trials_text(found: Trials) -> str:
    """Return what was tried as plain text."""
    blocks = [
        [f"dynamo try: {_headline(found)}"],
        list(_table(found)),
        list(_winners(found)),
        list(_changing(found)),
        list(_others(found)),
        [line for pattern in found.patterns for line in _pattern(pattern)],
        [line for note in found.notes for line in _wrap(f"note: {one_line(note)}", "      ")],
    ]
    if found.patterns:
        blocks[5].insert(0, "With a change of code (not tried)")
    return clean("\n\n".join("\n".join(lines) for lines in blocks if lines))


def _table(found: Trials) -> Iterator[str]:
    rows = _rows(found) if found.trials else []
    if not rows:
        return
    heads = _heads(found)
    widths = [max(len(h), *(len(row.cells[i]) for row in rows)) for i, h in enumerate(heads)]
    name = max(len(clip(row.name, 62)) for row in rows)
    yield f"  {'':<{name}}  " + "  ".join(h.rjust(w) for h, w in zip(heads, widths, strict=True))
    for row in rows:
        cells = "  ".join(c.rjust(w) for c, w in zip(row.cells, widths, strict=True))
        yield f"  {clip(row.name, 62):<{name}}  {cells}  {row.verdict}".rstrip()


def _winners(found: Trials) -> Iterator[str]:
    if found.winners:
        yield "To paste"
    for run in found.winners:
        for line in _to_paste(run.mends):
            yield f"  {line}"
        note = "; ".join(mend.note for mend in run.mends if mend.note)
        where = compact_lines({line for mend in run.mends for line in mend.lines})
        facts = filter(None, (where, _effect(run, found), note))
        yield from _wrap(f"      # {'; '.join(facts)}", "      # ")
    if found.together is not None:
        yield from _wrap(f"  {_together(found)}", "  ")


def _changing(found: Trials) -> Iterator[str]:
    """Yield the mends that help because the cell then does less."""
    runs = [run for run in found.trials if run.verdict == "changes"]
    if runs:
        yield _CHANGING
    for run in runs:
        yield from _wrap(f"  {one_line(run.paste)}: {_price(run, found)}", "      ")


def _price(run: Trial, found: Trials) -> str:
    """Return what a mend gains, and what it costs."""
    notes = [mend.note for mend in run.mends if mend.note]
    return "; ".join([_effect(run, found), *notes])


def _dropped(found: Trials) -> list[Trial]:
    return [run for run in found.trials if run.verdict not in ("helps", "changes")]


def _others(found: Trials) -> Iterator[str]:
    others = _dropped(found)
    if others:
        yield "Tried, and dropped"
    for run in others:
        yield from _wrap(f"  {one_line(run.paste)}: {_verdict(run, found)}", "      ")


def _verdict(run: Trial, found: Trials) -> str:
    """Return how a run that does not help came out."""
    if run.was_cut_off:
        return run.error
    return f"{_VERDICTS[run.verdict]} ({_effect(run, found)})"


def _pattern(pattern: Pattern) -> Iterator[str]:
    where = f" ({compact_lines(pattern.lines)})" if pattern.lines else ""
    yield from _wrap(f"  {pattern.title}{where}", "  ")
    for sign, code in (("-", pattern.before), ("+", pattern.after)):
        for line in code.splitlines():
            yield f"      {sign} {line}".rstrip()


def _wrap(text: str, indent: str) -> list[str]:
    first = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


# ------------------------------------------------------------------ HTML


def trials_html(found: Trials) -> str:
    """Return what was tried as a cell's output."""
    rendered: str = (
        environment()
        .get_template("trials.html.j2")
        .render(
            limits=CELL_OUTPUT,
            headline=_headline(found),
            heads=_heads(found),
            rows=_rows(found) if found.trials else [],
            winners=[
                {
                    "code": "\n".join(_to_paste(run.mends)),
                    "effect": _effect(run, found),
                    "note": "; ".join(mend.note for mend in run.mends if mend.note),
                    "where": compact_lines({n for mend in run.mends for n in mend.lines}),
                }
                for run in found.winners
            ],
            together=_together(found),
            others=[
                (one_line(run.paste), _VERDICTS[run.verdict], _effect(run, found))
                for run in _dropped(found)
            ],
            changing=[
                (one_line(run.paste), _price(run, found))
                for run in found.trials
                if run.verdict == "changes"
            ],
            changing_title=_CHANGING,
            patterns=[(item, compact_lines(item.lines)) for item in found.patterns],
            notes=found.notes,
        )
    )
    return rendered
