"""Encrypts every provider's credentials, every exporter's, source's and channel's secret, every team's SSH key and the startup scripts of launches under way anew with the first of CREDENTIAL_KEYS, so that the older keys can be taken away."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from fleet.alerts.channels.credentials import rotate_channel_secrets
from fleet.inventory.credentials import CredentialError, rotate_credentials
from fleet.inventory.operations.orders import rotate_orders
from fleet.inventory.ssh_keys import rotate_ssh_keys
from fleet.teams.audit import Actor
from fleet.telemetry.scrape.targets import rotate_tokens
from fleet.telemetry.sources.manage import rotate_source_tokens


class Command(BaseCommand):
    help = "Encrypt all provider credentials, tokens of exporters and SSH keys with the first key of CREDENTIAL_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            actor = Actor.system("rotate_credentials")
            rotated, tokens = rotate_credentials(actor=actor), rotate_tokens(actor=actor)
            tokens += rotate_source_tokens(actor=actor) + rotate_channel_secrets(actor=actor)
            keys, orders = rotate_ssh_keys(actor=actor), rotate_orders(actor=actor)
        except CredentialError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"{rotated} accounts, {tokens} tokens of exporters, sources and channels, {keys} SSH keys and {orders} launches under way now use the first key; "
            "keys behind it are no longer needed."
        )
