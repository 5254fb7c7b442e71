"""A made-up fleet with a day of samples, the same each time, for screenshots, browser tests and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection

from fleet.inventory.accounts import manual_account
from fleet.inventory.models import GPU, EnvironmentReport, Instance, ProviderAccount
from fleet.providers.base import Billing, InstanceState, Tenancy
from fleet.states import GpuState
from fleet.teams.models import Membership, Project, Role, Team, User
from fleet.telemetry.models import Agent, GpuLatest, HostLatest, MachineEvent
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.state_codes import STATE_CODES

PASSWORD = "correct horse"
GIB = 1 << 30
INTERVAL_SECONDS = 60
CLOSE_INTERVAL_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Cast:
    """One machine of the made-up fleet. `patterns`: how many GPUs follow which of PATTERNS."""

    name: str
    account: str
    region: str
    model: str
    memory_gib: int
    patterns: tuple[tuple[str, int], ...]
    price: str
    project: str
    owner: str
    close: bool = False

    @property
    def off(self) -> bool:
        return self.patterns[0][0] == "off"


# utilization, memory share, power share of the limit, SM activity: SQL over `age` (seconds before now) and `noise` (0-1).
PATTERNS = {
    "train": ("94 + 6 * noise", "0.78 + 0.02 * noise", "0.88 + 0.06 * noise", "0.8"),
    "starved": (
        "CASE WHEN age > 2700 THEN 94 + 6 * noise ELSE 22 + 20 * noise END",
        "0.78",
        "CASE WHEN age > 2700 THEN 0.9 ELSE 0.45 + 0.05 * noise END",
        "0.3",
    ),
    "held": ("CASE WHEN age > 22300 THEN 90 + 9 * noise ELSE 0 END", "0.68", "0.12 + 0.01 * noise", "0"),
    "free": ("0", "0.004", "0.1 + 0.01 * noise", "0"),
    "stalled": (
        "CASE WHEN age > 2820 THEN 93 + 6 * noise ELSE 100 END",
        "0.77",
        "CASE WHEN age > 2820 THEN 0.9 ELSE 0.21 + 0.01 * noise END",
        "CASE WHEN age > 2820 THEN 0.8 ELSE 0.004 END",
    ),
    "serve": ("40 + 40 * sin(age / 900.0) + 15 * noise", "0.83", "0.55 + 0.2 * sin(age / 900.0)", "0.5"),
    "silent": ("96 + 3 * noise", "0.74", "0.9", "0.8"),
}
SILENT_SECONDS = 840
GAP = (1_500, 2_280)  # the close machine says nothing for 13 min

TRAIN8, TRAIN4 = (("train", 8),), (("train", 4),)
RESEARCH, SERVING, BY_HAND = "EC2 research", "EC2 serving", "by hand"
FLEET = (
    Cast("llm-pre-01", RESEARCH, "us-east-2", "H100 SXM", 80, TRAIN8, "55.04", "atlas-7b", "priya"),
    Cast("llm-pre-02", RESEARCH, "us-east-2", "H100 SXM", 80, TRAIN8, "55.04", "atlas-7b", "priya"),
    Cast("llm-pre-03", RESEARCH, "us-east-2", "H100 SXM", 80, (("stalled", 8),), "55.04", "atlas-7b", "priya"),
    Cast(
        "train-h100-01", RESEARCH, "us-west-2", "H100 SXM", 80, (("starved", 8),), "55.04", "vision", "mei", close=True
    ),
    Cast("p5-train-01", RESEARCH, "us-east-2", "H100 SXM", 80, TRAIN8, "55.04", "vision", "mei"),
    Cast("eval-a100-01", SERVING, "us-east-1", "A100 SXM", 80, (("held", 8),), "27.45", "eval", "mei"),
    Cast("p4de-batch-01", SERVING, "us-east-1", "A100 SXM", 80, (("train", 6), ("held", 2)), "27.45", "eval", "omar"),
    Cast("p4de-batch-02", SERVING, "us-east-1", "A100 SXM", 80, (("silent", 8),), "27.45", "eval", "omar"),
    Cast("g6e-serve-01", SERVING, "us-east-1", "L40S", 48, (("serve", 2), ("free", 2)), "10.49", "serving", "omar"),
    Cast("g5-dev-01", SERVING, "us-east-1", "A10G", 24, (("off", 4),), "5.67", "tools", "anna"),
    Cast("ft-a100-01", BY_HAND, "Oslo, rack 2", "A100 SXM", 80, TRAIN4, "6.56", "support-ft", "tomas"),
    Cast("lab-h100-01", BY_HAND, "Oslo, rack 2", "H100 PCIe", 80, TRAIN4, "8.60", "vision", "mei"),
    Cast("gh200-01", BY_HAND, "Oslo, rack 3", "GH200", 96, (("serve", 1),), "1.49", "serving", "omar"),
    Cast("sweep-4090-01", BY_HAND, "Lyon", "RTX 4090", 24, TRAIN8, "3.04", "sweeps", "jonas"),
    Cast("sweep-4090-02", BY_HAND, "Lyon", "RTX 4090", 24, (("train", 6), ("starved", 2)), "3.12", "sweeps", "jonas"),
    Cast("sweep-5090-01", BY_HAND, "Lyon", "RTX 5090", 32, TRAIN4, "2.36", "sweeps", "jonas"),
    Cast("dev-l40s-01", BY_HAND, "office", "L40S", 48, (("train", 1), ("free", 1)), "1.72", "tools", "anna"),
    Cast("dev-4090-01", BY_HAND, "office", "RTX 4090", 24, (("held", 1),), "0.69", "tools", "tomas"),
    Cast("render-3090-01", BY_HAND, "office", "RTX 3090", 24, (("free", 2),), "0.44", "tools", "anna"),
)
PEOPLE = {
    "anna": ("Anna", "Weber"),
    "priya": ("Priya", "Nair"),
    "tomas": ("Tomás", "Ruiz"),
    "jonas": ("Jonas", "Lind"),
    "mei": ("Mei", "Lin"),
    "omar": ("Omar", "Haddad"),
}


def seed_fleet(*, now: datetime, samples: bool = True) -> Team:
    """The team `acme` with anna as its admin. Meant for servers without a worker: nothing should poll its accounts."""
    team = Team.objects.create(name="Acme", slug="acme")
    people = {name: _person(team, name) for name in PEOPLE}
    projects = {
        name: Project.objects.create(team=team, name=name, slug=name) for name in {cast.project for cast in FLEET}
    }
    accounts = {name: _account(team, name, now) for name in (RESEARCH, SERVING)} | {BY_HAND: manual_account(team)}
    ensure_partitions(now=now)
    for cast in FLEET:
        owner, project = people[cast.owner], projects[cast.project]
        machine = _machine(cast, accounts[cast.account], owner, project, now)
        if not cast.off:
            _measure(cast, machine, now, samples=samples)
    _events(now)
    return team


def keep_fresh(*, now: datetime) -> None:
    """Latest values as if every machine but the silent one had just reported."""
    quiet = [cast.name for cast in FLEET if cast.patterns[0][0] == "silent"]
    GpuLatest.objects.exclude(gpu__instance__name__in=quiet).update(sampled_at=now, received_at=now)
    HostLatest.objects.exclude(instance__name__in=quiet).update(sampled_at=now, received_at=now)
    Agent.objects.exclude(instance__name__in=quiet).update(heartbeat_at=now, batch_at=now)
    Instance.objects.update(priced_at=now - timedelta(seconds=30))


def _person(team: Team, name: str) -> User:
    first, last = PEOPLE[name]
    user = User.objects.create_user(name, f"{name}@example.org", PASSWORD, first_name=first, last_name=last)
    role = Role.ADMIN if name == "anna" else Role.OPERATOR
    Membership.objects.create(team=team, user=user, role=role)
    return user


def _account(team: Team, name: str, now: datetime) -> ProviderAccount:
    return ProviderAccount.objects.create(team=team, kind="aws", name=name, listed_at=now)


def _machine(cast: Cast, account: ProviderAccount, owner: User, project: Project, now: datetime) -> Instance:
    state = InstanceState.STOPPED if cast.off else InstanceState.RUNNING
    return Instance.objects.create(
        team=account.team,
        account=account,
        external_id=f"i-{cast.name}",
        name=cast.name,
        region=cast.region,
        state=state,
        raw_state=state.value,
        state_since=now - timedelta(days=19) if cast.off else now - timedelta(days=5),
        billing=Billing.STORAGE if cast.off else Billing.FULL,
        tenancy=Tenancy.DEDICATED_HOST,
        gpu_model=cast.model,
        gpu_count=sum(count for _pattern, count in cast.patterns),
        vcpus=26 * sum(count for _pattern, count in cast.patterns),
        ram_mib=225 * 1024 * sum(count for _pattern, count in cast.patterns),
        disk_gb=2_000,
        price_per_hour=Decimal(cast.price),
        storage_price_per_hour=Decimal("0.11"),
        priced_at=now - timedelta(seconds=40),
        started_at=now - timedelta(days=14, hours=4),
        first_seen_at=now - timedelta(days=30),
        owner=owner,
        project=project,
        managed=True,
        ssh=[{"host": "192.0.2.41", "port": 22, "user": "ubuntu", "kind": "direct"}],
    )


def _measure(cast: Cast, machine: Instance, now: datetime, *, samples: bool) -> None:
    interval = CLOSE_INTERVAL_SECONDS if cast.close else INTERVAL_SECONDS
    silent = SILENT_SECONDS if cast.patterns[0][0] == "silent" else 0
    report = timedelta(seconds=silent + machine.pk % 7)
    Agent.objects.create(
        instance=machine,
        token_hash=f"seed-{machine.pk}",
        prefix="rra_seed",
        hostname=machine.name,
        version="0.1.0",
        heartbeat_at=now - report,
        batch_at=now - report,
        nvml_state="ok",
        interval_seconds=interval,
    )
    _environment(machine, now)
    patterns = [pattern for pattern, count in cast.patterns for _number in range(count)]
    for index, pattern in enumerate(patterns):
        gpu = GPU.objects.create(
            instance=machine,
            uuid=f"GPU-{machine.pk:04}-{index}",
            index=index,
            name=f"NVIDIA {cast.model}",
            memory_total_bytes=cast.memory_gib * GIB,
        )
        if samples:
            _gpu_samples(gpu, pattern, now, interval, gap=cast.close)
        _gpu_latest(gpu, pattern, now, now - report)
    if samples:
        _host_samples(machine, patterns[0], now, interval, silent, gap=cast.close)
    _host_latest(machine, patterns[0], now - report)


def _environment(machine: Instance, now: datetime) -> None:
    EnvironmentReport.objects.create(
        instance=machine,
        reported_at=now - timedelta(days=2),
        digest="seed",
        data={
            "hostname": machine.name,
            "os": "Ubuntu 24.04.3 LTS",
            "kernel": "6.8.0-60-generic",
            "architecture": "x86_64",
            "container": "none",
            "cpu_model": "Intel Xeon Platinum 8480+",
            "cpu_count": machine.vcpus,
            "driver": "570.86.15",
            "cuda_driver": "12.8",
            "python": "3.12.3",
            "frameworks": {"torch": "2.9.1+cu128"},
            "nccl": "2.27.3",
            "agent_version": "0.1.0",
        },
    )


# The state that a pattern is in since so many seconds; before, it worked.
STATES = {
    "starved": (2700, GpuState.STARVED),
    "held": (22300, GpuState.HELD_IDLE),
    "free": (10**9, GpuState.FREE),
    "stalled": (2820, GpuState.STALLED),
}
SPAN_SECONDS = 24 * 3600
# Samples reach into the future, so that charts stay full while pictures are taken; pages read up to now.
AHEAD_SECONDS = 600
GPU_SAMPLES = """
INSERT INTO gpu_sample (gpu_id, sampled_at, utilization_percent, memory_used_bytes, power_watts, power_limit_watts,
                        sm_activity, temperature_celsius, process_count, state)
