"""How many agents one web process takes, against the plain way of doing it: `python -m tests.bench.ingest --json`.

One post is 8 GPUs x 2 samples and one host row, sent by 256 agents over as many connections. Both sides run in one uvicorn
process, on one PostgreSQL with its ordinary durable settings, one after the other in the same run. Ours checks tokens, keeps
latest values and pushes every machine to an open websocket; an answer comes after the commit. The plain side gets its body
uncompressed and with database ids in it, which spares it two steps that ours does.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.other_store import Keys, in_milliseconds, prometheus_store, stored_keys

ROOT = Path(__file__).resolve().parents[2]
AGENTS = 256
GPUS = 8
SAMPLES = 2
ROWS_PER_POST = GPUS * SAMPLES + 1
PORT = int(os.environ.get("RACKRENT_BENCH_PORT", "25990"))
# Bodies are made beforehand with one `sent_at`; a phase must end within the 5 s to either side that count as no skew.
PHASE_SECONDS = 8.0
PREPARE_SECONDS = 40.0
STEP_SECONDS = 0.05
# So many different readings are enough to keep compression honest, and quick to make.
VARIETY = 2_000
# Every so many posts are sent twice in the open-loop phase: a store that cannot tell would show it in `duplicated`.
REPEAT_EVERY = 50


@dataclass(frozen=True, slots=True)
class Fleet:
    """Who sends: per agent its instance, its GPUs as (id, uuid), its token with us and its token with the plain side."""

    instance_ids: list[int]
    gpus: list[list[tuple[int, str]]]
    agent_tokens: list[str]
    plain_tokens: list[str]
    session_key: str


@contextmanager
def servers() -> Iterator[None]:
    """A PostgreSQL and a Valkey of the run's own, emptied before it, named in the environment."""
    from config.embedded import EmbeddedPostgres, EmbeddedValkey

    home = ROOT / "var" / "bench"
    with EmbeddedPostgres(home / "postgres") as postgres, EmbeddedValkey(home / "valkey") as valkey:
        import psycopg

        with psycopg.connect(postgres.superuser_url, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS rackrent WITH (FORCE)")
            connection.execute("CREATE DATABASE rackrent OWNER rackrent")
        os.environ |= {
            "DATABASE_URL": postgres.url,
            "REDIS_URL": valkey.url,
            "CELERY_BROKER_URL": valkey.celery_url,
            "SECRET_KEY": "bench-" + "x" * 60,
            "CREDENTIAL_KEYS": "YmVuY2gtYmVuY2gtYmVuY2gtYmVuY2gtYmVuY2gtYmU=",
            "DJANGO_SETTINGS_MODULE": "tests.bench.baseline_settings",
            # Neither side says anything on standard error when all is well.
            "PYTHONUNBUFFERED": "1",
        }
        yield


@contextmanager
def web(application: str, settings: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "uvicorn", application, "--port", str(PORT), "--log-level", "warning"]
    options = ["--no-access-log", "--loop", "uvloop", "--http", "httptools", "--backlog", "1024"]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings}
    process = subprocess.Popen([*command, *options], cwd=ROOT, env=environment)
    try:
        wait_for_port(process)
        yield process
    finally:
        process.terminate()
        process.wait(30)


def wait_for_port(process: subprocess.Popen[bytes]) -> None:
    import socket

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", PORT)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"No server came up on port {PORT}.")


