"""Snapshots that a test writes by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from fleet.alerts.findings import Finding
from fleet.alerts.rules import rule_of
from fleet.alerts.snapshot import Account, Agent, Filesystem, Gpu, Host, Machine, Snapshot
from fleet.states import GpuState
from tests.fleet.alerts.conftest import NOON

CARD = Gpu(
    pk=11, index=0, name="NVIDIA H100", is_parent=False, is_part=False, fresh=True, state=GpuState.WORKING,
    sampled_at=NOON, utilization_percent=95.0, power_watts=600.0, power_limit_watts=700.0,
    memory_used_bytes=40 << 30, memory_total_bytes=80 << 30, temperature_celsius=60.0, throttle_reasons=0,
)  # fmt: skip
AGENT = Agent(NOON, "0.1.0", "ok", "", None, 0.1, None)
HOST = Host(
    fresh=True, sampled_at=NOON, memory_used_bytes=100 << 30, memory_total_bytes=200 << 30,
    filesystems=(Filesystem("/", 500, 1_000),),
)  # fmt: skip
MACHINE = Machine(
    pk=7, name="train-01", account_id=3, state="running", powered=True, billing="full", managed=True,
    first_seen_at=NOON - timedelta(days=2), last_seen_at=NOON, expires_at=None, gpu_count=1,
    price_per_hour=Decimal(3), currency="USD", agent=AGENT, host=HOST, gpus=(CARD,),
)  # fmt: skip
ACCOUNT = Account(3, "Cloud", "USD", True, 0, "", None, NOON, 60)


def snapshot(*machines: Machine, **fields: Any) -> Snapshot:
    values: dict[str, Any] = {"accounts": (ACCOUNT,), "watching_since": NOON - timedelta(hours=1), **fields}
    return Snapshot(machines=machines, **values)


def with_gpu(**fields: Any) -> Machine:
    return replace(MACHINE, gpus=(replace(CARD, **fields),))


def with_host(**fields: Any) -> Machine:
    return replace(MACHINE, host=replace(HOST, **fields))


def with_agent(**fields: Any) -> Machine:
    return replace(MACHINE, agent=replace(AGENT, **fields))


def found(kind: str, of: Snapshot | Machine, limits: Mapping[str, float] | None = None) -> list[Finding]:
    """What the rule finds at noon."""
    rule = rule_of(kind)
    assert rule is not None
    taken = of if isinstance(of, Snapshot) else snapshot(of)
    return list(rule.evaluate(taken, rule.limits(limits), NOON))


def said(kind: str, of: Snapshot | Machine, limits: Mapping[str, float] | None = None) -> list[str]:
    """The severities of what fires, and "keeps" of what is not settled."""
    return ["keeps" if finding.keeps else finding.severity for finding in found(kind, of, limits)]
