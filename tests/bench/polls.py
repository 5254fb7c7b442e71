"""How long it takes to write listings of a large fleet: `python -m tests.bench.polls [--machines 5000] [--accounts 12] [--json]`.

The provider answers at once, so times are those of claims, comparison and PostgreSQL; one account after the other, as one worker would.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.bench.ingest import servers

MACHINES, ACCOUNTS = 5_000, 12


def seed(accounts: int) -> None:
    from fleet.inventory.models import ProviderAccount
    from fleet.teams.models import Team

    team = Team.objects.create(name="Acme", slug="acme")
    for number in range(accounts):
        ProviderAccount.objects.create(team=team, kind="scripted", name=f"Lab {number}")


def machines_of(account_id: int, count: int, rate: str) -> list[Any]:
    from decimal import Decimal

    from fleet.providers.base import Billing, InstanceState, Money, ProviderInstance, Ref

    return [
        ProviderInstance(
            ref=Ref(f"{account_id}-{number}", "eu-1"),
            name=f"train-{number}",
            state=InstanceState.RUNNING,
            raw_state="running",
            billing=Billing.FULL,
            gpu_model="H100 SXM",
            gpu_count=8,
            rate=Money(Decimal(rate), "USD"),
        )
        for number in range(count)
    ]


def read_all(accounts: int, machines: int, rate: str) -> Mapping[str, Any]:
    """Every account once, by a claim of its own. Raises AssertionError where one was not read."""
    from django.db import connection
    from django.utils import timezone

    from fleet.inventory.models import ProviderAccount
    from fleet.inventory.poll import claim_due, poll_account
    from tests.fleet.inventory.conftest import Scripted

    queries: list[str] = []

    def note(run: Any, sql: str, *rest: Any) -> Any:
        queries.append(sql)
        return run(sql, *rest)

    ProviderAccount.objects.update(next_poll_at=timezone.now() - timedelta(seconds=1))
    lists = {
        pk: machines_of(pk, machines // accounts, rate) for pk in ProviderAccount.objects.values_list("pk", flat=True)
    }
    began, began_cpu = time.perf_counter(), time.process_time()
    claims = claim_due(now=timezone.now())
    assert len(claims) == accounts
    with connection.execute_wrapper(note):
        for claim in claims:
            Scripted.machines = lists[claim.account_id]
            account = ProviderAccount.objects.get(pk=claim.account_id)
            assert poll_account(account=account, now=claim.started_at).changes is not None
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(time.process_time() - began_cpu, 2),
        "queries_per_account": round(len(queries) / accounts, 1),
    }


def register() -> None:
    from fleet.inventory import adapters
    from fleet.providers import registry
    from tests.fleet.inventory.conftest import Scripted

    known = {**registry.adapters(), Scripted.kind: Scripted}
    for module in (adapters, registry):
        module.adapters = lambda: known  # type: ignore[attr-defined]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=MACHINES)
    parser.add_argument("--accounts", type=int, default=ACCOUNTS)
    parser.add_argument("--json", action="store_true", help="The last line is a JSON object.")
    arguments = parser.parse_args()
    with servers():
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        register()
        seed(arguments.accounts)
        told = (("found", "1.00"), ("unchanged", "1.00"), ("all_changed", "2.00"))
        results = {name: read_all(arguments.accounts, arguments.machines, rate) for name, rate in told}
    for name, result in results.items():
        print(f"{name:12} {result}")  # noqa: T201
    if arguments.json:
        print(json.dumps(results))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
