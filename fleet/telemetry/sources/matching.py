"""Which machine a label of a Prometheus stands for: by a person's word, else by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from fleet.inventory.models import Instance
from fleet.teams.audit import Actor
from fleet.telemetry.machines import add_own_machine
from fleet.telemetry.models import ScrapeTarget
from fleet.telemetry.scrape.plan import is_read, reporting
from fleet.telemetry.sources.models import PrometheusSource, SourceMachine
from fleet.telemetry.sources.pages import MachineReadings

# A server that invents labels must not fill the table.
MAX_LABELS = 5_000
# Another source that gave a machine's samples so lately feeds it still.
FEEDS_FOR = timedelta(minutes=5)


def note_labels(
    source: PrometheusSource, found: Mapping[str, MachineReadings], *, now: datetime
) -> dict[str, SourceMachine]:
    """A row for every label that had samples, matched where it can be. Returns those with a machine, by label."""
    rows = {row.label: row for row in source.machines.all()}
    for label, readings in found.items():
        if not readings.samples:
            continue
        newest = datetime.fromtimestamp(readings.samples[-1].at, UTC)
        if label not in rows and len(rows) < MAX_LABELS:
            rows[label] = SourceMachine(source=source, label=label, last_at=newest)
        elif label not in rows:
            continue
        row = rows[label]
        row.last_at = max(newest, row.last_at)
        row.sample_seconds = readings.sample_seconds or row.sample_seconds
    _match([row for row in rows.values() if row.instance_id is None and not row.chosen], source, now=now)
    seen = [rows[label] for label in found if label in rows]
    SourceMachine.objects.bulk_create(
        seen,
        update_conflicts=True,
        unique_fields=["source", "label"],
        update_fields=["last_at", "sample_seconds"],
    )
    _keep_matches(seen)
    return {row.label: row for row in seen if row.instance_id is not None}


def _keep_matches(rows: Iterable[SourceMachine]) -> None:
    """Unless a person has chosen meanwhile."""
    for row in rows:
        if row.instance_id is not None and not row.chosen:
            open_row = SourceMachine.objects.filter(
                source_id=row.source_id, label=row.label, instance=None, chosen=False
            )
            open_row.update(instance=row.instance_id)


def _match(rows: Iterable[SourceMachine], source: PrometheusSource, *, now: datetime) -> None:
    known: dict[str, set[int]] = {}
    machines = list(Instance.objects.filter(team=source.team, gone_at=None))
    for machine in machines:
        for name in _names_of(machine):
            known.setdefault(name, set()).add(machine.pk)
    for row in rows:
        candidates = known.get(row.label.lower()) or known.get(row.label.lower().partition(".")[0]) or set()
        if len(candidates) == 1:
            row.instance_id = next(iter(candidates))
        elif not candidates and source.adds_machines:
            actor = Actor.system("prometheus_source")
            row.instance = add_own_machine(actor=actor, team=source.team, hostname=row.label, project=None, now=now)


def _names_of(machine: Instance) -> set[str]:
    hosts = {str(way.get("host", "")) for way in machine.ssh}
    return {name.lower() for name in (machine.name, machine.external_id, *hosts) if name}


def fed_by_others(source: PrometheusSource, instance_ids: set[int], *, now: datetime) -> set[int]:
    """Machines whose agent or exporters report, or that a source which was added before this one gives: two samples of one thing would count twice."""
    targets = ScrapeTarget.objects.filter(instance_id__in=instance_ids, enabled=True).defer("memory", "token")
    others = SourceMachine.objects.filter(
        instance_id__in=instance_ids,
        source_id__lt=source.pk,
        source__enabled=True,
        last_at__gt=now - FEEDS_FOR,
    )
    return {
        *reporting(instance_ids, now=now),
        *(target.instance_id for target in targets if is_read(target, now=now)),
        *others.values_list("instance_id", flat=True),
    }
