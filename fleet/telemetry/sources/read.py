"""Reads a source up to now, a stretch at a time, and stores what it held through ingest's own writer.

A stretch is read again as long as scrapes of it may still be under way: samples that are there already are stored once. A source that could not be read
for hours, or whose past was asked for, is caught up with in stretches, the oldest first. Where the answer for one would be too large, half of it is asked for.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from fleet.inventory.credentials import CredentialError, open_sealed
from fleet.telemetry.ingest.errors import RefusalError
from fleet.telemetry.sanitise import clean
from fleet.telemetry.scrape.fetch import FetchError, make_client
from fleet.telemetry.scrape.plan import next_scrape_at
from fleet.telemetry.scrape.run import installation_guard
from fleet.telemetry.scrape.shard import open_shard
from fleet.telemetry.sources.ask import DEADLINE_SECONDS, samples_between
from fleet.telemetry.sources.matching import fed_by_others, note_labels
from fleet.telemetry.sources.models import PrometheusSource
from fleet.telemetry.sources.pages import GPU_NAMES, HOST_NAMES, MachineReadings, Series, pages_of, readings_of
from fleet.telemetry.wire import Batch

logger = logging.getLogger(__name__)

# Scrapes have the moment at which they began and may take this long.
SETTLE = timedelta(seconds=30)
# What counters stood at before a stretch.
OVERLAP = timedelta(seconds=120)
LONGEST_STRETCH = timedelta(minutes=10)
SHORTEST_STRETCH = timedelta(seconds=30)
# Older samples are not taken by ingest.
OLDEST = timedelta(hours=47)
BUDGET_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """`code` "": everything up to `read_until` is stored; else a key of scrape.words.FAILURES."""

    read_until: datetime
    code: str = ""
    detail: str = ""


def read_source(source_id: int, *, claim: uuid.UUID, ends: float | None = None) -> Outcome | None:
    """ends: after this moment of the monotonic clock no stretch is begun but the first. None: the claim has run out, or the source was changed meanwhile."""
    source = PrometheusSource.objects.select_related("team").filter(pk=source_id, claim=claim, enabled=True).first()
    if source is None:
        return None
    outcome = _read(source, ends=time.monotonic() + BUDGET_SECONDS if ends is None else ends)
    now = timezone.now()
    failures = source.failures + 1 if outcome.code else 0
    changed: dict[str, Any] = {"failed_at": now} if outcome.code else {"last_ok_at": now}
    # Until it has caught up, a source is read on at once.
    behind = not outcome.code and outcome.read_until < now - LONGEST_STRETCH
    wait = next_scrape_at(interval_seconds=source.interval_seconds, failures=failures, now=now)
    PrometheusSource.objects.filter(pk=source.pk, claim=claim).update(
        claim=None,
        next_read_at=now if behind else wait,
        read_until=outcome.read_until,
        failures=failures,
        error=outcome.code,
        error_detail=clean(outcome.detail)[:200],
        **changed,
    )
    return outcome


def _read(source: PrometheusSource, *, ends: float) -> Outcome:
    """Stretches until now, or until the time is spent."""
    try:
        token = open_sealed(source.token).get("token", "")
    except CredentialError:
        return Outcome(source.read_until, "sealed")
    reached, longest = max(source.read_until, timezone.now() - OLDEST), LONGEST_STRETCH
    while True:
        now = timezone.now()
        until = min(now, reached + longest)
        code, detail = _try_stretch(source, token, since=reached, until=until, now=now)
        if code == "too_large":
            longest = max(SHORTEST_STRETCH, (until - reached) / 2)
            if until - reached > SHORTEST_STRETCH:
                continue
            code = "too_many"
        if code:
            return Outcome(reached, code, detail)
        reached = max(reached, min(until, now - SETTLE))
        if until == now or time.monotonic() >= ends:
            return Outcome(reached)


def _try_stretch(
    source: PrometheusSource, token: str, *, since: datetime, until: datetime, now: datetime
) -> tuple[str, str]:
    """The key of scrape.words.FAILURES and the detail of what went wrong; ("", "") where it was read and stored."""
    try:
        _read_stretch(source, token, since=since, until=until, now=now)
    except FetchError as error:
        return error.code, error.detail
    except RefusalError as error:
        return "not_stored", error.detail
    except SoftTimeLimitExceeded:
        return "timeout", f"{DEADLINE_SECONDS:.0f}"
    except (OperationalError, InterfaceError):
        # The database is away: nothing could be noted of it now either.
        raise
    except Exception:
        # Whatever a hostile answer can set off must be seen on the page and back off like any other failure.
        logger.exception("Source %d could not be read", source.pk)
        return "bug", ""
    return "", ""


def _read_stretch(source: PrometheusSource, token: str, *, since: datetime, until: datetime, now: datetime) -> None:
    """Raises FetchError and RefusalError."""
    series = asyncio.run(_ask(source, token, since=since, until=until))
    pages = pages_of(series, gpu_label=source.gpu_label, host_label=source.host_label)
    found = {label: readings_of(machine, after=since.timestamp()) for label, machine in pages.items()}
    rows = note_labels(source, found, now=now)
    for label, row in rows.items():
        found[label].stand_for(row.sample_seconds)
    instance_ids = {label: row.instance_id for label, row in rows.items() if row.instance_id is not None}
    others = fed_by_others(source, set(instance_ids.values()), now=now)
    mine = {label: pk for label, pk in instance_ids.items() if pk not in others}
    if mine:
        asyncio.run(_store(found, mine))


async def _ask(source: PrometheusSource, token: str, *, since: datetime, until: datetime) -> list[Series]:
    """Raises FetchError, also where both answers together take longer than DEADLINE_SECONDS."""
    seconds = round((until - since + OVERLAP).total_seconds())
    found: list[Series] = []
    try:
        async with asyncio.timeout(DEADLINE_SECONDS), make_client(installation_guard(), connections=2) as client:
            for names in (GPU_NAMES, HOST_NAMES):
                found += await samples_between(
                    client,
                    url=source.url,
                    token=token,
                    tenant=source.tenant,
                    names=sorted(names),
                    selector=source.selector,
                    until=until.timestamp(),
                    seconds=seconds,
                )
    except TimeoutError:
        raise FetchError("timeout", f"{DEADLINE_SECONDS:.0f}") from None
    return found


async def _store(found: Mapping[str, MachineReadings], instance_ids: Mapping[str, int]) -> None:
    """Raises RefusalError once everything else is stored."""
    async with open_shard(installation_guard()) as shard:
        await shard.load(set(instance_ids.values()))
        work = (
            shard.store_batch(pk, _batch(found[label]), found[label].dropped)
            for label, pk in instance_ids.items()
            if found[label].samples
        )
        for outcome in await asyncio.gather(*work, return_exceptions=True):
            if outcome is not None:
                raise outcome


def _batch(readings: MachineReadings) -> Batch:
    return Batch(
        v=1,
        sent_at=datetime.now(UTC).timestamp(),
        samples=readings.samples,
        events=readings.events,
        inventory=readings.inventory,
    )
