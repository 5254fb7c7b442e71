"""Rows held to the models of Microsoft's own SDK, which has no description to save: a name that they do not know is a drift."""

from __future__ import annotations

from typing import Any

from tests.fleet.providers.fakes.description import Drift


def check(model: str, row: dict[str, Any]) -> None:
    """Raises Drift for a property that the model of this name, or one inside it, does not have."""
    from azure.mgmt.compute import models

    walk(getattr(models, model)(row), row, model)


def walk(value: Any, row: dict[str, Any], place: str) -> None:
    fields = type(value)._attr_to_rest_field
    unknown = set(row) - {field._rest_name for field in fields.values()}
    if unknown:
        raise Drift(f"{place} has no {sorted(unknown)}")
    for name, field in fields.items():
        inner, raw = getattr(value, name, None), row.get(field._rest_name)
        pairs = zip(inner, raw or (), strict=True) if isinstance(inner, list) else [(inner, raw)]
        for each, told in pairs:
            if hasattr(type(each), "_attr_to_rest_field") and isinstance(told, dict):
                walk(each, told, f"{place}.{field._rest_name}")
