"""Several beats at the same moment, on connections of their own: every account is polled once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from fleet.inventory.models import ProviderAccount
from fleet.inventory.poll import Claim, claim_due
from fleet.teams.models import Team

BEATS = 4
ACCOUNTS = 8


@pytest.mark.django_db(transaction=True)
def test_of_many_beats_one_claims_each_account(provider):
    team = Team.objects.create(name="Acme", slug="acme")
    for number in range(ACCOUNTS):
        ProviderAccount.objects.create(team=team, kind="scripted", name=f"Lab {number}")
    together, now = Barrier(BEATS), timezone.now()

    def beat() -> list[Claim]:
        try:
            together.wait(timeout=30)
            return claim_due(now=now)
        finally:
            connection.close()

    with ThreadPoolExecutor(BEATS) as pool:
        claims = [claim for beats in pool.map(lambda _: beat(), range(BEATS)) for claim in beats]
    assert len(claims) == ACCOUNTS
    assert len({claim.account_id for claim in claims}) == ACCOUNTS
