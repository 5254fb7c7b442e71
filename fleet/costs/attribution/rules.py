"""The team's rules: added, changed, moved and ended by people. No rule is ever rewritten, so that each span names what decided it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from fleet.costs.attribution.models import AttributionRule, SplitMode
from fleet.costs.attribution.reading import rules_in_force
from fleet.costs.attribution.sync import lock_attribution, sync_attribution
from fleet.inventory.machine_forms import MAX_LABELS
from fleet.inventory.models import ProviderAccount
from fleet.teams.audit import Actor, record
from fleet.teams.models import Membership, Project, Team, User

MOST_RULES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSaid:
    """A rule as a person describes it: conditions, then what its machines get."""

    name_pattern: str = ""
    account: ProviderAccount | None = None
    label_key: str = ""
    label_value: str = ""
    project: Project | None = None
    owner: User | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    split: str = SplitMode.WHOLE

    @classmethod
    def of(cls, rule: AttributionRule) -> RuleSaid:
        return cls(**{name: getattr(rule, name) for name in cls.__dataclass_fields__})

    def fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@transaction.atomic
def add_rule(*, actor: Actor, team: Team, said: RuleSaid, now: datetime) -> AttributionRule:
    """Comes last, and holds from the present hour on. Raises ValidationError, by field."""
    lock_attribution(team)
    check_rule(team=team, said=said)
    present = list(rules_in_force(team))
    if len(present) >= MOST_RULES:
        raise ValidationError(_("At most %(n)d rules fit. End one first.") % {"n": MOST_RULES})
    order = present[-1].order + 1 if present else 1
    rule = begin(team, order, said, actor=actor, now=now)
    record(actor=actor, team=team, action="attribution_rule.add", target=rule, new=plain(rule))
    sync_attribution(team=team, now=now)
    return rule


@transaction.atomic
def change_rule(*, actor: Actor, rule: AttributionRule, said: RuleSaid, now: datetime) -> AttributionRule | None:
    """Ends the rule and begins another one in its place. None: somebody ended it meanwhile. Raises ValidationError, by field."""
    lock_attribution(rule.team)
    check_rule(team=rule.team, said=said)
    if not end(rule, actor=actor, now=now):
        return None
    fresh = begin(rule.team, rule.order, said, actor=actor, now=now, replaces=rule)
    record(
        actor=actor,
        team=rule.team,
        action="attribution_rule.change",
        target=fresh,
        old=plain(rule),
        new=plain(fresh),
    )
    sync_attribution(team=rule.team, now=now)
    return fresh


@transaction.atomic
def end_rule(*, actor: Actor, rule: AttributionRule, now: datetime) -> bool:
    """From the present hour on it decides nothing. False: it had ended already."""
    lock_attribution(rule.team)
    if not end(rule, actor=actor, now=now):
        return False
    record(actor=actor, team=rule.team, action="attribution_rule.end", target=rule, old=plain(rule))
    sync_attribution(team=rule.team, now=now)
    return True


@transaction.atomic
def move_rule(*, actor: Actor, rule: AttributionRule, up: bool, now: datetime) -> bool:
    """Changes places with the rule before (`up`) or after it. False: there is none, or the rule had ended."""
    lock_attribution(rule.team)
    present = list(rules_in_force(rule.team))
    at = next((index for index, one in enumerate(present) if one.pk == rule.pk), None)
    if at is None or not 0 <= (other_at := at - 1 if up else at + 1) < len(present):
        return False
    swap(present[at], present[other_at], actor=actor, now=now)
    record(
        actor=actor,
        team=rule.team,
        action="attribution_rule.move",
        target=rule,
        old={"order": rule.order},
        new={"order": present[other_at].order},
    )
    sync_attribution(team=rule.team, now=now)
    return True


def swap(one: AttributionRule, other: AttributionRule, *, actor: Actor, now: datetime) -> None:
    for rule in (one, other):
        end(rule, actor=actor, now=now)
    for rule, order in ((one, other.order), (other, one.order)):
        begin(rule.team, order, RuleSaid.of(rule), actor=actor, now=now, replaces=rule)


def begin(
    team: Team,
    order: int,
    said: RuleSaid,
    *,
    actor: Actor,
    now: datetime,
    replaces: AttributionRule | None = None,
) -> AttributionRule:
    return AttributionRule.objects.create(
        team=team, order=order, created_by=actor.user, created_at=now, replaces=replaces, **said.fields()
    )


def end(rule: AttributionRule, *, actor: Actor, now: datetime) -> bool:
    rows = AttributionRule.objects.filter(pk=rule.pk, ended_at=None)
    return bool(rows.update(ended_at=now, ended_by=actor.user))


def check_rule(*, team: Team, said: RuleSaid) -> None:
    """Raises ValidationError, by field."""
    check_whose(team=team, project=said.project, owner=said.owner)
    if said.account is not None and said.account.team_id != team.pk:
        raise ValidationError({"account": _("Choose a provider account of this team.")})
    if said.label_value and not said.label_key:
        raise ValidationError({"label_key": _("Name the label that has this value, or leave both empty.")})
    if len(said.labels) > MAX_LABELS:
        raise ValidationError({"labels": _("At most %(n)d labels fit.") % {"n": MAX_LABELS}})
    if not (said.project or said.owner or said.labels or said.split != SplitMode.WHOLE):
        raise ValidationError(
            {"project": _("The rule gives its machines nothing: choose a project, an owner or labels.")}
        )


def check_whose(*, team: Team, project: Project | None, owner: User | None, past: bool = False) -> None:
    """Money goes to people who are members, and to projects that are not archived; money of the `past` to archived ones, too."""
    if project is not None and (project.team_id != team.pk or (project.archived_at and not past)):
        raise ValidationError({"project": _("Choose a project of this team that is not archived.")})
    if owner is not None and not Membership.objects.filter(team=team, user=owner).exists():
        raise ValidationError({"owner": _("Choose a member of this team.")})


def plain(rule: AttributionRule) -> dict[str, object]:
    """JSON-ready, for the audit log."""
    values = {name: getattr(rule, name) for name in ("order", *RuleSaid.__dataclass_fields__)}
    return {name: value if isinstance(value, int | dict) else str(value or "") for name, value in values.items()}


def rules_of(team: Team) -> Sequence[AttributionRule]:
    return list(rules_in_force(team).select_related("project", "owner", "account", "created_by"))
