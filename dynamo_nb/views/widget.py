"""The explorer in a notebook: one widget, which holds a snapshot and answers for the rest."""

from __future__ import annotations

import gzip
import json
import weakref
from typing import Any

import anywidget
import msgspec
import traitlets

from dynamo_nb.record.diff import diff, side
from dynamo_nb.record.types import CellRecord, Ref
from dynamo_nb.views.assets import style, travelling_module
from dynamo_nb.views.diff import diff_data
from dynamo_nb.views.diff_model import side_text
from dynamo_nb.views.html import static_id
from dynamo_nb.views.model import Report
from dynamo_nb.views.page import to_explorer_page
from dynamo_nb.views.parts import Parts
from dynamo_nb.views.phrases import headline

__all__ = ["STATE_BYTES", "DynamoWidget", "explorer"]

#: What one widget may add to a saved notebook, its code included.
STATE_BYTES = 512_000

_OTHER_STATE = 24_000  # the rest of the model, its layout, and the selection
_BASE64 = 4 / 3  # how much longer bytes are in a notebook file


class DynamoWidget(anywidget.AnyWidget):
    """The interactive view of a record, and of what is different from the one before it.

    `selection` holds what the reader has clicked on, and all that belongs to it, as `Ref`s of the
    record. It can be read and observed, not set.
    """

    _esm = travelling_module()
    _css = style()

    meta = traitlets.Dict().tag(sync=True)
    snapshot = traitlets.Bytes().tag(sync=True)
    selection: traitlets.List[Ref] = traitlets.List(read_only=True).tag(
        sync=True,
        from_json=lambda value, widget: _refs(value),
        to_json=lambda value, widget: msgspec.to_builtins(value),
    )

    def __init__(self, record: CellRecord, before: CellRecord | None = None) -> None:
        self.record = record
        self._before = before
        self._parts = Parts(record)
        meta = {"id": static_id(record), "headline": headline(Report(record))}
        if before is not None:
            meta["before"] = side_text(side(before))
        used = len(self._esm) + len(self._css) + len(json.dumps(meta)) + _OTHER_STATE
        snapshot = self._parts.snapshot(int((STATE_BYTES - used) / _BASE64))
        super().__init__(meta=meta, snapshot=snapshot)
        self.on_msg(_answer)

    def __repr__(self) -> str:
        return "The explorer of this report opens where the cell is run."

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        found = super()._repr_mimebundle_(**kwargs)
        data, metadata = found if isinstance(found, tuple) else (found or {}, {})
        return {**data, "text/plain": repr(self)}, metadata

    def part(self, name: str) -> bytes:
        """Return a part of the record, or what is made of it on demand, as compressed JSON."""
        if name == "page":
            return _packed(to_explorer_page(self.record))
        if name == "diff" and self._before is not None:
            return _packed(diff_data(diff(self._before, self.record), self._before))
        return self._parts.compressed(name)


def _packed(value: Any) -> bytes:
    return gzip.compress(json.dumps(value).encode(), mtime=0)


def _answer(widget: DynamoWidget, message: Any, _: list[memoryview]) -> None:
    """Answer a request of the front end, a failure too, under the id that it came with."""
    if not isinstance(message, dict) or "part" not in message:
        return
    reply = {"re": message.get("id")}
    try:
        data = widget.part(str(message["part"]))
    except KeyError as error:
        widget.send({**reply, "error": error.args[0]})
    except Exception as error:
        widget.send({**reply, "error": f"{type(error).__name__}: {error}"})
    else:
        widget.send(reply, [data])


def _refs(value: Any) -> list[Ref]:
    """Return what the front end says is selected; nothing when that makes no sense."""
    try:
        return msgspec.convert(value, list[Ref])
    except msgspec.ValidationError:
        return []


#: The live widget of each notebook cell: a cell that runs again gives up its last one.
_live: weakref.WeakValueDictionary[str, DynamoWidget] = weakref.WeakValueDictionary()


def explorer(
    record: CellRecord, cell_id: str = "", before: CellRecord | None = None
) -> dict[str, Any]:
    """Return the MIME bundle of a record's explorer, to be shown right after the static output.

    `cell_id` is the notebook's id of the cell: the explorer of its last run is closed. `before` is
    the report to compare with.
    """
    widget = DynamoWidget(record, before)
    if cell_id:
        last = _live.get(cell_id)
        if last is not None:
            last.close()
        _live[cell_id] = widget
    data, _ = widget._repr_mimebundle_()
    return data
