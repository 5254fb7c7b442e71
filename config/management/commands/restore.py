"""Replaces the database by a backup."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections

from config.dump import DumpError, check_dump, restore
from config.embedded import EmbeddedError
from config.runtime.servers import database_running
from fleet.inventory.credentials import CredentialError, open_sealed
from fleet.inventory.models import ProviderAccount


class Command(BaseCommand):
    help = "Replace everything in the database by a backup, in one transaction. Stop Rackrent first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--replace", action="store_true", help="Also when the database is not empty: what is in it is lost."
        )

    def handle(self, *args: Any, file: Path, replace: bool, **options: Any) -> None:
        if not file.is_file():
            raise CommandError(f"There is no file {file}.")
        try:
            with database_running():
                self._restore(file, replace=replace)
        except (DumpError, EmbeddedError, OSError) as error:
            raise CommandError(str(error)) from error

    def _restore(self, file: Path, *, replace: bool) -> None:
        check_dump(file)
        if others := count_others():
            raise CommandError(
                f"{others} other connections use the database. Stop Rackrent (web, worker, beat), then restore."
            )
        if connection.introspection.table_names() and not replace:
            raise CommandError("The database is not empty. Add --replace to lose what is in it.")
        connections.close_all()
        restore(database_url=settings.DATABASE_URL, source=file)
        # A backup of an older release is brought up to this one.
        call_command("migrate", interactive=False, verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        self.stdout.write(f"{file} is restored.")
        if unreadable := unreadable_accounts():
            self.stderr.write(
                f"The present CREDENTIAL_KEYS do not open the credentials of: {', '.join(unreadable)}. "
                "Put the key that was in use when the backup was made behind the present one."
            )


def unreadable_accounts() -> list[str]:
    return [account.name for account in ProviderAccount.objects.order_by("name") if not _opens(account)]


def _opens(account: ProviderAccount) -> bool:
    try:
        open_sealed(account.credentials)
    except CredentialError:
        return False
    return True


def count_others() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])
