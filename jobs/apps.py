from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"

    def ready(self) -> None:
        from jobs.findings.alerts import words
        from jobs.pages.register import register
        from jobs.spending import words as spending

        register()
        words.register()
        spending.register()
