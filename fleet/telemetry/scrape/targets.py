"""What people do with targets: add, change, remove, and have one read now."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

import httpx
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.guard import RefusedAddressError
from fleet.inventory.credentials import CredentialError, open_sealed, seal
from fleet.inventory.models import Instance, SshHost
from fleet.inventory.remote import LOOPBACK, SshAddress
from fleet.inventory.ssh_keys import confirm_host_key
from fleet.teams.audit import Actor, record
from fleet.telemetry.models import ScrapeKind, ScrapeTarget
from fleet.telemetry.scrape.plan import CLAIM, claim_targets
from fleet.telemetry.scrape.run import installation_guard
from fleet.telemetry.scrape.words import refusal_text

INTERVAL_CHOICES_SECONDS = (10, 15, 30, 60)
MAX_TARGETS = 8
# Asked for again so soon, a target would be read as often as somebody clicks.
READ_PAUSE = timedelta(seconds=5)


class TargetError(ValueError):
    """What was asked cannot be done. `field`: the form field that is wrong; the text is for the person who asked."""

    def __init__(self, field: str, text: str | Promise) -> None:
        super().__init__(text)
        self.field, self.text = field, text


@transaction.atomic
def add_target(
    *,
    actor: Actor,
    instance: Instance,
    url: str,
    ssh: str = "",
    kind: str = ScrapeKind.AUTO,
    token: str = "",
    interval_seconds: int = 30,
) -> ScrapeTarget:
    """It is due at once. Raises TargetError."""
    ssh = check(url=url, ssh=ssh, interval_seconds=interval_seconds)
    # Of two that add the eighth target at once, one waits for the other.
    Instance.objects.select_for_update(of=("self",)).get(pk=instance.pk)
    if ScrapeTarget.objects.filter(instance=instance).count() >= MAX_TARGETS:
        raise TargetError("url", _("A machine has at most %(n)d exporters. Remove one first.") % {"n": MAX_TARGETS})
    target = ScrapeTarget(instance=instance, url=url, ssh=ssh, kind=kind, interval_seconds=interval_seconds)
    target.token = sealed_token(token)
    save(target)
    record(actor=actor, team=instance.team, action="scrape_target.add", target=instance, new=said(target))
    return target


@transaction.atomic
def update_target(
    *,
    actor: Actor,
    target: ScrapeTarget,
    url: str | None = None,
    ssh: str | None = None,
    kind: str | None = None,
    interval_seconds: int | None = None,
    enabled: bool | None = None,
    token: str | None = None,
) -> ScrapeTarget:
    """None keeps what is there; an empty token takes it away, an empty `ssh` reads directly. A token never goes to another address. Raises TargetError."""
    rows = ScrapeTarget.objects.select_for_update(of=("self",)).select_related("instance__team")
    if (locked := rows.filter(pk=target.pk).first()) is None:
        raise TargetError("url", _("It has been removed meanwhile."))
    before = said(locked)
    url, kind = url or locked.url, kind or locked.kind
    interval_seconds = interval_seconds or locked.interval_seconds
    enabled = locked.enabled if enabled is None else enabled
    ssh = check(url=url, ssh=locked.ssh if ssh is None else ssh, interval_seconds=interval_seconds)
    if token is None and locked.token and (url, ssh) != (locked.url, locked.ssh):
        raise TargetError("token", _("The address is another one: type its token again, or none."))
    if (url, ssh, kind) != (locked.url, locked.ssh, locked.kind):
        # Counters of another page do not go on.
        locked.memory, locked.gives_gpus, locked.gives_host, locked.last_ok_at = {}, False, False, None
    locked.url, locked.ssh, locked.kind = url, ssh, kind
    locked.interval_seconds, locked.enabled = interval_seconds, enabled
    if token is not None:
        locked.token = sealed_token(token)
    # A reading that is under way was made of the old address: its claim ends here.
    locked.claim, locked.next_scrape_at = None, timezone.now()
    locked.failures, locked.error, locked.error_detail, locked.yields_to = 0, "", "", ""
    save(locked)
    after = said(locked)
    old = {name: value for name, value in before.items() if after[name] != value}
    new = {name: after[name] for name in old} | ({"token_changed": True} if token else {})
    record(
        actor=actor, team=locked.instance.team, action="scrape_target.update", target=locked.instance, old=old, new=new
    )
    return locked


@transaction.atomic
def remove_target(*, actor: Actor, target: ScrapeTarget) -> bool:
    """What it gave stays. False: it was removed already."""
    removed, _by_model = ScrapeTarget.objects.filter(pk=target.pk).delete()
    if removed:
        instance = target.instance
        record(actor=actor, team=instance.team, action="scrape_target.remove", target=instance, old=said(target))
    return bool(removed)


@transaction.atomic
def read_target_now(*, actor: Actor, target: ScrapeTarget, now: datetime | None = None) -> uuid.UUID | None:
    """Claims the target for a reading now, which the caller has a worker do. None: it is being read, or was just now."""
    now = now or timezone.now()
    just_read = Q(last_ok_at__gt=now - READ_PAUSE) | Q(failed_at__gt=now - READ_PAUSE)
    being_read = Q(claim__isnull=False, next_scrape_at__gt=now, next_scrape_at__lte=now + CLAIM)
    claim = claim_targets([target.pk], now=now, due=~just_read & ~being_read)
    if claim:
        record(
            actor=actor,
            team=target.instance.team,
            action="scrape_target.read_now",
            target=target.instance,
            new={"url": target.url},
        )
    return claim


@transaction.atomic
def confirm_target_host(*, actor: Actor, target: ScrapeTarget, shown: str) -> bool:
    """Pins the host key with this fingerprint for the machine's SSH address; the target is due at once. False: another one was shown since."""
    host = host_of(target)
    if host is None or not confirm_host_key(actor=actor, host=host, shown=shown):
        return False
    ScrapeTarget.objects.filter(pk=target.pk).update(
        claim=None, next_scrape_at=timezone.now(), failures=0, error="", error_detail="", failed_at=None
    )
    return True


