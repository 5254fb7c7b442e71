"""How long the server takes for the pages of a large fleet: `python -m tests.bench.instances --json`.

1,000 machines with 8 GPUs each, every one with its latest values, in one PostgreSQL; times are those of Django's test client,
so without a network, after one warming request. Medians of several requests: by the clock, and of the web process alone
(its CPU time, which other work on the machine disturbs less); and the number of queries of each.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.bench.ingest import servers

MACHINES = 1_000
GPUS = 8
REPEATS = 7
PAGES = {
    "instances": "/t/acme/instances/",
    "instances_page_10": "/t/acme/instances/?page=10",
    "instances_filtered": "/t/acme/instances/?state=held&q=h100&group=project",
    "csv": "/t/acme/instances.csv",
    "overview": "/t/acme/",
    "settings_with_kept_figures": "/t/acme/settings/members/",
}


def seed() -> None:
    """The fleet a little ahead of now, so that nothing falls silent while it is measured."""
    from django.utils import timezone

    now = timezone.now() + timedelta(seconds=55)
    machines = _machines(now)
    _gpus(machines, now)
    from fleet.telemetry.models import Agent, HostLatest

    Agent.objects.bulk_create(
        Agent(instance=machine, token_hash=f"t{machine.pk}", prefix="rra_", heartbeat_at=now) for machine in machines
    )
    HostLatest.objects.bulk_create(
        HostLatest(instance=machine, sampled_at=now, received_at=now, cpu_percent=20) for machine in machines
    )


def _machines(now: datetime) -> list[Any]:
    from fleet.inventory.models import Instance, ProviderAccount
    from fleet.teams.models import Membership, Project, Role, Team, User

    team = Team.objects.create(name="Acme", slug="acme")
    user = User.objects.create_user("anna", password="correct horse")
    Membership.objects.create(team=team, user=user, role=Role.ADMIN)
    project = Project.objects.create(team=team, name="Vision", slug="vision")
    accounts = [ProviderAccount.objects.create(team=team, kind="seed", name=f"Account {n}") for n in range(6)]
    common = {"team": team, "project": project, "owner": user, "state": "running", "billing": "full", "priced_at": now}
    return Instance.objects.bulk_create(
        Instance(
            account=accounts[number % 6],
            external_id=f"i-{number}",
            name=f"train-{number:04}",
            gpu_model=("H100 SXM", "A100 SXM")[number % 2],
            gpu_count=GPUS,
            price_per_hour=Decimal("21.52"),
            **common,
        )
        for number in range(MACHINES)
    )


def _gpus(machines: list[Any], now: datetime) -> None:
    from fleet.inventory.models import GPU
    from fleet.telemetry.models import GpuLatest

    gpus = GPU.objects.bulk_create(
        GPU(instance=machine, uuid=f"GPU-{machine.pk}-{index}", index=index, name="NVIDIA H100 80GB HBM3")
        for machine in machines
        for index in range(GPUS)
    )
    process = {"pid": 48_211, "name": "python", "memory_bytes": 60 << 30, "resolved": True}
    common = {"sampled_at": now, "received_at": now, "power_watts": 600.0, "process_count": 1, "processes": [process]}
    memory = {"memory_used_bytes": 60 << 30, "memory_total_bytes": 80 << 30}
    work, idle = {"utilization_percent": 97.0, "sm_activity": 0.8}, {"utilization_percent": 0.0, "sm_activity": 0.0}
    GpuLatest.objects.bulk_create(
        GpuLatest(gpu=gpu, **(idle if gpu.pk % 11 == 0 else work), **memory, **common) for gpu in gpus
    )


def measure(address: str) -> dict[str, Any]:
    from django.db import connection
    from django.test import Client

    from fleet.teams.models import User

    client = Client()
    client.force_login(User.objects.get(username="anna"), backend="django.contrib.auth.backends.ModelBackend")
    client.get(address)
    queries: list[str] = []

    def note(run: Any, sql: str, *rest: Any) -> Any:
        queries.append(sql)
        return run(sql, *rest)

    with connection.execute_wrapper(note):
        response = client.get(address)
    assert response.status_code == 200, response.status_code
    wall, cpu = [], []
    for _repeat in range(REPEATS):
        began, began_cpu = time.perf_counter(), time.process_time()
        client.get(address)
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - began_cpu)
    return {
        "median_ms": round(1000 * statistics.median(wall)),
        "best_ms": round(1000 * min(wall)),
        "cpu_ms": round(1000 * statistics.median(cpu)),
        "queries": len(queries),
        "kib": len(response.content) // 1024,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="The last line is a JSON object.")
    arguments = parser.parse_args()
    with servers():
        # Templates as in production; names of static files without a collected manifest.
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings", "HASHED_STATIC": "0"}
        import django

        django.setup()
        from django.conf import settings
        from django.core.management import call_command

        from config.web import GC_THRESHOLDS

        gc.set_threshold(*GC_THRESHOLDS)
        settings.ALLOWED_HOSTS = ["testserver"]
        call_command("migrate", verbosity=0)
        seed()
        results = {name: measure(address) for name, address in PAGES.items()}
    for name, result in results.items():
        times = f"{result['median_ms']:6} ms  {result['cpu_ms']:6} ms cpu"
        print(f"{name:28} {times}  {result['queries']:3} queries  {result['kib']:6} KiB")  # noqa: T201
    if arguments.json:
        print(json.dumps(results))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
