"""Rows of quality over the API: a team's own, by machine and time, with words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.quality.models import HealthDay, NeighbourEvidence
from tests.fleet.quality.health.conftest import NOW

EVIDENCE, DAYS = "/api/v1/neighbour-evidence/", "/api/v1/health-days/"


@pytest.fixture
def machine(make_instance):
    machine = make_instance()
    for hour, score in ((1, 72), (2, 10)):
        reasons = [{"code": "cpu_pressure", "before": 0.0, "now": 16.5}]
        NeighbourEvidence.objects.create(instance=machine, hour=NOW - timedelta(hours=hour), score=score, reasons=reasons)  # fmt: skip
    for day in (0, 1):
        HealthDay.objects.create(instance=machine, provider="runpod", day=NOW.date() - timedelta(days=day))
    return machine


def rows(client, address: str, **asked: object) -> list[dict[str, object]]:
    answer = client.get(address, asked)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, object]] = answer.json()["results"]
    return found


def test_evidence_by_score_and_time(client, vera, machine):
    client.force_login(vera)
    (row,) = rows(client, EVIDENCE, at_least=40)
    assert (row["instance"], row["score"]) == (machine.pk, 72)
    assert row["reasons"] == [
        {"code": "cpu_pressure", "before": 0.0, "now": 16.5, "words": "programs waited for a core 16% of the time, usually 0%"}
    ]  # fmt: skip
    assert [row["score"] for row in rows(client, EVIDENCE, until=(NOW - timedelta(hours=1)).isoformat())] == [10]
    assert rows(client, EVIDENCE, instance=machine.pk + 1) == []


def test_days_by_provider_and_day(client, vera, machine):
    client.force_login(vera)
    assert [row["day"] for row in rows(client, DAYS, since="2026-11-17")] == ["2026-11-17"]
    assert len(rows(client, DAYS, provider="runpod")) == 2
    assert rows(client, DAYS, provider="vast") == []
    assert client.get(DAYS, {"since": "yesterday"}).status_code == 400


def test_another_team_sees_nothing(client, charlie, machine):
    client.force_login(charlie)
    assert rows(client, EVIDENCE) == []
    assert rows(client, DAYS) == []
