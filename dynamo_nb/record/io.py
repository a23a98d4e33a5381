"""The record's file: JSON in an envelope that names the format, gzip when the name ends in .gz."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import msgspec

from dynamo_nb.record.errors import RecordError
from dynamo_nb.record.types import SCHEMA_VERSION, CellRecord

__all__ = ["from_json", "load", "save", "to_json"]


class _Envelope(msgspec.Struct, kw_only=True):
    """What a file holds: the format's version first, so that a newer one is told as such."""

    dynamo_nb: int
    record: msgspec.Raw


def to_json(record: CellRecord) -> bytes:
    """Return a record as JSON."""
    envelope = _Envelope(dynamo_nb=record.schema, record=msgspec.Raw(msgspec.json.encode(record)))
    return msgspec.json.encode(envelope)


def from_json(data: bytes, name: str = "this text") -> CellRecord:
    """Return the record that JSON holds.

    Raises
    ------
    RecordError
        When the text is truncated, not ours, or from a newer schema; `name` says where it is from.
    """
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
    except msgspec.ValidationError as error:
        msg = f"{name} is JSON, but not a record of dynamo_nb ({error})."
        raise RecordError(msg) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if data.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
            msg = (
                f"{name} is a page, not a record: open it in a browser. %dynamo save FILE.json "
                "makes a record."
            )
            raise RecordError(msg) from error
        msg = f"{name} is no record of dynamo_nb, or it is cut short: {error}."
        raise RecordError(msg) from error
    if envelope.dynamo_nb > SCHEMA_VERSION:
        msg = (
            f"{name} was written with schema {envelope.dynamo_nb}; this dynamo_nb reads up to "
            f"{SCHEMA_VERSION}. Upgrade it: pip install --upgrade dynamo_nb."
        )
        raise RecordError(msg)
    try:
        return msgspec.json.decode(envelope.record, type=CellRecord)
    except msgspec.DecodeError as error:
        msg = f"{name} has a record that can't be read: {error}."
        raise RecordError(msg) from error


def save(record: CellRecord, path: str | Path) -> None:
    """Write a record to a file, compressed when the name ends in `.gz`."""
    path = Path(path).expanduser()
    data = to_json(record)
    try:
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        msg = f"Can't write {path}: {error.strerror}."
        raise RecordError(msg) from error


def load(path: str | Path) -> CellRecord:
    """Read a record from a file that `save` wrote, compressed or not whatever its name."""
    path = Path(path).expanduser()
    try:
        data = path.read_bytes()
    except OSError as error:
        msg = f"Can't read {path}: {error.strerror}."
        raise RecordError(msg) from error
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            msg = f"{path} is compressed and cut short or damaged: {error}."
            raise RecordError(msg) from error
    return from_json(data, str(path))
