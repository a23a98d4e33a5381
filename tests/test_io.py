"""The record's file: what goes in comes out, and bad files are told clearly."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dynamo_nb.record.errors import RecordError
from dynamo_nb.record.io import from_json, load, save, to_json
from dynamo_nb.record.types import CellRecord
from tests.capturing import Captured


@pytest.fixture(scope="module")
def record() -> CellRecord:
    return Captured("f = torch.compile(lambda x: x.sin() + 1)\nf(torch.ones(3))\n").record


def test_json_round_trip(record: CellRecord) -> None:
    assert CellRecord.from_json(record.to_json()) == record


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_file_round_trip(record: CellRecord, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    save(record, path)
    assert load(path) == record
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


def test_compression_goes_by_content_not_by_name(record: CellRecord, tmp_path: Path) -> None:
    path = tmp_path / "renamed.json"
    path.write_bytes(gzip.compress(to_json(record)))
    assert load(path) == record


def test_unknown_and_missing_keys_are_tolerated() -> None:
    assert from_json(b'{"dynamo_nb": 1, "record": {"colour": "red"}, "more": 1}') == CellRecord()


BAD = {
    "truncated": (b'{"dynamo_nb": 1, "record": {"source": "a', "cut short"),
    "not ours": (b'{"cells": []}', "not a record of dynamo_nb"),
    "no json": (b"\x89PNG", "no record of dynamo_nb"),
    "newer": (b'{"dynamo_nb": 99, "record": {}}', "schema 99"),
    "empty": (b"", "cut short"),
    "wrong type": (b'{"dynamo_nb": 1, "record": {"compiles": 3}}', "can't be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_told(tmp_path: Path, case: str) -> None:
    data, message = BAD[case]
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    with pytest.raises(RecordError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_missing_truncated_and_unwritable(record: CellRecord, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="No such file"):
        load(tmp_path / "absent.json")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(to_json(record))[:-20])
    with pytest.raises(RecordError, match="cut short or damaged"):
        load(tmp_path / "cut.gz")
    with pytest.raises(RecordError, match="Can't write"):
        save(record, tmp_path / "no" / "such" / "folder.json")


def test_a_page_is_named_as_one(tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    page.write_text("<!DOCTYPE html><p>hi")
    with pytest.raises(RecordError, match="is a page, not a record"):
        load(page)
