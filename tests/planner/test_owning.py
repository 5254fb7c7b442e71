"""Rent or buy: worked examples, power counted once, and "never" as an answer."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal as D

import pytest

from planner.owning import Colocation, OwnRoom, Purchase, break_even, compare, costs_of_owning, own_per_gpu_hour

SERVER = Purchase(
    gpus=8,
    price=D(315_000),
    years=D(3),
    kilowatts=D("10.2"),
    power=Colocation(D(200)),
    residual_share=D("0.3"),
    financed_share=D("0.5"),
    interest_per_year=D("0.08"),
    maintenance_share_per_year=D("0.03"),
    staff_per_year=D(15_000),
)
OWN_ROOM = replace(SERVER, kilowatts=D("7.5"), power=OwnRoom(D("0.10"), D("1.4")), residual_share=D(0))
DESKTOP = Purchase(
    gpus=1,
    price=D(3500),
    years=D(3),
    kilowatts=D("0.55"),
    power=OwnRoom(D("0.12"), D(1)),
    residual_share=D("0.4"),
)


@pytest.mark.parametrize(("rent", "percent"), [("1.99", 97), ("2.69", 72), ("3.49", 55), ("4.29", 45), ("6.88", 28)])
def test_a_server_in_colocation(rent: str, percent: int) -> None:
    assert round(own_per_gpu_hour(SERVER), 2) == D("1.93")
    even = break_even(SERVER, rent_per_gpu_hour=D(rent))
    assert even is not None
    assert round(even * 100) == percent


def test_a_server_in_an_own_room_for_three_and_for_four_years() -> None:
    assert round(own_per_gpu_hour(OWN_ROOM), 2) == D("2.16")
    longer = replace(OWN_ROOM, years=D(4), residual_share=D("0.15"))
    even = break_even(longer, rent_per_gpu_hour=D("2.69"))
    assert even is not None
    assert (round(own_per_gpu_hour(longer), 2), round(even * 100)) == (D("1.62"), 60)


@pytest.mark.parametrize(("rent", "percent"), [("0.34", 43), ("0.74", 20)])
def test_a_desktop_card(rent: str, percent: int) -> None:
    assert round(own_per_gpu_hour(DESKTOP), 3) == D("0.146")
    even = break_even(DESKTOP, rent_per_gpu_hour=D(rent))
    assert even is not None
    assert round(even * 100) == percent


def test_a_place_that_is_rented_pays_no_electricity_beside_it() -> None:
    assert costs_of_owning(SERVER)["power"] == D(200) * D("10.2") * 36


def test_never_is_an_answer() -> None:
    comparison = compare(OWN_ROOM, rent_per_gpu_hour=D("1.99"), utilization=D(1))
    assert comparison.break_even is None
    assert not comparison.owning_is_cheaper
    assert comparison.advice[0].key == "owning.never"


def test_below_seventy_per_cent_the_rule_of_thumb_says_rent() -> None:
    keys = {reason.key for reason in compare(SERVER, rent_per_gpu_hour=D("2.69"), utilization=D("0.3")).advice}
    assert {"owning.rent", "owning.rule_of_thumb"} <= keys
    busy = {reason.key for reason in compare(SERVER, rent_per_gpu_hour=D("2.69"), utilization=D("0.9")).advice}
    assert "owning.buy" in busy
    assert "owning.rule_of_thumb" not in busy


def test_the_bands_hold_the_answer_and_reach_never() -> None:
    bands = {band.key: band for band in compare(SERVER, rent_per_gpu_hour=D("2.69"), utilization=D("0.7")).sensitivity}
    assert bands["rent"].at_low is None
    assert bands["rent"].at_high is not None
    assert bands["rent"].at_high < D("0.72")
    for key in ("price", "power", "staff"):
        low, high = bands[key].at_low, bands[key].at_high
        assert low is not None
        assert high is not None
        assert low < D("0.717") < high


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"gpus": 0}, "gpus"),
        ({"price": D(0)}, "price"),
        ({"years": D(-1)}, "years"),
        ({"residual_share": D("1.1")}, "residual_share"),
        ({"power": OwnRoom(D("0.1"), D("0.5"))}, "power_usage_effectiveness"),
    ],
)
def test_what_cannot_be_is_named(changed: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        compare(replace(SERVER, **changed), rent_per_gpu_hour=D(2), utilization=D("0.5"))  # type: ignore[arg-type]
