"""How long the dry run of an idle policy takes over a fleet's month, beside one machine after the other: `python -m tests.bench.idle_dry_run`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.bench.ingest import servers

NOW = datetime(2026, 11, 30, 18, tzinfo=UTC)
GPUS = 8
# Of a machine-by-machine run only so many machines are timed, and the rest reckoned from them.
LOOPED = 10

# Each machine works in turns of its own, some minutes to some hours long; at night it rests.
_FILL = """
INSERT INTO fleet_gpu (id, instance_id, uuid, index, name, memory_total_bytes, pci_bus_id, mig_parent_uuid, mig_profile, first_seen_at)
SELECT machine.id * %(gpus)s + place, machine.id, 'GPU-' || machine.id || '-' || place, place, 'H100', 85520809984, '', '', '', '2026-10-01'
FROM fleet_instance machine, generate_series(0, %(gpus)s - 1) place;
INSERT INTO gpu_rollup_5min (gpu_id, bucket_at, samples, coverage, working_seconds, held_seconds, free_seconds, starved_seconds, stalled_seconds,
    unknown_seconds, stopped_seconds, utilization_percent_min, utilization_percent_avg, utilization_percent_max, utilization_percent_p95,
    power_watts_avg, power_watts_max, memory_used_bytes_max, sm_activity_max, dram_activity_max)
SELECT gpu.id, bucket, 30, 1, 0, 0, 300, 0, 0, 0, 0, 0, use.percent, use.percent, use.percent, 70 + use.percent * 4, 71 + use.percent * 4, 4e8, use.percent / 200, 0
FROM generate_series(%(since)s, %(until)s - interval '5 min', '5 min') bucket, fleet_gpu gpu,
    LATERAL (SELECT CASE WHEN extract(hour FROM bucket) > 5 AND hashint8((extract(epoch FROM bucket)::int / (1200 + gpu.instance_id %% 7 * 600)) * 1000::bigint + gpu.instance_id) %% 3 = 0
        THEN 60.0 ELSE 0.0 END AS percent) use;
INSERT INTO host_rollup_5min (instance_id, bucket_at, samples, coverage, cpu_percent_p95, disk_read_bytes_per_second_p95, disk_write_bytes_per_second_p95,
    network_rx_bytes_per_second_p95, network_tx_bytes_per_second_p95, ssh_sessions_max, jupyter_busy_kernels_max)
SELECT machine.id, bucket, 30, 1, 3, 0, 20000, 4000, 1000, 0, 0
FROM generate_series(%(since)s, %(until)s - interval '5 min', '5 min') bucket, fleet_instance machine;
INSERT INTO fleet_observation (instance_id, seen_at, listed, raw_state, state, billing, market, currency, provider_started_at, rule_version)
SELECT id, %(since)s - interval '2 days', true, 'running', 'running', 'full', 'on_demand', 'USD', %(since)s - interval '3 days', 1 FROM fleet_instance;
INSERT INTO gpu_floor (gpu_id, watts, reckoned_at) SELECT id, 68, %(until)s FROM fleet_gpu;
"""


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def fill(machines: int, days: int) -> Any:
    from django.db import connection

    from fleet.idle.policies.models import IdlePolicy
    from fleet.inventory.models import Instance, ProviderAccount
    from fleet.teams.models import Team
    from fleet.telemetry.partitions import ensure_partitions
    from fleet.telemetry.rollups.models import RollupProgress

    team = Team.objects.create(name="Acme", slug="acme")
    account = ProviderAccount.objects.create(team=team, kind="sandbox", name="Sandbox")
    known = {
        "state": "running",
        "gpu_model": "H100 SXM",
        "gpu_count": GPUS,
        "price_per_hour": 20,
        "market": "on_demand",
    }
    Instance.objects.bulk_create(
        Instance(team=team, account=account, external_id=f"i-{number}", name=f"m{number}", **known)
        for number in range(machines)
    )
    ensure_partitions(now=NOW, since=NOW - timedelta(days=days + 1))
    given: dict[str, Any] = {"gpus": GPUS, "since": NOW - timedelta(days=days), "until": NOW}
    with connection.cursor() as cursor:
        cursor.execute(_FILL, given)
        cursor.execute("VACUUM (ANALYZE)")
    RollupProgress.objects.create(resolution="5min", rolled_until=NOW)
    return IdlePolicy.objects.create(team=team, name="All", window_minutes=60)


def timed(words: str, work: Callable[[], Any]) -> tuple[Any, float]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    began, used = time.perf_counter(), time.process_time()
    with CaptureQueriesContext(connection) as queries:
        found = work()
    taken = time.perf_counter() - began
    say(f"{words}: {taken:.1f} s, {time.process_time() - used:.1f} s CPU of the process, {len(queries)} queries")
    return found, taken


def measure(policy: Any, machines: int, days: int) -> None:
    from fleet.idle.dryrun.advice import Lesson, advise
    from fleet.idle.dryrun.dry_run import cost_of, covered_by, ground_of, try_window
    from fleet.idle.dryrun.history import histories_of

    covered = covered_by(policy)
    found, whole = timed(
        f"the past of {machines * GPUS} GPUs over {days} days",
        lambda: histories_of(covered.machines, covered.ways, days=days, now=NOW),
    )
    say(f"    {sum(len(one.quiet) for one in found)} quiet times")
    looped = covered.machines[:LOOPED]
    _found, some = timed(
        f"the same of {len(looped)} machines, one after the other",
        lambda: [histories_of([machine], covered.ways, days=days, now=NOW) for machine in looped],
    )
    say(
        f"    all of them so: {some / len(looped) * machines:.1f} s, {some / len(looped) * machines / whole:.1f} times as long"
    )
    ground, _ = timed("a dry run, its past read before", lambda: ground_of(policy=policy, days=days, now=NOW))
    ground, _ = timed("the same, with the past kept in the cache", lambda: ground_of(policy=policy, days=days, now=NOW))
    shown, _ = timed("one window", lambda: try_window(ground, timedelta(minutes=60)))
    say(f"    {len(shown.stops)} stops")
    advice, _ = timed(
        "the recommendation", lambda: advise(ground.histories, Lesson(ground.terms(timedelta()), cost_of(policy)))
    )
    say(f"    {advice.minutes} min, {len(advice.own)} machines with their own")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=125)
    parser.add_argument("--days", type=int, default=30)
    options = parser.parse_args()
    with servers():
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        began = time.perf_counter()
        policy = fill(options.machines, options.days)
        say(f"filled in {time.perf_counter() - began:.0f} s")
        measure(policy, options.machines, options.days)


if __name__ == "__main__":
    main()
