"""What people do with sources: add, change, remove, and say which machine a label is."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import httpx
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.guard import RefusedAddressError
from fleet.inventory.credentials import open_sealed, seal
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team
from fleet.telemetry.scrape.run import installation_guard
from fleet.telemetry.scrape.targets import TargetError, sealed_token
from fleet.telemetry.scrape.words import refusal_text
from fleet.telemetry.sources.models import PrometheusSource, SourceMachine

INTERVAL_CHOICES_SECONDS = (15, 30, 60)
HISTORY_CHOICES_HOURS = (0, 6, 24, 46)
MAX_SOURCES = 20
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_MATCHER = r'[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"'
SELECTOR = re.compile(rf"{_MATCHER}(?:\s*,\s*{_MATCHER})*")
_API_PATH = re.compile(r"/(api/v1(/query(_range)?)?|graph)/?$")


class SourceError(ValueError):
    """What was asked cannot be done. `field`: the form field that is wrong; the text is for the person who asked."""

    def __init__(self, field: str, text: str | Promise) -> None:
        super().__init__(text)
        self.field, self.text = field, text


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWords:
    """What a person says of a source, its token aside."""

    name: str
    url: str
    tenant: str = ""
    selector: str = ""
    gpu_label: str = "Hostname"
    host_label: str = "instance"
    adds_machines: bool = False
    interval_seconds: int = 30


@transaction.atomic
def add_source(
    *, actor: Actor, team: Team, words: SourceWords, token: str = "", history_hours: int = 0
) -> PrometheusSource:
    """It is due at once, and begins so many hours back. Raises SourceError."""
    check(words)
    Team.objects.select_for_update().get(pk=team.pk)
    if PrometheusSource.objects.filter(team=team).count() >= MAX_SOURCES:
        raise SourceError("url", _("A team has at most %(n)d sources. Remove one first.") % {"n": MAX_SOURCES})
    source = PrometheusSource(team=team, **_said(words))
    source.token = _sealed(token)
    source.read_until = timezone.now() - timedelta(hours=history_hours)
    _save(source)
    record(actor=actor, team=team, action="source.add", target=source, new=said(source))
    return source


@transaction.atomic
def update_source(
    *, actor: Actor, source: PrometheusSource, words: SourceWords, enabled: bool, token: str | None
) -> PrometheusSource:
    """token: None keeps the one that is there, "" takes it away. A token never goes to another address. Raises SourceError."""
    check(words)
    locked = PrometheusSource.objects.select_for_update(of=("self",)).select_related("team").get(pk=source.pk)
    before = said(locked)
    said_now = _said(words)
    if token is None and locked.token and said_now["url"] != locked.url:
        raise SourceError("token", _("The address is another one: type its token again, or none."))
    for name, value in said_now.items():
        setattr(locked, name, value)
    locked.enabled = enabled
    if token is not None:
        locked.token = _sealed(token)
    # A reading that is under way was made as the source was before: its claim ends here.
    locked.claim, locked.next_read_at = None, timezone.now()
    locked.failures, locked.error, locked.error_detail = 0, "", ""
    _save(locked)
    after = said(locked)
    old = {name: value for name, value in before.items() if after[name] != value}
    new = {name: after[name] for name in old} | ({"token_changed": True} if token else {})
    record(actor=actor, team=locked.team, action="source.update", target=locked, old=old, new=new)
    return locked


@transaction.atomic
def remove_source(*, actor: Actor, source: PrometheusSource) -> bool:
    """What it gave stays. False: it was removed already."""
    old, pk = said(source), source.pk
    removed, _by_model = PrometheusSource.objects.filter(pk=pk).delete()
    if removed:
        record(actor=actor, team=source.team, action="source.remove", target=source, old=old)
    return bool(removed)


@transaction.atomic
def choose_machine(*, actor: Actor, row: SourceMachine, instance: Instance | None) -> SourceMachine:
    """None: the label is no machine of ours, and is not matched by name again. Raises SourceError for another team's machine."""
    locked = SourceMachine.objects.select_for_update(of=("self",)).select_related("source__team").get(pk=row.pk)
    if instance is not None and instance.team_id != locked.source.team_id:
        raise SourceError("instance", _("Choose a machine of this team."))
    old = {"label": locked.label, "instance": locked.instance_id}
    locked.instance, locked.chosen = instance, True
    locked.save(update_fields=["instance", "chosen"])
    new = {"label": locked.label, "instance": locked.instance_id}
    record(actor=actor, team=locked.source.team, action="source.choose", target=locked.source, old=old, new=new)
    return locked


def rotate_source_tokens(*, actor: Actor) -> int:
    """Encrypts every token anew with the first of CREDENTIAL_KEYS. Returns how many changed. Raises CredentialError."""
    rotated = 0
    for source in PrometheusSource.objects.exclude(token=b"").select_related("team").order_by("pk"):
        sealed = bytes(source.token)
        renewed = seal(open_sealed(sealed))
        with transaction.atomic():
            # Somebody may have typed another one meanwhile: theirs wins.
            if PrometheusSource.objects.filter(pk=source.pk, token=sealed).update(token=renewed):
                record(actor=actor, team=source.team, action="source.rotate_token", target=source)
                rotated += 1
    return rotated


def check(words: SourceWords) -> None:
    try:
        url = installation_guard().check_url(words.url)
    except RefusedAddressError as error:
        raise SourceError("url", refusal_text(error.code, error.subject)) from None
    if url.query or url.fragment:
        raise SourceError("url", _("Leave out what follows ? or #: the address ends where /api/v1/query begins."))
    for name in ("gpu_label", "host_label"):
        if not LABEL_NAME.fullmatch(getattr(words, name)):
            raise SourceError(name, _("A label's name has letters, digits and underscores, as in Hostname."))
    if words.tenant and not (words.tenant.isascii() and words.tenant.isprintable()):
        raise SourceError("tenant", _("A tenant has only letters, digits and signs of ASCII: it is sent in a header."))
    if words.selector and not SELECTOR.fullmatch(words.selector):
        raise SourceError("selector", _('Write matchers with commas between them, as in job="dcgm",cluster=~"a|b".'))
    if words.interval_seconds not in INTERVAL_CHOICES_SECONDS:
        choices = ", ".join(map(str, INTERVAL_CHOICES_SECONDS))
        text = _("Choose one of these intervals, in seconds: %(choices)s.") % {"choices": choices}
        raise SourceError("interval_seconds", text)


def plain_url(url: str) -> str:
    """People copy the address of a page or of a question."""
    return _API_PATH.sub("", str(httpx.URL(url))).rstrip("/")


def _said(words: SourceWords) -> dict[str, Any]:
    return {**asdict(words), "url": plain_url(words.url)}


def _sealed(token: str) -> bytes:
    try:
        return sealed_token(token)
    except TargetError as error:
        raise SourceError("token", error.text) from None


def _save(source: PrometheusSource) -> None:
    try:
        with transaction.atomic():
            source.save()
    except IntegrityError:
        raise SourceError("name", _("A source of that name is there already.")) from None


def said(source: PrometheusSource) -> dict[str, object]:
    """For the audit log; the token is only said to be there."""
    names = ("name", "url", "tenant", "selector", "gpu_label", "host_label", "adds_machines", "interval_seconds")
    told = {name: getattr(source, name) for name in (*names, "enabled")}
    return {**told, "has_token": bool(source.token)}
