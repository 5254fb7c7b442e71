"""What an adapter declares, as plain data: for programs, and for who compares providers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fleet.providers.base import Provider, StopSemantics


def declaration(adapter: type[Provider]) -> dict[str, Any]:
    """JSON-ready. Texts are English message ids; no option of any account is in it."""
    return {
        "kind": adapter.kind,
        "label": adapter.label,
        "rule_version": adapter.rule_version,
        "fields": [asdict(field) for field in adapter.fields],
        "capabilities": sorted(adapter.capabilities),
        # Whether an order that is sent twice with one token makes one machine.
        "create_is_idempotent": adapter.create_is_idempotent,
        "semantics": semantics_of(adapter.semantics),
        "endings": [asdict(ending) for ending in adapter.endings],
    }


def semantics_of(semantics: StopSemantics) -> dict[str, Any]:
    """Sets become sorted lists; what follows from them is told too."""
    told = {name: sorted(value) if isinstance(value, frozenset) else value for name, value in asdict(semantics).items()}
    return told | {
        "stop_loses_data": semantics.stop_loses_data,
        "terminate_loses_data": semantics.terminate_loses_data,
    }
