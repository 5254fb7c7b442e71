"""What the agent costs a rented machine, beside Debian's prometheus-node-exporter in the same run.

The real zipapp, enrolled at a loopback dashboard over TLS, samples 8 GPUs (the compiled stand-in for NVML, H100 profile) and the
host every 5 s and posts every 10 s. node_exporter runs with its default collectors and is scraped once in 5 s. Both are measured
over the same time: CPU from /proc/PID/stat, memory as the sum of proportional set sizes, over all processes of each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from agent.own_use import cpu_seconds, proportional_bytes
from tests.agent.certificates import write_certificate
from tests.agent.engine_pages import histogram, vllm
from tests.agent.stub_dashboard import StubDashboard
from tests.fakes.nvml.compiled import CompiledNvml
from tests.fakes.serving_engine import running_engine
from tests.programs import needs

REPOSITORY = Path(__file__).parents[2]
INTERVAL_SECONDS = 5
WARM_UP_SECONDS = 40.0
EDGES = [*(str(edge / 10) for edge in range(20)), "+Inf"]
CPU_LIMIT_PERCENT, MEMORY_LIMIT_MIB = 0.5, 35.0


class Watched:
    """A program and all processes below it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pids: list[int] = []
        self._began = 0.0

    def begin(self) -> None:
        self.pids = [self.process.pid, *_children(self.process.pid)]
        self._began = self._cpu()

    def cpu_percent(self, seconds: float) -> float:
        return 100 * (self._cpu() - self._began) / seconds

    def memory_mib(self) -> float:
        return sum(proportional_bytes(pid) or 0 for pid in self.pids) / (1 << 20)

    def resident_mib(self) -> float:
        """Shared pages counted once for each process: never less than what the agent takes alone."""
        pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids]
        return sum(pages) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)

    def _cpu(self) -> float:
        return sum(cpu_seconds(pid) or 0.0 for pid in self.pids)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one line of JSON at the end")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to measure (default: %(default)s)")
    # Not the one that runs this: pages that both share would be counted to the agent by half
    other = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    parser.add_argument("--python", default=other, help="the interpreter that runs the agent (default: %(default)s)")
    parser.add_argument("--port", type=int, default=22910, help="for node_exporter, on loopback")
    parser.add_argument("--engine", action="store_true", help="with a serving engine of eight models to read, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rackrent-bench-agent-") as directory, contextlib.ExitStack() as around:
        if options.engine:
            around.enter_context(running_engine(Path(directory), engine_pages()))
        figures = measure(Path(directory), options.seconds, options.python, options.port)
    for name, value in figures.items():
        sys.stderr.write(f"{name:32} {value}\n")
    if options.json:
        sys.stdout.write(json.dumps(figures) + "\n")
    return 0


def engine_pages() -> list[str]:
    """As many pages as a run reads, each of the size that vLLM with eight models has: some 120 kB."""
    rest = "".join(
        histogram(f"vllm:request_{name}", f'engine="0",model_name="org/{name % 8}"', dict.fromkeys(EDGES, 20.0), 3.0)
        for name in range(60)
    )
    return [
        "".join(
            vllm(model=f"org/model-{model}", stopped=100.0 + turn, generated=20_000.0 + 90 * turn) for model in range(8)
        )
        + rest
        for turn in range(60)
    ]


def measure(directory: Path, seconds: float, python: str, port: int) -> dict[str, Any]:
    """Both programs over the same ``seconds``."""
    certificate, key = write_certificate(directory)
    # uvicorn closes a connection after 5 s without a request, so that the agent pays for a handshake with every post
    dashboard = StubDashboard(certificate=(certificate, key), idle_seconds=5)
    dashboard.config = {"interval_seconds": INTERVAL_SECONDS, "report_seconds": 10, "paused": False}
    agent = Watched(start_agent(directory, dashboard, certificate, python))
    exporter = Watched(start_exporter(port))
    try:
        scrape_for(WARM_UP_SECONDS, port)
        agent.begin()
        exporter.begin()
        batches = len(dashboard.samples)
        began = time.monotonic()
        scraped = scrape_for(seconds, port)
        elapsed = time.monotonic() - began
        figures = _figures(agent, exporter, elapsed)
        samples = [sample for batch in dashboard.samples[batches:] for sample in batch["samples"]]
        figures["gpu_rows_received"] = sum(len(sample.get("gpus", [])) for sample in samples)
        figures["scrapes"] = scraped
    finally:
        agent.end()
        exporter.end()
        dashboard.close()
    return figures


def _figures(agent: Watched, exporter: Watched, seconds: float) -> dict[str, Any]:
    cpu, memory = agent.cpu_percent(seconds), agent.memory_mib()
    other_cpu, other_memory = exporter.cpu_percent(seconds), exporter.memory_mib()
    return {
        "seconds": round(seconds, 1),
        "gpus": 8,
        "agent_cpu_percent": round(cpu, 3),
        "agent_memory_mib": round(memory, 2),
        "agent_processes": len(agent.pids),
        "agent_resident_mib": round(agent.resident_mib(), 2),
        "node_exporter_cpu_percent": round(other_cpu, 3),
        "node_exporter_memory_mib": round(other_memory, 2),
        "cpu_ratio": round(cpu / other_cpu, 2) if other_cpu else None,
        "memory_ratio": round(memory / other_memory, 2),
        "within_cpu_budget": cpu <= CPU_LIMIT_PERCENT,
        "within_memory_budget": memory <= MEMORY_LIMIT_MIB,
    }


def start_agent(directory: Path, dashboard: StubDashboard, certificate: Path, python: str) -> subprocess.Popen[bytes]:
    nvml = CompiledNvml(directory, "h100x8")
    # Reading a control file at each call would be the stand-in's cost, not the agent's
    environment = {name: value for name, value in nvml.environment.items() if name != "FAKE_NVML_CONTROL"}
    archive, settings, state = directory / "agent.pyz", directory / "agent.json", directory / "state"
    subprocess.run(
        [sys.executable, "-m", "agent.build", archive], cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL
    )
    files = ["--config", str(settings), "--state-dir", str(state)]
    trust = ["--url", dashboard.url, "--token", "rre_bench", "--ca-file", str(certificate)]
    subprocess.run([python, archive, "enrol", *trust, *files], env=environment, check=True, stderr=subprocess.DEVNULL)
    return subprocess.Popen([python, archive, "run", *files], env=environment, stderr=subprocess.DEVNULL)


def start_exporter(port: int) -> subprocess.Popen[bytes]:
    words = [needs("prometheus-node-exporter"), f"--web.listen-address=127.0.0.1:{port}"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def scrape_for(seconds: float, port: int) -> int:
    """One scrape of the whole page every interval, as a Prometheus would."""
    until, due, scrapes = time.monotonic() + seconds, time.monotonic(), 0
    while time.monotonic() < until:
        due = min(due + INTERVAL_SECONDS, until)
        time.sleep(max(0.0, due - time.monotonic()))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            answer.read()
        scrapes += 1
    return scrapes


def _children(pid: int) -> list[int]:
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(word) for word in words]


if __name__ == "__main__":
    sys.exit(main())
