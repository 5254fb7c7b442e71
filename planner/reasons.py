"""What the planner says to people, without saying it in any language: a key, and the values that go into its sentence.

planner.web.words holds the sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

Value = str | int | float | Decimal


@dataclass(frozen=True, slots=True)
class Reason:
    """`key` is dotted, subject first: "advice.data_parallel"."""

    key: str
    values: Mapping[str, Value] = field(default_factory=dict)


def reason(key: str, **values: Value) -> Reason:
    return Reason(key, values)
