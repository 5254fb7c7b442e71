"""Runs the sandbox: a provider with machines that do not exist, and their agents. `manage.py up` starts it beside the rest."""

from __future__ import annotations

import asyncio
import fcntl
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from fleet.inventory.models import ProviderAccount
from fleet.providers.errors import Invalid
from fleet.providers.sandbox import sandbox_port
from fleet.sandbox.agents import Crew
from fleet.sandbox.client import IngestClient
from fleet.sandbox.desk import Desk, StateError
from fleet.sandbox.http_api import SandboxAPI
from fleet.sandbox.office import DashboardOffice
from fleet.sandbox.server import PortTakenError, http_client, listen, serve
from fleet.sandbox.team import SlugTakenError, open_sandbox


class Command(BaseCommand):
    help = "Run the sandbox fleet (provider and agents) until SIGTERM. It is off beside a database of your own, and with SANDBOX=0."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--state-dir", type=Path, help="Where its state is kept. Default: with the installation's data."
        )

    def handle(self, *args: Any, state_dir: Path | None, **options: Any) -> None:
        if not settings.SANDBOX:
            raise CommandError("The sandbox is off: DATABASE_URL names a database of yours, or SANDBOX is 0.")
        home = state_dir or settings.INSTALLATION.home / "sandbox"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (home / "lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CommandError(f"Another sandbox runs on {home}.") from None
            try:
                self._run(home)
            except (Invalid, PortTakenError, SlugTakenError, StateError) as error:
                raise CommandError(str(error)) from error

    def _run(self, home: Path) -> None:
        desk = Desk(home / "provider.json", time.time)
        account = open_sandbox(key=desk.read_key, born_at=desk.born_at)
        port = sandbox_port()
        with listen(port) as listening:
            self._say(
                f"provider on 127.0.0.1:{port}, {len(desk.rentals)} machines; agents report to {settings.WEB_URL}"
            )
            asyncio.run(self._serve(listening, desk, home, account))
        self._say("stopped")

    async def _serve(self, listening: Any, desk: Desk, home: Path, account: ProviderAccount) -> None:
        async with http_client() as http:
            client = IngestClient(settings.WEB_URL, http)
            crew = Crew(desk, client, DashboardOffice(account), home / "agents.json", self._say)
            crew.remember()
            await serve(listening, SandboxAPI(desk), crew)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
