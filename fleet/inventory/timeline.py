"""What the observation log and the holds say on a timeline."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _

from fleet.formats import money_text
from fleet.inventory.models import Hold, Instance, Observation
from fleet.inventory.words import STATES, reason_words
from fleet.panels import Context, TimelineEntry, timeline_limit
from fleet.providers.base import Billing, InstanceState
from fleet.teams.access import TeamRequest

MARKS = {
    InstanceState.STOPPED: "stopped",
    InstanceState.TERMINATED: "stopped",
    InstanceState.UNKNOWN: "unknown",
    InstanceState.ERROR: "warning",
    InstanceState.UNREACHABLE: "warning",
}


def observed(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context:
    """Entries of [since, until); without a machine the team's newest."""
    rows = Observation.objects.filter(seen_at__gte=since, seen_at__lt=until, instance__team=request.team)
    rows = rows.filter(instance=instance) if instance else rows
    earlier = Observation.objects.filter(instance=OuterRef("instance"), seen_at__lt=OuterRef("seen_at"))
    newest = list(
        rows.select_related("instance")
        .annotate(before_id=Subquery(earlier.order_by("-seen_at").values("pk")[:1]))
        .order_by("-seen_at")[: timeline_limit(instance)]
    )
    before = Observation.objects.in_bulk([row.before_id for row in newest if row.before_id])
    entries = [entry for row in newest for entry in said(row, before.get(row.before_id), named=instance is None)]
    return {"entries": entries}


def said(row: Observation, before: Observation | None, *, named: bool) -> Iterator[TimelineEntry]:
    """What changed from one observation to the next; nothing where only figures without a word here did."""
    for text, detail, mark in changes(row, before):
        yield TimelineEntry(at=row.seen_at, text=text, detail=detail, mark=mark, **about(row.instance, named=named))


def changes(row: Observation, before: Observation | None) -> Iterator[tuple[str, str, str]]:
    state = InstanceState(row.state)
    if before is None:
        yield _("First seen: %(state)s") % {"state": STATES[state]}, cost_words(row), MARKS.get(state, "")
        return
    if not row.listed and row.state == before.state:
        yield _("Missing from the provider's list"), "", "unknown"
    elif row.listed and not before.listed:
        yield _("Listed again: %(state)s") % {"state": STATES[state]}, "", MARKS.get(state, "")
    elif row.state != before.state or row.raw_state != before.raw_state:
        yield str(STATES[state]).capitalize(), state_detail(row), MARKS.get(state, "")
    if (row.price_per_hour, row.currency) != (before.price_per_hour, before.currency):
        prices = {"old": price_words(before), "new": price_words(row)}
        yield _("Price changed"), _("%(old)s, now %(new)s") % prices, ""


def state_detail(row: Observation) -> str:
    if not row.listed:
        return reason_words(row.instance.state_reason)
    return _("the provider says “%(word)s”") % {"word": row.raw_state} if row.raw_state != row.state else ""


def cost_words(row: Observation) -> str:
    """What an hour costs in the state that the row shows."""
    if row.billing == Billing.FULL:
        return price_words(row)
    if row.billing == Billing.STORAGE and row.storage_price_per_hour is not None:
        disks = money_text(row.storage_price_per_hour, row.currency)
        return _("%(price)s an hour for its disks") % {"price": disks}
    return ""


def price_words(row: Observation) -> str:
    if row.price_per_hour is None:
        return _("price unknown")
    return _("%(price)s an hour") % {"price": money_text(row.price_per_hour, row.currency)}


def held(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context:
    """Holds placed and released."""
    holds = Hold.objects.filter(instance__team=request.team).select_related("instance", "owner")
    holds = holds.filter(instance=instance) if instance else holds
    started = holds.filter(started_at__gte=since, started_at__lt=until).order_by("-started_at")[
        : timeline_limit(instance)
    ]
    ended = holds.filter(ended_at__gte=since, ended_at__lt=until).order_by("-ended_at")[: timeline_limit(instance)]
    entries = [entry_of(hold, hold.started_at, _("Hold placed"), named=instance is None) for hold in started]
    entries += [
        entry_of(hold, hold.ended_at, _("Hold released"), named=instance is None) for hold in ended if hold.ended_at
    ]
    return {"entries": entries}


def entry_of(hold: Hold, at: datetime, text: str, *, named: bool) -> TimelineEntry:
    owner = hold.owner.display_name if hold.owner else ""
    return TimelineEntry(
        at=at,
        text=text,
        detail=", ".join(part for part in (owner, hold.reason) if part),
        **about(hold.instance, named=named),
    )


def about(instance: Instance, *, named: bool) -> dict[str, Any]:
    """The machine, on pages about many."""
    return {"machine": instance.name, "instance_id": instance.pk} if named else {}
