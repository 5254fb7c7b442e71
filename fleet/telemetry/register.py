"""What this slice shows on pages that are composed of many, and the partitions that a migrated database must have."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils import timezone

from fleet.telemetry.partitions import are_partitioned, ensure_partitions


def register_panels() -> None:
    post_migrate.connect(_make_partitions, dispatch_uid="fleet.telemetry.partitions")


def _make_partitions(sender: AppConfig, **_: Any) -> None:
    # Migrating back to before the tables were partitioned is no error.
    if sender.label == "fleet" and are_partitioned():
        ensure_partitions(now=timezone.now())
