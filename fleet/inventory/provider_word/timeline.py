"""What notices say on a timeline."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from fleet.inventory.models import Instance
from fleet.inventory.provider_word.models import ProviderNotice
from fleet.inventory.provider_word.words import NOTICES
from fleet.inventory.timeline import about
from fleet.panels import Context, TimelineEntry, timeline_limit
from fleet.providers.base import NoticeKind
from fleet.teams.access import TeamRequest


def announced(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context:
    """Entries of [since, until), at the time at which the notice was first read; without a machine the team's newest."""
    rows = ProviderNotice.objects.filter(first_seen_at__gte=since, first_seen_at__lt=until, account__team=request.team)
    rows = rows.filter(instance=instance) if instance else rows
    newest = rows.select_related("instance").order_by("-first_seen_at", "-pk")[: timeline_limit(instance)]
    return {"entries": [entry_of(notice, named=instance is None) for notice in newest]}


def entry_of(notice: ProviderNotice, *, named: bool) -> TimelineEntry:
    starts = _("from %(at)s") % {"at": f"{notice.starts_at:%Y-%m-%d %H:%M} UTC"} if notice.starts_at else ""
    return TimelineEntry(
        at=notice.first_seen_at,
        text=str(NOTICES[NoticeKind(notice.kind)]),
        detail=", ".join(part for part in (starts, notice.detail) if part),
        mark="urgent" if notice.kind == NoticeKind.INTERRUPTION else "warning",
        **about(notice.instance, named=named),
    )
