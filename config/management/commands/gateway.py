"""Runs the gateways before jobs that serve: nginx, the ways to their replicas, and requests that were left to be answered later."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, close_old_connections
from django.utils import timezone

from config.embedded.account import make_home, make_private, service_account, socket_directory
from config.runtime.gateway import gateway_keeper
from jobs.gateway.keeper import Keeper
from jobs.gateway.nginx import find_nginx

EVERY_SECONDS = 1.0
DATABASE_PAUSE_SECONDS = 5.0


class Command(BaseCommand):
    help = "Run the gateways before jobs that serve, on GATEWAY_HOST and GATEWAY_PORT. `manage.py up` does it where GATEWAY_PORT is set."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.GATEWAY_PORT:
            raise CommandError("Set GATEWAY_PORT: the port on which callers reach the gateways.")
        program = find_nginx()
        if program is None:
            raise CommandError(
                "nginx is not installed. Install it (apt install nginx, brew install nginx) and start again."
            )
        account = service_account()
        directory = make_private(socket_directory(make_home(settings.INSTALLATION.home) / "gateway"), account)
        keeper = gateway_keeper(program, directory, None if account.is_own else (account.uid, account.gid))
        ending = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ending.set())
        keep(keeper, ending)


def keep(keeper: Keeper, ending: threading.Event) -> None:
    keeper.begin(now=timezone.now())
    try:
        while not ending.wait(EVERY_SECONDS):
            close_old_connections()
            try:
                keeper.round(now=timezone.now())
            except OperationalError:
                # What is open stays open: callers need no database but for their token.
                time.sleep(DATABASE_PAUSE_SECONDS)
    finally:
        keeper.end()
