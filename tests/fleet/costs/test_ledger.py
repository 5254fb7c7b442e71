"""From sightings to intervals and money: edges, silences, starts, prices that nobody told, and the properties that always hold."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.costs.ledger.charges import Rules, charges_of, lines_of
from fleet.costs.ledger.intervals import EdgeSource, Ledger, Meter
from fleet.costs.ledger.sightings import COLUMNS, Sighting, SightingError, read_sightings
from fleet.providers.base import Billing, Market

NOON = datetime(2026, 11, 10, 12, tzinfo=UTC)
RUNNING: dict[str, Any] = {"state": "running", "billing": Billing.FULL, "price_per_hour": Decimal("2.00")}
STOPPED: dict[str, Any] = {"state": "stopped", "billing": Billing.STORAGE}
GONE: dict[str, Any] = {"state": "terminated", "billing": Billing.NONE}
DISK: dict[str, Any] = {"storage_price_per_month": Decimal("0.10"), "storage_gb": Decimal(100)}


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def seen(minutes: float, told: float | None = None, **fields: Any) -> Sighting:
    provider_time = None if told is None else at(told)
    return Sighting(**{"seen_at": at(minutes), "machine": "a", "provider_time": provider_time, **fields})


def ledger_of(*sightings: Sighting):
    ledger = Ledger()
    ledger.see(sightings)
    return ledger.intervals()


def spans(intervals, meter=Meter.COMPUTE):
    """(start, end) in minutes."""
    return [
        (minutes(one.start), None if one.end is None else minutes(one.end)) for one in intervals if one.meter is meter
    ]


def minutes(moment: datetime) -> float:
    return (moment - NOON).total_seconds() / 60


def cost(intervals, until=60, **rules):
    lines = lines_of(charges_of(intervals, rules=Rules(**rules), until=at(until)))
    return {(line.meter, f"{line.month:%m}"): line.amount for line in lines}


class TestEdges:
    def test_the_providers_own_times_are_taken(self):
        found = ledger_of(seen(5, told=2, **RUNNING), seen(20, told=17, **STOPPED, **DISK))
        assert spans(found) == [(2, 17)]
        (compute,) = [one for one in found if one.meter is Meter.COMPUTE]
        assert (compute.start_source, compute.end_width) == (EdgeSource.PROVIDER, timedelta(0))

    def test_without_them_it_is_the_middle_and_what_is_not_known_is_kept(self):
        found = ledger_of(seen(0, **RUNNING), seen(10, **RUNNING), seen(20, **STOPPED))
        assert spans(found) == [(0, 15)]
        assert [one.end_width for one in found if one.meter is Meter.COMPUTE] == [timedelta(minutes=5)]

    @pytest.mark.parametrize("told", [-30, 25])
    def test_a_time_that_cannot_be_is_not_taken(self, told):
        """Before the machine was seen to run, or after it was seen stopped."""
        found = ledger_of(seen(0, **RUNNING), seen(20, told=told, **STOPPED))
        assert spans(found) == [(0, 10)]

    def test_a_price_that_changes_splits_in_the_middle_whatever_the_state_says(self):
        dear = {**RUNNING, "price_per_hour": Decimal(4)}
        found = ledger_of(seen(0, told=-5, **RUNNING), seen(30, told=-5, **dear))
        assert spans(found) == [(-5, 15), (15, None)]
        assert cost(found)[Meter.COMPUTE, "11"] == Decimal(2) * 20 / 60 + Decimal(4) * 45 / 60

    def test_nobody_looking_for_hours_is_no_stop(self):
        found = ledger_of(seen(0, **RUNNING), seen(360, **RUNNING), seen(361, **RUNNING))
        assert spans(found) == [(0, None)]

    def test_a_start_between_two_sightings_ends_the_run_before_it(self):
        found = ledger_of(seen(0, told=-10, **RUNNING), seen(30, told=20, **RUNNING))
        assert spans(found) == [(-10, 10), (20, None)]
        assert spans(found, Meter.UNKNOWN) == [(10, 20)]
        assert [one.run for one in found if one.meter is Meter.COMPUTE] == [1, 2]

    def test_a_market_that_changes_is_an_interval_of_its_own(self):
        found = ledger_of(seen(0, market=Market.SPOT, **RUNNING), seen(10, market=Market.ON_DEMAND, **RUNNING))
        assert [one.market for one in found] == ["spot", "on_demand"]

    def test_older_sightings_are_refused(self):
        with pytest.raises(ValueError, match="was counted"):
            ledger_of(seen(10, **RUNNING), seen(5, **RUNNING))


class TestMoney:
    def test_disks_are_charged_by_the_seconds_of_their_month(self):
        found = ledger_of(seen(0, told=0, **STOPPED, **DISK))
        month = timedelta(days=30).total_seconds()
        assert cost(found, until=60)[Meter.DISK_STOPPED, "11"] == Decimal(10) * 3600 / Decimal(month)
        assert cost(found, until=60, storage_month_hours=720)[Meter.DISK_STOPPED, "11"] == Decimal(10) / 720

    def test_a_running_machine_pays_for_its_disk_too(self):
        assert {meter for meter, _ in cost(ledger_of(seen(0, **RUNNING, **DISK)))} == {
            Meter.COMPUTE,
            Meter.DISK_RUNNING,
        }

    def test_a_launch_that_failed_costs_nothing(self):
        found = ledger_of(seen(0, state="error", billing=Billing.NONE, price_per_hour=Decimal(80)))
        assert cost(found) == {(Meter.NOTHING, "11"): 0}

    def test_what_nobody_can_tell_is_no_zero(self):
        found = ledger_of(
            seen(0, state="odd", billing=Billing.UNKNOWN), seen(10, state="running", billing=Billing.FULL)
        )
        (line,) = [
            line for line in lines_of(charges_of(found, rules=Rules(), until=at(60))) if line.meter is Meter.COMPUTE
        ]
        assert (line.amount, line.unpriced_seconds) == (Decimal(0), 55 * 60)
        assert spans(found, Meter.UNKNOWN) == [(0, 5)]

    @pytest.mark.parametrize(
        ("ran", "rules", "beyond"),
        [
            (50, {"minimum_seconds": 3600}, 10),
            (61, {"minimum_seconds": 3600}, 0),
            (61, {"quantum_seconds": 3600}, 59),
            (60, {"quantum_seconds": 3600}, 0),
        ],
    )
    def test_quantum_and_minimum_are_charged_once_a_start(self, ran, rules, beyond):
        found = ledger_of(seen(0, told=0, **RUNNING), seen(ran + 5, told=ran, **GONE))
        assert cost(found, until=600, **rules).get((Meter.MINIMUM, "11"), 0) == Decimal(2) * beyond / 60

    def test_a_price_change_is_no_start(self):
        dear = {**RUNNING, "price_per_hour": Decimal(4)}
        found = ledger_of(seen(0, told=0, **RUNNING), seen(20, told=0, **dear), seen(40, told=40, **GONE))
        assert cost(found, until=600, minimum_seconds=3600)[Meter.MINIMUM, "11"] == Decimal(4) * 20 / 60

    def test_what_runs_has_no_minimum_yet(self):
        assert (Meter.MINIMUM, "11") not in cost(ledger_of(seen(0, **RUNNING)), minimum_seconds=86_400)

    def test_months_are_of_utc(self):
        late = datetime(2026, 11, 30, 23, tzinfo=UTC)
        ledger = Ledger()
        ledger.see([Sighting(seen_at=late, machine="a", **RUNNING)])
        lines = lines_of(charges_of(ledger.intervals(), rules=Rules(), until=late + timedelta(hours=3)))
        assert [(f"{line.month:%m}", line.amount) for line in lines] == [("11", Decimal(2)), ("12", Decimal(4))]

    def test_currencies_are_never_added_up(self):
        found = ledger_of(seen(0, **RUNNING), seen(30, **RUNNING, currency="CNY"))
        lines = lines_of(charges_of(found, rules=Rules(), until=at(60)))
        assert {line.currency: line.seconds for line in lines} == {"CNY": 45 * 60, "USD": 15 * 60}

    def test_a_line_is_rounded_once_half_to_even(self):
        found = ledger_of(seen(0, told=0, state="running", billing=Billing.FULL, price_per_hour=Decimal("0.005")))
        (line,) = lines_of(charges_of(found, rules=Rules(), until=at(60)))
        assert (line.amount, line.rounded) == (Decimal("0.005"), Decimal("0.00"))


PRICES = st.sampled_from([None, Decimal(0), Decimal("0.37"), Decimal(2), Decimal("20.5")])


@st.composite
def stories(draw):
    """Sightings of two machines, some at one time, with provider's times that may lie anywhere."""
    told, clock = [], 0
    for _ in range(draw(st.integers(1, 12))):
        clock += draw(st.integers(0, 90))
        provider = draw(st.one_of(st.none(), st.integers(-60, clock + 30)))
        told.append(
            seen(
                clock,
                provider,
                machine=draw(st.sampled_from("ab")),
                state=draw(st.sampled_from(["running", "stopped", "odd", "terminated"])),
                billing=draw(st.sampled_from(Billing)),
                market=draw(st.sampled_from([Market.SPOT, Market.ON_DEMAND])),
                price_per_hour=draw(PRICES),
                storage_price_per_month=draw(PRICES),
                storage_gb=draw(st.sampled_from([None, Decimal(50)])),
            )
        )
    return told