def make_fleet() -> Fleet:
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client
    from rest_framework.authtoken.models import Token

    from fleet.inventory.models import GPU, Instance, ProviderAccount
    from fleet.teams.models import Membership, Role, Team, User
    from fleet.teams.secrets import new_token
    from fleet.telemetry.models import Agent

    call_command("migrate", verbosity=0)
    team = Team.objects.create(name="Bench", slug="bench")
    account = ProviderAccount.objects.create(team=team, kind="manual", name="By hand")
    users = User.objects.bulk_create(User(username=f"agent-{number}") for number in range(AGENTS))
    tokens = Token.objects.bulk_create(Token(user=user, key=Token.generate_key()) for user in users)
    machines = Instance.objects.bulk_create(
        Instance(
            team=team, account=account, external_id=str(number), name=f"m-{number}", state="running", gpu_count=GPUS
        )
        for number in range(AGENTS)
    )
    cards = GPU.objects.bulk_create(
        GPU(instance=machine, uuid=f"GPU-{machine.pk:08}-0000-0000-0000-{index:012}", index=index)
        for machine in machines
        for index in range(GPUS)
    )
    secrets = [new_token("rra") for _ in machines]
    Agent.objects.bulk_create(
        Agent(instance=machine, token_hash=secret.hash, prefix=secret.prefix)
        for machine, secret in zip(machines, secrets, strict=True)
    )
    person = User.objects.create_user("watcher", password="correct horse")
    Membership.objects.create(team=team, user=person, role=Role.VIEWER)
    browser = Client()
    browser.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return Fleet(
        [machine.pk for machine in machines],
        [[(card.pk, card.uuid) for card in cards[start : start + GPUS]] for start in range(0, len(cards), GPUS)],
        [secret.secret for secret in secrets],
        [token.key for token in tokens],
        browser.cookies["sessionid"].value,
    )


def gpu_reading(chance: random.Random) -> dict[str, Any]:
    """What an H100 says: every field that the agent reads on one."""
    return {
        "utilization_percent": float(chance.randint(0, 100)),
        "memory_utilization_percent": float(chance.randint(0, 100)),
        "memory_used_bytes": chance.randrange(80 << 30),
        "memory_reserved_bytes": 618_659_840,
        "sm_activity": round(chance.random(), 4),
        "sm_occupancy": round(chance.random(), 4),
        "tensor_activity": round(chance.random(), 4),
        "dram_activity": round(chance.random(), 4),
        "power_watts": round(chance.uniform(70, 700), 3),
        "power_limit_watts": 700.0,
        "temperature_celsius": float(chance.randint(30, 80)),
        "memory_temperature_celsius": float(chance.randint(30, 90)),
        "sm_clock_mhz": chance.randint(345, 1980),
        "memory_clock_mhz": 2619,
        "throttle_reasons": 0,
        "pcie_rx_bytes_per_second": float(chance.randrange(10**10)),
        "pcie_tx_bytes_per_second": float(chance.randrange(10**10)),
        "nvlink_rx_bytes_per_second": float(chance.randrange(10**11)),
        "nvlink_tx_bytes_per_second": float(chance.randrange(10**11)),
        "process_count": 1,
        "process_memory_bytes": chance.randrange(80 << 30),
    }


def host_reading(chance: random.Random) -> dict[str, Any]:
    return {
        "cpu_percent": round(chance.uniform(0, 100), 2),
        "cpu_iowait_percent": round(chance.uniform(0, 5), 2),
        "load1": round(chance.uniform(0, 64), 2),
        "memory_used_bytes": chance.randrange(1 << 40),
        "disk_read_bytes_per_second": float(chance.randrange(10**9)),
        "disk_write_bytes_per_second": float(chance.randrange(10**9)),
        "disk_read_iops": round(chance.uniform(0, 10**5), 1),
        "disk_write_iops": round(chance.uniform(0, 10**5), 1),
        "network_rx_bytes_per_second": float(chance.randrange(10**9)),
        "network_tx_bytes_per_second": float(chance.randrange(10**9)),
        "ssh_sessions": 1,
    }


@dataclass(frozen=True, slots=True)
class Posts:
    """Requests as bytes, and for each the keys of its rows: (gpu or instance id, moment in microseconds)."""

    requests: list[bytes]
    gpu_keys: list[list[tuple[int, int]]]
    host_keys: list[tuple[int, int]]


def our_posts(fleet: Fleet, count: int, *, middle: float, first_step: int) -> Posts:
    chance, posts = random.Random(first_step), Posts([], [], [])
    readings = [gpu_reading(chance) for _ in range(VARIETY)]
    for number in range(count):
        agent, step = number % AGENTS, first_step + number // AGENTS
        moments = [round(middle - PHASE_SECONDS + (step * SAMPLES + k) * STEP_SECONDS, 6) for k in range(SAMPLES)]
        samples: list[dict[str, Any]] = [
            {"at": at, "gpus": [{"uuid": uuid, **chance.choice(readings)} for _, uuid in fleet.gpus[agent]]}
            for at in moments
        ]
        samples[-1]["host"] = host_reading(chance)
        body = {
            "v": 1,
            "agent_version": "0.1.0",
            "boot_id": "bench",
            "seq": number,
            "sent_at": middle,
            "samples": samples,
        }
        data = gzip.compress(json.dumps(body, separators=(",", ":")).encode(), 6)
        token = f"Bearer {fleet.agent_tokens[agent]}"
        posts.requests.append(request("/ingest/v1/samples", data, token, "Content-Encoding: gzip\r\n"))
        posts.gpu_keys.append([(pk, round(at * 1e6)) for at in moments for pk, _ in fleet.gpus[agent]])
        posts.host_keys.append((fleet.instance_ids[agent], round(moments[-1] * 1e6)))
    return posts


