from __future__ import annotations

from django.apps import AppConfig


class RackrentConfig(AppConfig):
    name = "config"
    label = "rackrent"
    verbose_name = "Rackrent"
