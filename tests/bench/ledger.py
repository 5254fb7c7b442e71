"""How long a day of observations takes to become the ledger: `python -m tests.bench.ledger [--machines 5000] [--changes 12] [--json]`.

Machines start, change their price and stop over a day. Built minute by minute it is what a running installation does; at once, what one
does that was down for a day; rebuilt, what `ledger_rebuild` does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.bench.ingest import servers

MACHINES, CHANGES = 5_000, 12
BEGIN = datetime(2026, 11, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY_MINUTES = 24 * 60
PROVIDERS = ("runpod", "aws", "vultr", "lambda")


def seed(machines: int) -> list[int]:
    from fleet.inventory.models import Instance, ProviderAccount
    from fleet.teams.models import Team

    team = Team.objects.create(name="Acme", slug="acme")
    accounts = [ProviderAccount.objects.create(team=team, kind=kind, name=kind) for kind in PROVIDERS]
    rows = [
        Instance(team=team, account=accounts[number % 4], external_id=f"{number}", name=f"train-{number}")
        for number in range(machines)
    ]
    return [row.pk for row in Instance.objects.bulk_create(rows, batch_size=1_000)]


def observations(ids: list[int], changes: int) -> list[tuple[int, Any]]:
    """(minute, row) in the order of time: a machine changes every 24 h / `changes`, each third time by a stop or a start."""
    every = DAY_MINUTES // changes
    found = [
        (place % every + step * every, observation(pk, place % every + step * every, step))
        for place, pk in enumerate(ids)
        for step in range(changes)
    ]
    return sorted(found, key=lambda one: one[0])


def observation(pk: int, minute: int, step: int) -> Any:
    from fleet.inventory.models import Observation

    state, billing = ("stopped", "storage") if step % 3 == 2 else ("running", "full")
    seen_at = BEGIN + minute * MINUTE
    return Observation(
        instance_id=pk,
        seen_at=seen_at,
        unchanged_until=seen_at - MINUTE if step else None,
        state=state,
        raw_state=state,
        billing=billing,
        market="spot",
        price_per_hour=2 + step,
        storage_price_per_hour="0.1",
        currency="USD",
        rule_version=1,
    )


def measured(work: Any) -> dict[str, Any]:
    began, began_cpu = time.perf_counter(), time.process_time()
    count = work()
    return {
        "rows": count,
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(time.process_time() - began_cpu, 2),
    }


def forget() -> None:
    from fleet.costs.book.models import LedgerBuild, LedgerChange, LedgerInterval, LedgerMeter, LedgerProgress
    from fleet.inventory.models import Observation

    for model in (LedgerInterval, LedgerMeter, LedgerProgress, LedgerChange, LedgerBuild, Observation):
        model.objects.all().delete()


def build(now: datetime) -> int:
    from fleet.costs.book.build import build_ledger

    built = build_ledger(now=now)
    assert built.is_complete
    return built.rows


def minute_by_minute(ids: list[int], changes: int) -> dict[str, Any]:
    """Only the builds count; writing the log is not theirs. The last hour of the day: what is in the tables by then slows it down."""
    from fleet.inventory.models import Observation

    rows: dict[int, list[Any]] = {}
    for minute, row in observations(ids, changes):
        rows.setdefault(minute, []).append(row)
    early = [row for minute in range(DAY_MINUTES - 60) for row in rows.get(minute, ())]
    Observation.objects.bulk_create(early, batch_size=2_000)
    build(BEGIN + (DAY_MINUTES - 60) * MINUTE)
    times = []
    for minute in range(DAY_MINUTES - 60, DAY_MINUTES):
        Observation.objects.bulk_create(rows.get(minute, ()))
        began = time.perf_counter()
        build(BEGIN + minute * MINUTE)
        times.append(time.perf_counter() - began)
    times.sort()
    return {"median_ms": round(1000 * times[30], 1), "worst_ms": round(1000 * times[-1], 1)}


def run(machines: int, changes: int) -> dict[str, Any]:
    from fleet.costs.book.build import rebuild_ledger
    from fleet.inventory.models import Observation

    ids = seed(machines)
    by_minute = minute_by_minute(ids, changes)
    forget()
    rows = [row for _, row in observations(ids, changes)]
    Observation.objects.bulk_create(rows, batch_size=2_000)
    now = BEGIN + DAY_MINUTES * MINUTE
    at_once = measured(lambda: build(now))
    idle = measured(lambda: build(now + MINUTE))
    rebuilt = measured(lambda: len(list(rebuild_ledger(instances=ids))))
    assert rebuilt["rows"] == 0
    return {
        "machines": machines,
        "observations": len(rows),
        "each_minute": by_minute,
        "a_day_at_once": at_once,
        "nothing_new": idle,
        "rebuild": rebuilt,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=MACHINES)
    parser.add_argument("--changes", type=int, default=CHANGES, help="Of each machine in a day.")
    parser.add_argument("--json", action="store_true", help="The last line is a JSON object.")
    arguments = parser.parse_args()
    with servers():
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        results = run(arguments.machines, arguments.changes)
    for name, result in results.items():
        print(f"{name:14} {result}")  # noqa: T201
    if arguments.json:
        print(json.dumps(results))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
