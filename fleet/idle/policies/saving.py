"""Policies are added, changed, moved and removed by people, and so is the consent that machines are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from fleet.idle.hours import UnknownCalendar
from fleet.idle.policies.checking import check, normal_holidays
from fleet.idle.policies.models import IdlePolicy
from fleet.idle.policies.said import LEARNED_FOR, SCOPE, PolicySaid
from fleet.idle.policies.thresholds import BY_NAME, differing
from fleet.teams.audit import Actor, record
from fleet.teams.fields import one_line
from fleet.teams.models import Team

MOST_POLICIES = 100
STEP = 10
NO_RECOMMENDATION: dict[str, Any] = {"recommended_minutes": None, "recommended_at": None, "recommendation": {}}
# The consent was to deleting these machines, so long after their stop.
AGREED_TO = (*SCOPE, "delete_after_days")


def save_policy(
    *,
    actor: Actor,
    team: Team,
    said: PolicySaid,
    now: datetime,
    policy: IdlePolicy | None = None,
    confirmed: bool = False,
    delete_consent: bool | None = None,
) -> IdlePolicy:
    """Adds it at the end, or changes `policy`; what is not different is no change. Raises ValidationError by field.

    `confirmed`: a person said that they know what it does, which one that stops or terminates needs. A change of which machines, or of
    the days, takes back the consent that they are deleted, unless it is given with it (`delete_consent`; None: as it is); one of what the
    recommendation was reckoned for forgets the recommendation.
    """
    said = tidied(said)
    with locked(team):
        row = _standing(team, policy) if policy else None
        check(team=team, said=said, policy=row)
        before = PolicySaid.of(row) if row else None
        if said.needs_word(before) and not confirmed:
            raise ValidationError({"confirmed": _("It stops machines by itself: say that you have read what that means.")})  # fmt: skip
        if row is None or before is None:
            row = _add(actor, team, said, now)
        elif said != before:
            _change(actor, row, before, said, now)
        if delete_consent is not None:
            (consent_delete if delete_consent else take_back_consent)(actor=actor, policy=row, now=now)
            row.refresh_from_db(fields=["delete_consent_at", "delete_consent_by"])
        return row


@transaction.atomic
def remove_policy(*, actor: Actor, policy: IdlePolicy, now: datetime) -> bool:
    """What it began to stop is stopped no more; its stops stay on record. False when it was removed already."""
    removed = IdlePolicy.objects.filter(pk=policy.pk, removed_at=None).update(removed_at=now, changed_at=now)
    if removed:
        record(actor=actor, team=policy.team, action="idle_policy.remove", target=policy, old=PolicySaid.of(policy).plain())  # fmt: skip
    return bool(removed)


def move_policy(*, actor: Actor, policy: IdlePolicy, up: bool, now: datetime) -> bool:
    """Changes places with the policy before (`up`) or after it. False: there is none, or it was removed."""
    with locked(policy.team):
        rows = list(IdlePolicy.objects.filter(team=policy.team, removed_at=None).order_by("position", "pk"))
        at = next((index for index, row in enumerate(rows) if row.pk == policy.pk), None)
        if at is None or not 0 <= (other := at - 1 if up else at + 1) < len(rows):
            return False
        rows[at], rows[other] = rows[other], rows[at]
        for place, row in enumerate(rows, start=1):
            if row.position != place * STEP:
                IdlePolicy.objects.filter(pk=row.pk).update(position=place * STEP, changed_at=now)
        record(actor=actor, team=policy.team, action="idle_policy.move", target=policy, old={"order": at + 1}, new={"order": other + 1})  # fmt: skip
    return True


@transaction.atomic
def consent_delete(*, actor: Actor, policy: IdlePolicy, now: datetime) -> bool:
    """A person agrees that its machines are deleted, disks and all, so long after a stop. False: agreed already. Raises ValidationError."""
    if actor.user is None:
        raise ValidationError({"delete_consent": _("Only a person can agree that machines are deleted: do it signed in.")})  # fmt: skip
    rows = IdlePolicy.objects.filter(pk=policy.pk, removed_at=None)
    if not rows.filter(delete_after_days__isnull=False).exists():
        raise ValidationError({"delete_after_days": _("Say after how many days machines are deleted, then agree to it.")})  # fmt: skip
    given = rows.filter(delete_consent_at=None).update(
        delete_consent_at=now, delete_consent_by=actor.user, changed_at=now
    )
    if given:
        days = rows.values_list("delete_after_days", flat=True).get()
        record(actor=actor, team=policy.team, action="idle_policy.consent_delete", target=policy, new={"delete_after_days": days})  # fmt: skip
    return bool(given)


@transaction.atomic
def take_back_consent(*, actor: Actor, policy: IdlePolicy, now: datetime) -> bool:
    """False: there was none."""
    rows = IdlePolicy.objects.filter(pk=policy.pk, delete_consent_at__isnull=False)
    taken = rows.update(delete_consent_at=None, delete_consent_by=None, changed_at=now)
    if taken:
        record(actor=actor, team=policy.team, action="idle_policy.take_back_consent", target=policy)
    return bool(taken)


def tidied(said: PolicySaid) -> PolicySaid:
    """As it is kept: one line, thresholds that differ, calendars as they are spelt. What is wrong stays as it is, for `check` to say."""
    try:
        code = normal_holidays(said.holidays)
    except UnknownCalendar:
        code = said.holidays
    known = all(name in BY_NAME for name in said.limits)
    return replace(
        said,
        name=one_line(said.name)[:80],
        holidays=code,
        limits=differing(said.limits) if known else said.limits,
        warn_minutes=tuple(sorted(set(said.warn_minutes), reverse=True)),
        office_days=tuple(sorted(set(said.office_days))),
    )


@contextmanager
def locked(team: Team) -> Iterator[None]:
    """Until the transaction ends nobody else writes policies of the team."""
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        yield


def _standing(team: Team, policy: IdlePolicy) -> IdlePolicy:
    rows = IdlePolicy.objects.select_for_update(of=("self",)).select_related("project", "account", "team")
    row = rows.get(pk=policy.pk, team=team)
    if row.removed_at is not None:
        raise ValidationError(_("This policy was removed meanwhile. Add a new one."))
    return row


def _add(actor: Actor, team: Team, said: PolicySaid, now: datetime) -> IdlePolicy:
    standing = IdlePolicy.objects.filter(team=team, removed_at=None)
    if standing.count() >= MOST_POLICIES:
        raise ValidationError(_("At most %(n)d policies fit. Remove one first.") % {"n": MOST_POLICIES})
    last = standing.aggregate(last=Max("position"))["last"] or 0
    row = IdlePolicy.objects.create(
        team=team, position=last + STEP, created_by=actor.user, created_at=now, changed_at=now, **said.columns()
    )
    row.excluded.set(said.excluded)
    record(actor=actor, team=team, action="idle_policy.add", target=row, new=said.plain())
    return row


def _change(actor: Actor, row: IdlePolicy, before: PolicySaid, said: PolicySaid, now: datetime) -> None:
    changed = {**said.columns(), "changed_at": now, "revision": row.revision + 1}
    if said.differs(before, LEARNED_FOR):
        changed |= NO_RECOMMENDATION
    if said.differs(before, AGREED_TO) and row.delete_consent_at is not None:
        take_back_consent(actor=actor, policy=row, now=now)
        changed |= {"delete_consent_at": None, "delete_consent_by": None}
    for name, value in changed.items():
        setattr(row, name, value)
    row.save(update_fields=list(changed))
    row.excluded.set(said.excluded)
    old, new = before.plain(), said.plain()
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    record(
        actor=actor,
        team=row.team,
        action="idle_policy.change",
        target=row,
        old={name: old.get(name) for name in names},
        new={name: new.get(name) for name in names},
    )
