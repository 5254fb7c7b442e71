"""The observation log: a row for each change that a listing shows, and for nothing else."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from fleet.inventory.models import Instance, Observation
from fleet.inventory.observe import observe, prune_observations
from fleet.inventory.poll import poll_account
from fleet.providers.base import Billing, InstanceState
from tests.fleet.inventory.conftest import NOON

MINUTE = timedelta(minutes=1)


def poll(account, provider, *machines, after=0):
    provider.machines = list(machines)
    account.refresh_from_db()
    poll_account(account=account, now=NOON + after * MINUTE)


def rows():
    return list(Observation.objects.order_by("seen_at"))


def test_the_first_sight_of_a_machine_is_a_row(lab, provider, listed):
    started = NOON - timedelta(hours=3)
    poll(lab, provider, listed("i-1", rate="2.50", started_at=started, created_at=started))
    (row,) = rows()
    assert (row.seen_at, row.unchanged_until, row.listed) == (NOON, None, True)
    assert (row.raw_state, row.state, row.billing) == ("running", "running", "full")
    assert (row.price_per_hour, row.currency, row.rule_version) == (Decimal("2.5"), "USD", 1)
    assert (row.provider_created_at, row.provider_started_at, row.provider_stopped_at) == (started, started, None)


def test_an_unchanged_machine_adds_none(lab, provider, listed):
    for after in range(3):
        poll(lab, provider, listed("i-1", rate="2.50", name=f"name {after}"), after=after)
    assert len(rows()) == 1


def test_a_change_lies_between_the_last_sight_of_the_old_and_the_first_of_the_new(lab, provider, listed):
    poll(lab, provider, listed("i-1"))
    poll(lab, provider, listed("i-1"), after=1)
    stopped = listed("i-1", state=InstanceState.STOPPED, raw_state="exited", billing=Billing.STORAGE)
    poll(lab, provider, stopped, after=5)
    row = rows()[-1]
    assert (row.unchanged_until, row.seen_at) == (NOON + MINUTE, NOON + 5 * MINUTE)
    assert (row.raw_state, row.state, row.billing) == ("exited", "stopped", "storage")


def test_a_changed_price_is_a_row_and_so_is_a_price_that_became_unknown(lab, provider, listed):
    for after, rate in enumerate(("2.50", "2.75", None)):
        poll(lab, provider, listed("i-1", rate=rate), after=after)
    assert [row.price_per_hour for row in rows()] == [Decimal("2.5"), Decimal("2.75"), None]


def test_missing_is_seen_once_and_gone_once(lab, provider, listed):
    poll(lab, provider, listed("i-1"), listed("i-2"))
    for after in range(1, 6):
        poll(lab, provider, listed("i-2"), after=after)
    of_it = [row for row in rows() if row.instance.external_id == "i-1"]
    assert [(row.listed, row.state, row.billing, row.seen_at) for row in of_it] == [
        (True, "running", "full", NOON),
        (False, "running", "full", NOON + MINUTE),
        (False, "terminated", "none", NOON + 3 * MINUTE),
    ]


def test_a_machine_listed_again_is_a_row_even_if_nothing_else_changed(lab, provider, listed):
    poll(lab, provider, listed("i-1"))
    poll(lab, provider, after=1)
    poll(lab, provider, listed("i-1"), after=2)
    assert [row.listed for row in rows()] == [True, False, True]


def test_a_new_rule_is_a_row(lab, provider, listed, monkeypatch):
    poll(lab, provider, listed("i-1"))
    monkeypatch.setattr(provider, "rule_version", 2)
    poll(lab, provider, listed("i-1"), after=1)
    assert [row.rule_version for row in rows()] == [1, 2]


def test_rows_are_dropped_after_25_months_but_for_the_one_that_still_holds(make_instance):
    machine, other = make_instance(name="one"), make_instance(name="two")
    for days in (900, 800, 100):
        observe(machine, now=NOON - timedelta(days=days))
    observe(other, now=NOON - timedelta(days=900))
    assert prune_observations(now=NOON) == 1
    ages = [(NOON - row.seen_at).days for row in Observation.objects.filter(instance=machine).order_by("seen_at")]
    assert ages == [800, 100]
    assert Instance.objects.filter(observations__isnull=True).count() == 0
