"""What forecasts show on the page of costs."""

from __future__ import annotations

from fleet import panels
from fleet.costs.forecast.shown import how_it_gets_there, month_against_budget
from fleet.panels import Panel


def register() -> None:
    panels.costs_panels.register(Panel("forecast", "costs/forecast.html", month_against_budget, order=10))
    panels.costs_panels.register(Panel("forecast_parts", "costs/forecast_parts.html", how_it_gets_there, order=20))
