"""How a month ends: hand-worked, in a November of 30 days. now is 16 Nov 00:00 UTC: 15 days, 360 hours, half of the month, are to come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from fleet.costs.forecast.reckoning.inputs import Machine, OpenRate, Step, Verb
from fleet.costs.forecast.reckoning.parts import PartKind
from fleet.costs.forecast.reckoning.reckon import Forecast, Known, forecast
from fleet.costs.ledger.charges import Rules
from fleet.costs.ledger.intervals import Meter, Unit

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
NOW = datetime(2026, 11, 16, tzinfo=UTC)
SPENT = {date(2026, 11, 1 + number): Decimal(10) for number in range(15)}


def november(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, tzinfo=UTC)


def rate(machine: int | None, price: str, meter: Meter = Meter.COMPUTE, unit: Unit = Unit.HOUR, **more) -> OpenRate:
    return OpenRate(machine, meter, unit, Decimal(price), START, **more)


def made(rates: list[OpenRate], machines: Sequence[Machine] = (), **more) -> Forecast:
    known = Known("USD", SPENT, rates, machines, **more)
    return forecast(known, now=NOW, month_start=START, month_end=END, zone=UTC)


def parts(found: Forecast) -> dict[str, Decimal]:
    return {part.kind.value: part.amount for part in found.parts}


STOPPED_ON_21 = (Step(november(21), Verb.STOP),)
CASES = {
    "it runs on": ([rate(1, "2")], [], {"running": 720}),
    "a disk is charged by the seconds of the month": (
        [rate(1, "0.10", Meter.DISK_STOPPED, Unit.GB_MONTH, quantity=Decimal(100))],
        [],
        {"disks": 5},
    ),
    "a planned stop saves compute and keeps the disk": (
        [rate(1, "2"), rate(1, "0.10", Meter.DISK_RUNNING, Unit.GB_MONTH, quantity=Decimal(100))],
        [Machine(1, STOPPED_ON_21)],
        {"running": 725, "stops": -480},
    ),
    "a stop that begins another charge saves less": (
        [rate(1, "2")],
        [Machine(1, STOPPED_ON_21, on_stop=Decimal("0.5"))],
        {"running": 720, "stops": -360},
    ),
    "where a stopped machine costs the same, a stop saves nothing": (
        [rate(1, "2")],
        [Machine(1, STOPPED_ON_21, stops_charging=False)],
        {"running": 720},
    ),
    "a provider that charges nothing for stopped machines ends the disk too": (
        [rate(1, "2"), rate(1, "0.10", Meter.DISK_RUNNING, Unit.HOUR)],
        [Machine(1, STOPPED_ON_21, disks_go_on=False)],
        {"running": 756, "stops": -504},
    ),
    "a lease ends everything but what outlives the machine": (
        [rate(1, "2"), rate(1, "0.5", Meter.LICENCE), rate(1, "1", Meter.NETWORK_VOLUME)],
        [Machine(1, (Step(november(26), Verb.TERMINATE, is_lease=True),))],
        {"running": 720, "charges": 540, "leases": -300},
    ),
    "a lease after the stop saves what is left": (
        [rate(1, "2"), rate(1, "0.10", Meter.DISK_RUNNING)],
        [Machine(1, (*STOPPED_ON_21, Step(november(26), Verb.TERMINATE, is_lease=True)))],
        {"running": 756, "stops": -480, "leases": -12},
    ),
    "what is due already is due now": (
        [rate(1, "2")],
        [Machine(1, (Step(november(2), Verb.TERMINATE),))],
        {"running": 720, "stops": -720},
    ),
    "a start adds its price": (
        [rate(1, "0.10", Meter.DISK_STOPPED)],
        [Machine(1, (Step(november(21), Verb.START),), started=Decimal(3))],
        {"disks": 36, "starts": 720},
    ),
    "a schedule starts and stops": (
        [],
        [Machine(1, (Step(november(21), Verb.START), Step(november(21, 12), Verb.STOP)), started=Decimal(3))],
        {"starts": 720, "stops": -684},
    ),
    "a run that ends within its hour is charged the hour": (
        [rate(1, "6")],
        [
            Machine(
                1,
                (Step(datetime(2026, 11, 16, 0, 30, tzinfo=UTC), Verb.TERMINATE),),
                run_since=november(16),
                rules=Rules(quantum_seconds=3600),
            )
        ],
        {"running": 2160, "stops": -2157, "minimums": 3},
    ),
    "an interval that ends costs no more": ([rate(1, "2", end=november(21))], [], {"running": 240}),
    "a commitment of a month costs the half that is left": (
        [rate(None, "900", Meter.COMMITMENT, Unit.MONTH)],
        [],
        {"charges": 450},
    ),
    "a charge for a span is spread over it": (
        [OpenRate(None, Meter.LICENCE, Unit.ONCE, Decimal(100), november(11), end=november(21))],
        [],
        {"charges": 50},
    ),
    "a charge that is typed for later comes": (
        [OpenRate(None, Meter.EGRESS, Unit.HOUR, Decimal(1), november(30))],
        [],
        {"charges": 24},
    ),
    "a share of a machine is a share of all of it": (
        [rate(1, "2", share=Decimal("0.25"))],
        [Machine(1, STOPPED_ON_21)],
        {"running": 180, "stops": -120},
    ),
}


@pytest.mark.parametrize(("rates", "machines", "expected"), CASES.values(), ids=CASES.keys())
def test_parts_are_what_the_hand_says(rates, machines, expected):
    found = made(rates, machines)
    assert {kind: amount.quantize(Decimal("1e-9")) for kind, amount in parts(found).items()} == {
        "spent": Decimal(150),
        **{kind: Decimal(amount) for kind, amount in expected.items()},
    }
    assert found.will_end == sum(part.amount for part in found.parts)


def test_the_path_goes_from_nothing_through_now_to_the_end():
    found = made([rate(1, "2")])
    assert [(point.at, point.amount) for point in found.days[:2]] == [(START, Decimal(0)), (november(2), Decimal(10))]
    at_now = next(point for point in found.days if point.at == NOW)
    assert at_now.low == at_now.amount == at_now.high == 150
    assert found.days[-1].at == END
    assert found.days[-1].amount == found.will_end == 870
    assert [point.at for point in found.days] == sorted({point.at for point in found.days})


def test_without_a_past_the_band_is_wide_and_says_so():
    found = made([rate(1, "2")])
    assert not found.usual.measured
    assert (found.low, found.high) == (Decimal(150 + 504), Decimal(150 + 1008))


def test_a_limit_is_passed_on_the_day_on_which_it_is_reached():
    found = made([rate(1, "2")])  # $10 a day so far, $48 a day from now on
    assert found.passed_on(Decimal(45)) == date(2026, 11, 5)
    assert found.passed_on(Decimal(50)) == date(2026, 11, 5)
    assert found.passed_on(Decimal(160)) == date(2026, 11, 16)
    assert found.passed_on(Decimal(870)) == date(2026, 11, 30)
    assert found.passed_on(Decimal(871)) is None


def test_the_chance_of_ending_under_a_limit_follows_the_band():
    found = made([rate(1, "2")])
    asked = [found.low, found.will_end, found.high, Decimal(149), Decimal(10_000)]
    assert [found.chance_under(amount) for amount in asked] == [0.1, 0.5, 0.9, 0.0, 1.0]
    assert found.chance_under((found.low + found.will_end) / 2) == pytest.approx(0.3)


def test_nothing_to_come_is_certain_and_nothing_known_is_no_chance():
    assert made([]).chance_under(Decimal(150)) == 1.0
    assert made([], unpriced=1).chance_under(Decimal(200)) is None
    nothing = forecast(Known("USD", {}), now=NOW, month_start=START, month_end=END, zone=UTC)
    assert nothing.chance_under(Decimal(1)) is None
    assert nothing.will_end == 0


def test_a_month_ends_where_the_team_is_and_has_its_own_hours():
    """November in New York has 25 hours on its first day, and ends at 05:00 UTC."""
    zone = ZoneInfo("America/New_York")
    start, end = datetime(2026, 11, 1, tzinfo=zone), datetime(2026, 12, 1, tzinfo=zone)
    known = Known("USD", {}, [OpenRate(1, Meter.COMPUTE, Unit.HOUR, Decimal(1), start)])
    found = forecast(known, now=start, month_start=start, month_end=end, zone=zone)
    assert found.will_end == 30 * 24 + 1
    assert found.days[1].at == datetime(2026, 11, 2, tzinfo=zone)
    assert found.days[1].amount == 25


def test_months_of_storage_are_those_of_utc():
    """A disk over 12 hours of New York's last evening of November: five of them are in December."""
    zone = ZoneInfo("America/New_York")
    now, end = datetime(2026, 11, 30, 12, tzinfo=zone), datetime(2026, 12, 1, tzinfo=zone)
    disk = OpenRate(1, Meter.DISK_STOPPED, Unit.GB_MONTH, Decimal(1), now, quantity=Decimal(5_208_000))
    found = forecast(
        Known("USD", {}, [disk]), now=now, month_start=datetime(2026, 11, 1, tzinfo=zone), month_end=end, zone=zone
    )
    # 7 of November's 720 hours and 5 of December's 744.
    expected = Decimal(5_208_000) * 7 / 720 + Decimal(5_208_000) * 5 / 744
    assert abs(found.will_end - expected) < Decimal("1e-6")


def test_after_its_end_a_month_is_what_was_spent():
    found = forecast(Known("USD", SPENT, [rate(1, "2")]), now=END, month_start=START, month_end=END, zone=UTC)
    assert found.will_end == found.low == found.high == 150
    assert found.days[-1].at == END
    assert [part.kind for part in found.parts] == [PartKind.SPENT]