@settings(max_examples=150, deadline=None)
@given(stories(), st.integers(1, 4))
def test_it_has_no_overlap_no_gap_and_no_negative_and_does_not_know_of_batches(story, size):
    ledger = Ledger()
    for start in range(0, len(story), size):
        ledger.see(story[start : start + size])
    found = ledger.intervals()
    assert found == ledger_of(*story)
    for machine in {one.machine for one in story}:
        mine = [one for one in found if one.machine == machine]
        for meter in Meter:
            check_apart([one for one in mine if one.meter is meter])
        check_covered(mine)
    charges = list(charges_of(found, rules=Rules(60, 3600), until=at(3000)))
    assert all(one.amount is None or one.amount >= 0 for one in charges)
    assert all(one.seconds > 0 for one in charges)


def check_apart(intervals):
    ordered = sorted(intervals, key=lambda one: one.start)
    for before, after in itertools.pairwise(ordered):
        assert before.end is not None
        assert before.end <= after.start


def check_covered(intervals):
    """From its first instant on a machine is on some meter, if only on those that say why it costs nothing."""
    bases = [one for one in intervals if one.meter is not Meter.DISK_RUNNING]
    ordered = sorted(bases, key=lambda one: one.start)
    for before, after in itertools.pairwise(ordered):
        assert before.end == after.start
    assert ordered[-1].end is None


