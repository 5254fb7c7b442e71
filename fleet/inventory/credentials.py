"""Credentials at rest. CREDENTIAL_KEYS, newest first: the first encrypts, all of them decrypt."""

from __future__ import annotations

import json
from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext_noop

from fleet.inventory.models import ProviderAccount
from fleet.teams.audit import Actor, record

NOT_SET = gettext_noop("CREDENTIAL_KEYS is not set: no credentials can be kept.")
NO_KEY = gettext_noop(
    "CREDENTIAL_KEYS holds a key that is no 32 url-safe base64 bytes; make one with Fernet.generate_key()."
)
NONE_OPENS = gettext_noop("None of CREDENTIAL_KEYS opens these credentials: add the key that encrypted them.")


class CredentialError(Exception):
    """Credentials cannot be sealed or opened; the text, a message id, says what the operator must do and holds no secret."""


def seal(secrets: Mapping[str, str]) -> bytes:
    """Encrypted; b"" for no secrets. Raises CredentialError without a usable key."""
    return keyring().encrypt(json.dumps(dict(secrets)).encode()) if secrets else b""


def open_sealed(sealed: bytes | memoryview) -> dict[str, str]:
    """What `seal` was given. Raises CredentialError when none of the present keys encrypted it."""
    if not sealed:
        return {}
    try:
        opened: dict[str, str] = json.loads(keyring().decrypt(bytes(sealed)))
    except InvalidToken:
        raise CredentialError(NONE_OPENS) from None
    return opened


def rotate_credentials(*, actor: Actor) -> int:
    """Encrypts every account's credentials anew with the first key; after it the older keys can go. Returns how many changed."""
    rotated = 0
    for account in ProviderAccount.objects.exclude(credentials=b"").select_related("team").order_by("pk"):
        sealed = bytes(account.credentials)
        renewed = seal(open_sealed(sealed))
        with transaction.atomic():
            # Somebody may have typed a new key meanwhile: theirs wins.
            if ProviderAccount.objects.filter(pk=account.pk, credentials=sealed).update(credentials=renewed):
                record(actor=actor, team=account.team, action="account.rotate_credentials", target=account)
                rotated += 1
    return rotated


def keyring() -> MultiFernet:
    if not settings.CREDENTIAL_KEYS:
        raise CredentialError(NOT_SET)
    try:
        return MultiFernet([Fernet(key) for key in settings.CREDENTIAL_KEYS])
    except ValueError:
        raise CredentialError(NO_KEY) from None
