"""Which cheaper offer would do, worked by hand."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from fleet.costs.rightsizing.sizing.choosing import right_size
from fleet.costs.rightsizing.sizing.figures import Kind, LeftAlone, Loses, Suggestion, Why
from fleet.costs.rightsizing.sizing.speed import relative_speed
from fleet.providers.base import Market, Tenancy
from tests.fleet.costs.rightsizing.machines import CARD_80, DAY, GIB, NOW, machine, offer

ONE_H100 = {
    "gpu_model": "H100 SXM",
    "gpus": 1,
    "working_at_once": 1,
    "holding_at_once": 1,
    "price_per_hour": Decimal("3.49"),
    "peak_memory_bytes": 30 * GIB,
}
ONE_A100 = {"gpus": 1, "price_per_hour": Decimal("1.59")}


def suggested(*offers, **changes):
    found = right_size(machine(**changes), offers, now=NOW)
    assert isinstance(found, Suggestion), found
    return found


def left(*offers, **changes):
    found = right_size(machine(**changes), offers, now=NOW)
    assert isinstance(found, LeftAlone), found
    return found


def codes(option):
    return [loss.code for loss in option.losses]


def test_three_of_four_gpus_are_enough_where_three_worked():
    """(6.56 - 4.92) x 730 = 1,197.20; 310 GB at the pace its network was seen to have are 25 minutes."""
    best = suggested(offer()).best
    assert (best.kind, best.saving, best.hours_after) == (Kind.FEWER, Decimal("1197.200"), Decimal("730.0"))
    assert codes(best) == [Loses.NEW_MACHINE]
    assert best.losses[0].told == {"bytes": 310e9, "seconds": pytest.approx(1500)}


def test_hours_are_those_it_runs():
    """Off for half of the window: 365 hours a month, 1.64 x 365 = 598.60."""
    best = suggested(offer(), running_seconds=15 * DAY).best
    assert (best.hours_before, best.saving) == (Decimal("365.0"), Decimal("598.600"))


@pytest.mark.parametrize(
    ("offered", "changes", "why", "told"),
    [
        ({"gpus": 2, "price_per_hour": Decimal("3.28")}, {}, Why.GPUS, {"gpus": 3}),
        (
            {"gpu_memory_bytes": CARD_80 // 2},
            {"peak_memory_bytes": 0.77 * CARD_80},
            Why.MEMORY,
            {"percent": 77, "gib": 80},
        ),
        ({"tenancy": Tenancy.COMMUNITY_HOST}, {}, Why.OTHER_KIND, {}),
        ({"gpu_model": "A100 PCIe 80 GB"}, {}, Why.OTHER_KIND, {}),
        ({"gpu_model": "MI300X"}, {}, Why.OTHER_KIND, {}),
        ({"gpu_model": "L40S"}, {"peak_memory_bytes": 8 * GIB}, Why.LINKS, {}),
        ({"price_per_hour": Decimal("6.40")}, {}, Why.SAVES_NOTHING, {}),
        ({"price_per_hour": Decimal("6.56")}, {}, Why.NOTHING_CHEAPER, {}),
        ({"disk_bytes": 300 * 10**9}, {}, Why.HOST, {"what": "disk"}),
        ({"ram_bytes": 64 * GIB}, {"ram_peak_bytes": 60 * GIB}, Why.HOST, {"what": "ram"}),
        ({"vcpus": 8}, {"cpu_peak": 0.5, "vcpus": 32}, Why.HOST, {"what": "vcpus"}),
        ({"internet": 1e6}, {}, Why.HOST, {"what": "network"}),
        ({"market": Market.SPOT}, {"serves": True}, Why.INTERRUPTS, {}),
    ],
)
def test_what_does_not_fit_is_left_alone_with_its_reason(offered, changes, why, told):
    assert left(offer(**offered), **changes) == LeftAlone(why, told)


def test_the_reason_is_that_of_the_offer_that_got_farthest():
    too_few = offer(gpus=1, price_per_hour=Decimal("1.64"))
    too_small = offer(gpu_memory_bytes=CARD_80 // 2)
    assert left(too_small, too_few).why is Why.MEMORY


def test_a_slower_gpu_is_held_against_the_work_it_does():
    """H100 -> A100 is 0.38 of the speed. Half busy: 0.5 / (0.9 x 0.38) = 1.45 times the hours, none left in the month."""
    speed = relative_speed("H100 SXM", "A100 SXM 80 GB") or 0.0
    assert speed == pytest.approx(0.78 * 312 / (0.64 * 989.4), rel=0.01)
    assert left(offer(**ONE_A100), **ONE_H100, utilization_mean=0.5).why is Why.BUSY
    rented = suggested(offer(**ONE_A100), **ONE_H100, utilization_mean=0.5, running_seconds=10 * DAY).best
    before = Decimal("243.3")
    assert rented.kind is Kind.SMALLER
    assert rented.hours_before == before
    assert rented.hours_after == pytest.approx(before * Decimal(0.5 / (0.9 * speed)), abs=Decimal("0.1"))
    assert rented.saving == before * Decimal("3.49") - rented.hours_after * Decimal("1.59")
    assert {Loses.SLOWER, Loses.NO_FP8} <= set(codes(rented))


def test_a_gpu_that_is_rarely_full_takes_no_more_hours_on_a_slower_one():
    best = suggested(offer(**ONE_A100), **ONE_H100, utilization_mean=0.3).best
    assert (best.hours_after, best.saving) == (Decimal("730.0"), Decimal("1387.000"))


def test_a_busy_one_is_left_alone():
    assert left(offer(**ONE_A100), **ONE_H100, utilization_mean=0.91) == LeftAlone(Why.BUSY, {"percent": 91})


def test_requests_do_not_wait_for_a_slower_gpu_in_busy_hours():
    assert left(offer(**ONE_A100), **ONE_H100, utilization_mean=0.2, utilization_p95=0.5, serves=True).why is Why.BUSY
    best = suggested(offer(**ONE_A100), **ONE_H100, utilization_mean=0.2, utilization_p95=0.3, serves=True).best
    assert Loses.REQUESTS in codes(best)


def test_too_slow_is_other_work():
    assert left(offer(gpu_model="L4", **ONE_A100), **ONE_H100 | {"peak_memory_bytes": 10 * GIB}).why is Why.SLOWER


def test_spot_says_that_it_can_be_taken_away():
    best = suggested(offer(gpus=4, market=Market.SPOT)).best
    assert best.kind is Kind.SPOT
    assert Loses.INTERRUPTIBLE in codes(best)


@pytest.mark.parametrize(("days", "pays"), [(24, True), (22, False)])
def test_a_commitment_pays_from_its_break_even_on(days, pays):
    """4.92 charged for all 730 hours against 6.56 for those used: 547.5 hours are even, 22.5 of 30 days."""
    reserved = offer(gpus=4, market=Market.RESERVED)
    found = right_size(machine(running_seconds=days * DAY), [reserved], now=NOW)
    assert isinstance(found, Suggestion) is pays
    if isinstance(found, Suggestion):
        assert found.best.kind is Kind.RESERVED
        assert found.best.saving == Decimal("584.0") * Decimal("6.56") - 730 * Decimal("4.92")
        assert found.best.losses[-1].told == {"hours": "730"}


def test_the_same_provider_goes_first_and_who_saves_more_is_told_beside():
    elsewhere = offer(id=2, provider="lambda", price_per_hour=Decimal("4.00"), priced_on=date(2026, 11, 2))
    spot = offer(id=3, market=Market.SPOT, price_per_hour=Decimal("2.00"))
    found = suggested(spot, elsewhere, offer())
    assert found.best.candidate.id == 1
    assert [option.candidate.id for option in found.others] == [2]
    assert codes(found.others[0])[:2] == [Loses.NEW_MACHINE, Loses.OTHER_PROVIDER]
    assert Loses.DATED in codes(found.others[0])


def test_what_an_offer_does_not_say_is_asked_about():
    best = suggested(offer(disk_bytes=None, internet=None)).best
    assert best.losses[-1].told == {"what": ["disk", "network"]}


def test_held_memory_without_work_has_to_go():
    best = suggested(offer(), holding_at_once=4).best
    assert (Loses.HELD_MEMORY, {"gpus": 1}) in [(loss.code, loss.told) for loss in best.losses]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"gpu_model": "H100"}, Why.GPU_UNKNOWN),
        ({"gpu_model": ""}, Why.GPU_UNKNOWN),
        ({"is_partitioned": True}, Why.PARTITIONED),
        ({"price_per_hour": None}, Why.PRICE_UNKNOWN),
        ({"market": Market.RESERVED}, Why.COMMITTED),
        ({"newest_at": None}, Why.NOT_MEASURED),
        ({"peak_memory_bytes": None}, Why.NOT_MEASURED),
        ({"utilization_mean": None}, Why.NOT_MEASURED),
        ({"span_seconds": 6 * DAY}, Why.TOO_NEW),
        ({"coverage": 0.49}, Why.THIN),
        ({"newest_at": NOW - timedelta(hours=49)}, Why.STALE),
        ({"working_at_once": 0}, Why.NEVER_WORKED),
    ],
)
def test_nothing_is_suggested_on_evidence_that_is_missing_thin_or_old(changes, why):
    assert left(offer(), **changes).why is why


def test_seven_days_half_covered_are_enough():
    assert suggested(offer(), span_seconds=7 * DAY, running_seconds=7 * DAY, coverage=0.5)
