from __future__ import annotations

from django.apps import AppConfig


class PlannerConfig(AppConfig):
    name = "planner"
