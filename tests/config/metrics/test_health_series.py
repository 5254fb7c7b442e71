"""What /metrics says of an installation: rows at this moment, counts of all processes, and what could not be read."""

from __future__ import annotations

import asyncio
import subprocess
from datetime import timedelta
from time import time
from typing import Any

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from config.celery import app
from config.metrics import rows
from fleet.inventory.models import ProviderAccount
from fleet.inventory.poll import poll_account
from fleet.meters import meters
from fleet.telemetry.models import Agent, ScrapeTarget
from fleet.telemetry.rollups.models import LateBucket, RollupProgress
from tests.config.metrics.conftest import ask, series
from tests.fleet.telemetry.conftest import batch, http, ingest, no_connection_left, reporter_for  # noqa: F401  # fixtures
from tests.programs import needs

pytestmark = pytest.mark.django_db(transaction=True)


def told(now) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in rows.families(now)
    }


def test_rollups_say_how_far_behind_they_are(make_instance):
    now = timezone.now()
    RollupProgress.objects.create(resolution="5min", rolled_until=now - timedelta(minutes=7))
    RollupProgress.objects.create(resolution="states", rolled_until=now)
    LateBucket.objects.create(instance=make_instance(), bucket_at=now, bucket_seconds=300)
    found = told(now)
    assert found["rackrent_rollup_lag_seconds"] == {("5min",): 420}
    assert found["rackrent_rollup_late_rows"] == {("5min",): 1, ("1h",): 0}


def test_accounts_are_told_by_how_reading_them_goes(acme, account):
    now = timezone.now()
    for name, age, failures, enabled in (("a", 60, 0, True), ("b", 600, 3, True), ("c", 9000, 0, False)):
        ProviderAccount.objects.create(
            team=acme, kind="aws", name=name, failures=failures, enabled=enabled, listed_at=now - timedelta(seconds=age)
        )
    found = told(now)
    assert found["rackrent_provider_accounts"] == {
        ("aws", "failing"): 1, ("aws", "ok"): 1, ("aws", "paused"): 1,
    }  # fmt: skip
    assert found["rackrent_provider_listing_age_seconds"] == {("aws",): 600}


def test_exporters_and_agents_are_told_by_whether_they_speak(make_instance):
    now = timezone.now()
    for number, (failures, enabled) in enumerate([(0, True), (2, True), (0, False)]):
        ScrapeTarget.objects.create(
            instance=make_instance(name=f"m{number}"),
            url="http://203.0.113.7/metrics",
            failures=failures,
            enabled=enabled,
            last_ok_at=now,
            next_scrape_at=now - timedelta(seconds=40),
        )
    for number, age in enumerate((5, 500)):
        agent = {"token_hash": str(number), "prefix": "rra", "batch_at": now - timedelta(seconds=age)}
        Agent.objects.create(instance=make_instance(name=f"a{number}"), **agent)
    found = told(now)
    assert found["rackrent_scrape_targets"] == {("failing",): 1, ("off",): 1, ("ok",): 1}
    assert found["rackrent_scrape_overdue_seconds"] == {(): 40}
    assert found["rackrent_agents"] == {("reporting",): 1, ("silent",): 1}


def test_the_database_tells_of_itself(db):
    found = told(timezone.now())
    assert found["rackrent_database_connections"]["active",] >= 1
    assert found["rackrent_database_connections_limit"][()] >= 10
    assert found["rackrent_database_size_bytes"][()] > 1_000_000


def test_a_larger_installation_costs_no_more_queries(make_instance):
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            list(rows.families(timezone.now()))
        return len(seen)

    before = queries()
    for number in range(5):
        machine = make_instance(name=f"m{number}")
        Agent.objects.create(instance=machine, token_hash=str(number), prefix="rra")
        ScrapeTarget.objects.create(instance=machine, url="http://203.0.113.7/metrics")
    assert queries() == before <= 10


async def test_ingest_is_counted(make_instance, reporter_for, open_page):  # noqa: F811
    reporter = await reporter_for(await sync_to_async(make_instance)())
    assert (
        await reporter.samples({"at": time(), "host": {"cpu_percent": 34.0}}, {"at": 5.0, "host": {}})
    ).status_code == 200
    assert (await reporter.post("samples", b"{")).status_code == 400
    reporter.token = "nobody"
    assert (await reporter.post("samples", batch())).status_code == 401
    meters.flush(now=time())
    found = series((await ask()).text)
    assert found["rackrent_ingest_requests_total"] == {
        ("ok", "samples"): 1,
        ("bad_json", "samples"): 1,
        ("bad_token", "samples"): 1,
    }
    assert found["rackrent_samples_stored_total"] == {("host", "agent"): 1}
    assert found["rackrent_values_dropped_total"] == {("agent",): 1}
    assert found["rackrent_ingest_pool_connections"][()] >= 1
    assert found["rackrent_websocket_clients"] == {(): 0}


def test_polls_are_counted_by_provider_and_error(acme):
    account = ProviderAccount.objects.create(team=acme, kind="aws", name="AWS", credentials=b"broken")
    outcome = poll_account(account=account, now=timezone.now())
    assert outcome.error is not None
    assert meters._counts == {("provider_polls", (("provider", "aws"), ("result", outcome.error.kind))): 1}


async def test_the_whole_page(open_page):
    with app.connection_for_write() as broker:
        queue: Any = broker.default_channel
        queue.client.delete("celery")
        queue.client.lpush("celery", "one", "two")
        try:
            text = (await ask()).text
        finally:
            queue.client.delete("celery")
    found = series(text)
    assert found["rackrent_queue_tasks"] == {("celery",): 2, ("long",): 0, ("outside",): 0}
    assert found["rackrent_part_up"]["database",] == found["rackrent_part_up"]["broker",] == 1
    assert set(found["rackrent_metrics_section_up"].values()) == {1}
    assert await asyncio.to_thread(promtool, text) == (0, "")


def promtool(text: str) -> tuple[int, str]:
    words = [needs("promtool"), "check", "metrics"]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


async def test_without_the_database_the_rest_is_there(open_page, monkeypatch):
    def away(_now):
        raise psycopg.OperationalError

    monkeypatch.setattr(rows, "families", away)
    found = series((await ask()).text)
    assert found["rackrent_metrics_section_up"]["database",] == 0
    assert found["rackrent_metrics_section_up"]["counters",] == 1
    assert "rackrent_queue_tasks" in found
    assert "rackrent_agents" not in found
