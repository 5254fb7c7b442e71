"""What the database tells at this moment: a dozen small questions, none of which grows with the samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Case, CharField, Count, Max, Min, Q, QuerySet, Value, When
from prometheus_client.core import GaugeMetricFamily, Metric

from fleet.inventory.models import ProviderAccount
from fleet.providers.base import Capability
from fleet.providers.registry import kinds_with
from fleet.telemetry.models import Agent, ScrapeTarget
from fleet.telemetry.rollups.columns import ROLLUPS
from fleet.telemetry.rollups.models import LateBucket, RollupProgress

# An agent that was told to report every five minutes is silent only after that.
AGENT_SLACK = timedelta(seconds=60)


def families(now: datetime) -> Iterator[Metric]:
    """Raises DatabaseError."""
    yield from _rollups(now)
    yield from _providers(now)
    yield from _targets(now)
    yield from _agents(now)
    yield from _database()


def _gauge(name: str, description: str, labels: Iterable[str], points: Iterable[tuple[Iterable[str], float]]) -> Metric:
    family = GaugeMetricFamily(name, description, labels=list(labels))
    for values, figure in points:
        family.add_metric(list(values), figure)
    return family


def _rollups(now: datetime) -> Iterator[Metric]:
    names = {resolution.seconds: resolution.name for resolution in ROLLUPS}
    reach = RollupProgress.objects.filter(resolution__in=names.values()).values_list("resolution", "rolled_until")
    lag = [((name,), (now - until).total_seconds()) for name, until in reach]
    yield _gauge("rackrent_rollup_lag_seconds", "Since the end of the last rolled bucket.", ["resolution"], lag)
    late = dict(LateBucket.objects.values_list("bucket_seconds").annotate(n=Count("pk")).order_by())
    waiting = [((name,), late.get(seconds, 0)) for seconds, name in names.items()]
    yield _gauge(
        "rackrent_rollup_late_rows", "Notes of late samples that wait to be rolled up.", ["resolution"], waiting
    )


def _providers(now: datetime) -> Iterator[Metric]:
    live = ProviderAccount.objects.filter(disconnected_at=None, kind__in=kinds_with(Capability.LIST))
    state = _which(paused=Q(enabled=False), failing=Q(failures__gt=0), unread=Q(listed_at=None), otherwise="ok")
    yield _gauge(
        "rackrent_provider_accounts",
        "Accounts, by how reading them goes.",
        ["provider", "state"],
        _tally(live, state, "kind"),
    )
    oldest = live.filter(enabled=True, listed_at__isnull=False).values_list("kind").annotate(at=Min("listed_at"))
    ages = [((kind,), (now - at).total_seconds()) for kind, at in oldest.order_by("kind")]
    yield _gauge(
        "rackrent_provider_listing_age_seconds", "Of the account that was read longest ago.", ["provider"], ages
    )


def _targets(now: datetime) -> Iterator[Metric]:
    every = ScrapeTarget.objects.filter(instance__gone_at=None)
    state = _which(off=Q(enabled=False), failing=Q(failures__gt=0), unread=Q(last_ok_at=None), otherwise="ok")
    yield _gauge("rackrent_scrape_targets", "Exporters, by how reading them goes.", ["state"], _tally(every, state))
    first = every.filter(enabled=True).aggregate(at=Min("next_scrape_at"))["at"]
    overdue = max(0.0, (now - first).total_seconds()) if first else 0.0
    yield _gauge(
        "rackrent_scrape_overdue_seconds",
        "Since the time of the exporter that has waited longest.",
        [],
        [((), overdue)],
    )


def _agents(now: datetime) -> Iterator[Metric]:
    every = Agent.objects.filter(revoked_at=None, instance__gone_at=None)
    seconds = every.aggregate(most=Max("report_seconds"))["most"] or 0
    reporting = Q(batch_at__gt=now - AGENT_SLACK - timedelta(seconds=seconds))
    state = _which(paused=Q(paused=True), reporting=reporting, otherwise="silent")
    yield _gauge("rackrent_agents", "Agents, by whether they report.", ["state"], _tally(every, state))


def _which(*, otherwise: str, **states: Q) -> Case:
    """The first of `states` that holds."""
    return Case(
        *(When(condition, then=Value(state)) for state, condition in states.items()),
        default=Value(otherwise),
        output_field=CharField(),
    )


def _tally(rows: QuerySet[Any], state: Case, *by: str) -> list[tuple[list[str], float]]:
    grouped = rows.annotate(condition=state).values_list(*by, "condition").annotate(n=Count("pk"))
    return [(list(names), count) for *names, count in grouped.order_by(*by, "condition")]


_CONNECTIONS = """
SELECT coalesce(state, 'other'), count(*) FROM pg_stat_activity WHERE datname = current_database() GROUP BY 1 ORDER BY 1
"""


def _database() -> Iterator[Metric]:
    with connection.cursor() as cursor:
        cursor.execute(_CONNECTIONS)
        states = [((state,), count) for state, count in cursor.fetchall()]
        cursor.execute("SELECT current_setting('max_connections')::int, pg_database_size(current_database())")
        limit, size = cursor.fetchone()
    yield _gauge(
        "rackrent_database_connections", "Connections to our database, by PostgreSQL's state.", ["state"], states
    )
    yield _gauge("rackrent_database_connections_limit", "max_connections of the server.", [], [((), limit)])
    yield _gauge("rackrent_database_size_bytes", "Size of our database on disk.", [], [((), size)])
