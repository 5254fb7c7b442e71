"""Encrypts every provider's credentials anew with the first of CREDENTIAL_KEYS, so that the older keys can be taken away."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from fleet.inventory.credentials import CredentialError, rotate_credentials
from fleet.teams.audit import Actor


class Command(BaseCommand):
    help = "Encrypt all provider credentials with the first key of CREDENTIAL_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rotated = rotate_credentials(actor=Actor.system("rotate_credentials"))
        except CredentialError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{rotated} accounts now use the first key; keys behind it are no longer needed.")
