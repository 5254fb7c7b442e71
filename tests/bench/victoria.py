"""A VictoriaMetrics of a bench's own, on loopback (Debian's victoria-metrics), fed through its import."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PORT = int(os.environ.get("RACKRENT_BENCH_VM_PORT", "25991"))
ADDRESS = f"http://127.0.0.1:{PORT}"
PROGRAM = "victoria-metrics"


@contextmanager
def victoria_metrics() -> Iterator[Path]:
    """Yields the directory that it stores into."""
    if shutil.which(PROGRAM) is None:
        raise RuntimeError(f"{PROGRAM} is not installed; .ci/packages names its Debian package.")
    with tempfile.TemporaryDirectory(prefix="rackrent-victoria-") as home:
        options = [f"-storageDataPath={home}", f"-httpListenAddr=127.0.0.1:{PORT}", "-retentionPeriod=100y"]
        process = subprocess.Popen([PROGRAM, *options, "-loggerLevel=ERROR"])
        try:
            _wait(process)
            yield Path(home)
        finally:
            process.terminate()
            process.wait(30)


def _wait(process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            call("/health")
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"No {PROGRAM} came up at {ADDRESS}.")


def call(path: str, body: bytes | None = None) -> bytes:
    with urllib.request.urlopen(f"{ADDRESS}{path}", body, timeout=60) as answer:
        content: bytes = answer.read()
    return content


def bring_in(series: Iterable[dict[str, Any]]) -> None:
    """Each as {"metric": labels, "values": […], "timestamps": [milliseconds …]}."""
    lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in series)
    call("/api/v1/import", lines.encode())


def stored(home: Path) -> int:
    """Bytes on disk, the index of the series included, once all values (of one month) are in one part and that part is there."""
    deadline = time.monotonic() + 120
    while _sum("vm_parts") != 1 or _bytes(home / "data") < _sum("vm_data_size_bytes"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{PROGRAM} did not come to rest; its sizes would say nothing.")
        call("/internal/force_flush")
        call("/internal/force_merge")
        time.sleep(1)
    return _bytes(home)


def _sum(name: str) -> int:
    lines = call("/metrics").decode().splitlines()
    return sum(int(line.split()[-1]) for line in lines if line.startswith(f'{name}{{type="storage/'))


def _bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def count_samples() -> int:
    """How many values it gives back: what a comparison of sizes rests on."""
    lines = call("/api/v1/export?match%5B%5D=%7B__name__!%3D%22%22%7D").splitlines()
    return sum(len(json.loads(line)["values"]) for line in lines)
