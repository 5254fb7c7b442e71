"""What a person typed for a channel: secrets sealed, the rest in the open."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from fleet.alerts.channels.models import Channel
from fleet.alerts.channels.senders.base import Sender
from fleet.inventory.credentials import open_sealed, seal
from fleet.teams.audit import Actor, record


def config_of(channel: Channel) -> dict[str, str]:
    """All fields. Raises CredentialError when no key opens its secrets."""
    return {**channel.options, **open_sealed(channel.secret)}


def parted(sender: Sender, typed: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
    """(in the open, sealed). Raises CredentialError without a usable key."""
    secrets = {field.name: typed[field.name] for field in sender.fields if field.secret and typed.get(field.name)}
    plain = {field.name: typed[field.name] for field in sender.fields if not field.secret and typed.get(field.name)}
    return plain, seal(secrets)


def rotate_channel_secrets(*, actor: Actor) -> int:
    """Encrypts every channel's secrets anew with the first of CREDENTIAL_KEYS. Returns how many changed. Raises CredentialError."""
    rotated = 0
    for channel in Channel.objects.exclude(secret=b"").select_related("team").order_by("pk"):
        sealed = bytes(channel.secret)
        renewed = seal(open_sealed(sealed))
        with transaction.atomic():
            # Somebody may have typed another one meanwhile: theirs wins.
            if Channel.objects.filter(pk=channel.pk, secret=sealed).update(secret=renewed):
                record(actor=actor, team=channel.team, action="channel.rotate_secret", target=channel)
                rotated += 1
    return rotated
