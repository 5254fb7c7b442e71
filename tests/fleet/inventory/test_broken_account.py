"""One account that hangs delays no other: real claims, real rows, connections of their own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection
from django.utils import timezone

from fleet.inventory.credentials import seal
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.poll import Claim, claim_due, poll_account
from fleet.teams.models import Team

ACCOUNTS = 12


@pytest.mark.django_db(transaction=True)
def test_eleven_accounts_are_read_while_one_hangs(provider, listed, monkeypatch):
    team = Team.objects.create(name="Acme", slug="acme")
    for number in range(ACCOUNTS):
        ProviderAccount.objects.create(
            team=team, kind="scripted", name=f"Lab {number}", credentials=seal({"key": f"key-{number}"})
        )
    hung, release = Event(), Event()
    provider.machines = [listed("i-1")]

    def instances(adapter):
        if provider.keys_seen[-1] == "key-0" and not hung.is_set():
            hung.set()
            assert release.wait(timeout=60)
        yield from provider.machines

    monkeypatch.setattr(provider, "instances", instances)
    claims = {claim.account_id: claim for claim in claim_due(now=timezone.now())}
    first = ProviderAccount.objects.get(name="Lab 0").pk
    with ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(read, claims[first])
        assert hung.wait(timeout=60)
        for pk, claim in claims.items():
            if pk != first:
                read(claim)
        # The one that hangs keeps its claim, and nobody else waits for it.
        assert Instance.objects.count() == ACCOUNTS - 1
        assert ProviderAccount.objects.filter(listed_at=None).get().pk == first
        assert claim_due(now=timezone.now()) == []
        release.set()
        stuck.result(timeout=60)
    assert Instance.objects.count() == ACCOUNTS


def read(claim: Claim) -> None:
    """As the task does it; the main thread's connection stays open."""
    try:
        account = ProviderAccount.objects.get(pk=claim.account_id, poll_started_at=claim.started_at)
        poll_account(account=account, now=claim.started_at)
    finally:
        connection.close()
