"""A Prometheus of Debian's that reads what the documentation says, and its answers."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.conftest import free_port
from tests.programs import needs

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Prometheus:
    client: httpx.Client

    def ask(self, question: str) -> list[dict[str, Any]]:
        """The series of an instant query."""
        answer = self.client.get("/api/v1/query", params={"query": question}).json()
        assert answer["status"] == "success", f"{question}: {answer}"
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def values_of(self, label: str, selector: str) -> list[str]:
        answer = self.client.get(f"/api/v1/label/{label}/values", params={"match[]": selector}).json()
        assert answer["status"] == "success", answer
        found: list[str] = answer["data"]
        return found


def documented_config(page: str, *, changes: Mapping[str, str]) -> str:
    """The one YAML block of a page of docs/, with the reader's own words put in. Every one of them must be there to be replaced."""
    (config,) = re.findall(r"```yaml\n(.+?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    for word, own in changes.items():
        assert word in config, f"{page} has no {word!r}"
        config = config.replace(word, own)
    return str(config)


@contextmanager
def running_prometheus(config: str, directory: Path) -> Iterator[Prometheus]:
    program, port = needs("prometheus"), free_port()
    file = directory / "prometheus.yml"
    file.write_text(config)
    words = [f"--config.file={file}", f"--storage.tsdb.path={directory / 'data'}", "--log.level=warn"]
    process = subprocess.Popen([program, *words, f"--web.listen-address=127.0.0.1:{port}"])
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            wait_for(lambda: _is_ready(client))
            yield Prometheus(client)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").status_code == 200
    except httpx.TransportError:
        return False


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "what was waited for never came"
        time.sleep(0.2)


def panel_queries(dashboard: Path) -> list[tuple[str, str]]:
    """(title, query) of every panel of a Grafana dashboard."""
    panels = json.loads(dashboard.read_text())["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", ())]


def as_grafana_asks(query: str, variables: Mapping[str, list[str]]) -> str:
    """Several values of a variable become one pattern: `(a|b)`, each escaped for a regular expression inside a string."""
    for name, values in variables.items():
        patterns = [re.escape(value).replace("\\", r"\\").replace('"', r"\"") for value in values]
        query = query.replace(f"${name}", patterns[0] if len(patterns) == 1 else f"({'|'.join(patterns)})")
    return query
