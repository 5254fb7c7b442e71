"""manage.py catalog_check: every table of the planner loads, its units and ranges hold, and what refers to another table finds it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from planner.tables import check_catalogue


class Command(BaseCommand):
    help = "Check the planner's tables: units, ranges, references. Ends with 1 and the faults where there are any."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        counts, faults = check_catalogue()
        for name, count in counts.items():
            self.stdout.write(f"{name}: {count} rows")
        if faults:
            raise CommandError("\n".join(faults))
