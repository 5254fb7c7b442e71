"""How long judging a fleet takes each minute, and what other ways of reading it would: `python -m tests.bench.idle`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.bench.ingest import servers

# Rollups are two to eight minutes behind.
NOW = datetime(2026, 11, 30, 12, 5, tzinfo=UTC)
ROLLED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ONE_BY_ONE = 40

_FILL = """
INSERT INTO fleet_gpu (id, instance_id, uuid, index, name, memory_total_bytes, pci_bus_id, mig_parent_uuid, mig_profile, first_seen_at)
SELECT machine.id * %(gpus)s + place, machine.id, 'GPU-' || machine.id || '-' || place, place, 'H100', 85520809984, '', '', '', '2026-10-01'
FROM fleet_instance machine, generate_series(0, %(gpus)s - 1) place;
INSERT INTO fleet_agent (instance_id, token_hash, prefix, enrolled_at, machine_id, hostname, provider_ids, match_conflict, version, boot_id,
    heartbeat_at, batch_at, nvml_state, nvml_detail, queued_batches, lost_batches, dropped_values, interval_seconds, report_seconds, paused, actions)
SELECT id, 'hash-' || id, 'rra', '2026-10-01', '', '', '{}', '', '', '', %(now)s, %(now)s, 'ok', '', 0, 0, '{}', 5, 10, false, '[]' FROM fleet_instance;
INSERT INTO rollup_progress (resolution, rolled_until, next_gpu_id) VALUES ('5min', %(rolled)s, 0), ('1h', %(rolled)s, 0);
INSERT INTO gpu_floor (gpu_id, watts, held_watts, reckoned_at) SELECT id, 60, 70, %(now)s FROM fleet_gpu;
INSERT INTO gpu_rollup_5min (gpu_id, bucket_at, samples, coverage, working_seconds, held_seconds, free_seconds, starved_seconds, stalled_seconds,
    unknown_seconds, stopped_seconds, utilization_percent_min, utilization_percent_avg, utilization_percent_max, utilization_percent_p95,
    sm_activity_max, tensor_activity_max, dram_activity_max, power_watts_min, power_watts_max, memory_used_bytes_max)
SELECT gpu.id, bucket, 60, 1, 0, 300, 0, 0, 0, 0, 0, 0, 0, CASE WHEN busy THEN 97 ELSE 0 END, 0, 0, 0, 0, 70, 72, 3e10
FROM generate_series(%(since)s, %(rolled)s - interval '5 minutes', '5 minutes') bucket,
    (SELECT id, instance_id %% 100 < %(busy)s AS busy FROM fleet_gpu) gpu;
INSERT INTO host_rollup_5min (instance_id, bucket_at, samples, coverage, cpu_percent_p95, disk_read_bytes_per_second_p95, disk_write_bytes_per_second_p95,
    network_rx_bytes_per_second_p95, network_tx_bytes_per_second_p95, ssh_sessions_max, jupyter_busy_kernels_max)
SELECT machine.id, bucket, 60, 1, 3, 0, 9000, 800, 700, 0, 0
FROM generate_series(%(since)s, %(rolled)s - interval '5 minutes', '5 minutes') bucket, fleet_instance machine;
INSERT INTO gpu_sample (gpu_id, sampled_at, state, utilization_percent, sm_activity, tensor_activity, dram_activity, power_watts, power_limit_watts,
    memory_used_bytes, process_count, temperature_celsius, sm_clock_mhz)
SELECT gpu.id, at, 2, CASE WHEN busy THEN 97 ELSE 0 END, 0, 0, 0, 71, 700, 30000000000, 1, 40, 1980
FROM generate_series(%(rolled)s, %(now)s, '5 seconds') at, (SELECT id, instance_id %% 100 < %(busy)s AS busy FROM fleet_gpu) gpu;
INSERT INTO host_sample (instance_id, sampled_at, cpu_percent, disk_read_bytes_per_second, disk_write_bytes_per_second, network_rx_bytes_per_second,
    network_tx_bytes_per_second, ssh_sessions, jupyter_busy_kernels)
SELECT machine.id, at, 3, 0, 9000, 800, 700, 0, 0 FROM generate_series(%(rolled)s, %(now)s, '5 seconds') at, fleet_instance machine;
INSERT INTO gpu_latest (gpu_id, sampled_at, received_at, lost, health, processes, busy_at, idle_since, utilization_percent, sm_activity, tensor_activity,
    dram_activity, power_watts, power_limit_watts, memory_used_bytes, process_count)
SELECT gpu.id, %(now)s, %(now)s, false, '{}', '[]', CASE WHEN busy THEN %(now)s END, CASE WHEN busy THEN NULL ELSE %(since)s END,
    CASE WHEN busy THEN 97 ELSE 0 END, 0, 0, 0, CASE WHEN busy THEN 500 ELSE 71 END, 700, 30000000000, 1
