from __future__ import annotations

from django.apps import AppConfig


class RackrentConfig(AppConfig):
    name = "config"
    label = "rackrent"
    verbose_name = "Rackrent"

    def ready(self) -> None:
        # Registers the system checks.
        from config import checks  # noqa: F401
