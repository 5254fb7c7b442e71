from __future__ import annotations

from fleet.costs.spend.roll import ask_again
from fleet.telemetry.rollups.signals import hours_rolled_again


def register() -> None:
    hours_rolled_again.connect(ask_again, dispatch_uid="costs.ask_again")
