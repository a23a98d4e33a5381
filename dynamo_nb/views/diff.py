"""The difference of two records as text, as a cell's output, and as a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup
from msgspec import Struct, to_builtins

from dynamo_nb.record.difference import Counterpart, LineChange, RecordDiff
from dynamo_nb.record.types import CellRecord
from dynamo_nb.views.diff_model import (
    Change,
    Group,
    differs,
    groups,
    headline,
    side_text,
    times,
)
from dynamo_nb.views.html import environment
from dynamo_nb.views.limits import CELL_OUTPUT, PAGE, Limits
from dynamo_nb.views.parts import packed
from dynamo_nb.views.plain import clean, clip, plural, scrub

__all__ = ["diff_data", "diff_html", "diff_page", "diff_text"]

_WIDTH = 100
_CHANGES = 12  # of one kind, in the text
_DETAILS = 6  # nodes of one graph, in the text
_LINES = 40  # edited lines, in the text
_CONTEXT = 3  # lines around an edit, in a cell's output
_SIGNS = {"removed": "-", "added": "+", "gone": "-", "new": "+"}
_NOTHING = "Nothing is different."


# ------------------------------------------------------------------ text


def diff_text(diff: RecordDiff, *, with_times: bool = False) -> str:
    """Return the difference as plain text, which is the same for the same two records.

    `with_times` adds what was measured, and that is another in each run.
    """
    sides = f"{side_text(diff.before)} -> {side_text(diff.after)}"
    blocks = [[f"dynamo diff: {sides}", *_wrap(f"  {headline(diff)}", "  ")]]
    blocks.append(list(_edits(diff.source)))
    blocks += [list(_group(group)) for group in groups(diff)]
    if not differs(diff):
        blocks.append([_NOTHING])
    if with_times:
        blocks.append(list(_times(diff)))
    return clean("\n\n".join("\n".join(lines) for lines in blocks if lines))


def _edits(lines: list[LineChange]) -> Iterator[str]:
    edited = [line for line in lines if line.change != "same"]
    if edited:
        yield "Source"
    for line in edited[:_LINES]:
        number = line.after or line.before
        yield clip(f"  {_SIGNS[line.change]}{number:>4} | {line.text}".rstrip(), _WIDTH)
    yield from _more(len(edited) - _LINES, "line")


def _group(group: Group) -> Iterator[str]:
    yield scrub(f"{group.title} ({group.summary})")
    for change in group.changes[:_CHANGES]:
        yield from _wrap(f"  {_line(change)}", "      ")
        for detail in change.details[:_DETAILS]:
            yield from _wrap(f"      {_line(detail)}", "          ")
        yield from _more(len(change.details) - _DETAILS, "node", "      ")
    yield from _more(len(group.changes) - _CHANGES, "change")


def _line(change: Change) -> str:
    where = f"{change.where}: " if change.where else ""
    return f"{change.change:<8} {where}{change.text}"


def _times(diff: RecordDiff) -> Iterator[str]:
    yield "Measured, in ms (another in each run)"
    rows = times(diff)
    width = max((len(name) for name, _, _ in rows), default=0)
    for name, before, after in rows:
        yield f"  {name:<{width}}  {before:>9} -> {after:>9}"


def _more(left: int, noun: str, indent: str = "  ") -> Iterator[str]:
    if left > 0:
        yield f"{indent}… {plural(left, f'more {noun}')}"


def _wrap(text: str, indent: str) -> list[str]:
    first = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        clip(scrub(text.strip()), 600),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


# ------------------------------------------------------------------ the explorer


#: What the explorer doesn't show of the first record.
_ABSENT = {"instruction", "step", "code"}


def diff_data(diff: RecordDiff, before: CellRecord) -> dict[str, Any]:
    """Return the difference as plain data, as the explorer's pane takes it.

    `links` are those of the first record, `counterparts` lead from it to the second.
    """
    pairs = ((link.a, link.b) for link in before.links)
    links = packed((a, b) for a, b in pairs if not {a.artifact, b.artifact} & _ABSENT)
    counterparts = packed((pair.before, pair.after) for pair in diff.counterparts)
    return {
        "before": side_text(diff.before),
        "after": side_text(diff.after),
        "headline": headline(diff),
        "rows": [
            {
                "change": row.change,
                "old": int(row.old) if row.old else None,
                "old_text": row.old_text,
                "new": int(row.new) if row.new else None,
                "new_text": row.new_text,
            }
            for row in _Sources(diff).rows
        ],
        "groups": [
            {"title": g.title, "summary": g.summary, "changes": to_builtins(g.changes)}
            for g in groups(diff)
        ],
        "times": times(diff),
        "links": to_builtins(links),
        "counterparts": to_builtins(counterparts),
    }


# ------------------------------------------------------------------ HTML


class _Row(Struct, frozen=True, kw_only=True):
    """A row of the two sources side by side; `marks` ties it to what belongs to its lines."""

    change: str
    old: str = ""
    old_text: str = ""
    new: str = ""
    new_text: str = ""
    marks: str = ""


class _Sources:
    """The two sources side by side, and the class of each of their lines."""

    def __init__(self, diff: RecordDiff) -> None:
        self.rows: list[_Row] = []
        self._old: dict[int, str] = {}
        self._new: dict[int, str] = {}
        edited = _edited_lines(diff)
        removed: list[LineChange] = []
        for line in diff.source:
            if line.change == "removed":
                removed.append(line)
            elif line.change == "added":
                self._add(self._until(removed, edited.get(line.after)), line)
            else:
                self._flush(removed)
                self._add(line, line)
        self._flush(removed)

    def _until(self, removed: list[LineChange], number: int | None) -> LineChange | None:
        """Add the removed lines that stand before one of them; return that one, if it is there."""
        if not any(line.before == number for line in removed):
            return None
        while removed[0].before != number:
            self._add(removed.pop(0), None)
        return removed.pop(0)

    def _flush(self, removed: list[LineChange]) -> None:
        for line in removed:
            self._add(line, None)
        removed.clear()

    def _add(self, old: LineChange | None, new: LineChange | None) -> None:
        marks = f"l{len(self.rows) + 1}"
        if old and old.before:
            self._old[old.before] = marks
        if new and new.after:
            self._new[new.after] = marks
        self.rows.append(
            _Row(
                change="same" if old is new else "edited",
                old=str(old.before) if old else "",
                old_text=old.text if old else "",
                new=str(new.after) if new else "",
                new_text=new.text if new else "",
                marks=marks,
            )
        )

    def marks(self, change: Change) -> str:
        """Return the classes of the lines that a change belongs to, separated by blanks."""
        found = [self._old.get(line) for line in change.old]
        found += [self._new.get(line) for line in change.new]
        return " ".join(dict.fromkeys(name for name in found if name))

    def shown(self, limits: Limits) -> list[_Row]:
        """Return the rows to show: in a cell's output only those around edits."""
        if limits.exact:
            return self.rows
        edited = [index for index, row in enumerate(self.rows) if row.change == "edited"]
        near = {i for index in edited for i in range(index - _CONTEXT, index + _CONTEXT + 1)}
        return [row for index, row in enumerate(self.rows) if index in near]


