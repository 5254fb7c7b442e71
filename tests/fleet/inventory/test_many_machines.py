"""5,000 machines over 12 accounts: a listing takes as many queries as that of a few machines, and an account that hangs delays no other."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from threading import Event

import pytest
from django.conf import settings as configured
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.inventory import tasks
from fleet.inventory.credentials import seal
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.poll import claim_due, poll_account
from fleet.teams.models import Team
from tests.fleet.inventory.conftest import NOON

ACCOUNTS, MACHINES = 12, 5_000
HANGS = "sk-of-a-provider-that-never-answers"


@pytest.fixture
def accounts(provider) -> list[ProviderAccount]:
    """Due since noon, the longest first."""
    team = Team.objects.create(name="Many", slug="many")
    return [
        ProviderAccount.objects.create(
            team=team,
            kind="scripted",
            name=f"Lab {number}",
            next_poll_at=NOON - timedelta(seconds=ACCOUNTS - number),
        )
        for number in range(ACCOUNTS)
    ]


def queries_of_a_poll(account: ProviderAccount, after: timedelta) -> int:
    account.refresh_from_db()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        outcome = poll_account(account=account, now=NOON + after)
    assert outcome.error is None
    return len(queries)


@pytest.mark.django_db
def test_a_listing_takes_no_more_queries_for_hundreds_of_machines(accounts, provider, listed):
    """Found, changed and unchanged; the first account has ten machines, the others share the rest."""
    sizes = [10, *(len(range(number, MACHINES - 10, ACCOUNTS - 1)) for number in range(ACCOUNTS - 1))]
    assert sum(sizes) == MACHINES
    for minute, rate in enumerate(("1", "2", "2")):
        counts = []
        for account, size in zip(accounts, sizes, strict=True):
            provider.machines = [listed(f"{account.pk}-{number}", rate=rate) for number in range(size)]
            counts.append(queries_of_a_poll(account, timedelta(minutes=minute)))
        assert set(counts) == {counts[0]}
        assert counts[0] < 25
    assert Instance.objects.count() == MACHINES


@pytest.mark.django_db(transaction=True)
def test_an_account_that_hangs_delays_no_other(accounts, provider, listed, monkeypatch):
    """As many workers as read accounts; claims, tasks and what they send next are the real ones."""
    hanging, *others = accounts
    ProviderAccount.objects.filter(pk=hanging.pk).update(credentials=seal({"key": HANGS}))
    released, begun = Event(), Event()
    provider.machines = [listed(f"i-{number}", rate="1") for number in range(5)]

    def instances(self):
        if self.keys_seen_here == HANGS:
            begun.set()
            assert released.wait(timeout=60)
        yield from provider.machines

    def remember(self, options):
        self.keys_seen_here = options["key"]

    monkeypatch.setattr(provider, "__init__", remember)
    monkeypatch.setattr(provider, "instances", instances)
    all_read = Event()
    work: list[Future[None]] = []

    with ThreadPoolExecutor(configured.POLLS_AT_ONCE) as workers:

        def run(account_id: int, started_at: str) -> None:
            try:
                tasks.poll.run(account_id, started_at)
                if ProviderAccount.objects.filter(listed_at__isnull=False).count() == len(others):
                    all_read.set()
            finally:
                connection.close()

        monkeypatch.setattr(tasks.poll, "apply_async", lambda args, **_: work.append(workers.submit(run, *args)))
        try:
            tasks.dispatch_polls()
            assert begun.wait(timeout=30)
            assert all_read.wait(timeout=60)
            assert claim_due(now=timezone.now(), at_once=configured.POLLS_AT_ONCE) == []
            assert set(Instance.objects.values_list("account", flat=True)) == {one.pk for one in others}
        finally:
            released.set()
    for done in work:
        done.result()
    assert Instance.objects.filter(account=hanging).count() == 5
