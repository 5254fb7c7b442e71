"""The daily look: what was measured becomes suggestions, one row a machine, whatever the fleet's size."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.costs.rightsizing.look import look_at_machines
from fleet.costs.rightsizing.models import RightSizing
from fleet.costs.spend.models import ExchangeRate
from fleet.inventory.offers.models import Offer, OfferSource, SourceKind
from fleet.providers.base import InstanceState
from fleet.telemetry.rollups.models import GpuRollupHour
from fleet.telemetry.serving.models import ServingLatest
from tests.fleet.costs.rightsizing.machines import CARD_80, NOW


def look(team, days=0):
    return look_at_machines(team=team, now=NOW + timedelta(days=days))


def test_three_of_four_gpus_that_worked_all_month(acme, rented, hours, offered):
    machine, offer = rented(), offered()
    hours(machine, days=30)
    assert look(acme) == 1
    row = RightSizing.objects.get(instance=machine)
    assert (row.kind, row.why, row.saving_per_month, row.currency, row.offer_id) == (
        "fewer",
        "",
        Decimal("1197.20"),
        "USD",
        offer.pk,
    )
    assert row.change["price_before"], row.change["price_after"] == ("6.560000", "4.920000")
    assert row.measured["working_at_once"] == 3
    assert row.measured["peak_memory_bytes"] == pytest.approx(0.68 * CARD_80, rel=1e-5)
    assert row.measured["utilization_p95"] == pytest.approx(0.85)
    assert row.measured["hours_per_month"] == "730.0"
    assert row.measured["disk_used_bytes"] == pytest.approx(310e9)


def test_gpus_that_took_turns_need_one(acme, rented, hours, offered):
    machine = rented()
    hours(machine, working=4)
    first, *others = machine.gpus.order_by("index")
    cutoff = NOW - timedelta(days=4)
    GpuRollupHour.objects.filter(gpu=first, bucket_at__lt=cutoff).update(working_seconds=0, free_seconds=3600)
    GpuRollupHour.objects.filter(gpu__in=others, bucket_at__gte=cutoff).update(working_seconds=0, free_seconds=3600)
    offered(gpu_count=3)
    look(acme)
    assert RightSizing.objects.get().measured["working_at_once"] == 3


@pytest.mark.parametrize(
    ("arrange", "why"),
    [
        (lambda machine, hours: hours(machine, days=5), "too_new"),
        (lambda machine, hours: None, "not_measured"),
        (lambda machine, hours: hours(machine, working=0), "never_worked"),
        (lambda machine, hours: hours(machine, memory=0.9) or _unheard(machine, 0.6), "thin"),
        (lambda machine, hours: hours(machine) or machine.gpus.update(mig_profile="1g.10gb"), "partitioned"),
    ],
)
def test_what_is_unknown_or_thin_is_left_alone(acme, rented, hours, offered, arrange, why):
    machine = rented()
    offered()
    arrange(machine, hours)
    look(acme)
    row = RightSizing.objects.get(instance=machine)
    assert (row.why, row.kind, row.saving_per_month) == (why, "", None)


def _unheard(machine, share):
    """So much of the window nobody reported."""
    rows = GpuRollupHour.objects.filter(gpu__instance=machine, bucket_at__lt=NOW - timedelta(days=8 * (1 - share)))
    rows.update(coverage=0, working_seconds=0, free_seconds=0, unknown_seconds=3600, memory_used_bytes_max=None)


def test_a_machine_that_serves_is_not_put_on_spot(acme, rented, hours, offered):
    machine = rented()
    hours(machine)
    offered(gpu_count=4, market="spot", price_per_hour=Decimal(3))
    ServingLatest.objects.create(instance=machine, engine="vllm", port=8000, sampled_at=NOW)
    look(acme)
    assert RightSizing.objects.get().why == "interrupts"


def test_old_prices_and_what_is_sold_out_are_no_offers(acme, rented, hours, offered):
    hours(rented())
    table = OfferSource.objects.create(team=acme, kind=SourceKind.TABLE, name="Rackrent", read_at=NOW)
    old = offered("old", priced_on=date(2026, 9, 25))
    Offer.objects.filter(pk=old.pk).update(source=table)
    offered("stale", seen_at=NOW - timedelta(hours=25))
    offered("sold", available=False)
    offered("vague", gpu_model="A100")
    look(acme)
    assert RightSizing.objects.get().why == "nothing_cheaper"


def test_prices_in_another_currency_need_a_dated_rate(acme, rented, hours, offered):
    hours(rented())
    offered(currency="CNY", price_per_hour=Decimal("29.40"))
    look(acme)
    assert RightSizing.objects.get().why == "nothing_cheaper"
    ExchangeRate.objects.create(team=acme, currency="CNY", into="USD", day=date(2026, 11, 1), rate="0.14")
    look(acme)
    # (6.56 - 29.40 x 0.14) x 730
    assert RightSizing.objects.get().saving_per_month == Decimal("1784.12")


def test_another_team_s_offers_count_for_nothing(rival, acme, rented, hours, offered):
    hours(rented())
    offered()
    OfferSource.objects.update(team=rival)
    look(acme)
    assert RightSizing.objects.get().why == "nothing_cheaper"
    assert look(rival) == 0


def test_a_machine_that_stopped_is_suggested_no_more(acme, rented, hours, offered):
    machine = rented()
    hours(machine)
    offered()
    look(acme)
    machine.state = InstanceState.STOPPED
    machine.save()
    look(acme, days=1)
    assert not RightSizing.objects.exists()


def test_queries_do_not_grow_with_machines(acme, rented, hours, offered):
    offered()
    hours(rented())
    with CaptureQueriesContext(connection) as few:
        look(acme)
    for number in range(6):
        hours(rented(f"m-{number}"))
    with CaptureQueriesContext(connection) as many:
        assert look(acme) == 7
    assert len(many) == len(few)
