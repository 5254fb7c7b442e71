"""Faults in GPU-days become a score of a provider, per team, and the order of offers follows it."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from fleet.inventory.models import ProviderAccount
from fleet.inventory.offers.models import ProviderScore, ScoreKind
from fleet.inventory.offers.places import Places
from fleet.quality.health.providers import fared, score_providers
from fleet.quality.models import HealthDay
from fleet.teams.models import AuditEntry
from tests.fleet.quality.health.conftest import NOW

DAY = date(2026, 11, 16)


@pytest.fixture
def days(acme, make_instance):
    """days("runpod", 40, faults=2): so many GPU-days at a provider, on one day."""

    def write(provider: str, gpu_days: float, *, faults: int = 0, day: date = DAY, team=None) -> HealthDay:
        account = ProviderAccount.objects.create(team=team or acme, kind=provider, name=f"{provider} {gpu_days}")
        machine = make_instance(name=f"{provider}-{gpu_days}", account=account, team=account.team)
        counts = {"xid": faults, "faults": faults} if faults else {}
        return HealthDay.objects.create(
            instance=machine, provider=provider, day=day, gpu_hours=24 * gpu_days, counts=counts
        )

    return write


def scores() -> dict[str, int]:
    return dict(ProviderScore.objects.filter(kind=ScoreKind.HEALTH).values_list("provider", "value"))


def test_machines_of_a_provider_are_added_up(days):
    days("runpod", 400, faults=1)
    days("runpod", 12)
    (one,) = fared(now=NOW)
    assert (one.provider, one.machines, one.sums.faults, one.sums.gpu_days) == ("runpod", 2, 1, 412)
    assert one.stars == 4


def test_scores_are_written_by_nobody_and_told_in_the_audit_log_once(acme, days):
    days("runpod", 500)
    days("vast", 500, faults=40)
    days("lambda", 20)
    assert score_providers(now=NOW) == 2
    assert scores() == {"runpod": 5, "vast": 1}
    row = ProviderScore.objects.get(provider="vast")
    assert (row.by, row.at) == (None, NOW)
    entry = AuditEntry.objects.filter(action="provider_score.health", team=acme).latest("pk")
    assert entry.new == {"provider": "vast", "stars": 1}
    assert score_providers(now=NOW + timedelta(hours=1)) == 0
    assert ProviderScore.objects.get(provider="vast").at == NOW


def test_a_score_goes_with_the_days_it_was_made_from(days):
    days("runpod", 500)
    score_providers(now=NOW)
    assert score_providers(now=NOW + timedelta(days=100)) == 1
    assert scores() == {}


def test_support_that_people_rated_stays_as_it_is(acme, days):
    ProviderScore.objects.create(team=acme, provider="runpod", value=2)
    days("runpod", 500)
    score_providers(now=NOW)
    place = Places([acme.pk]).of(acme.pk, "runpod")
    assert (place.support, place.health) == (2, 5)


def test_a_team_sees_its_own_machines_only(acme, rival, days):
    days("runpod", 500, faults=40)
    days("runpod", 501, team=rival)
    score_providers(now=NOW)
    assert Places([rival.pk]).of(rival.pk, "runpod").health == 5
    assert [one.sums.faults for one in fared(now=NOW, team_ids=[rival.pk])] == [0]


def test_machines_that_people_typed_rank_nobody(days):
    days("manual", 500)
    assert score_providers(now=NOW) == 0
