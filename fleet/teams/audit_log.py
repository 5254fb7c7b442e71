"""Reading the audit log: filtered, and as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from fleet.spreadsheets import disarmed
from fleet.teams.models import AuditEntry, Team

COLUMNS = ("at", "person", "via", "ip_address", "action", "target_type", "target_id", "target", "old", "new")


def find_entries(
    *, team: Team, person: str = "", action: str = "", since: date | None = None, until: date | None = None
) -> QuerySet[AuditEntry]:
    """Newest first. `person` and `action` match anywhere in the word; days are whole, in the current time zone."""
    wanted = Q(team=team)
    if person:
        wanted &= Q(actor_label__icontains=person)
    if action:
        wanted &= Q(action__icontains=action)
    if since:
        wanted &= Q(at__gte=start_of(since))
    if until:
        wanted &= Q(at__lt=start_of(until + timedelta(days=1)))
    return AuditEntry.objects.filter(wanted).order_by("-at", "-pk")


def start_of(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()))


class Line:
    """The file that csv.writer wants: hands each written line back."""

    def write(self, line: str) -> str:
        return line


def csv_lines(entries: Iterable[AuditEntry]) -> Iterator[str]:
    """Starts with a byte order mark, without which Excel reads Chinese names as Latin ones."""
    writer = csv.writer(Line())
    yield "\ufeff" + str(writer.writerow(COLUMNS))
    for entry in entries:
        yield str(writer.writerow([disarmed(cell) for cell in cells(entry)]))


def cells(entry: AuditEntry) -> list[str | None]:
    return [
        entry.at.isoformat(),
        entry.actor_label,
        entry.via,
        entry.ip_address,
        entry.action,
        entry.target_type,
        entry.target_id,
        entry.target_label,
        json.dumps(entry.old, ensure_ascii=False) if entry.old else None,
        json.dumps(entry.new, ensure_ascii=False) if entry.new else None,
    ]
