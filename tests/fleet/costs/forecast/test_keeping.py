"""Days are kept once they have ended, for the team and each part of it, with the forecast of then; what came of those forecasts is counted."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from fleet.costs.forecast.forecast import month_forecast
from fleet.costs.forecast.keep import KEPT_DAYS, keep_days
from fleet.costs.forecast.models import ForecastDay
from fleet.costs.forecast.past import past_of
from fleet.costs.forecast.tasks import keep_forecasts
from fleet.costs.spend.models import CostProgress
from tests.fleet.costs.november import NOW, november, on
from tests.fleet.costs.seeding import spend_on


@pytest.fixture
def train(make_instance, charge, acme, summed, project):
    machine = make_instance(name="train-01", first_seen_at=november(13, 8))
    charge(machine, "2", since=november(13, 8))
    for day, amount in ((13, 32), (14, 48), (15, 48)):
        spend_on(acme, on(day), amount, instance=machine, project=project)
    return machine


def row(scope: str, day: int) -> ForecastDay:
    return ForecastDay.objects.get(scope=scope, day=on(day))


def test_every_day_that_has_ended_is_kept_by_scope(acme, train, account, project):
    assert keep_days(team=acme, now=NOW) == [on(15), on(14), on(13)]
    scopes = set(ForecastDay.objects.filter(day=on(15)).values_list("scope", flat=True))
    assert scopes == {"team", f"account:{account.pk}", f"project:{project.pk}", "owner:none"}
    kept = row(f"project:{project.pk}", 15)
    assert kept.amount == 48
    assert {age: Decimal(amount) for age, amount in kept.by_age.items()} == {"2": 48}
    assert [Decimal(rate) for rate in kept.rates] == [2, 2, 2, 2]
    assert [Decimal(rate) for rate in row("team", 13).rates] == [0, 0, 2, 2]


def test_the_rate_of_a_shared_machine_is_split_as_its_money(acme, train, project, make_instance):
    spend_on(acme, on(15), 16, instance=train)
    keep_days(team=acme, now=NOW)
    assert Decimal(row(f"project:{project.pk}", 15).rates[0]) == Decimal("1.5")
    assert Decimal(row("project:none", 15).rates[0]) == Decimal("0.5")
    assert Decimal(row("team", 15).rates[0]) == 2


def test_the_forecast_of_the_newest_day_is_kept_and_not_made_anew(acme, train):
    keep_days(team=acme, now=NOW)
    made = month_forecast(team=acme, now=NOW)
    kept = row("team", 15)
    assert (kept.month, kept.will_end, kept.low, kept.high) == (on(1), made.will_end, made.low, made.high)
    assert row("team", 14).will_end is None
    spend_on(acme, on(15), 100, instance=train)
    ForecastDay.objects.filter(day=on(14)).delete()
    keep_days(team=acme, now=NOW + timedelta(hours=1))
    assert row("team", 15).will_end == kept.will_end


def test_nothing_is_done_twice(acme, train):
    keep_days(team=acme, now=NOW)
    assert keep_days(team=acme, now=NOW + timedelta(hours=1)) == []


def test_a_correction_of_the_last_days_is_taken_over_the_day_after(acme, train):
    keep_days(team=acme, now=NOW)
    spend_on(acme, on(14), -8, instance=train, meter="adjustment")
    CostProgress.objects.update(summed_until=NOW + timedelta(days=1))
    keep_days(team=acme, now=NOW + timedelta(days=1))
    assert row("team", 14).amount == 40


def test_a_day_that_is_not_summed_is_not_kept(acme, train):
    CostProgress.objects.update(summed_until=NOW - timedelta(minutes=1))
    assert keep_days(team=acme, now=NOW + timedelta(hours=2)) == [on(14), on(13)]


def test_sums_of_another_time_zone_are_waited_for(acme, train):
    acme.time_zone = "Asia/Shanghai"
    acme.save()
    assert keep_days(team=acme, now=NOW) == []


def test_a_part_that_costs_nothing_any_more_is_kept_as_nothing(acme, train, project):
    keep_days(team=acme, now=NOW)
    spend_on(acme, on(16), 48, instance=train)
    CostProgress.objects.update(summed_until=NOW + timedelta(days=1))
    keep_days(team=acme, now=NOW + timedelta(days=1))
    assert row(f"project:{project.pk}", 16).amount == 0


def test_old_days_go(acme, train):
    ForecastDay.objects.create(
        team=acme, scope="team", day=on(15) - timedelta(days=KEPT_DAYS + 1), currency="USD", amount=1, made_at=NOW
    )
    keep_days(team=acme, now=NOW)
    assert not ForecastDay.objects.filter(day__lt=on(1)).exists()


def test_past_forecasts_are_measured_by_what_came(acme):
    """October cost $310. Of 31 forecasts, 20 had it in their band."""
    ForecastDay.objects.bulk_create(
        ForecastDay(
            team=acme,
            scope="team",
            day=on(1) - timedelta(days=back),
            currency="USD",
            amount=Decimal(10),
            month=on(1) - timedelta(days=31),
            will_end=Decimal(300),
            low=Decimal(290),
            high=Decimal(310) if back <= 20 else Decimal(309),
            made_at=NOW,
        )
        for back in range(1, 32)
    )
    past = past_of(team=acme, scope="team", currency="USD", today=on(16))
    assert (past.held, past.of, past.tested) == (20, 31, False)
    ForecastDay.objects.filter(day=on(1) - timedelta(days=7)).delete()
    assert past_of(team=acme, scope="team", currency="USD", today=on(16)).of == 0


def test_the_task_keeps_the_days_of_every_team(acme, train, rival, time_machine):
    time_machine.move_to(NOW, tick=False)
    assert keep_forecasts() == 3
