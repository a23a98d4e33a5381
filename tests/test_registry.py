"""Torch's registry of graph breaks, read from the installed wheel."""

from __future__ import annotations

from typing import Any

import pytest
import torch._dynamo

from dynamo_nb.capture import registry
from dynamo_nb.capture.breaks import filled

KIND = "Failed to trace builtin operator"


def test_entry_is_found_by_kind_and_by_number() -> None:
    found = registry.by_kind(KIND)
    assert found is not None
    assert found == registry.by_id(found.id.lower())
    assert "trace builtin operator" in found.explanation
    assert any("reorderable_logging_functions" in hint for hint in found.hints)


def test_values_of_one_break_and_source_code_are_left_out() -> None:
    texts = [registry.by_kind(kind) for kind in registry.kinds()]
    assert len(texts) > 400
    assert not [item for item in texts if item is not None and "{" in item.explanation]
    branching = registry.by_kind("Data-dependent branching")
    assert branching is not None
    assert branching.explanation.startswith("Detected data-dependent branching")


def test_break_keeps_what_it_has_and_gets_what_it_lacks() -> None:
    assert filled(KIND, {"explanation": "Own.", "hints": ["Do."]})["explanation"] == "Own."
    assert filled(KIND, {"explanation": "Own.", "hints": []})["hints"]
    assert filled("nothing of that name", {}) == {"explanation": "", "hints": []}


def test_torch_without_a_registry_costs_the_hints_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    registry._table.cache_clear()
    monkeypatch.setattr(torch._dynamo, "__file__", str(tmp_path / "__init__.py"))
    assert registry.by_kind(KIND) is None
    registry._table.cache_clear()
