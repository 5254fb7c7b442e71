"""PostgreSQL itself refuses what must never be, whoever writes it."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from fleet.costs.book.models import LedgerMeter

INSERT = """\
INSERT INTO ledger_interval (meter_id, period, unit, unit_price, quantity, currency, market, price_source, seen_at, start_source,
    start_half_width_seconds, end_half_width_seconds, run)
VALUES (%s, %s::tstzrange, 'hour', %s, 1, 'USD', '', 'listing', now(), 'provider', 0, 0, 1)
"""


@pytest.fixture
def meter(machine):
    return meter_of(machine)


def meter_of(machine, **fields):
    values = {"team": machine.team, "account": machine.account, "instance": machine, "kind": "compute", **fields}
    return LedgerMeter.objects.create(**values)


def insert(meter, period, price=2):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(INSERT, [meter.pk, period, price])


def test_two_intervals_of_a_meter_may_touch(meter):
    insert(meter, "[2026-11-01 00:00Z,2026-11-02 00:00Z)")
    insert(meter, "[2026-11-02 00:00Z,2026-11-03 00:00Z)")


def test_two_intervals_of_a_meter_may_not_overlap(meter):
    insert(meter, "[2026-11-01 00:00Z,2026-11-02 00:00Z)")
    with pytest.raises(IntegrityError, match="ledger_interval_no_overlap"):
        insert(meter, "[2026-11-01 23:59:59Z,2026-11-03 00:00Z)")


def test_a_meter_has_one_open_interval(meter):
    insert(meter, "[2026-11-01 00:00Z,)")
    with pytest.raises(IntegrityError, match="ledger_interval_no_overlap"):
        insert(meter, "[2026-12-01 00:00Z,)")


def test_other_meters_may_overlap(meter, machine):
    insert(meter, "[2026-11-01 00:00Z,)")
    insert(meter_of(machine, kind="disk_running"), "[2026-11-01 00:00Z,)")
    insert(meter_of(machine, resource="volume"), "[2026-11-01 00:00Z,)")


@pytest.mark.parametrize(
    ("period", "price", "name"),
    [
        ("empty", 2, "ledger_interval_not_empty"),
        ("(,2026-11-01 00:00Z)", 2, "ledger_interval_not_empty"),
        ("[2026-11-01 00:00Z,)", -1, "ledger_interval_price"),
    ],
)
def test_an_interval_has_a_beginning_a_length_and_no_negative_price(meter, period, price, name):
    with pytest.raises(IntegrityError, match=name):
        insert(meter, period, price)


@pytest.mark.parametrize("resource", ["", "volume"])
def test_a_meter_is_there_once(machine, resource):
    for instance in (machine, None):
        meter_of(machine, instance=instance, resource=resource)
        with pytest.raises(IntegrityError), transaction.atomic():
            meter_of(machine, instance=instance, resource=resource)
