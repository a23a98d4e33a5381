"""HTML where every blank counts: source with its gutter, code, code within sentences."""

from __future__ import annotations

from itertools import groupby

from markupsafe import Markup

from dynamo_nb.views.blocks import Code
from dynamo_nb.views.source import GUTTER, Listing, Piece, SourceLine

__all__ = ["code_html", "listing_html", "prose", "tied"]


def tied(marks: str, style: str = "") -> Markup:
    """Return the attributes of an element that belongs to source lines: it can be focused."""
    classes = " ".join(filter(None, (style, marks)))
    attributes = Markup(' class="{}"').format(classes) if classes else Markup("")
    return attributes + Markup(' tabindex="0"') if marks else attributes


def prose(text: str) -> Markup:
    """Return a sentence whose `backquoted` parts are code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return Markup.escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else Markup.escape(part)
        for index, part in enumerate(parts)
    )


def listing_html(block: Listing) -> Markup:
    """Return the lines of a source, each with its gutter, under a line of column heads."""
    widths = block.widths
    heads = " ".join(_fit(GUTTER[column], column, widths) for column in GUTTER if widths[column])
    head = Markup('<span class="r head">{}\n</span>').format(heads)
    return head + Markup("").join(_line(line, widths) for line in block.lines)


def _line(line: SourceLine, widths: dict[str, int]) -> Markup:
    hue = "n" if line.hue is None else f"h{line.hue}"
    styles = {"letters": "mark", "graphs": hue, "guards": "n", "number": "n"}
    gutter = Markup(" ").join(
        Markup('<span class="{}">{}</span>').format(
            style, _fit(str(getattr(line, column)), column, widths)
        )
        for column, style in styles.items()
        if widths[column]
    )
    text = Markup("").join(map(_piece, line.pieces))
    note = Markup('<i class="note">   ← {}</i>').format(line.note) if line.note else ""
    return Markup("<span{}>{}  {}{}\n</span>").format(tied(line.marks, "r"), gutter, text, note)


def _fit(text: str, column: str, widths: dict[str, int]) -> str:
    width = widths[column]
    return text.ljust(width) if column in ("letters", "graphs") else text.rjust(width)


def _piece(piece: Piece) -> Markup:
    text = Markup.escape(piece.text)
    if piece.token:
        text = Markup('<span class="{}">{}</span>').format(piece.token, text)
    return Markup("<u>{}</u>").format(text) if piece.marked else text


def code_html(block: Code) -> Markup:
    """Return lines of code; those that belong to source lines are elements of their own."""
    html = []
    for marks, lines in groupby(block.lines, key=lambda line: line.marks):
        if marks:
            html += [
                Markup("<span{}>{}\n</span>").format(tied(marks, "r"), line.text) for line in lines
            ]
        else:
            html.append(Markup.escape("".join(f"{line.text}\n" for line in lines)))
    return Markup("").join(html)
