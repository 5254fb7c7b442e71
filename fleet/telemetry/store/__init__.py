"""Where readings are kept and read from: `TELEMETRY_STORE` names the engine (docs/decisions/0005-two-engines-for-readings.md)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from django.conf import settings

from fleet.telemetry.store.base import Store
from fleet.telemetry.store.postgresql import PostgresStore
from fleet.telemetry.store.prometheus import PrometheusStore

ENGINES: dict[str, Callable[[], Store]] = {"postgresql": PostgresStore, "prometheus": PrometheusStore}


def current_store() -> Store:
    return _store(settings.TELEMETRY_STORE)


@cache
def _store(name: str) -> Store:
    return ENGINES[name]()
