"""A fleet of the tests' own: machines whose agents speak until they stop, and evaluations at any moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from fleet.alerts.evaluate import evaluate_team
from fleet.alerts.models import AlertEvent, Quiet
from fleet.inventory.models import GPU, Instance, ProviderAccount
from fleet.teams.models import Team
from fleet.telemetry.models import Agent, GpuLatest, HostLatest


@dataclass
class TestFleet:
    """`silent`: names of machines that say nothing; all others say that all is well at every evaluation."""

    __test__ = False

    team: Team
    now: datetime
    step: timedelta = timedelta(seconds=10)
    machines: list[Instance] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    events: list[AlertEvent] = field(default_factory=list)
    gpu: dict[str, object] = field(default_factory=dict)
    host: dict[str, object] = field(default_factory=dict)
    agent: dict[str, object] = field(default_factory=dict)

    def add(self, account: ProviderAccount, name: str, *, gpus: int = 2, **fields: object) -> Instance:
        values: dict[str, object] = {
            "team": self.team,
            "account": account,
            "external_id": name,
            "name": name,
            "state": "running",
            "billing": "full",
            "managed": True,
            "gpu_count": gpus,
            "price_per_hour": Decimal(12),
            "first_seen_at": self.now - timedelta(days=1),
            **fields,
        }
        instance = Instance.objects.create(**values)
        cards = GPU.objects.bulk_create(
            GPU(instance=instance, uuid=f"GPU-{instance.pk}-{index}", index=index, name="NVIDIA H100") for index in range(gpus)
        )  # fmt: skip
        Agent.objects.create(instance=instance, token_hash=f"hash {name}", enrolled_at=self.now, version="0.1.0")
        GpuLatest.objects.bulk_create(GpuLatest(gpu=card, sampled_at=self.now, received_at=self.now) for card in cards)
        HostLatest.objects.create(instance=instance, sampled_at=self.now, received_at=self.now)
        self.machines.append(instance)
        return instance

    def speak(self) -> None:
        """Everybody who is not silent reports."""
        loud = [machine.pk for machine in self.machines if machine.name not in self.silent]
        well: dict[str, object] = {
            "utilization_percent": 90.0,
            "power_watts": 500.0,
            "power_limit_watts": 700.0,
            "memory_used_bytes": 40 << 30,
            "memory_total_bytes": 80 << 30,
            "temperature_celsius": 60.0,
            "throttle_reasons": 0,
            "lost": False,
            "process_count": 1,
        }
        Agent.objects.filter(instance_id__in=loud).update(
            **{"heartbeat_at": self.now, "nvml_state": "ok", **self.agent}
        )
        GpuLatest.objects.filter(gpu__instance_id__in=loud).update(**{"sampled_at": self.now, **well, **self.gpu})
        HostLatest.objects.filter(instance_id__in=loud).update(**{"sampled_at": self.now, **self.host})

    def pass_time(self, seconds: float, *, step: float = 10) -> list[AlertEvent]:
        """Evaluations every ten seconds, or less often where nothing hangs on it. Returns what came of them."""
        until, found = self.now + timedelta(seconds=seconds), []
        while self.now < until:
            self.now += timedelta(seconds=step)
            found += self.evaluate()
        return found

    def evaluate(self) -> list[AlertEvent]:
        self.speak()
        found = evaluate_team(team=self.team, now=self.now)
        self.events += found
        return found

    def told(self) -> list[str]:
        return said(self.events)


def said(events: Sequence[AlertEvent]) -> list[str]:
    """What goes out: "machine.unreachable opened"."""
    return [f"{event.alert.cause} {event.kind}" for event in events if event.quiet == Quiet.NO]