def plain_posts(fleet: Fleet, count: int, *, middle: float) -> list[bytes]:
    chance, requests = random.Random(0), []
    readings = [gpu_reading(chance) for _ in range(VARIETY)]
    for number in range(count):
        agent, step = number % AGENTS, number // AGENTS
        moments = [
            datetime.fromtimestamp(middle - 3600 + (step * SAMPLES + k) * STEP_SECONDS, UTC).isoformat()
            for k in range(SAMPLES)
        ]
        gpus = [
            {"gpu_id": pk, "sampled_at": at, **chance.choice(readings)} for at in moments for pk, _ in fleet.gpus[agent]
        ]
        host = {"instance_id": fleet.instance_ids[agent], "sampled_at": moments[-1], **host_reading(chance)}
        data = json.dumps({"gpus": gpus, "hosts": [host]}).encode()
        requests.append(request("/samples/", data, f"Token {fleet.plain_tokens[agent]}", ""))
    return requests


def request(path: str, data: bytes, authorization: str, headers: str) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nAuthorization: {authorization}\r\n"
        f"Content-Type: application/json\r\n{headers}Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def phase_middle() -> float:
    return time.time() + PREPARE_SECONDS + PHASE_SECONDS / 2


def wait_for(moment: float) -> None:
    if time.time() > moment:
        raise RuntimeError("Making the requests took longer than PREPARE_SECONDS; raise it.")
    time.sleep(moment - time.time())


