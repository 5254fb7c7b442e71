"""Runs the whole installation in one terminal; `make run` calls it."""

from __future__ import annotations

from typing import Any

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from config.embedded import EmbeddedError
from config.runtime.console import Console
from config.runtime.ports import PortError
from config.runtime.record import AlreadyRunningError
from config.runtime.up import Up


class Command(BaseCommand):
    help = "Start database, broker, web, worker, beat, local agent and sandbox; Ctrl-C stops them all. See docs/operate.md."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            Up(Console(), settings.INSTALLATION).run()
        except (EmbeddedError, PortError, AlreadyRunningError) as error:
            raise CommandError(str(error)) from error
        except OperationalError as error:
            raise CommandError(f"The database cannot be used (see DATABASE_URL): {error}".strip()) from error
        except redis.RedisError as error:
            raise CommandError(f"The broker cannot be used (see REDIS_URL): {error}") from error
