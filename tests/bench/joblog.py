"""What a job that writes a 1 GB log costs its worker, the database and the others: `python -m tests.bench.joblog`.

A real sshd, and the installation's own web, worker and beat processes. Beside the noisy job a quiet one writes the time every half second, and somebody
looks at the noisy job's page and at its newest lines. First nobody is noisy, then the log comes as fast as the disk takes it, then at --rate MB a second.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tests.bench.ingest import servers

MIB = 1024 * 1024
LOOK_SECONDS = 0.5
QUIET = 'while :; do date +"at %s.%N"; sleep 0.5; done'
# Lines as trainings write them, each another one; 16 MiB of them, over and over.
NOISE = """
import random, sys, time
rate, total, chance = float(sys.argv[1]), int(sys.argv[2]), random.Random(1)
lines = [f"[2026-11-30 12:{n % 60:02}:01] INFO worker-{n % 8} step {n} loss={chance.random():.6f} grad={chance.random():.9f} file=/data/{chance.getrandbits(64):x}.bin\\n" for n in range(140_000)]
block = "".join(lines).encode()[: 16 << 20]
began, sent = time.time(), 0
while sent < total:
    piece = block[: min(len(block), total - sent)] if not rate else block[sent % len(block) :][: 1 << 20]
    sent += sys.stdout.buffer.write(piece)
    if rate:
        time.sleep(max(0.0, began + sent / rate / 1e6 - time.time()))
