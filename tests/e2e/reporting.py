"""A machine whose agent is played by the test: it reports through the real ingest."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import httpx
from django.utils import timezone

from fleet.inventory.models import Instance
from fleet.teams.secrets import new_token
from fleet.telemetry.models import Agent

GIB = 1 << 30


@dataclass
class Reporter:
    url: str
    instance: Instance
    token: str
    sequence: int = 0

    def report(
        self, *, at: float | None = None, host: dict[str, float] | None = None, **readings: float | None
    ) -> float:
        """One sample of every GPU and of the machine; answers when it is committed. Returns its moment."""
        moment = time.time() if at is None else at
        gpus = [
            {"uuid": gpu.uuid, "memory_total_bytes": 80 * GIB, "memory_used_bytes": 60 * GIB, **readings}
            for gpu in self.instance.gpus.all()
        ]
        answer = self.send({"at": moment, "gpus": gpus, "host": host or {"cpu_percent": 10.0}})
        assert answer["accepted"]["gpu"] == len(gpus), answer
        return moment

    def report_host(self, *, at: float, host: dict[str, float]) -> None:
        """A sample of the machine alone, as an agent sends while the driver hangs."""
        self.send({"at": at, "gpus": [], "host": host})

    def send(self, *samples: dict[str, Any]) -> dict[str, Any]:
        """In one batch, the oldest first."""
        self.sequence += 1
        body = {
            "v": 1,
            "agent_version": "0.1.0",
            "boot_id": "b",
            "seq": self.sequence,
            "sent_at": time.time(),
            "samples": samples,
        }
        headers = {"Authorization": f"Bearer {self.token}"}
        response = httpx.post(f"{self.url}/ingest/v1/samples", json=body, headers=headers, timeout=20)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer


def enrol(url: str, instance: Instance) -> Reporter:
    secret = new_token("rra")
    Agent.objects.create(
        instance=instance, token_hash=secret.hash, prefix=secret.prefix, heartbeat_at=timezone.now(), nvml_state="ok"
    )
    return Reporter(url, instance, secret.secret)
