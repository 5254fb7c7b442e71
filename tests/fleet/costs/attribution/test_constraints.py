"""What the database refuses whatever the code does: hours that belong twice, halves of hours, more than a whole machine."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from fleet.costs.attribution.models import AttributionSource, AttributionSpan, ShareHour
from tests.fleet.costs.attribution.conftest import HOUR, MINUTE, NOON


def span(instance, start, end=None, **more):
    return AttributionSpan.objects.create(
        instance=instance, period=DateTimeTZRange(start, end), source=AttributionSource.MACHINE, **more
    )


def share(instance, part, **more):
    return ShareHour.objects.create(instance=instance, hour=NOON, share=Decimal(part), **more)


@pytest.mark.parametrize(
    ("first", "second"),
    [((0, 2), (1, 3)), ((0, None), (5, 6)), ((0, None), (5, None)), ((0, 1), (0, 1))],
)
def test_an_hour_belongs_once(make_instance, first, second):
    instance = make_instance()
    bounds = [tuple(None if n is None else NOON + n * HOUR for n in pair) for pair in (first, second)]
    span(instance, *bounds[0])
    with pytest.raises(IntegrityError, match="attribution_span_no_overlap"), transaction.atomic():
        span(instance, *bounds[1])


def test_hours_of_two_machines_do_not_meet(make_instance):
    span(make_instance(name="one"), NOON)
    span(make_instance(name="two"), NOON)
    assert AttributionSpan.objects.count() == 2


@pytest.mark.parametrize(
    ("start", "end"), [(NOON + MINUTE, None), (NOON, NOON + HOUR + MINUTE), (NOON, NOON + HOUR / 2)]
)
def test_spans_have_whole_hours(make_instance, start, end):
    with pytest.raises(IntegrityError, match="attribution_span_full_hours"):
        span(make_instance(), start, end)


@pytest.mark.parametrize("bounds", [(None, NOON), (NOON, NOON)])
def test_a_span_begins_and_lasts(make_instance, bounds):
    with pytest.raises(IntegrityError, match="attribution_span_not_empty"):
        span(make_instance(), *bounds)


def test_shares_are_no_more_than_the_hour(make_instance, alice, bob):
    instance = make_instance()
    share(instance, "0.6", owner=alice)
    share(instance, "0.4", owner=bob)
    with pytest.raises(IntegrityError, match="more than the hour"), transaction.atomic():
        share(instance, "0.00000001")
    with pytest.raises(IntegrityError, match="more than the hour"), transaction.atomic():
        ShareHour.objects.filter(owner=bob).update(share=Decimal("0.41"))


@pytest.mark.parametrize("part", ["0", "-0.1", "1.1"])
def test_a_share_is_a_part(make_instance, part):
    with pytest.raises(IntegrityError):
        share(make_instance(), part)
