"""A person who leaves a team takes their own channels and calendar of it with them, at once."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete

from fleet.alerts.channels.manage import remove_channel
from fleet.alerts.channels.models import CalendarFeed, Channel
from fleet.teams.audit import Actor
from fleet.teams.models import Membership


def connect() -> None:
    post_delete.connect(_left, sender=Membership, dispatch_uid="fleet.alerts.channels.leaving")


@transaction.atomic
def end_personal(*, membership: Membership) -> None:
    """In the transaction that ends the membership. Sending and reading check the membership themselves, too."""
    mine = {"team_id": membership.team_id, "user_id": membership.user_id}
    CalendarFeed.objects.filter(**mine).delete()
    for channel in Channel.objects.filter(team=membership.team_id, owner=membership.user_id).select_related("team", "owner"):  # fmt: skip
        remove_channel(actor=Actor.system("member left"), channel=channel)


def _left(instance: Membership, **_signal: Any) -> None:
    end_personal(membership=instance)
