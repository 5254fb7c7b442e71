"""What the sandbox costs the machine it runs on: `python -m tests.bench.sandbox [--seconds 120] [--json]`.

Provider and agents run in this process against a server in another one that takes everything. Printed: CPU of a core for the day of
history and for reporting afterwards, requests and readings.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from fleet.sandbox.agents import Crew
from fleet.sandbox.client import IngestClient
from fleet.sandbox.desk import Desk
from fleet.sandbox.server import http_client
from tests.fleet.sandbox.loopback import serving
from tests.fleet.sandbox.stub_asgi import application
from tests.fleet.sandbox.stub_ingest import StubIngest


class OpenOffice:
    """Every machine is listed, and the stub's token lets everybody in."""

    async def is_listed(self, machine_id: str) -> bool:
        return True

    async def enrolment_token(self, *, refused: str = "") -> str:
        return "rre_good"


def take_everything(pipe: Connection) -> None:
    stub = StubIngest()
    with serving(application(stub)) as port:
        pipe.send(port)
        pipe.recv()
        pipe.send({"requests": len(stub.batches) + len(stub.heartbeats), "gpu_readings": stub.posted})


async def measure(port: int, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        async with http_client() as http:
            caught_up = asyncio.Event()
            crew = Crew(
                Desk(Path(directory) / "provider.json", time.time),
                IngestClient(f"http://127.0.0.1:{port}", http),
                OpenOffice(),
                Path(directory) / "agents.json",
                lambda text: caught_up.set(),
            )
            began, cpu = time.monotonic(), time.process_time()
            running = asyncio.create_task(crew.run())
            await caught_up.wait()
            history_seconds, history_cpu = time.monotonic() - began, time.process_time() - cpu
            began, cpu = time.monotonic(), time.process_time()
            await asyncio.sleep(seconds)
            reporting = 100 * (time.process_time() - cpu) / (time.monotonic() - began)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    return {
        "history_seconds": round(history_seconds, 1),
        "history_cpu_seconds": round(history_cpu, 1),
        "reporting_percent_of_a_core": round(reporting, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="how long to report after the history is sent")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=take_everything, args=(theirs,))
    server.start()
    result = asyncio.run(measure(ours.recv(), options.seconds))
    ours.send("end")
    result |= ours.recv()
    server.join()
    text = (
        json.dumps(result) if options.json else "\n".join(f"{name:32} {value:>12,}" for name, value in result.items())
    )
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
