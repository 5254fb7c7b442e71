"""What is said of other tenants elsewhere."""

from __future__ import annotations

from fleet import panels
from fleet.alerts.causes import register_cause
from fleet.alerts.words import register_words
from fleet.panels import Panel
from fleet.quality.neighbours import words
from fleet.quality.neighbours.shown import neighbours_context


def register() -> None:
    register_cause(words.CAUSE)
    register_words("noisy_neighbour", words.alert_words)
    panels.machine_panels.register(Panel("neighbours", "quality/neighbours_panel.html", neighbours_context, order=29))
