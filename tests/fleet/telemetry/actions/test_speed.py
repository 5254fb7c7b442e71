"""Bytes for a machine that measures its network: only while it was asked to test itself, and within an hour's bound."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.ingest import speed
from fleet.telemetry.ingest.body import MAX_COMPRESSED_BYTES

pytestmark = pytest.mark.django_db(transaction=True)

DOWN_BYTES = speed.CHUNK_BYTES * speed.DOWN_CHUNKS


@pytest.fixture
async def asked(machine):
    soon = timezone.now() + timedelta(minutes=1)
    return await AgentAction.objects.acreate(instance=machine, name="accept", state="running", expires_at=soon)


async def get(reporter):
    return await reporter.client.get("/ingest/v1/speed", headers={"Authorization": f"Bearer {reporter.token}"})


async def test_a_machine_under_test_gets_bytes_and_sends_some(reporter, asked) -> None:
    answer = await get(reporter)
    assert (answer.status_code, len(answer.content)) == (200, DOWN_BYTES)
    assert (await reporter.post("speed", b"x" * (1 << 20))).status_code == 200
    assert (await reporter.post("speed", b"x" * (MAX_COMPRESSED_BYTES + 1))).status_code == 413


@pytest.mark.parametrize("changes", [{"name": "pre_stop"}, {"state": "done"}])
async def test_a_machine_that_was_not_asked_gets_none(reporter, asked, changes) -> None:
    await AgentAction.objects.aupdate(**changes)
    assert (await get(reporter)).status_code == 404
    assert (await reporter.post("speed", b"x")).status_code == 404


async def test_nobody_gets_any_without_an_agents_token(reporter, asked) -> None:
    reporter.token = "rra_made_up"
    assert (await get(reporter)).status_code == 401


async def test_an_hour_has_a_bound(reporter, asked, monkeypatch) -> None:
    monkeypatch.setattr(speed, "BYTES_AN_HOUR", 2 * DOWN_BYTES)
    assert [(await get(reporter)).status_code for _ in range(3)] == [200, 200, 429]


async def test_so_many_at_once_and_no_more(reporter, asked, monkeypatch) -> None:
    monkeypatch.setattr(speed, "AT_ONCE", 0)
    assert (await get(reporter)).status_code == 429
