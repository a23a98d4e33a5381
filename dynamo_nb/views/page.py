"""The report as one file that opens anywhere: the static page, with the explorer on top."""

from __future__ import annotations

from markupsafe import Markup, escape

from dynamo_nb.record.types import CellRecord
from dynamo_nb.views.assets import module, style
from dynamo_nb.views.html import to_page
from dynamo_nb.views.model import Report
from dynamo_nb.views.phrases import headline

__all__ = ["to_explorer_page"]

# The module and the style are our own; their build sees to it that they don't end their element.
_EXPLORER = Markup("""\
<div id="dynamo-nb-explorer" data-headline="{headline}"></div>
<style>{style}</style>
<script type="module">{module}</script>
""")


def to_explorer_page(record: CellRecord) -> str:
    """Return an HTML document with the record and the explorer in it.

    It needs no server and no network. Where scripts don't run it is the static page.
    """
    explorer = _EXPLORER.format(
        headline=escape(headline(Report(record))),
        style=Markup(style()),
        module=Markup(module()),
    )
    before, end, after = to_page(record).rpartition("</body>")
    return f"{before}{explorer}{end}{after}"
