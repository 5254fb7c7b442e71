"""The engines that TELEMETRY_STORE can name; apart from them, because settings are checked before models are there."""

from __future__ import annotations

STORES = ("postgresql", "prometheus")
