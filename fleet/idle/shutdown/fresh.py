"""The last look before an order: the machine judged anew, now, with what came in since the last minute."""

from __future__ import annotations

from datetime import datetime

from fleet.idle.verdict.verdict import Answer
from fleet.idle.watch.judging import judge_machine
from fleet.inventory.models import Instance

# Codes of words.WHY.
WORDS = {Answer.IDLE: "", Answer.ACTIVE: "active", Answer.OFF: "off", Answer.UNKNOWN: "unknown"}


def speaks_against(machine: Instance, *, now: datetime) -> str:
    """Why it is not idle at this moment, "" where it is."""
    return WORDS[judge_machine(instance=machine, now=now).answer]
