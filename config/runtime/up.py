"""`manage.py up`: from nothing to a running installation, and back down in order."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from django.conf import settings
from django.core.cache import cache
from django.db import connections

from config import pulse
from config.embedded.account import make_home
from config.installation import Installation
from config.reach import own_url
from config.runtime import programs
from config.runtime.children import Child, Program, ProgramChild, ServerChild
from config.runtime.console import Console
from config.runtime.ports import listen
from config.runtime.prepare import prepare
from config.runtime.record import RunRecord, end_orphans
from config.runtime.supervisor import Supervisor
from fleet.inventory.reach import reach_problem
from fleet.teams.people import FirstLogin, create_first_admin

PATIENCE_SECONDS = 60.0


class Up:
    """One run. `run()` returns when a stop was asked for and everything is down again."""

    def __init__(self, console: Console, installation: Installation) -> None:
        self.console = console
        self.installation = installation
        # Everything secret lies deeper, in directories that are closed.
        self.home: Path = make_home(installation.home, tolerated=0o755)
        self.record = RunRecord(self.home)
        self.supervisor = Supervisor(console, self._write_record)
        self.login: FirstLogin | None = None

    @property
    def address(self) -> str:
        return settings.PUBLIC_URL or own_url(bind_host=settings.RACKRENT_HOST, port=settings.RACKRENT_PORT)

    def say(self, text: str) -> None:
        self.console.say("up", text)

    def run(self) -> None:
        """Raises EmbeddedError, PortError or AlreadyRunningError where it cannot start; what was started is stopped again."""
        end_orphans(self.record.acquire(), self.say)
        try:
            with listen(settings.RACKRENT_HOST, settings.RACKRENT_PORT) as listening:
                self.supervisor.handle_signals()
                for child in self._children(listening):
                    self.supervisor.start(child)
                self.supervisor.watch(Announcement(self))
        except KeyboardInterrupt:
            self.say("interrupted while starting")
        finally:
            self.supervisor.stop_all()
            self.record.release()
        self.say("stopped")

    def _children(self, listening: socket.socket) -> Iterator[Child]:
        """The children in the order to start them; what lies between two of them is done when the first is up."""
        for server in self.installation.servers(database=settings.EMBEDDED_DATABASE, broker=settings.EMBEDDED_BROKER):
            yield ServerChild(server, self.console)
        self._prepare()
        for program in self._programs(listening):
            yield ProgramChild(program, self.console)

    def _prepare(self) -> None:
        prepare(self.say)
        # Notes of a former run would pass for signs of life of this one.
        cache.delete_many([pulse.BEAT, pulse.WORKER])
        # Last, when both servers are known to work: its password is said once, and a start that fails would lose it.
        self.login = create_first_admin(password=settings.RACKRENT_ADMIN_PASSWORD or None)
        connections.close_all()

    def _programs(self, listening: socket.socket) -> Iterator[Program]:
        yield programs.web(listening)
        # Before the worker, so that they end after it: it may be asking the sandbox something.
        yield from filter(None, (programs.agent(), programs.sandbox(), programs.gateway()))
        yield programs.long_worker()
        yield programs.outside_worker()
        yield programs.worker()
        yield programs.beat(self.home)

    def _write_record(self, children: list[Child]) -> None:
        running = [(child.name, child.process.pid) for child in children if child.process]
        self.record.write(address=self.address, children=running)


class Announcement:
    """Says once where the page is and how to sign in, when /healthz is all ok, or what is still missing after a while."""

    def __init__(self, up: Up) -> None:
        self.up = up
        self.began_at = time.monotonic()
        self.made = False

    def __call__(self) -> None:
        if self.made:
            return
        answer = self._ask()
        if answer is not None and answer.status_code == httpx.codes.OK:
            self._announce("Rackrent is up")
        elif time.monotonic() - self.began_at > PATIENCE_SECONDS:
            missing = "the web process" if answer is None else ", ".join(_failing(answer))
            self._announce(
                f"Rackrent is not complete after {PATIENCE_SECONDS:.0f} s (missing: {missing}); see the lines above. It goes on trying"
            )

    def _ask(self) -> httpx.Response | None:
        try:
            return httpx.get(f"{settings.WEB_URL}/healthz", timeout=5, trust_env=False)
        except httpx.HTTPError:
            return None

    def _announce(self, headline: str) -> None:
        self.made = True
        self.up.say(f"{headline}: {self.up.address}")
        if login := self.up.login:
            chosen = bool(settings.RACKRENT_ADMIN_PASSWORD)
            secret = "the password in RACKRENT_ADMIN_PASSWORD" if chosen else f"{login.password} (shown this once)"
            self.up.say(f"First sign-in: {login.username} / {secret}. `make password` sets another one.")
        if problem := reach_problem(settings.PUBLIC_URL):
            self.up.say(
                f"Rented machines {'cannot' if problem.certain else 'may not'} reach it. {problem.reason} {problem.remedy}"
            )
        self.up.say("Ctrl-C stops it.")


def _failing(answer: httpx.Response) -> list[str]:
    parts = answer.json()
    return [name for name, part in parts.items() if isinstance(part, dict) and not part["ok"]]