def _edited_lines(diff: RecordDiff) -> dict[int | None, int]:
    """Return which line of the first cell each line of the second one stands for."""
    places = ((pair.before.key, pair.after.key) for pair in diff.counterparts if _is_line(pair))
    return {_number(after): _number(before) for before, after in places}


def _is_line(pair: Counterpart) -> bool:
    return pair.before.artifact == "line"


def _number(place: str) -> int:
    return int(place.rpartition(":")[2])


def diff_html(diff: RecordDiff, *, with_times: bool = False) -> str:
    """Return the difference as a cell's output: bounded, and the same for the same records."""
    return _render("diff_output.html.j2", diff, CELL_OUTPUT, with_times)


def diff_page(diff: RecordDiff) -> str:
    """Return the difference as a complete HTML document, with the times that were measured."""
    return _render("diff_page.html.j2", diff, PAGE, with_times=True)


def _render(name: str, diff: RecordDiff, limits: Limits, with_times: bool) -> str:
    sources = _Sources(diff)
    before, after = side_text(diff.before), side_text(diff.after)
    values: dict[str, Any] = {
        "id": "diff",
        "limits": limits,
        "before": limits.line(before),
        "after": limits.line(after),
        "headline": limits.line(headline(diff)),
        "groups": groups(diff),
        "rows": sources.shown(limits)[: limits.code],
        "rows_left": max(len(sources.shown(limits)) - limits.code, 0),
        "marks": sources.marks,
        "nothing": "" if differs(diff) else _NOTHING,
        "times": times(diff) if with_times else [],
        "rules": [row.marks for row in sources.rows[: limits.rules]],
    }
    return str(Markup(environment().get_template(name).render(**values)))
