"""Static HTML: a cell's output, and a page in one file. Both are linked without JavaScript."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup
from msgspec import Struct, structs

from dynamo_nb.record.types import CELL, CellRecord, Finding
from dynamo_nb.views.blocks import Section
from dynamo_nb.views.cell_sections import calls, checks, frames, recompiles, sources
from dynamo_nb.views.context import Context
from dynamo_nb.views.inline import code_html, listing_html, prose, tied
from dynamo_nb.views.limits import CELL_OUTPUT, PAGE, Limits
from dynamo_nb.views.marks import Marks
from dynamo_nb.views.model import Report, base_name, repeatable
from dynamo_nb.views.phrases import compile_summary, function_text, headline, mode_text
from dynamo_nb.views.plain import clean, clip, excerpt, place
from dynamo_nb.views.sections import compile_sections
from dynamo_nb.views.source import HUES, Listing, listing
from dynamo_nb.views.text import to_text
from dynamo_nb.views.timings import timings

__all__ = ["environment", "static_id", "to_html", "to_page"]

#: The class of each severity that has a colour; any other is shown as information.
_SEVERITIES = {"error": "err", "warning": "warn"}

_SHORT = 40  # characters of a code or an id
_SOURCE_SHARE = 3  # the part of an output's size that the source may take: a third


def to_html(record: CellRecord) -> str:
    """Return the static HTML output of a cell: bounded, and the same for the same record."""
    return _render("output.html.j2", repeatable(record), CELL_OUTPUT)


def to_page(record: CellRecord) -> str:
    """Return a complete HTML document of a record, which also holds the record as JSON."""
    return _render("page.html.j2", record, PAGE, data=_embedded(record))


def static_id(record: CellRecord) -> str:
    """Return the id of a record's static output: made of its content, the same in each run."""
    content = f"{record.name}\n{record.source}\n{to_text(record)}"
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class _Found(Struct, frozen=True, kw_only=True):
    """A finding as the template shows it."""

    severity: str
    style: str
    code: str
    where: str
    message: str
    advice: str
    excerpt: str
    marks: str


#: So many compiles or more of a page are folded.
_OPEN = 4


class _Part(Struct, frozen=True, kw_only=True):
    """A compile as the template shows it: its sections, and the titles of those left out.

    It is open where the cell asked for its kernels on a target, and on a page with few of them.
    """

    key: str
    hue: int
    title: str
    summary: str
    sections: list[Markup]
    left_out: list[str]
    is_open: bool


class _Space:
    """The bytes that are left for sections: what does not fit is left out."""

    def __init__(self, size: int) -> None:
        self._left = size

    def take(self, html: Markup) -> bool:
        size = len(html.encode())
        fits = size <= self._left
        if fits:
            self._left -= size
        return fits


def _render(name: str, record: CellRecord, limits: Limits, data: str = "") -> str:
    report = Report(record)
    marks = Marks(record, limits.rules)
    context = Context(report, marks, limits)
    fixed: dict[str, Any] = {
        "id": static_id(record),
        "limits": limits,
        "headline": headline(report),
        "mode": clean(mode_text(record)),
        "record": record,
        "findings": [_found(report, finding, marks, limits) for finding in _shown(record, limits)],
        "findings_left": max(len(record.findings) - limits.findings, 0),
        "source": _source(report, marks, limits),
        "rules": marks.classes,
    }
    template = environment().get_template(name)
    bare = template.render(**fixed, before=[], parts=[], after=[], parts_left=0, data="")
    space = _Space(limits.size - len(bare.encode()))
    cell = [*checks(context), *timings(context), *recompiles(context), *calls(context)]
    before = _fitting(cell, space, limits)
    after = _fitting([*frames(context), *sources(context)], space, limits)
    return template.render(
        **fixed,
        before=before,
        parts=_parts(context, space),
        parts_left=max(len(record.compiles) - limits.compiles, 0),
        after=after,
        data=data,
    )