"""


@dataclass
class Watch:
    """What was seen while it ran: seconds of answers, MiB of the worker's processes, and how late the quiet job's lines were stored."""

    answers: dict[str, list[float]] = field(default_factory=dict)
    memory: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)


def memory_mib(leader: int) -> float:
    """Proportional set size of a process group."""
    total = 0
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getpgid(int(entry.name)) == leader:
                rows = (entry / "smaps_rollup").read_text().splitlines()
                total += next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
        except (OSError, StopIteration):
            continue
    return total / 1024


@contextmanager
def watching(look: Callable[[str], None], paths: dict[str, str], leader: int) -> Iterator[Watch]:
    watch, done = Watch({name: [] for name in paths}), Event()

    def go() -> None:
        while not done.wait(LOOK_SECONDS):
            for name, path in paths.items():
                began = time.monotonic()
                look(path)
                watch.answers[name].append(time.monotonic() - began)
            watch.memory.append(memory_mib(leader))

    thread = Thread(target=go)
    thread.start()
    try:
        yield watch
    finally:
        done.set()
        thread.join()


def delays_of(job: Any, since: float) -> list[float]:
    """From when the quiet job wrote a line to when it was stored."""
    from jobs.logs.models import LogChunk
    from jobs.logs.read import lines_of

    return [
        chunk.read_at.timestamp() - float(line.text[3:])
        for chunk in LogChunk.objects.filter(node__attempt__job=job, read_at__gt=_moment(since))
        for line in lines_of(chunk)
        if line.text.startswith("at ")
    ]


def _moment(seconds: float) -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC)


@dataclass
class Bench:
    team: Any
    person: Any
    machines: list[Any]
    folder: Path

    def begin(self, name: str, command: str, machine: int) -> Any:
        from django.utils import timezone

        from fleet.teams.audit import Actor
        from jobs.book.manage import create_job
        from jobs.book.order import Order

        order = Order(name=name, command=command)
        one = [self.machines[machine]]
        return create_job(actor=Actor.system("bench"), team=self.team, order=order, machines=one, now=timezone.now())

    def noise(self, rate: float, total: int) -> str:
        program = self.folder / "noise.py"
        program.write_text(NOISE)
        return f"exec {sys.executable} {program} {rate} {total}"


@contextmanager
def set_up() -> Iterator[Bench]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.utils import timezone

    from fleet.inventory.models import Instance, ProviderAccount, SshHost
    from fleet.inventory.ssh_keys import set_ssh_key
    from fleet.teams.audit import Actor
    from fleet.teams.models import Membership, Role, Team, User
    from tests.jobs.machines import ssh_machine, user

    call_command("migrate", verbosity=0)
    team = Team.objects.create(name="Bench", slug="bench")
    person = User.objects.create_user("watcher", password="correct horse")
    Membership.objects.create(team=team, user=person, role=Role.VIEWER)
    account = ProviderAccount.objects.create(team=team, kind="manual", name="By hand")
    key = set_ssh_key(actor=Actor.system("bench"), team=team)
    with tempfile.TemporaryDirectory() as folder, ssh_machine(Path(folder) / "m", welcome=key.public_key) as server:
        place = {"host": "127.0.0.1", "port": server.port, "user": user(), "kind": "direct"}
        fields = {"team": team, "account": account, "state": "running", "managed": True, "ssh": [place]}
        machines = [Instance.objects.create(external_id=name, name=name, **fields) for name in ("noisy", "quiet")]
        for machine in machines:
            SshHost.objects.create(
                instance=machine, host="127.0.0.1", port=server.port, pinned=server.host_key, pinned_at=timezone.now()
            )
        yield Bench(team, person, machines, Path(folder))


def phase(bench: Bench, product: Any, quiet: Any, name: str, command: str) -> dict[str, Any]:
    job = bench.begin(name, command, 0)
    began = time.time()
    page = f"/t/{bench.team.slug}/jobs/{job.pk}/"
    paths = {"page": page, "lines": f"{page}log/0/lines/"}
    outside = product.processes[2].pid
    before = memory_mib(outside)
    with watching(lambda path: product.page(bench.person, path), paths, outside) as watch:
        while job.is_open:
            time.sleep(0.2)
            job.refresh_from_db()
    watch.delays = delays_of(quiet, began)
    return {"phase": name, "seconds": round(time.time() - began, 1)} | stored(job) | figures(watch, before)


def stored(job: Any) -> dict[str, Any]:
    from jobs.logs.models import LogChunk
    from jobs.logs.store import stored_bytes

    node = job.attempts.get().nodes.get()
    chunks = list(LogChunk.objects.filter(node=node).values_list("size_bytes", "left_out_bytes"))
    return {
        "state": job.state,
        "log_mb": round(node.log_size / 1e6),
        "read_to_its_end": node.log_offset == node.log_size,
        "stored_mib": round(stored_bytes(node) / MIB, 1),
        "kept_mb": round(sum(size for size, _left in chunks) / 1e6),
        "left_out_mb": round(sum(left for _size, left in chunks) / 1e6),
    }


def figures(watch: Watch, before: float) -> dict[str, Any]:
    found = {
        f"{name}_{key}": value for name, each in watch.answers.items() for key, value in spread(each, 1000).items()
    }
    found |= {f"quiet_{key}": value for key, value in spread(watch.delays, 1).items()}
    return found | {"worker_mib_before": round(before), "worker_mib_most": round(max(watch.memory, default=before))}


def spread(values: list[float], times: float) -> dict[str, Any]:
    """Milliseconds or seconds, by `times`."""
    unit = "ms" if times == 1000 else "s"
    if not values:
        return {f"count_{unit}": 0}
    ordered = sorted(values)
    return {
        f"median_{unit}": round(statistics.median(ordered) * times, 1),
        f"p95_{unit}": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] * times, 1),
        f"most_{unit}": round(ordered[-1] * times, 1),
    }


def run(megabytes: int, rate: float) -> Iterator[dict[str, Any]]:
    with servers(), set_up() as bench, tempfile.TemporaryDirectory() as home:
        from django.conf import settings

        from tests.jobs.trainings.product import running

        settings.ALLOWED_NETWORKS = ["127.0.0.0/8"]
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        with running(Path(home)) as product:
            quiet = bench.begin("quiet", QUIET, 1)
            while not quiet.attempts.get().nodes.filter(log_offset__gt=0).exists():
                time.sleep(0.2)
            yield phase(bench, product, quiet, "nobody is noisy", "sleep 20")
            total = megabytes * 1_000_000
            yield phase(bench, product, quiet, "as fast as it can", bench.noise(0, total))
            yield phase(bench, product, quiet, f"{rate:g} MB a second", bench.noise(rate, total))
            os.kill(quiet.attempts.get().nodes.get().pid, signal.SIGKILL)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--rate", type=float, default=20.0, help="MB a second in the last phase")
    asked = options.parse_args()
    for row in run(asked.megabytes, asked.rate):
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
