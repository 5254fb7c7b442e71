"""Which options come first: by money, by time, or by simplicity. What is late or too dear stays in the list, behind the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TypeVar

from planner.choice.advice import STEPS
from planner.choice.serving import ServingOption
from planner.choice.training import TrainingOption
from planner.wishes import Priority, TrainingWish

Key = tuple[float, ...]
_UNKNOWN = float("inf")


def rank_training(options: Iterable[TrainingOption], *, wish: TrainingWish, priority: Priority) -> list[TrainingOption]:
    def key(option: TrainingOption) -> Key:
        money, hours = _money(option.cost), option.hours
        simplicity = (STEPS.index(option.step), option.gpus)
        tight = option.fit == "tight"
        orders: dict[Priority, Key] = {
            "money": (option.cost is None, tight, money, hours),
            "time": (tight, hours, money),
            "simplicity": (tight, option.run.optimizer_offload, *simplicity, money, hours),
        }
        return (breaks_limits(option, wish), *orders[priority])

    return sorted(options, key=key)


def breaks_limits(option: TrainingOption, wish: TrainingWish) -> int:
    """How many of deadline and budget the option breaks; nobody knows that an unknown price keeps one."""
    late = wish.deadline_hours is not None and option.hours > wish.deadline_hours
    dear = wish.budget is not None and (option.cost is None or option.cost > wish.budget)
    return late + dear


def rank_serving(options: Iterable[ServingOption], *, priority: Priority) -> list[ServingOption]:
    def key(option: ServingOption) -> Key:
        # By what comes out: a server that answers twice as fast is worth twice as much by the hour.
        money, speed = _money(option.cost_per_million_tokens), option.speed.token.expected
        tight = option.fit == "tight"
        orders: dict[Priority, Key] = {
            "money": (option.price is None, tight, money, speed),
            "time": (tight, speed, money),
            "simplicity": (tight, option.gpus, option.run.layout.gpus, money),
        }
        return (not option.meets_targets, *orders[priority])

    return sorted(options, key=key)


Option = TypeVar("Option", TrainingOption, ServingOption)


def best_per_gpu(ranked: Sequence[Option]) -> list[Option]:
    """The first of each GPU, in the order given."""
    seen: dict[str, Option] = {}
    for option in ranked:
        seen.setdefault(option.gpu.id, option)
    return list(seen.values())


def _money(amount: Decimal | None) -> float:
    return _UNKNOWN if amount is None else float(amount)
