"""How long one worker takes for all alert rules over 10,000 GPUs: `python -m tests.bench.alerts --json`.

1,250 machines with 8 GPUs each in one team of one PostgreSQL, every one with its latest values, health, file systems and agent;
one in 25 has something for a rule to find. Medians of several evaluations, by the clock and of the worker alone (its CPU time), and the
number of queries: when nothing changed since the evaluation before, when the first alerts open, and when a provider with half of
the machines goes quiet at once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.bench.ingest import servers

MACHINES = 1_250
GPUS = 8
REPEATS = 9
HEALTH = {"ecc_corrected": 3, "ecc_uncorrected": 0, "remapped_rows_pending": False, "remapped_rows_failed": False}
STEP = timedelta(seconds=10)


def seed(machine_count: int, now: datetime) -> Any:
    """The team."""
    from fleet.inventory.models import Instance, ProviderAccount
    from fleet.teams.models import Team

    team = Team.objects.create(name="Acme", slug="acme")
    accounts = [
        ProviderAccount.objects.create(
            team=team, kind="aws", name=f"Account {number}", listed_at=now + timedelta(days=1)
        )
        for number in range(2)
    ]
    machines = Instance.objects.bulk_create(
        Instance(
            team=team, account=accounts[number % 2], external_id=f"i-{number}", name=f"train-{number:04}", state="running",
            billing="full", managed=True, gpu_count=GPUS, price_per_hour=Decimal("21.52"), first_seen_at=now,
        )
        for number in range(machine_count)
    )  # fmt: skip
    _readings(machines, now)
    return team


def _readings(machines: list[Any], now: datetime) -> None:
    from django.db import connection

    from fleet.inventory.models import GPU
    from fleet.telemetry.models import Agent, GpuLatest, HostLatest

    Agent.objects.bulk_create(
        Agent(instance=machine, token_hash=f"t{machine.pk}", prefix="rra_", version="0.1.0", heartbeat_at=now, nvml_state="ok")
        for machine in machines
    )  # fmt: skip
    files = {
        "filesystems": [{"mount": mount, "used_bytes": 7 << 38, "total_bytes": 1 << 41} for mount in ("/", "/data")]
    }
    HostLatest.objects.bulk_create(
        HostLatest(
            instance=machine, sampled_at=now, received_at=now, memory_used_bytes=1 << 38, memory_total_bytes=1 << 39, detail=files,
        )
        for machine in machines
    )  # fmt: skip
    gpus = GPU.objects.bulk_create(
        GPU(instance=machine, uuid=f"GPU-{machine.pk}-{index}", index=index, name="NVIDIA H100 80GB HBM3")
        for machine in machines
        for index in range(GPUS)
    )
    common: dict[str, Any] = {
        "sampled_at": now, "received_at": now, "utilization_percent": 97.0, "sm_activity": 0.8, "power_watts": 650.0,
        "power_limit_watts": 700.0, "memory_used_bytes": 60 << 30, "memory_total_bytes": 80 << 30, "process_count": 1,
        "throttle_reasons": 4, "health": HEALTH,
    }  # fmt: skip
    GpuLatest.objects.bulk_create(
        GpuLatest(gpu=gpu, temperature_celsius=95.0 if gpu.pk % 200 == 0 else 64.0, **common) for gpu in gpus
    )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE gpu_latest, fleet_gpu, fleet_instance, fleet_agent, host_latest")


def report(now: datetime, *, silent_account: int | None = None) -> None:
    """Everybody speaks at `now`, but for the machines of one account."""
    from fleet.telemetry.models import Agent, GpuLatest, HostLatest

    Agent.objects.exclude(instance__account_id=silent_account).update(heartbeat_at=now)
    GpuLatest.objects.exclude(gpu__instance__account_id=silent_account).update(sampled_at=now)
    HostLatest.objects.exclude(instance__account_id=silent_account).update(sampled_at=now)


def timed(team: Any, now: datetime) -> tuple[float, float, int, int]:
    """Seconds by the clock and of CPU, queries, and events of one evaluation."""
    from django.db import connection

    from fleet.alerts.evaluate import evaluate_team

    queries: list[str] = []

    def note(run: Callable[..., Any], sql: str, *rest: Any) -> Any:
        queries.append(sql)
        return run(sql, *rest)

    began, began_cpu = time.perf_counter(), time.process_time()
    with connection.execute_wrapper(note):
        events = evaluate_team(team=team, now=now)
    return time.perf_counter() - began, time.process_time() - began_cpu, len(queries), len(events)


def as_result(took: list[tuple[float, float, int, int]]) -> dict[str, Any]:
    wall, cpu, queries, events = zip(*took, strict=True)
    return {
        "median_s": round(statistics.median(wall), 3),
        "worst_s": round(max(wall), 3),
        "cpu_s": round(statistics.median(cpu), 3),
        "queries": max(queries),
        "events": sum(events),
    }


def measure(machine_count: int) -> dict[str, Any]:
    from django.utils import timezone

    from fleet.inventory.models import ProviderAccount

    now = timezone.now()
    team = seed(machine_count, now)
    timed(team, now)
    # From here the hot GPUs have been hot for long enough.
    first = [timed(team, now := _later(now, 301))]
    steady = [timed(team, now := _later(now, 10)) for _repeat in range(REPEATS)]
    account = ProviderAccount.objects.earliest("pk")
    now += timedelta(seconds=60)
    report(now, silent_account=account.pk)
    outage = [timed(team, now)]
    return {"machines": machine_count, "steady": as_result(steady), "alerts_open": as_result(first), "outage": as_result(outage)}  # fmt: skip


def _later(now: datetime, seconds: int) -> datetime:
    """Evaluations between are left out, as if they had been: nobody stopped watching."""
    from fleet.alerts.models import AlertProgress

    now += timedelta(seconds=seconds)
    AlertProgress.objects.update(evaluated_at=now - STEP)
    report(now)
    return now


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="The last line is a JSON object.")
    parser.add_argument("--machines", type=int, default=MACHINES)
    arguments = parser.parse_args()
    with servers():
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        result = measure(arguments.machines)
    for name in ("steady", "alerts_open", "outage"):
        print(name, result[name])  # noqa: T201
    if arguments.json:
        print(json.dumps(result))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
