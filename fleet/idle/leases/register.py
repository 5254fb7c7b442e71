"""What leases answer for their planned acts."""

from __future__ import annotations

from fleet.idle.leases.planning import plan_stands
from fleet.idle.leases.words import WORDS
from fleet.inventory.plans.reasons import register_reason
from fleet.inventory.plans.standing import register_standing


def register() -> None:
    for source, words in WORDS.items():
        register_reason(source, words)
        register_standing(source, plan_stands)