def host_of(target: ScrapeTarget) -> SshHost | None:
    """What is known of the SSH server through which a target is reached."""
    if not target.ssh:
        return None
    address = SshAddress.parse(target.ssh)
    hosts = SshHost.objects.select_related("instance__team").filter(instance=target.instance_id)
    return hosts.filter(host=address.host, port=address.port).first()


def rotate_tokens(*, actor: Actor) -> int:
    """Encrypts every token anew with the first of CREDENTIAL_KEYS. Returns how many changed. Raises CredentialError."""
    rotated = 0
    for target in ScrapeTarget.objects.exclude(token=b"").select_related("instance__team").order_by("pk"):
        sealed = bytes(target.token)
        renewed = seal(open_sealed(sealed))
        with transaction.atomic():
            # Somebody may have typed another one meanwhile: theirs wins.
            if ScrapeTarget.objects.filter(pk=target.pk, token=sealed).update(token=renewed):
                team = target.instance.team
                record(actor=actor, team=team, action="scrape_target.rotate_token", target=target.instance)
                rotated += 1
    return rotated


def check(*, url: str, ssh: str, interval_seconds: int) -> str:
    """The form of the addresses, and a literal IP address in them; names are resolved when they are read. Returns `ssh` in its full form."""
    address = _check_ssh(url, ssh) if ssh else None
    if address is None:
        _check_direct(url)
    if interval_seconds not in INTERVAL_CHOICES_SECONDS:
        choices = ", ".join(str(seconds) for seconds in INTERVAL_CHOICES_SECONDS)
        raise TargetError(
            "interval_seconds", _("Choose one of these intervals, in seconds: %(choices)s.") % {"choices": choices}
        )
    return str(address) if address else ""


def _check_direct(url: str) -> None:
    try:
        installation_guard().check_url(url)
    except RefusedAddressError as error:
        raise TargetError("url", refusal_text(error.code, error.subject)) from None


def _check_ssh(url: str, ssh: str) -> SshAddress:
    """Through SSH the page is on the machine's own loopback, and it is the SSH address that the guard looks at."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme != "http" or parsed.host not in LOOPBACK or parsed.userinfo:
        raise TargetError(
            "url", _("Through SSH, write the address on the machine itself: http://127.0.0.1:9469/metrics.")
        )
    try:
        address = SshAddress.parse(ssh)
        installation_guard().check_host(address.host)
    except RefusedAddressError as error:
        raise TargetError("ssh", refusal_text(error.code, error.subject)) from None
    except ValueError:
        raise TargetError("ssh", _("Write it as user@host or user@host:port.")) from None
    return address


def sealed_token(token: str) -> bytes:
    if not token:
        return b""
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise TargetError("token", _("A token has only letters, digits and signs, without spaces."))
    try:
        return seal({"token": token})
    except CredentialError as error:
        raise TargetError("token", str(error)) from None


def save(target: ScrapeTarget) -> None:
    try:
        with transaction.atomic():
            target.save()
    except IntegrityError:
        raise TargetError("url", _("This machine's exporter at that address is there already.")) from None


def said(target: ScrapeTarget) -> dict[str, object]:
    """For the audit log; the token is only said to be there."""
    return {
        "url": target.url,
        "ssh": target.ssh,
        "kind": str(target.kind),
        "interval_seconds": target.interval_seconds,
        "enabled": target.enabled,
        "has_token": bool(target.token),
    }
