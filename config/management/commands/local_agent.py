"""Runs the agent for this machine; `manage.py up` starts it."""

from __future__ import annotations

from typing import Any

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.embedded.account import make_home
from config.runtime.local_agent import EnrolmentFailedError, LocalAgent

# While the web process starts, callers wait in the queue of its socket.
PATIENCE_SECONDS = 60.0


class Command(BaseCommand):
    help = "Enrol this machine in the first team, if it is not yet, and run the agent in the foreground."

    def handle(self, *args: Any, **options: Any) -> None:
        directory = make_home(settings.INSTALLATION.home / "agent")
        agent = LocalAgent(directory=directory, project=settings.BASE_DIR, web_url=settings.WEB_URL)
        try:
            if not agent.is_enrolled:
                httpx.get(f"{settings.WEB_URL}/healthz", timeout=PATIENCE_SECONDS, trust_env=False)
                agent.enrol()
        except (EnrolmentFailedError, httpx.HTTPError) as error:
            raise CommandError(f"This machine could not be enrolled: {error}") from error
        agent.become()
