"""A claimed shard from the first query to the last: what its targets need, their reading, and what is noted of each."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from fleet.guard import Guard
from fleet.inventory.ssh_keys import note_offered_key
from fleet.meters import meters
from fleet.telemetry.scrape.plan import jobs_of, next_scrape_at
from fleet.telemetry.scrape.shard import Outcome, read_targets

# Only under the claim that they were read under: a reading that outlived it says nothing any more.
_NOTE = """
UPDATE fleet_scrapetarget t SET claim = NULL, next_scrape_at = u.next_scrape_at, yields_to = u.yields_to,
    failures = u.failures, error = u.error, error_detail = u.error_detail,
    failed_at = CASE WHEN u.error = '' THEN t.failed_at ELSE u.at END,
    last_ok_at = CASE WHEN u.was_read THEN u.at ELSE t.last_ok_at END,
    memory = CASE WHEN u.was_read THEN u.memory ELSE t.memory END,
    gives_gpus = CASE WHEN u.was_read THEN u.gives_gpus ELSE t.gives_gpus END,
    gives_host = CASE WHEN u.was_read THEN u.gives_host ELSE t.gives_host END
FROM jsonb_to_recordset(%s::jsonb) AS u(id bigint, at timestamptz, next_scrape_at timestamptz, failures int, error text,
    error_detail text, yields_to text, was_read boolean, gives_gpus boolean, gives_host boolean, memory jsonb)
WHERE t.id = u.id AND t.claim = %s
"""


def installation_guard() -> Guard:
    return Guard.of(settings.ALLOWED_NETWORKS)


def scrape_claim(claim: uuid.UUID) -> list[Outcome]:
    """Reads what the claim holds, nothing when it has run out or was worked off before. Raises UnavailableError."""
    jobs = jobs_of(claim, now=timezone.now())
    if not jobs:
        return []
    outcomes = asyncio.run(read_targets(jobs, guard=installation_guard()))
    note(outcomes, claim=claim)
    for outcome in outcomes:
        meters.count("scrapes", result=outcome.code or "ok")
    return outcomes


def note(outcomes: list[Outcome], *, claim: uuid.UUID) -> None:
    rows = [_row(outcome) for outcome in outcomes]
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, [json.dumps(rows), claim])
    for outcome in outcomes:
        if outcome.offered and outcome.job.ssh:
            note_offered_key(
                instance_id=outcome.job.instance_id,
                address=outcome.job.ssh.address,
                public_key=outcome.offered,
                now=datetime.fromtimestamp(outcome.at, UTC),
            )


def _row(outcome: Outcome) -> dict[str, Any]:
    job, at = outcome.job, datetime.fromtimestamp(outcome.at, UTC)
    failures = job.failures + 1 if outcome.code else 0
    # A page that was read in part is good enough to be asked again in time.
    wait_for = 0 if outcome.was_read else failures
    again = next_scrape_at(interval_seconds=job.interval_seconds, failures=wait_for, now=at)
    return {
        "id": job.target_id,
        "at": at.isoformat(),
        "next_scrape_at": again.isoformat(),
        "failures": failures,
        "error": outcome.code,
        "error_detail": outcome.detail[:200],
        "yields_to": outcome.yields_to,
        "was_read": outcome.was_read,
        "gives_gpus": outcome.gives_gpus,
        "gives_host": outcome.gives_host,
        "memory": outcome.memory,
    }
