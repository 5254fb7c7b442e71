"""How many exporters one worker reads: `python -m tests.bench.scrape --json`.

1,000 targets of 1,000 machines, served by a fake on loopback in another process: dcgm-exporter with 8 GPUs, and the saved pages of a
real node_exporter and nvidia_gpu_exporter where they lie beside the repository. One worker process claims the shards and works them off one
after the other: fetch, parse, rates, storing and noting, on a PostgreSQL with its ordinary durable settings. A second round has one
target that never answers and one that nobody serves. Beside it the plain way: 32 threads that fetch and parse each page whole, and store nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.bench.ingest import ROOT, servers

TARGETS = 1_000
GPUS = 8
PORT = int(os.environ.get("RACKRENT_BENCH_PORT", "18990"))
SAVED = Path(os.environ.get("RACKRENT_EXPORTER_PAGES", ROOT.parent / "shared" / "exporters"))
THREADS = 32
DCGM_NAMES = (
    "DEV_SM_CLOCK", "DEV_MEM_CLOCK", "DEV_MEMORY_TEMP", "DEV_GPU_TEMP", "DEV_POWER_USAGE", "DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_PCIE_REPLAY_COUNTER",
    "DEV_GPU_UTIL", "DEV_MEM_COPY_UTIL", "DEV_ENC_UTIL", "DEV_DEC_UTIL", "DEV_XID_ERRORS", "DEV_FB_FREE", "DEV_FB_USED", "DEV_FB_RESERVED",
    "DEV_UNCORRECTABLE_REMAPPED_ROWS", "DEV_CORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_FAILURE", "DEV_NVLINK_BANDWIDTH_TOTAL", "DEV_VGPU_LICENSE_STATUS",
    "PROF_GR_ENGINE_ACTIVE", "PROF_PIPE_TENSOR_ACTIVE", "PROF_DRAM_ACTIVE", "PROF_PCIE_TX_BYTES", "PROF_PCIE_RX_BYTES",
)  # fmt: skip


def dcgm_page() -> str:
    lines = []
    for name in DCGM_NAMES:
        value = 0 if "XID" in name or "REMAP" in name else 1 if "PROF" in name and "PCIE" not in name else 61
        lines += [f"# HELP DCGM_FI_{name} As dcgm-exporter serves it.", f"# TYPE DCGM_FI_{name} gauge"]
        lines += [
            f'DCGM_FI_{name}{{gpu="{gpu}",UUID="GPU-0a1b2c3d-0000-1111-2222-33334444555{gpu}",pci_bus_id="00000000:1{gpu}:00.0",device="nvidia{gpu}",'
            f'modelName="NVIDIA H100 80GB HBM3",Hostname="node-1",DCGM_FI_DRIVER_VERSION="590.48.01"}} {value}'
            for gpu in range(GPUS)
        ]
    return "\n".join(lines) + "\n"


def pages() -> list[bytes]:
    saved = (
        "node_exporter__e2e-subset.metrics",
        "nvidia_gpu_exporter__linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01__load.metrics",
    )
    return [dcgm_page().encode(), *((SAVED / name).read_bytes() for name in saved if (SAVED / name).is_file())]


async def serve(port: int) -> None:
    """Answers path /N with page N modulo the number of pages, and /silent never."""
    answers = [
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(page), page) for page in pages()
    ]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1][1:]
        if path == b"silent":
            await asyncio.sleep(60)
        else:
            writer.write(answers[int(path) % len(answers)])
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port, backlog=2_048) as server:
        sys.stdout.write("serving\n")
        sys.stdout.flush()
        await server.serve_forever()


@contextmanager
def fake() -> Iterator[None]:
    command = [sys.executable, "-m", "tests.bench.scrape", "--serve"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        if process.stdout.readline().strip() != "serving":
            raise RuntimeError("The fake exporter did not start.")
        yield
    finally:
        process.terminate()
        process.wait(10)


def url(path: object) -> str:
    return f"http://127.0.0.1:{PORT}/{path}"


def make_targets() -> None:
    import django

    django.setup()
    from django.core.management import call_command

    from fleet.inventory.models import Instance, ProviderAccount
    from fleet.teams.models import Team
    from fleet.telemetry.models import ScrapeTarget

    call_command("migrate", verbosity=0)
    team = Team.objects.create(name="Bench", slug="bench")
    account = ProviderAccount.objects.create(team=team, kind="manual", name="By hand")
    machines = Instance.objects.bulk_create(
        Instance(team=team, account=account, external_id=str(number), name=f"m{number}", state="running", managed=True)
        for number in range(TARGETS)
    )
    ScrapeTarget.objects.bulk_create(
        ScrapeTarget(instance=machine, url=url(number)) for number, machine in enumerate(machines)
    )


def add_bad_targets() -> None:
    from fleet.inventory.models import Instance
    from fleet.telemetry.models import ScrapeTarget

    machine = Instance.objects.earliest("pk")
    for address in (url("silent"), "http://127.0.0.1:1/metrics"):
        ScrapeTarget.objects.create(instance=machine, url=address)


def round_of_scrapes() -> dict[str, Any]:
    """`seconds`: from the first claim until the last shard is noted; `good_ones_seconds`: until the last good target was."""
    from django.db.models import F
    from django.utils import timezone

    from fleet.telemetry.models import ScrapeTarget
    from fleet.telemetry.scrape.plan import claim_due
    from fleet.telemetry.scrape.run import scrape_claim

    # Newest first: the bad ones, added last, lie in the first shard.
    ScrapeTarget.objects.update(next_scrape_at=timezone.now() - F("pk") * timedelta(milliseconds=1))
    began, used = time.time(), time.process_time()
    outcomes = [outcome for claim in claim_due(now=timezone.now()) for outcome in scrape_claim(claim)]
    good = [outcome for outcome in outcomes if not outcome.code]
    return {
        "targets": len(outcomes),
        "seconds": round(time.time() - began, 2),
        "good_ones_seconds": round(max(outcome.at for outcome in good) - began, 2),
        "cpu_seconds": round(time.process_time() - used, 2),
        "failed": len(outcomes) - len(good),
        "failures": dict(Counter(outcome.code for outcome in outcomes if outcome.code)),
    }


def stored_rows() -> int:
    from fleet.telemetry.models import GpuSample, HostSample

    return GpuSample.objects.count() + HostSample.objects.count()


def plain_way() -> float:
    import httpx
    from prometheus_client.parser import text_string_to_metric_families

    with httpx.Client(trust_env=False) as client, ThreadPoolExecutor(THREADS) as threads:

        def read(number: int) -> int:
            text = client.get(url(number)).text
            return sum(len(family.samples) for family in text_string_to_metric_families(text))

        began = time.time()
        list(threads.map(read, range(TARGETS)))
        return round(time.time() - began, 2)


def measure() -> dict[str, Any]:
    with servers(), fake():
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings", "ALLOWED_NETWORKS": "127.0.0.0/8"}
        make_targets()
        first = round_of_scrapes()
        second = round_of_scrapes()
        rows = stored_rows()
        add_bad_targets()
        with_bad = round_of_scrapes()
        return {
            "plain_seconds": plain_way(),
            "first": first,
            "rows": rows,
            "with_a_dead_and_a_slow_one": with_bad,
            "and_once_more": round_of_scrapes(),
            "pages": len(pages()),
            "cpu_seconds": second["cpu_seconds"],
            **{name: second[name] for name in ("targets", "seconds", "failed")},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="only the figures, as one line of JSON")
    parser.add_argument("--serve", action="store_true", help="be the fake exporter")
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(PORT))
        return
    figures = measure()
    if not arguments.json:
        for name, value in figures.items():
            sys.stdout.write(f"{name:>26}  {value}\n")
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
