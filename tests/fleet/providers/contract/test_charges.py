"""What was charged: every line of every page, to the last digit, or an error; never a part."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.providers.base import Capability, ChargeKind, Money
from fleet.providers.errors import AuthFailed, RateLimited, ScopeMissing, Unavailable
from tests.fleet.providers.contract.cast import each
from tests.fleet.providers.fakes.base import Billed

COSTS = Capability.COSTS
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
NEXT_MONTH = datetime(2026, 12, 1, tzinfo=UTC)
DAY = timedelta(days=1)
REFUSALS = {401: AuthFailed, 403: ScopeMissing, 429: RateLimited, 500: Unavailable}


def billed(adapter, start=FIRST, end=NEXT_MONTH):
    return list(adapter.charges(start, end))


@each(COSTS)
@pytest.mark.parametrize("count", [0, 1, 2, None])
def test_every_charge_is_told_once(adapter, fake, count):
    count = fake.many_charges if count is None else count
    fake.bill = [Billed(FIRST, Decimal(f"{number}.125"), machine=f"{4000 + number}") for number in range(1, count + 1)]
    lines = billed(adapter)
    told = {line.external_id: line.amount for line in lines}
    assert len(lines) == len(fake.bill)
    assert told == {one.machine: Money(one.amount, "USD") for one in fake.bill}
    assert len({line.line_id for line in lines}) == len(lines)


@each(COSTS)
def test_a_charge_says_what_it_is_for_and_of_which_day(adapter, fake):
    fake.bill = [Billed(FIRST + 3 * DAY, Decimal("1.25"), machine="4001")]
    (line,) = billed(adapter)
    assert (line.kind, line.start, line.end) == (ChargeKind.COMPUTE, FIRST + 3 * DAY, FIRST + 4 * DAY)
    assert line.raw_kind


@each(COSTS)
@pytest.mark.parametrize("amount", ["0.0001", "12.34", "1234567.89", "-2.5", "0.1"])
def test_amounts_are_exact_and_credits_are_negative(adapter, fake, amount):
    fake.bill = [Billed(FIRST, Decimal(amount), machine="4001")]
    (line,) = billed(adapter)
    assert line.amount == Money(Decimal(amount), "USD")


@each(COSTS)
def test_disks_and_volumes_are_kinds_of_their_own(adapter, fake):
    fake.bill = [
        Billed(FIRST, Decimal("3.5"), machine="4001", word="disk"),
        Billed(FIRST, Decimal("0.75"), word="volume", resource="7001"),
    ]
    lines = {line.kind: line for line in billed(adapter)}
    assert lines[ChargeKind.DISK].amount.amount == Decimal("3.5")
    volume = lines[ChargeKind.NETWORK_VOLUME]
    assert (volume.external_id, volume.resource, volume.amount.amount) == ("", "7001", Decimal("0.75"))


@each(COSTS)
def test_a_charge_of_a_kind_that_nobody_has_heard_of_is_kept(adapter, fake):
    fake.bill = [Billed(FIRST, Decimal("9.75"), machine="4001", word="surcharge")]
    (line,) = billed(adapter)
    assert (line.kind, line.amount.amount) == (ChargeKind.OTHER, Decimal("9.75"))


@each(COSTS)
def test_what_lies_outside_the_time_asked_for_is_left_out(adapter, fake):
    fake.bill = [Billed(FIRST + day * DAY, Decimal(1), machine="4001") for day in (-40, -1, 0, 4, 5, 30)]
    days = [line.start for line in billed(adapter, FIRST, FIRST + 5 * DAY)]
    assert days == [FIRST, FIRST + 4 * DAY]


@each(COSTS)
def test_a_line_has_the_same_id_whatever_its_amount_has_become(adapter, fake):
    fake.bill = [Billed(FIRST, Decimal(1), machine="4001"), Billed(FIRST, Decimal(2), machine="4002")]
    before = [line.line_id for line in billed(adapter)]
    fake.bill = [Billed(FIRST, Decimal(5), machine="4001"), Billed(FIRST, Decimal(2), machine="4002")]
    assert [line.line_id for line in billed(adapter)] == before


@each(COSTS)
@pytest.mark.parametrize("status", REFUSALS)
def test_a_refusal_becomes_our_error(adapter, fake, status):
    fake.bill = [Billed(FIRST, Decimal(1), machine="4001")]
    fake.refuse(status, on="charges")
    with pytest.raises(REFUSALS[status]):
        billed(adapter)


@each(COSTS)
def test_a_bill_that_breaks_off_raises(adapter, fake):
    fake.bill = [Billed(FIRST, Decimal(1), machine="4001")]
    fake.cut_listing("charges")
    with pytest.raises(Unavailable):
        billed(adapter)


@each(COSTS)
def test_a_bill_without_its_list_is_no_empty_bill(adapter, fake):
    fake.bill = [Billed(FIRST, Decimal(1), machine="4001")]
    fake.garble_answer('{"surprise": 1}', "charges")
    with pytest.raises(Unavailable):
        billed(adapter)


@each(COSTS, when=lambda fake: fake.many_charges > 1)
def test_a_later_page_that_is_refused_leaves_no_part(adapter, fake):
    fake.bill = [Billed(FIRST, Decimal(1), machine=f"{4000 + number}") for number in range(fake.many_charges)]
    fake.refuse(500, on="charges", after=1)
    with pytest.raises(Unavailable):
        billed(adapter)
