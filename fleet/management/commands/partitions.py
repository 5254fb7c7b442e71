"""manage.py partitions: make the days that samples will fall into, drop those nobody may see any more."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from fleet.telemetry.partitions import drop_old_partitions, ensure_partitions, existing_partitions


class Command(BaseCommand):
    help = "Keep the daily partitions of samples from two days back to two days ahead."

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        ensure_partitions(now=now)
        for name in drop_old_partitions(now=now):
            self.stdout.write(f"dropped {name}")
        self.stdout.write(", ".join(partition.name for partition in existing_partitions()))
