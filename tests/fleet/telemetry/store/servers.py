"""Real time-series databases on loopback, each with a directory of its own, ended by their process id."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.programs import needs

START_SECONDS = 30.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: Sequence[str], *, ready: str, log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(list(command), stdout=out, stderr=out)
    try:
        wait_until_ready(process, ready, log)
        yield
    finally:
        process.terminate()
        process.wait(20)


def wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(url, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            pass
        # A process of its own comes up in its own time: there is nothing to be told of it.
        time.sleep(0.05)
    raise RuntimeError(f"It did not come up: {log.read_text()[-800:]}")


@contextmanager
def victoria_metrics(directory: Path) -> Iterator[str]:
    """Its address."""
    port = free_port()
    command = [
        needs("victoria-metrics"),
        f"-storageDataPath={directory / 'data'}",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-retentionPeriod=100y",
        "-dedup.minScrapeInterval=1ms",
        "-memory.allowedBytes=256MB",
    ]
    url = f"http://127.0.0.1:{port}"
    with running(command, ready=f"{url}/health", log=directory / "log"):
        yield url


@contextmanager
def prometheus(directory: Path, *, config: str = "", flags: Sequence[str] = ()) -> Iterator[str]:
    """Its address. config: the YAML of its configuration file."""
    port = free_port()
    path = directory / "prometheus.yml"
    path.write_text(config or "global: {}\n")
    command = [
        needs("prometheus"),
        f"--config.file={path}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--storage.tsdb.retention.time=100y",
        *flags,
    ]
    url = f"http://127.0.0.1:{port}"
    with running(command, ready=f"{url}/-/ready", log=directory / "log"):
        yield url
