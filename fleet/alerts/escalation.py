"""Whom an alert is escalated to: a member of the team by name, or whoever stands behind the first readers; and when it is by itself."""

from __future__ import annotations

from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from fleet.alerts.channels.models import Route
from fleet.alerts.models import EscalationPolicy
from fleet.teams.audit import Actor, record
from fleet.teams.models import Membership, Team, User

MOST_MINUTES = 1_440


def policy_of(team: Team) -> EscalationPolicy:
    """As the team has it; one that is not saved where it chose nothing."""
    found = EscalationPolicy.objects.select_related("person", "changed_by").filter(team=team).first()
    return found or EscalationPolicy(team=team)


def reachable_members(team: Team) -> QuerySet[User]:
    """Those who have a channel of their own in the team that is told something."""
    routes = Route.objects.filter(channel__team=team, channel__enabled=True, channel__owner__isnull=False)
    members = User.objects.filter(memberships__team=team, is_active=True)
    return members.filter(pk__in=routes.values("channel__owner")).order_by("username")


def find_member(*, team: Team, username: str) -> User:
    """Raises ValidationError by field."""
    found = User.objects.filter(memberships__team=team, username=username, is_active=True).first()
    if found is None:
        raise ValidationError({"person": _("Nobody of the team has this user name.")})
    return found


def check_reachable(*, team: Team, person: User) -> None:
    """Raises ValidationError by field where nothing would reach the person."""
    said = {"name": person.display_name}
    if not Membership.objects.filter(team=team, user=person).exists():
        raise ValidationError({"person": _("%(name)s is not a member of the team.") % said})
    if not reachable_members(team).filter(pk=person.pk).exists():
        text = _(
            "%(name)s has no channel of their own, so nothing would reach them. They add one under Settings, Channels."
        )
        raise ValidationError({"person": text % said})


@transaction.atomic
def update_escalation(
    *, actor: Actor, team: Team, now: datetime, after_minutes: int | None, person: User | None
) -> EscalationPolicy:
    """After how many minutes urgent alerts that nobody answers escalate by themselves (None: never), and to whom. Raises ValidationError by field."""
    if after_minutes is not None and not 1 <= after_minutes <= MOST_MINUTES:
        raise ValidationError(
            {"after_minutes": _("Write a number of minutes between 1 and %(n)d.") % {"n": MOST_MINUTES}}
        )
    if person is not None:
        check_reachable(team=team, person=person)
    policy = EscalationPolicy.objects.select_for_update(of=("self",)).filter(team=team).first()
    policy = policy or EscalationPolicy(team=team)
    old = _said(policy)
    policy.after_minutes, policy.person = after_minutes, person
    if (new := _said(policy)) == old and not policy._state.adding:  # noqa: SLF001 - Django has no public word for a row that is not stored yet
        return policy
    policy.changed_at, policy.changed_by = now, actor.user
    policy.save()
    changed = [name for name in new if new[name] != old[name]]
    if changed:
        shown = {name: old[name] for name in changed}, {name: new[name] for name in changed}
        record(actor=actor, team=team, action="alert_escalation.update", target=policy, old=shown[0], new=shown[1])
    return policy


def _said(policy: EscalationPolicy) -> dict[str, object]:
    """For the audit log."""
    person = policy.person.get_username() if policy.person else ""
    return {"after_minutes": policy.after_minutes, "person": person}