def _fitting(sections: list[Section], space: _Space, limits: Limits) -> list[Markup]:
    """Return the sections that there is space for, and a line about those that are left out."""
    shown = []
    left_out = []
    for section in sections:
        html = _section(section, limits)
        if space.take(html):
            shown.append(html)
        else:
            left_out.append(limits.line(section.title))
    return [*shown, _blocks().left_out(left_out)] if left_out else shown


def _shown(record: CellRecord, limits: Limits) -> list[Finding]:
    return record.findings[: limits.findings]


def _found(report: Report, finding: Finding, marks: Marks, limits: Limits) -> _Found:
    frame = report.place_of(finding)
    lines = [finding.line, *finding.lines]
    outside = frame is not None and frame.file != CELL
    return _Found(
        severity=clip(limits.line(finding.severity), _SHORT),
        style=_SEVERITIES.get(finding.severity, "info"),
        code=clip(limits.line(finding.code), _SHORT),
        where=limits.line(place(frame) if frame else ""),
        message=limits.line(finding.message)
        + (f" ({finding.count} times)" if finding.count > 1 else ""),
        advice=limits.line(finding.advice),
        excerpt="\n".join(excerpt(report.record, frame, is_named=True))
        if frame and outside
        else "",
        marks=marks.of_lines(lines) or marks.of(frame),
    )


def _source(report: Report, marks: Marks, limits: Limits) -> Markup:
    """Return the cell's source with its gutter: fewer lines where they would take too much."""
    block = listing(report, CELL, marks, limits)
    html = _block(block)
    while len(html.encode()) > limits.size // _SOURCE_SHARE and len(block.lines) > 1:
        cut = len(block.lines) // 2
        block = structs.replace(
            block, lines=block.lines[:cut], left_out=block.left_out + len(block.lines) - cut
        )
        html = _block(block)
    return html


def _parts(context: Context, space: _Space) -> list[_Part]:
    """Return the compiles with their sections; the most important go in first, over all of them."""
    entries = context.record.compiles[: context.limits.compiles]
    sections = [compile_sections(entry, context) for entry in entries]
    order = sorted(
        ((index, at) for index, found in enumerate(sections) for at in range(len(found))),
        key=lambda position: (sections[position[0]][position[1]].rank, *position),
    )
    rendered = {}
    for index, at in order:
        html = _section(sections[index][at], context.limits)
        if space.take(html):
            rendered[index, at] = html
    return [
        _Part(
            key=clip(context.limits.line(entry.key), _SHORT),
            hue=index % HUES,
            title=context.limits.line(
                function_text(base_name(entry), entry.file, entry.first_line)
            ),
            summary=context.limits.line(compile_summary(entry)),
            sections=[rendered[index, at] for at in range(len(found)) if (index, at) in rendered],
            left_out=[
                context.limits.line(section.title)
                for at, section in enumerate(found)
                if (index, at) not in rendered
            ],
            is_open=(context.limits.exact and len(entries) < _OPEN) or bool(entry.targets),
        )
        for index, (entry, found) in enumerate(zip(entries, sections, strict=True))
    ]


def _section(section: Section, limits: Limits) -> Markup:
    title, summary = limits.line(section.title), limits.line(section.summary)
    html: Markup = _blocks().section(structs.replace(section, title=title, summary=summary))
    return html


def _block(block: Listing) -> Markup:
    html: Markup = _blocks().block(block)
    return html


def _embedded(record: CellRecord) -> Markup:
    """Return the record as JSON that no HTML parser can leave: without `<`, `>` and `&`."""
    text = json.dumps(msgspec.to_builtins(record), separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)


@cache
def environment() -> jinja2.Environment:
    """Return the templates' environment: every view in HTML shares it."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dynamo_nb.views"),
        autoescape=True,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(
        code_html=code_html, listing_html=listing_html, prose=prose, tied=tied
    )
    return environment


def _blocks() -> Any:
    """Return the macros that render one block or section."""
    return environment().get_template("blocks.html.j2").module
