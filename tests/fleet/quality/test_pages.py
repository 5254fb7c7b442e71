"""A machine's page says what it went through and what its neighbours take; lists and ratings say how providers' machines fared."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from fleet.inventory.models import ProviderAccount
from fleet.inventory.offers.models import ProviderScore, ScoreKind
from fleet.providers.base import Tenancy
from fleet.quality.health.providers import score_providers
from fleet.quality.models import HealthDay, NeighbourEvidence
from fleet.telemetry.rollups.models import RollupProgress
from tests.fleet.quality.health.conftest import NOW

HOUR = timedelta(hours=1)
NEWEST = NOW.replace(minute=0) - HOUR


@pytest.fixture(autouse=True)
def stopped_clock():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def shared(make_instance):
    RollupProgress.objects.create(resolution="1h", rolled_until=NEWEST + HOUR)
    return make_instance(name="shared-01", gpus=1, tenancy=Tenancy.COMMUNITY_HOST)


@pytest.fixture
def page(vera, client):
    client.force_login(vera)
    return lambda machine: client.get(f"/t/acme/instances/{machine.pk}/").text


def test_neighbours_are_told_with_their_figures(shared, page):
    reasons = [{"code": "disk_latency", "before": 0.0004, "now": 0.0127}]
    NeighbourEvidence.objects.create(instance=shared, hour=NEWEST, score=72, reasons=reasons)
    NeighbourEvidence.objects.create(instance=shared, hour=NEWEST - 2 * HOUR, score=0)
    text = page(shared)
    assert "Others seem to take much of this host" in text
    assert "72 of 100 in the last full hour" in text
    assert "a disk answered after 12.7 ms, usually 0.40 ms" in text
    assert text.count(' not judged"') == 22


def test_what_another_release_wrote_is_shown_as_it_stands(shared, page):
    reasons = [{"code": "<b>new</b>", "before": 1, "now": 2}]
    NeighbourEvidence.objects.create(instance=shared, hour=NEWEST, score=30, reasons=reasons)
    assert "&lt;b&gt;new&lt;/b&gt;" in page(shared)


def test_an_hour_without_a_score_says_why(shared, page):
    assert "Too little was measured in this hour" in page(shared)


@pytest.mark.parametrize("tenancy", [Tenancy.DEDICATED_HOST, Tenancy.UNKNOWN])
def test_nothing_is_said_of_neighbours_where_there_are_none(shared, page, tenancy):
    type(shared).objects.update(tenancy=tenancy)
    assert "Neighbours" not in page(shared)


def test_a_machine_s_month_is_shown(make_instance, page):
    machine = make_instance(name="worn-01", gpus=1)
    assert "GPU-days" not in page(machine)
    day = NOW.date()
    HealthDay.objects.create(instance=machine, provider="manual", day=day, gpu_hours=24, counts={"xid": 2, "faults": 1}, score=70)  # fmt: skip
    HealthDay.objects.create(instance=machine, provider="manual", day=day - timedelta(days=1), gpu_hours=24, throttled_seconds=7200, score=97)  # fmt: skip
    HealthDay.objects.create(instance=machine, provider="manual", day=day - timedelta(days=40), gpu_hours=24, score=0)
    text = page(machine)
    assert "1 fault in 2 GPU-days" in text
    assert "XID errors of the card 2" in text
    assert "held back by heat or power for up to 2 h of GPU time" in text
    assert "17 Nov: 1 fault, XID errors of the card 2" in text


class TestProviders:
    @pytest.fixture(autouse=True)
    def fared(self, acme, rival, make_instance):
        for team, gpu_days, faults in ((acme, 412, 1), (rival, 500, 60)):
            account = ProviderAccount.objects.create(team=team, kind="runpod", name="RunPod")
            machine = make_instance(name=f"at-{team.slug}", account=account, team=team)
            HealthDay.objects.create(
                instance=machine, provider="runpod", day=NOW.date(), gpu_hours=24 * gpu_days, counts={"faults": faults}
            )
        score_providers(now=NOW)

    def test_lists_and_ratings_say_how_its_machines_fared(self, vera, client):
        client.force_login(vera)
        text = client.get("/t/acme/offers/lists/").text
        assert "1 fault in 412 GPU-days" in text
        assert "60 faults" not in text

    def test_what_was_counted_is_nobody_s_rating_to_drop(self, bob, client, acme):
        client.force_login(bob)
        score = ProviderScore.objects.get(team=acme, kind=ScoreKind.HEALTH)
        assert client.post(f"/t/acme/offers/ratings/{score.pk}/drop/").status_code == 404
        client.post("/t/acme/offers/ratings/", {"provider": "runpod", "stars": "1", "note": ""})
        assert ProviderScore.objects.get(team=acme, kind=ScoreKind.HEALTH).value == score.value
