"""Whether buying would win, from what the fleet's GPUs worked and cost; by hand with the planner's usual inputs."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from decimal import Decimal

import pytest

from fleet.costs.rightsizing.owning import all_together, rent_or_buy
from fleet.costs.rightsizing.use import Use, use_of
from fleet.states import GpuState
from planner.owning import Band
from tests.fleet.costs.seeding import spend_on

TODAY = date(2026, 11, 17)
# 5,270 of 8,640 hours, as twelve GPUs have in 30 days; an hour at $2.69.
H100 = Use("H100 SXM", Decimal(5270), Decimal(8640), Decimal("2.69"), (Decimal("0.52"), Decimal("0.70")), 30)


@pytest.fixture
def rented_h100(acme, make_instance):
    """Twelve H100 for 30 days at $2.69: 14.6 of 24 hours work, in the last week 16.8."""
    machine = make_instance(name="nodes", gpu_model="H100 SXM")
    for back in range(1, 31):
        working = (16.8 if back <= 7 else 14.6) * 12 * 3600
        seconds = {GpuState.WORKING: working, GpuState.UNKNOWN: 12 * 24 * 3600 - working}
        spend_on(acme, TODAY - timedelta(days=back), Decimal("774.72"), instance=machine, gpu_seconds=seconds)
    return machine


def test_use_is_hours_that_worked_over_hours_that_were_paid(acme, rented_h100):
    (used,) = use_of(acme, today=TODAY, currency="USD")
    assert (used.rented, used.gpus, used.price_per_gpu_hour) == (Decimal(8640), 12, Decimal("2.69"))
    assert used.worked == Decimal(12) * (23 * Decimal("14.6") + 7 * Decimal("16.8"))
    assert [round(week, 4) for week in used.weeks] == [Decimal("0.6083")] * 3 + [Decimal("0.7000")]


def test_hours_without_a_price_or_a_rate_leave_a_model_out(acme, rented_h100):
    spend_on(acme, TODAY - timedelta(days=2), "10", instance=rented_h100, currency="CNY")
    assert use_of(acme, today=TODAY, currency="USD") == []


def test_eight_h100_by_hand():
    """224,000 x 0.7 = 156,800 lost, 26,880 interest, 20,160 care, 11,200 spares, 22,400 network, 56,448 power, 45,000 staff: 338,888
    in 36 months and 210,240 GPU-hours, 1.612 each; 1.612 / 2.69 = 59.9 %.
    """
    found = rent_or_buy(H100)
    assert found is not None
    assert sum(found.found.costs.values()) == Decimal(338_888)
    assert round(found.own, 2) == Decimal("9413.56")
    assert round(found.ratio, 4) == Decimal("0.5992")
    assert found.rent_always == Decimal("15709.60")
    assert round(found.rent_by_the_hour) == 9582
    assert found.overlaps
    assert found.low < found.ratio < found.high


def test_together_deviations_add_as_squares():
    def band(low, high):
        return Band("x", Decimal(0), Decimal(0), Decimal(low), Decimal(high))

    low, high = all_together(Decimal("0.6"), [band("0.57", "0.63"), band("0.64", "0.56")])
    assert (low, high) == (Decimal("0.55"), Decimal("0.65"))


def test_what_has_no_purchase_price_is_left_out():
    assert rent_or_buy(Use("L4", Decimal(1), Decimal(2), Decimal("0.4"), (), 30)) is None


def found_in(pattern: str, page: str) -> str:
    found = re.search(pattern, page)
    assert found, pattern
    return found[1]


def text_of(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_the_costs_page_says_it_and_leads_to_the_planner(acme, vera, as_user, rented_h100):
    response = as_user(vera).get("/t/acme/costs/")
    text = text_of(response)
    assert "Buying may win: from 60% use on, yours is 63%" in text
    assert "Your 12 rented H100 SXM worked 5,441 of 8,640 GPU-hours in 30 days: 63%, by week 61 to 70%." in text
    assert "The ranges overlap: neither answer is sure." in text
    assert "Rent ± 30 % 46 to 86%" in text
    page = response.content.decode()
    data = json.loads(found_in(r'<script id="owning-data" type="application/json">(.+?)</script>', page))
    assert (data["rent"], round(data["used"])) == (15709.6, 63)
    query = found_in(r'/planner/\?([^"#]+)#owning', page).replace("&amp;", "&")
    planned = text_of(as_user(vera).get(f"/t/acme/planner/?{query}", follow=True))
    assert "8 × H100 SXM5 80GB" in planned
    assert "Owned, a GPU-hour, 63 % busy" in planned or "Owned, a GPU-hour, 63% busy" in planned
    assert "$2.69" in planned


def test_nothing_is_said_without_hours(acme, vera, as_user):
    assert "All together" not in text_of(as_user(vera).get("/t/acme/costs/"))