HEADER = ",".join(COLUMNS)
ROWS = [
    "2026-11-10T12:00:00Z,2026-11-10T12:00:00Z,train-01,spot,running,full,1,2.00,0.10,100,USD",
    "2026-11-10T13:05:00Z,2026-11-10T13:00:00Z,train-01,spot,stopped,storage,1,,0.20,100,USD",
]


def write(tmp_path, *lines):
    path = tmp_path / "seen.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


def replay(path, *options):
    out = StringIO()
    call_command("ledger_replay", str(path), *options, stdout=out)
    return out.getvalue()


def test_the_command_prints_intervals_and_totals(tmp_path):
    answer = json.loads(replay(write(tmp_path, *ROWS), "--json", "--until", "2026-11-10T14:00:00Z"))
    assert [(one["meter"], one["start"], one["end"]) for one in answer["intervals"]] == [
        ("compute", "2026-11-10T12:00:00Z", "2026-11-10T13:00:00Z"),
        ("disk_running", "2026-11-10T12:00:00Z", "2026-11-10T13:00:00Z"),
        ("disk_stopped", "2026-11-10T13:00:00Z", None),
    ]
    assert {line["meter"]: line["rounded"] for line in answer["lines"]} == {
        "compute": "2.00",
        "disk_running": "0.01",
        "disk_stopped": "0.03",
    }
    assert answer["lines"][0]["month"] == "2026-11"
    assert set(answer["totals"]) == {"USD"}


def test_the_command_charges_as_the_provider_does(tmp_path):
    rows = [ROWS[0], ROWS[1].replace("2026-11-10T13:00:00Z", "2026-11-10T12:00:20Z").replace("13:05", "12:05")]
    lines = json.loads(replay(write(tmp_path, *rows), "--provider", "aws", "--json"))["lines"]
    assert {line["meter"]: line["seconds"] for line in lines}["minimum"] == 40


def test_the_command_speaks_to_people_too(tmp_path):
    words = replay(write(tmp_path, *ROWS))
    assert "train-01  compute  2026-11-10T12:00:00Z – 2026-11-10T13:00:00Z  2.00 USD/hour" in words
    assert "train-01  compute  2026-11  2.00 USD" in words


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (ROWS[0].replace("2026-11-10T12:00:00Z,2026", "2026-11-10T12:00:00,2026"), "line 2: seen_at"),
        (ROWS[0].replace("full", "lots"), "line 2: billing is 'lots'; it is one of full, storage, none, unknown"),
        (ROWS[0].replace(",2.00,", ",-2,"), "line 2: price_per_hour is '-2'"),
        (ROWS[0].replace(",2.00,", ",NaN,"), "line 2: price_per_hour"),
        (ROWS[0].replace("USD", "dollars"), "line 2: currency"),
        (ROWS[0].replace("train-01", ""), "line 2: machine"),
        (ROWS[0].replace("spot", "cheap"), "line 2: market"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path, row, words):
    with pytest.raises(CommandError, match=words):
        replay(write(tmp_path, row))


def test_a_missing_column_is_named():
    with pytest.raises(SightingError, match="the column quantity is missing"):
        read_sightings([HEADER.replace(",quantity", "")])


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(CommandError, match="no observation"):
        replay(write(tmp_path))
