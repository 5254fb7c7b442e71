"""Maintenance windows: what happens in one is recorded, and nobody is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from fleet.alerts.models import Alert, MaintenanceWindow
from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

# A moment further away is a typing error, and the ends of the calendar are moments that no time zone can show.
BACK, AHEAD = timedelta(days=366), timedelta(days=731)


def windows_in_force(*, team: Team, now: datetime) -> list[MaintenanceWindow]:
    rows = MaintenanceWindow.objects.filter(team=team, cancelled_at=None, starts_at__lte=now, ends_at__gt=now)
    return list(rows)


def covering(windows: Sequence[MaintenanceWindow], alert: Alert) -> MaintenanceWindow | None:
    """The window that is about this alert: about its machine, its account, or the whole team."""
    return next((window for window in windows if _covers(window, alert)), None)


def _covers(window: MaintenanceWindow, alert: Alert) -> bool:
    if window.instance_id is not None:
        return window.instance_id == alert.instance_id
    return window.account_id is None or window.account_id == alert.account_id


@transaction.atomic
def add_window(
    *,
    actor: Actor,
    team: Team,
    starts_at: datetime,
    ends_at: datetime,
    now: datetime,
    instance: Instance | None = None,
    account: ProviderAccount | None = None,
    reason: str = "",
) -> MaintenanceWindow:
    """Raises ValidationError, by field, for a window that has no length, is over, or names something of another team."""
    _check(team=team, starts_at=starts_at, ends_at=ends_at, now=now, instance=instance, account=account)
    window = MaintenanceWindow.objects.create(
        team=team, instance=instance, account=account, starts_at=starts_at, ends_at=ends_at, reason=reason, created_by=actor.user
    )  # fmt: skip
    record(actor=actor, team=team, action="window.add", target=window, new=_told(window))
    return window


@transaction.atomic
def cancel_window(*, actor: Actor, window: MaintenanceWindow, now: datetime) -> bool:
    """False when it was cancelled already or is over."""
    changed = MaintenanceWindow.objects.filter(pk=window.pk, cancelled_at=None, ends_at__gt=now).update(
        cancelled_at=now
    )
    if changed:
        record(actor=actor, team=window.team, action="window.cancel", target=window, old=_told(window))
    return bool(changed)


def _check(
    *,
    team: Team,
    starts_at: datetime,
    ends_at: datetime,
    now: datetime,
    instance: Instance | None,
    account: ProviderAccount | None,
) -> None:
    if ends_at <= starts_at:
        raise ValidationError({"ends_at": _("The window ends before it begins: choose a later end.")})
    if ends_at <= now:
        raise ValidationError({"ends_at": _("This window is over already: choose an end that is still to come.")})
    if starts_at < now - BACK:
        raise ValidationError({"starts_at": _("The window began more than a year ago: choose a later beginning.")})
    if ends_at > now + AHEAD:
        raise ValidationError({"ends_at": _("The window ends more than two years from now: choose an earlier end.")})
    if instance is not None and instance.team_id != team.pk:
        raise ValidationError({"instance": _("Choose a machine of this team.")})
    if account is not None and account.team_id != team.pk:
        raise ValidationError({"account": _("Choose a provider account of this team.")})
    if instance is not None and account is not None:
        raise ValidationError({"account": _("Choose a machine or an account, not both.")})


def _told(window: MaintenanceWindow) -> dict[str, str]:
    about = window.instance or window.account
    return {
        "starts_at": window.starts_at.isoformat(),
        "until": window.ends_at.isoformat(),
        "reason": window.reason,
        "about": str(about) if about else "",
    }
