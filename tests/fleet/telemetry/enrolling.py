"""Enrolment by its use-case, without the wire."""

from __future__ import annotations

from datetime import UTC, datetime

from fleet.teams.audit import Actor
from fleet.telemetry.enrolment import enrol_machine
from fleet.telemetry.matching import Claim
from fleet.telemetry.models import Agent

ACTOR = Actor.system("test")


def now() -> datetime:
    return datetime.now(UTC)


def claim(machine_id: str = "m1", **fields) -> Claim:
    return Claim(machine_id=machine_id, **{"hostname": "train-01", "boot_id": f"boot of {machine_id}", **fields})


def enrol(secret: str, *args, **fields) -> Agent:
    return enrol_machine(secret=secret, claim=claim(*args, **fields), now=now()).agent