SELECT %(gpu)s, %(now)s - make_interval(secs => age), least(100, greatest(0, {0})), ({1}) * %(memory)s, ({2}) * 700, 700, {3},
       38 + 24 * ({2}) + 2 * noise, %(processes)s,
       CASE WHEN age > %(until)s THEN %(before)s ELSE %(state)s END
FROM (SELECT age, abs(hashtext(age::text || %(gpu)s::text)) %% 1000 / 1000.0 AS noise
      FROM generate_series(%(from)s, %(span)s, %(every)s) AS age) ages
WHERE NOT (age BETWEEN %(gap_end)s AND %(gap_start)s)
"""
HOST_SAMPLES = """
INSERT INTO host_sample (instance_id, sampled_at, cpu_percent, cpu_iowait_percent, memory_used_bytes, pressure_io_percent,
                         disk_read_bytes_per_second, disk_write_bytes_per_second, disk_read_iops, disk_write_iops,
                         network_rx_bytes_per_second, network_tx_bytes_per_second)
SELECT %(machine)s, %(now)s - make_interval(secs => age), 22 + 8 * noise, CASE WHEN waits THEN 60 + 6 * noise ELSE 2 * noise END,
       9e11 + 1e10 * noise, CASE WHEN waits THEN 44 + 4 * noise ELSE noise END,
       CASE WHEN waits THEN 1.88e9 + 8e7 * noise ELSE 4e8 + 6e7 * noise END,
       CASE WHEN age %% 2700 < 120 THEN 8e8 ELSE 3e7 + 2e7 * noise END,
       CASE WHEN waits THEN 7400 + 200 * noise ELSE 1800 + 200 * noise END, 240 + 60 * noise,
       CASE WHEN waits THEN 1.95e9 + 7e7 * noise ELSE 5e8 + 6e7 * noise END, 9e7 + 3e7 * noise
