"""How long the cleanup page's rows take to read for 5,000 machines over 12 accounts, all of which belong there: `python -m tests.bench.cleanup`."""

from __future__ import annotations

import os
import statistics
import time
from decimal import Decimal

from tests.bench.ingest import servers

MACHINES, ACCOUNTS, REPEATS = 5_000, 12, 9


def measure() -> str:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext
    from django.utils import timezone

    from fleet.inventory.models import Instance, ProviderAccount
    from fleet.pages.cleanup_lines import cleanup_lines
    from fleet.teams.models import Team

    team = Team.objects.create(name="Acme", slug="acme")
    accounts = [ProviderAccount.objects.create(team=team, kind="aws", name=f"A{number}") for number in range(ACCOUNTS)]
    Instance.objects.bulk_create(
        Instance(
            team=team, account=accounts[number % ACCOUNTS], external_id=f"i-{number}", name=f"m{number}", state="stopped",
            billing="storage", managed=number % 2 > 0, price_per_hour=Decimal(2), storage_price_per_hour=Decimal("0.1"),
        )
        for number in range(MACHINES)
    )  # fmt: skip
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        with CaptureQueriesContext(connection) as queries:
            found = cleanup_lines(team_ids=[team.pk], now=timezone.now())
        times.append(time.perf_counter() - began)
    assert len(found) == MACHINES
    return f"{MACHINES} machines, {ACCOUNTS} accounts: {1000 * statistics.median(times):.0f} ms, {len(queries)} queries"


def main() -> None:
    with servers():
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        print(measure())  # noqa: T201


if __name__ == "__main__":
    main()