FROM (SELECT id, instance_id %% 100 < %(busy)s AS busy FROM fleet_gpu) gpu;
INSERT INTO host_latest (instance_id, sampled_at, received_at, detail, cpu_percent, disk_read_bytes_per_second, disk_write_bytes_per_second,
    network_rx_bytes_per_second, network_tx_bytes_per_second, ssh_sessions, jupyter_busy_kernels)
SELECT id, %(now)s, %(now)s, '{}', 3, 0, 9000, 800, 700, 0, 0 FROM fleet_instance;
"""
_MAKE_BUSY = """
UPDATE gpu_latest SET busy_at = CASE WHEN busy THEN %(now)s END, idle_since = CASE WHEN busy THEN NULL ELSE %(now)s - interval '2 hours' END, utilization_percent = CASE WHEN busy THEN 97 ELSE 0 END,
    power_watts = CASE WHEN busy THEN 500 ELSE 71 END
FROM (SELECT id, instance_id %% 100 < %(busy)s AS busy FROM fleet_gpu) gpu WHERE gpu.id = gpu_id
"""


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def fill(machines: int, gpus: int, hours: float) -> None:
    """All of them rest."""
    from django.db import connection

    from fleet.inventory.models import Instance, ProviderAccount
    from fleet.teams.models import Team
    from fleet.telemetry.partitions import ensure_partitions

    team = Team.objects.create(name="Acme", slug="acme")
    account = ProviderAccount.objects.create(team=team, kind="runpod", name="RunPod")
    begun = {"started_at": NOW - timedelta(days=3), "state_since": NOW - timedelta(days=3), "last_seen_at": NOW}
    Instance.objects.bulk_create(
        Instance(
            team=team, account=account, external_id=f"i-{number}", name=f"m{number}", state="running", raw_state="RUNNING",
            rule_version=1, gpu_count=gpus, **begun,
        )
        for number in range(machines)
    )  # fmt: skip
    ensure_partitions(now=NOW, since=NOW - timedelta(days=2))
    given: dict[str, Any] = {
        "gpus": gpus,
        "since": ROLLED - timedelta(hours=hours),
        "rolled": ROLLED,
        "now": NOW,
        "busy": 0,
    }
    with connection.cursor() as cursor:
        cursor.execute(_FILL, given)
        cursor.execute("VACUUM (ANALYZE)")


def make_busy(percent: int) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(_MAKE_BUSY, {"busy": percent, "now": NOW})


@contextmanager
def timed() -> Iterator[Callable[[], str]]:
    """The figures of what is done within, once it is done."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    began, used = time.perf_counter(), time.process_time()
    with CaptureQueriesContext(connection) as queries:
        ended: list[float] = []
        yield (
            lambda: (
                f"{ended[0]:.2f} s, of them {sum(float(query['time']) for query in queries):.2f} s in the database and "
                f"{ended[1]:.2f} s CPU of the process, {len(queries)} queries"
            )
        )
        ended += [time.perf_counter() - began, time.process_time() - used]


def measure(rounds: int) -> None:
    from fleet.idle.watch.judging import judge_all, judge_machine, judge_machines
    from fleet.idle.watch.models import IdleVerdictRow
    from fleet.inventory.models import Instance

    for number in range(rounds):
        with timed() as figures:
            judged = judge_all(now=NOW)
        answers = list(IdleVerdictRow.objects.values_list("answer", flat=True))
        counts = ", ".join(f"{answers.count(answer)} {answer}" for answer in sorted(set(answers)))
        say(f"  round {number + 1}: {judged} machines judged in {figures()}: {counts}")
    machines = list(Instance.objects.select_related("account"))
    with timed() as figures:
        judge_machines(machines, now=NOW, all_windows=True)
    say(f"  without the first look, and without writing: {figures()}")
    some: list[Any] = machines[:: max(1, len(machines) // ONE_BY_ONE)][:ONE_BY_ONE]
    began = time.perf_counter()
    for machine in some:
        judge_machine(instance=machine, now=NOW)
    each = (time.perf_counter() - began) / len(some)
    say(f"  one by one: {1000 * each:.0f} ms a machine, {each * len(machines):.0f} s for all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=2_500)
    parser.add_argument("--gpus", type=int, default=4, help="of each machine")
    parser.add_argument("--hours", type=float, default=3.0, help="of rollups")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with servers():
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        fill(options.machines, options.gpus, options.hours)
        for busy in (0, 70):
            say(f"{options.machines * options.gpus:,} GPUs, {100 - busy} % of them idle:")
            make_busy(busy)
            measure(options.rounds)


if __name__ == "__main__":
    main()
