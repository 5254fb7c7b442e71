"""Writes the database to a file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.dump import DumpError, back_up
from config.embedded import EmbeddedError
from config.runtime.servers import database_running

KEYS_NOTE = (
    "Provider credentials in it stay encrypted: keep {keys} too, in another place. Without them a restored installation "
    "has to be given every provider's credentials again."
)


class Command(BaseCommand):
    help = "Write the whole database to FILE, while everything runs. `manage.py restore FILE` brings it back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="Replace FILE if it exists.")

    def handle(self, *args: Any, file: Path, force: bool, **options: Any) -> None:
        if file.exists() and not force:
            raise CommandError(f"{file} exists. Choose another name, or add --force to replace it.")
        if not file.absolute().parent.is_dir():
            raise CommandError(f"There is no directory {file.absolute().parent}.")
        try:
            with database_running():
                back_up(database_url=settings.DATABASE_URL, target=file)
        except (DumpError, EmbeddedError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{file}: {file.stat().st_size / 2**20:.1f} MiB")
        self.stdout.write(KEYS_NOTE.format(keys=credential_keys_place()))


def credential_keys_place() -> str:
    kept = settings.INSTALLATION.home / "keys" / "credential-keys"
    return str(kept) if settings.EMBEDDED_DATABASE and kept.exists() else "CREDENTIAL_KEYS"