@contextmanager
def watcher(fleet: Fleet) -> Iterator[subprocess.Popen[str]]:
    """A page that shows every machine of the team stays open while posts come in."""
    command = [sys.executable, "-m", "tests.bench.watcher", str(PORT), fleet.session_key]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if process.stdout.readline().strip() != "subscribed":
        raise RuntimeError("The websocket was refused.")
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """What the process itself has used; on a busy machine it says more than the clock on the wall. NaN where /proc has none."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_plain(fleet: Fleet) -> dict[str, float]:
    from tests.bench.load import Load

    with web("tests.bench.baseline:application", "tests.bench.baseline_settings") as server:
        requests = plain_posts(fleet, 3_000, middle=time.time())
        used = cpu_seconds(server)
        result = asyncio.run(Load(PORT, requests, AGENTS).closed_loop(PHASE_SECONDS))
        used = cpu_seconds(server) - used
    if result.refused:
        raise RuntimeError(f"The plain side refused posts: {result.refused}")
    count = len(result.acked)
    return {"baseline_posts_per_s": round(count / result.seconds, 1), "baseline_cpu_ms": round(used / count * 1000, 3)}


def measure_ours(fleet: Fleet) -> dict[str, Any]:
    from tests.bench.load import Load

    with web("config.asgi:application", "config.settings") as server, watcher(fleet) as page:
        # Every machine's first batch, with which a store makes its series, before the clock runs.
        first = our_posts(fleet, AGENTS, middle=time.time(), first_step=0)
        warm = asyncio.run(Load(PORT, first.requests, AGENTS).closed_loop(PHASE_SECONDS))
        middle = phase_middle()
        posts = our_posts(fleet, 24_000, middle=middle, first_step=0)
        wait_for(middle - PHASE_SECONDS / 2)
        used = cpu_seconds(server)
        peak = asyncio.run(Load(PORT, posts.requests, AGENTS).closed_loop(PHASE_SECONDS))
        used = cpu_seconds(server) - used
        per_second = len(peak.acked) / peak.seconds
        middle = phase_middle()
        half = repeated(our_posts(fleet, int(per_second / 2 * PHASE_SECONDS), middle=middle, first_step=0))
        wait_for(middle - PHASE_SECONDS / 2)
        steady = asyncio.run(Load(PORT, half.requests, AGENTS).open_loop(per_second / 2, PHASE_SECONDS))
        assert page.stdout is not None
        page.terminate()
        pushed = int(page.stdout.readline())
    phases = [(first, warm.acked), (posts, peak.acked), (half, steady.acked)]
    verified = verify(phases, sent=[len(phase.requests) for phase, _acked in phases])
    cuts = statistics.quantiles(steady.latencies, n=100)
    return {
        "acked_posts_per_s": round(per_second, 1),
        "cpu_ms": round(used / len(peak.acked) * 1000, 3),
        "p50_ms": round(cuts[49] * 1000, 1),
        "p99_ms": round(cuts[98] * 1000, 1),
        "refused": sum(peak.refused.values()) + sum(steady.refused.values()),
        "pushed_messages": pushed,
        **verified,
    }


def repeated(posts: Posts) -> Posts:
    """The same posts with every REPEAT_EVERY-th one sent again right behind itself."""
    again = Posts([], [], [])
    for number, request_bytes in enumerate(posts.requests):
        for _ in range(2 if number % REPEAT_EVERY == 0 else 1):
            again.requests.append(request_bytes)
            again.gpu_keys.append(posts.gpu_keys[number])
            again.host_keys.append(posts.host_keys[number])
    return again


def verify(phases: list[tuple[Posts, list[int]]], *, sent: list[int]) -> dict[str, int]:
    """`lost`: rows that were acknowledged and are not there; `duplicated`: rows that are there and nobody sent."""
    is_other = os.environ.get("TELEMETRY_STORE") == "prometheus"
    stored_gpus, stored_hosts = stored_keys() if is_other else stored_in_postgresql()
    acked_gpus = {key for posts, acked in phases for number in acked for key in posts.gpu_keys[number]}
    acked_hosts = {posts.host_keys[number] for posts, acked in phases for number in acked}
    sent_gpus = {
        key for (posts, _), count in zip(phases, sent, strict=True) for keys in posts.gpu_keys[:count] for key in keys
    }
    sent_hosts = {key for (posts, _), count in zip(phases, sent, strict=True) for key in posts.host_keys[:count]}
    if is_other:
        acked_gpus, acked_hosts, sent_gpus, sent_hosts = map(
            in_milliseconds, (acked_gpus, acked_hosts, sent_gpus, sent_hosts)
        )
    return {
        "lost": len(acked_gpus - stored_gpus) + len(acked_hosts - stored_hosts),
        "duplicated": len(stored_gpus - sent_gpus) + len(stored_hosts - sent_hosts),
        "rows": len(stored_gpus) + len(stored_hosts),
    }


def stored_in_postgresql() -> tuple[Keys, Keys]:
    import psycopg

    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        gpus = stored(connection, "SELECT gpu_id, (extract(epoch FROM sampled_at) * 1e6)::int8 FROM gpu_sample")
        hosts = stored(connection, "SELECT instance_id, (extract(epoch FROM sampled_at) * 1e6)::int8 FROM host_sample")
    return gpus, hosts


def stored(connection: Any, query: str) -> set[tuple[int, int]]:
    return set(connection.execute(query).fetchall())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="only the figures, as one line of JSON")
    parser.add_argument(
        "--store",
        choices=("postgresql", "prometheus"),
        default="postgresql",
        help="where readings go; the second: a VictoriaMetrics",
    )
    arguments = parser.parse_args()
    store = prometheus_store() if arguments.store == "prometheus" else nullcontext()
    with servers(), store:
        fleet = make_fleet()
        plain = measure_plain(fleet)
        clear_samples()
        ours = measure_ours(fleet)
    ratio = round(ours["acked_posts_per_s"] / plain["baseline_posts_per_s"], 2)
    figures = {**ours, **plain, "ratio": ratio}
    if not arguments.json:
        for name, value in figures.items():
            sys.stdout.write(f"{name:>22}  {value}\n")
    sys.stdout.write(json.dumps(figures) + "\n")


def clear_samples() -> None:
    import psycopg

    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("TRUNCATE gpu_sample, host_sample")


if __name__ == "__main__":
    main()
