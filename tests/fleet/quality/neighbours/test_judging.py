"""The hourly task writes what it finds once, in as many queries for many machines as for one, and tells a person where it goes on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.alerts.models import Alert, AlertEvent
from fleet.alerts.words import title_of, why_of
from fleet.providers.base import Tenancy
from fleet.quality.models import NeighbourEvidence
from fleet.quality.neighbours.judging import judge_neighbours, prune_evidence
from fleet.quality.neighbours.telling import tell_of_neighbours
from fleet.telemetry.rollups.models import RollupProgress
from tests.fleet.quality.neighbours.sandbox_hours import hours_of
from tests.fleet.quality.neighbours.seeding import HOUR, roll

HOURS = hours_of("sweep-4090-02")
NOW = HOURS[-1].at + HOUR + timedelta(minutes=9)


@pytest.fixture
def crowded(make_instance):
    machine = make_instance(name="sweep-4090-02", gpus=1, tenancy=Tenancy.COMMUNITY_HOST)
    roll(machine, HOURS)
    return machine


def alert() -> Alert:
    return Alert.objects.get(cause="machine.noisy_neighbour")


def test_a_day_of_hours_is_judged_at_once_and_the_reasons_are_kept(crowded):
    assert judge_neighbours(now=NOW) == 16
    row = NeighbourEvidence.objects.get(instance=crowded, hour=HOURS[12].at)
    assert row.score >= 90
    assert {reason["code"] for reason in row.reasons} == {"cpu_pressure", "io_pressure", "disk_latency", "slower"}
    pressure = next(reason for reason in row.reasons if reason["code"] == "cpu_pressure")
    assert pressure["before"] < 1
    assert pressure["now"] > 20


def test_judged_again_only_the_newest_hours_are_looked_at_and_nothing_changes(crowded):
    judge_neighbours(now=NOW)
    kept = list(NeighbourEvidence.objects.values("hour", "score", "reasons").order_by("hour"))
    assert judge_neighbours(now=NOW) == 3
    assert list(NeighbourEvidence.objects.values("hour", "score", "reasons").order_by("hour")) == kept


def test_hours_that_are_not_rolled_up_wait(crowded):
    RollupProgress.objects.update(rolled_until=HOURS[10].at)
    judge_neighbours(now=NOW)
    assert NeighbourEvidence.objects.latest("hour").hour == HOURS[9].at


@pytest.mark.parametrize("tenancy", [Tenancy.DEDICATED_HOST, Tenancy.UNKNOWN])
def test_only_machines_on_shared_hosts_are_judged(crowded, tenancy):
    type(crowded).objects.update(tenancy=tenancy)
    assert judge_neighbours(now=NOW) == 0


def test_the_number_of_queries_does_not_grow_with_machines(crowded, make_instance):
    def queries() -> int:
        NeighbourEvidence.objects.all().delete()
        with CaptureQueriesContext(
            connection,
        ) as found:
            judge_neighbours(now=NOW)
        return len(found)

    one = queries()
    for number in range(3):
        roll(make_instance(name=f"more-{number}", gpus=1, tenancy=Tenancy.DEDICATED_GPU), HOURS)
    assert queries() == one
    assert NeighbourEvidence.objects.values("instance").distinct().count() == 4


def test_several_crowded_hours_are_one_alert_until_it_is_calm(crowded):
    judge_neighbours(now=NOW)
    assert tell_of_neighbours(now=NOW) == 1
    assert tell_of_neighbours(now=NOW) == 1
    assert title_of(alert()) == "sweep-4090-02 seems to share its host with somebody who takes much of it"
    assert (alert().severity, alert().instance) == ("note", crowded)
    why = why_of(alert())
    assert "of 100 over 4 hours while its own work stayed the same" in why
    assert "a disk answered after 5.98 ms, usually 0.40 ms" in why
    assert AlertEvent.objects.filter(alert=alert()).count() == 1
    calm = [replace(HOURS[17], at=HOURS[-1].at + number * HOUR) for number in (1, 2, 3)]
    roll(crowded, calm)
    later = NOW + 3 * HOUR
    judge_neighbours(now=later)
    assert tell_of_neighbours(now=later) == 0
    assert (alert().is_open, alert().closed_why) == (False, "evidence")


def test_an_alert_that_nothing_tells_of_any_more_is_closed(crowded):
    judge_neighbours(now=NOW)
    tell_of_neighbours(now=NOW)
    later = NOW + timedelta(hours=25)
    RollupProgress.objects.update(rolled_until=later)
    assert tell_of_neighbours(now=later) == 0
    assert alert().closed_why == "silent"


def test_a_machine_that_was_given_back_is_told_of_no_more(crowded):
    judge_neighbours(now=NOW)
    tell_of_neighbours(now=NOW)
    type(crowded).objects.update(gone_at=NOW)
    assert tell_of_neighbours(now=NOW) == 0
    assert alert().closed_why == "gone"


def test_evidence_goes_when_the_readings_it_was_made_from_go(crowded, settings):
    settings.ROLLUP_1H_RETENTION_DAYS = 31
    judge_neighbours(now=NOW)
    assert prune_evidence(now=NOW + timedelta(days=30)) == 0
    assert prune_evidence(now=NOW + timedelta(days=33)) == 16
