"""The key with which a team's machines are reached over SSH, and the host keys that people have confirmed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import asyncssh
from django.db import transaction
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.inventory.credentials import CredentialError, open_sealed, seal
from fleet.inventory.models import SshHost, SshKey
from fleet.inventory.remote import SshAddress, fingerprint
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

MAX_KEY_LENGTH = 16_384
_HAS_PASSPHRASE = _("This key has a passphrase, which nobody could type here: paste one without.")
_NO_KEY = _("This is no private key. It begins with -----BEGIN OPENSSH PRIVATE KEY-----.")


class SshKeyError(ValueError):
    """What was asked cannot be done. `field`: the form field that is wrong; the text holds nothing of a key."""

    def __init__(self, field: str, text: str | Promise) -> None:
        super().__init__(text)
        self.field, self.text = field, text


@transaction.atomic
def set_ssh_key(*, actor: Actor, team: Team, private_key: str = "") -> SshKey:
    """The team's key from now on: this one, or a new ed25519 key. Raises SshKeyError."""
    key = _read_private(private_key) if private_key else asyncssh.generate_private_key("ssh-ed25519")
    key.set_comment(f"rackrent-{team.slug}")
    try:
        sealed = seal({"private_key": key.export_private_key().decode()})
    except CredentialError as error:
        raise SshKeyError("private_key", str(error)) from None
    public = key.export_public_key().decode().strip()
    old = SshKey.objects.select_for_update().filter(team=team).first()
    row, _made = SshKey.objects.update_or_create(
        team=team, defaults={"public_key": public, "private_key": sealed, "created_at": timezone.now()}
    )
    before = {"fingerprint": fingerprint(old.public_key)} if old else {}
    record(
        actor=actor, team=team, action="ssh_key.set", target=row, old=before, new={"fingerprint": fingerprint(public)}
    )
    return row


def _read_private(text: str) -> asyncssh.SSHKey:
    if len(text) > MAX_KEY_LENGTH:
        raise SshKeyError("private_key", _("This is too long for a key."))
    try:
        return asyncssh.import_private_key(text.strip() + "\n")
    except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError) as error:
        # The library tells the two apart by class for some forms of keys, for others only by its words.
        locked = isinstance(error, asyncssh.KeyEncryptionError) or "passphrase" in str(error).lower()
        raise SshKeyError("private_key", _HAS_PASSPHRASE if locked else _NO_KEY) from None


def private_keys(team_ids: Iterable[int]) -> dict[int, str]:
    """Team id -> its private key; teams without one, or whose key cannot be opened, are left out."""
    found: dict[int, str] = {}
    for row in SshKey.objects.filter(team__in=set(team_ids)):
        try:
            found[row.team_id] = open_sealed(row.private_key)["private_key"]
        except CredentialError:
            continue
    return found


def note_offered_key(*, instance_id: int, address: SshAddress, public_key: str, now: datetime) -> None:
    """What a machine showed, for a person to look at. It trusts nothing."""
    SshHost.objects.update_or_create(
        instance_id=instance_id,
        host=address.host,
        port=address.port,
        defaults={"offered": public_key, "offered_at": now},
    )


@transaction.atomic
def confirm_host_key(*, actor: Actor, host: SshHost, shown: str) -> bool:
    """Pins the key whose fingerprint a person was shown. False: the machine has shown another one since."""
    row = SshHost.objects.select_for_update().filter(pk=host.pk).first()
    if row is None or not row.offered or fingerprint(row.offered) != shown:
        return False
    old = {"fingerprint": fingerprint(row.pinned)} if row.pinned else {}
    row.pinned, row.pinned_at, row.offered, row.offered_at = row.offered, timezone.now(), "", None
    row.save()
    new = {"host": f"{row.host}:{row.port}", "fingerprint": shown}
    record(actor=actor, team=host.instance.team, action="ssh_host.confirm", target=host.instance, old=old, new=new)
    return True


def rotate_ssh_keys(*, actor: Actor) -> int:
    """Encrypts every key anew with the first of CREDENTIAL_KEYS. Returns how many changed. Raises CredentialError."""
    rotated = 0
    for row in SshKey.objects.select_related("team").order_by("pk"):
        sealed = bytes(row.private_key)
        renewed = seal(open_sealed(sealed))
        with transaction.atomic():
            # Somebody may have set another one meanwhile: theirs wins.
            if SshKey.objects.filter(pk=row.pk, private_key=sealed).update(private_key=renewed):
                record(actor=actor, team=row.team, action="ssh_key.rotate", target=row)
                rotated += 1
    return rotated