FROM (SELECT age, age < 2700 AND %(starved)s AS waits, abs(hashtext(age::text || 'host')) %% 1000 / 1000.0 AS noise
      FROM generate_series(%(from)s, %(span)s, %(every)s) AS age) ages
WHERE NOT (age BETWEEN %(gap_end)s AND %(gap_start)s)
"""


def _ages(now: datetime, interval: int, silent: int, *, gap: bool) -> dict[str, Any]:
    end, start = GAP if gap else (1, 0)
    return {
        "now": now,
        "from": silent or -AHEAD_SECONDS,
        "span": SPAN_SECONDS,
        "every": interval,
        "gap_end": end,
        "gap_start": start,
    }


def _gpu_samples(gpu: GPU, pattern: str, now: datetime, interval: int, *, gap: bool) -> None:
    silent = SILENT_SECONDS if pattern == "silent" else 0
    until, state = STATES.get(pattern, (0, GpuState.WORKING))
    states = {"until": until, "before": STATE_CODES[GpuState.WORKING], "state": STATE_CODES[state]}
    values = {"gpu": gpu.pk, **states, "memory": gpu.memory_total_bytes, "processes": 0 if pattern == "free" else 1}
    with connection.cursor() as cursor:
        cursor.execute(GPU_SAMPLES.format(*PATTERNS[pattern]), values | _ages(now, interval, silent, gap=gap))


def _host_samples(machine: Instance, pattern: str, now: datetime, interval: int, silent: int, *, gap: bool) -> None:
    values = {"machine": machine.pk, "starved": pattern == "starved"}
    with connection.cursor() as cursor:
        cursor.execute(HOST_SAMPLES, values | _ages(now, interval, silent, gap=gap))


def _gpu_latest(gpu: GPU, pattern: str, now: datetime, at: datetime) -> None:
    noise = (gpu.pk * 37 % 100) / 100
    busy = {
        "train": 88 + 11 * noise,
        "starved": 27 + 8 * noise,
        "stalled": 100.0,
        "serve": 60 + 30 * noise,
        "silent": 97.0,
    }
    share = {"train": 0.66 + 0.3 * noise, "starved": 0.78, "held": 0.57 + 0.2 * noise, "free": 0.004}.get(pattern, 0.78)
    idle_hours = {"held": 6.2, "free": 74.0}.get(pattern)
    works = pattern in {"train", "starved", "serve", "silent"}
    assert gpu.memory_total_bytes is not None
    GpuLatest.objects.create(
        gpu=gpu,
        sampled_at=at,
        received_at=at,
        utilization_percent=busy.get(pattern, 0.0),
        sm_activity=0.5 if works else 0.003,
        memory_used_bytes=int(share * gpu.memory_total_bytes),
        memory_total_bytes=gpu.memory_total_bytes,
        power_watts=620.0 if works else 130.0,
        power_limit_watts=700.0,
        temperature_celsius=56.0 + gpu.index % 4,
        process_count=0 if pattern == "free" else 1,
        processes=[] if pattern == "free" else [_process(gpu, share)],
        idle_since=now - timedelta(hours=idle_hours) if idle_hours else None,
    )


def _process(gpu: GPU, share: float) -> dict[str, object]:
    memory = int(share * (gpu.memory_total_bytes or 0))
    return {"pid": 48_211 + gpu.index, "name": "python", "memory_bytes": memory, "resolved": True}


def _host_latest(machine: Instance, pattern: str, at: datetime) -> None:
    starved = pattern == "starved"
    HostLatest.objects.create(
        instance=machine,
        sampled_at=at,
        received_at=at,
        cpu_percent=24.0,
        cpu_iowait_percent=64.0 if starved else 1.0,
        pressure_io_percent=46.0 if starved else 0.5,
        memory_used_bytes=9 * 10**11,
        memory_total_bytes=(machine.ram_mib or 0) * 1024 * 1024,
        disk_read_bytes_per_second=1.9e9 if starved else 4e8,
        disk_write_bytes_per_second=4e7,
        network_rx_bytes_per_second=2e9 if starved else 5e8,
        network_tx_bytes_per_second=1e8,
    )


EVENTS = (
    ("sweep-4090-01", 3, 3.1, "xid", 31, "MMU fault"),
    ("train-h100-01", None, 0.62, "agent_started", None, ""),
    ("eval-a100-01", None, 7.2, "driver_back", None, ""),
    ("eval-a100-01", None, 7.4, "driver_hung", None, "no answer for 90 s"),
    ("llm-pre-01", 5, 19.0, "ecc_uncorrected", None, "1 page retired"),
)


def _events(now: datetime) -> None:
    for name, index, hours, kind, code, detail in EVENTS:
        machine = Instance.objects.get(name=name)
        gpu = None if index is None else machine.gpus.get(index=index)
        at = now - timedelta(hours=hours)
        MachineEvent.objects.create(instance=machine, gpu=gpu, at=at, kind=kind, code=code, detail=detail)
