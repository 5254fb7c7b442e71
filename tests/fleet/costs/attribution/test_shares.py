"""How an hour is divided: exact, never more than the hour, never less than nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.costs.attribution.shares import Held, held_shares, measured_shares, rounded

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
END = START + timedelta(hours=1)
ALICE, BOB = 1, 2


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def test_nobody_holds_it():
    assert held_shares([], START, END) == {}


def test_each_moment_is_shared_equally_by_its_owners():
    holds = [Held(ALICE, "", at(-60)), Held(BOB, "", at(30), at(60))]
    assert held_shares(holds, START, END) == {(ALICE, ""): Fraction(3, 4), (BOB, ""): Fraction(1, 4)}


def test_two_holds_of_one_owner_count_once():
    holds = [Held(ALICE, "", at(0)), Held(ALICE, "", at(0)), Held(BOB, "", at(0))]
    assert held_shares(holds, START, END) == {(ALICE, ""): Fraction(1, 2), (BOB, ""): Fraction(1, 2)}


def test_two_jobs_of_one_owner_share_the_owners_part():
    holds = [Held(ALICE, "a", at(0)), Held(ALICE, "b", at(0)), Held(BOB, "", at(0))]
    parts = held_shares(holds, START, END)
    assert parts == {(ALICE, "a"): Fraction(1, 4), (ALICE, "b"): Fraction(1, 4), (BOB, ""): Fraction(1, 2)}


def test_what_nobody_holds_is_left_over():
    assert held_shares([Held(None, "", at(15), at(30))], START, END) == {(None, ""): Fraction(1, 4)}


def test_measured_use_is_a_part_of_what_was_looked_at():
    assert measured_shares({"ada": 900.0, "bob": 0.0}, 3600.0) == {"ada": Fraction(1, 4)}
    assert measured_shares({}, 0.0) == {}


def test_thirds_make_a_whole_again():
    shares = rounded({name: Fraction(1, 3) for name in "abc"})
    assert sorted(shares.values()) == [Decimal("0.33333333"), Decimal("0.33333333"), Decimal("0.33333334")]
    assert sum(shares.values()) == 1


def test_a_part_too_small_to_store_is_none():
    assert rounded({"a": Fraction(1, 10**9)}) == {}


minutes = st.floats(min_value=-90, max_value=150, allow_nan=False)
holds = st.builds(
    Held,
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from(["", "a", "b"]),
    minutes.map(at),
    st.none() | minutes.map(at),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(holds, max_size=8))
def test_shares_of_holds_are_parts_of_the_hour(found):
    parts = held_shares(found, START, END)
    stored = rounded(parts)
    assert all(part > 0 for part in parts.values())
    assert sum(parts.values()) <= 1
    assert all(0 < share <= 1 for share in stored.values())
    assert sum(stored.values()) <= 1
    assert abs(sum(stored.values(), Decimal(0)) - Decimal(float(sum(parts.values())))) < Decimal("0.00000002")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1e6), max_size=8), st.floats(0, 1e6))
def test_shares_of_use_are_parts_of_the_hour(seconds, looked_at):
    stored = rounded(measured_shares(seconds, looked_at))
    assert all(0 < share <= 1 for share in stored.values())
    assert sum(stored.values()) <= 1
