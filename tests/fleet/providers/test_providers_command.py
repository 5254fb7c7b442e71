"""manage.py providers: each adapter by its name, with what it asks for, can, and what a stop means; for people and for programs."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from fleet.providers.base import Capability
from fleet.providers.registry import adapters

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture
def told() -> dict[str, dict[str, Any]]:
    out = StringIO()
    call_command("providers", "--json", stdout=out)
    return {row["kind"]: row for row in json.loads(out.getvalue())}


def test_every_adapter_is_named_with_its_capabilities_and_semantics(told):
    assert set(told) == set(adapters())
    for kind, row in told.items():
        adapter = adapters()[kind]
        assert row["label"] == adapter.label
        assert set(row["capabilities"]) == {str(capability) for capability in adapter.capabilities}
        assert row["semantics"]["can_stop"] == adapter.semantics.can_stop
        assert row["semantics"]["lost_on_stop"] == sorted(adapter.semantics.lost_on_stop)
        assert [ending["event"] for ending in row["endings"]] == [ending.event for ending in adapter.endings]


def test_fields_are_declared_and_hold_nothing_typed(told):
    (field,) = told["runpod"]["fields"]
    assert (field["name"], field["secret"], field["default"]) == ("api_key", True, "")


def test_what_follows_from_the_semantics_is_told(told):
    assert told["runpod"]["semantics"]["stop_loses_data"] is True
    assert told["vast"]["semantics"]["stop_loses_data"] is False
    assert told["lambda"]["semantics"]["can_stop"] is False


def test_people_get_words():
    out = StringIO()
    call_command("providers", stdout=out)
    text = out.getvalue()
    for adapter in adapters().values():
        assert f"{adapter.label} ({adapter.kind})" in text
    lines = text[text.index("Lambda (lambda)") :].splitlines()[:5]
    assert lines[1] == "  asks for   api_key (secret)"
    assert Capability.TERMINATE in lines[2]
    assert lines[3] == "  stop       impossible"
    assert lines[4] == "  terminate  goes on billing network volume; loses boot disk, gpu slot, public address"


@pytest.mark.parametrize("kind", adapters())
def test_every_adapter_has_its_line_in_the_table_of_providers(kind):
    text = (DOCS / "providers.md").read_text(encoding="utf-8")
    assert text.count(f"\n| `{kind}` |") == 1
