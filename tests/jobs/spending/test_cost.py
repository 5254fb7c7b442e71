"""What a job costs is what the ledger charges for its machines over the time that they were held for it."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.costs.attribution.models import AttributionSpan
from fleet.costs.book.models import LedgerInterval
from fleet.costs.spend.models import ExchangeRate
from fleet.inventory.models import Hold, HoldKind
from jobs.book.manage import add_attempt
from jobs.metrics.models import JobPoint
from jobs.spending.cost import cost_of, cost_of_job, costs_of_jobs
from tests.jobs.conftest import ACTOR, newest
from tests.jobs.spending.conftest import at, priced

pytestmark = pytest.mark.django_db


def test_time_times_price_of_every_machine(rented, held):
    attempt = held(0, 2.5, rented("a"), rented("b", price="1.00"))
    cost = cost_of(attempt, at(9))
    assert (cost.amount, cost.currency, cost.per_hour, cost.heads_for) == (Decimal("8.5"), "USD", None, None)
    assert (cost.unpriced_seconds, cost.is_listing, cost.is_floor) == (0, False, False)


def test_what_goes_on_is_counted_until_now(rented, held):
    cost = cost_of(held(0, None, rented("a")), at(3))
    assert (cost.amount, cost.per_hour) == (Decimal("7.2"), Decimal("2.4"))


def test_a_price_that_changes_counts_from_its_time_on(rented, held):
    machine = rented("a")
    LedgerInterval.objects.update(period=(at(-24), at(1)))
    priced(machine, "4", since=at(1))
    assert cost_of(held(0, 2, machine), at(9)).amount == Decimal("6.4")


def test_disks_and_typed_charges_of_the_machine_come_beside(rented, held):
    machine = rented("a")
    # November has 720 hours: 0.10 a GB and month of 720 GB is 0.10 an hour.
    priced(machine, "0.10", since=at(-24), kind="disk_running", unit="gb_month", quantity="720")
    priced(machine, "24", since=at(0), until=at(24), kind="licence", unit="once")
    priced(machine, "9", since=at(0), until=at(5), kind="minimum")
    assert cost_of(held(0, 2, machine), at(9)).amount == Decimal("4.8") + Decimal("0.2") + 2


def test_two_jobs_at_once_share_the_machine_and_add_up_to_what_it_cost(rented, held):
    machine = rented("a")
    first, second = held(0, 4, machine), held(2, 6, machine)
    costs = [cost_of(attempt, at(9)).amount for attempt in (first, second)]
    assert costs == [Decimal("2.4") * 3] * 2
    assert sum(costs) == Decimal("2.4") * 6


def test_jobs_of_one_owner_share_that_owners_part(rented, held, alice, bob):
    machine = rented("a")
    attempts = [held(0, 2, machine) for _number in range(3)]
    for attempt, owner in zip(attempts, (alice, alice, bob), strict=True):
        attempt.nodes.update(hold=_owned(attempt, owner))
    assert [cost_of(one, at(9)).amount for one in attempts] == [Decimal("1.2"), Decimal("1.2"), Decimal("2.4")]


def _owned(attempt, owner) -> Hold:
    hold: Hold = attempt.nodes.get().hold
    hold.owner = owner
    hold.save()
    return hold


def test_a_persons_hold_takes_its_part_only_of_a_machine_that_is_split(rented, held, alice):
    machine = rented("a")
    attempt = held(0, 2, machine)
    Hold.objects.create(instance=machine, kind=HoldKind.PERSON, owner=alice, started_at=at(1), ended_at=at(2))
    assert cost_of(attempt, at(9)).amount == Decimal("4.8")
    AttributionSpan.objects.create(instance=machine, period=(at(-24), None), split="holds", source="manual")
    assert cost_of(attempt, at(9)).amount == Decimal("3.6")


def test_time_at_a_price_that_nobody_told_is_no_zero(rented, held):
    cost = cost_of(held(0, 2, rented("a"), rented("b", price=None)), at(9))
    assert (cost.amount, cost.unpriced_seconds, cost.is_floor) == (Decimal("4.8"), 7200, True)
    assert cost_of(held(0, None, rented("c", price=None)), at(1)).per_hour is None


def test_a_machine_that_the_ledger_has_not_yet_costs_what_is_listed(make_instance, held):
    machine = make_instance(
        name="new", managed=True, ssh=[{"host": "198.51.100.7", "port": 22}], price_per_hour="3", currency="USD"
    )
    cost = cost_of(held(0, None, machine), at(1))
    assert (cost.amount, cost.per_hour, cost.is_listing) == (Decimal(3), Decimal(3), True)


def test_currencies_are_added_at_their_rate_and_never_without_one(acme, rented, held):
    attempt = held(0, 1, rented("a", price="2"), rented("b", price="3", currency="EUR"))
    assert cost_of(attempt, at(9)).others == {"EUR": 3}
    ExchangeRate.objects.create(
        team=acme, currency="EUR", into="USD", day=date(2026, 11, 1), rate="1.10", source="typed"
    )
    cost = cost_of(attempt, at(9))
    assert (cost.amount, dict(cost.others)) == (Decimal("5.30"), {})
    alone = cost_of(held(0, 1, rented("c", price="7", currency="CHF")), at(9))
    assert (alone.amount, alone.currency, dict(alone.others)) == (Decimal(7), "CHF", {})


def test_it_heads_for_what_its_steps_say(rented, held):
    attempt = held(0, None, rented("a"))
    for number in range(3):
        JobPoint.objects.create(attempt=attempt, at=at(number), source="log", step=100 * number, steps=500)
    cost = cost_of(attempt, at(2))
    assert cost.heads_for == Decimal("2.4") * 5
    # Nothing is heard of it any more: what is left is still to come.
    assert cost_of(attempt, at(6)).heads_for == Decimal("2.4") * 8


def test_without_steps_the_plan_tells_where_it_heads(rented, held):
    attempt = held(0, None, rented("a"), predicted={"hours": 10})
    assert cost_of(attempt, at(4)).heads_for == 24
    assert cost_of(attempt, at(11)).heads_for is None


def test_a_server_heads_for_its_deadline(rented, held, begin):
    attempt = held(0, None, rented("a"))
    attempt.job.deadline_at = at(10)
    attempt.job.save()
    assert cost_of(attempt, at(4)).heads_for is None
    attempt.job.kind = "serving"
    attempt.job.save()
    assert cost_of(attempt, at(4)).heads_for == 24


def test_a_job_costs_what_all_its_attempts_do(rented, held, acme):
    machine = rented("a")
    first = held(0, 1, machine)
    again = add_attempt(actor=ACTOR, job=first.job, machines=[machine], now=at(3))
    Hold.objects.exclude(pk=first.nodes.get().hold_id).update(started_at=at(3))
    assert newest(first.job) == again
    cost = cost_of_job(first.job, at(4))
    assert (cost.amount, cost.per_hour) == (Decimal("4.8"), Decimal("2.4"))


def test_many_jobs_cost_as_many_queries_as_one(rented, held, acme):
    counts = []
    for size in (1, 4):
        jobs = [held(0, 1, rented(f"m{size}-{number}")).job for number in range(size)]
        with CaptureQueriesContext(connection) as captured:
            found = costs_of_jobs(jobs, acme, at(9))
        assert {cost.amount for cost in found.values()} == {Decimal("2.4")}
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_a_job_of_no_time_costs_nothing(rented, held):
    cost = cost_of(held(0, 0, rented("a")), at(9) + timedelta(seconds=1))
    assert (cost.amount, cost.currency) == (Decimal(0), "USD")


@pytest.mark.parametrize(
    ("steps", "seconds"), [(9 * 10**18, 1e9), (500, float("nan")), (500, float("inf")), (500, -1.0), (1, 1.0)]
)
def test_no_figure_that_a_run_prints_breaks_it(rented, held, steps, seconds):
    attempt = held(0, None, rented("a"))
    JobPoint.objects.create(attempt=attempt, at=at(1), source="log", step=2, steps=steps, seconds_per_step=seconds)
    assert cost_of(attempt, at(1)).heads_for is None
