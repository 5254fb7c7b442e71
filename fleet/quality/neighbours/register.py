"""What is said of other tenants elsewhere."""

from __future__ import annotations

from fleet.alerts.causes import register_cause
from fleet.alerts.words import register_words
from fleet.quality.neighbours import words


def register() -> None:
    register_cause(words.CAUSE)
    register_words("noisy_neighbour", words.alert_words)
