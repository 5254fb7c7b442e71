"""Budgets are added, changed and removed. Each is judged at once, so that what it closes or opens does not wait for the next round."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from fleet.alerts.door import clear_event
from fleet.costs.budgets.acting import reopen
from fleet.costs.budgets.judge import WHOLE
from fleet.costs.budgets.judging import RELATED, judge_one, subject_of_budget
from fleet.costs.budgets.models import Budget, BudgetPeriod
from fleet.costs.budgets.words import REACHED
from fleet.inventory.models import ProviderAccount
from fleet.teams.audit import Actor, record
from fleet.teams.fields import one_line
from fleet.teams.models import Membership, Project, Team, User

CURRENCY = re.compile(r"[A-Z]{3}")
MOST_THRESHOLDS, MOST_PERCENT = 10, 1000
LONGEST = timedelta(days=3 * 366)
MOST_NOTICE_HOURS = 720
MOST_AMOUNT = Decimal(10) ** 12


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetWords:
    """What a person says of a budget. Of a project, a person or an account; with none of them, of the whole team."""

    amount: Decimal
    currency: str
    name: str = ""
    project: Project | None = None
    owner: User | None = None
    account: ProviderAccount | None = None
    period: str = BudgetPeriod.MONTH
    starts_on: date | None = None
    ends_on: date | None = None
    actual_thresholds: Sequence[int] = (50, 80, WHOLE)
    forecast_thresholds: Sequence[int] = (WHOLE,)
    hard: bool = False
    stops: bool = False
    notice_hours: int = 24

    def fields(self, team: Team) -> dict[str, Any]:
        """As they are stored: named, sorted, and a hard one with the threshold at which it closes."""
        actual = {*self.actual_thresholds, *([WHOLE] if self.hard else [])}
        return {
            **{name: getattr(self, name) for name in self.__slots__},
            "name": one_line(self.name)[:80] or self.default_name(team)[:80],
            "actual_thresholds": sorted(actual),
            "forecast_thresholds": sorted(set(self.forecast_thresholds)),
        }

    def default_name(self, team: Team) -> str:
        if self.owner is not None:
            return self.owner.display_name
        return str(self.project or self.account or team)


def add_budget(*, actor: Actor, team: Team, words: BudgetWords, now: datetime) -> Budget:
    """Raises ValidationError by field."""
    check(team, words)
    budget = Budget(team=team, created_by=actor.user, created_at=now, changed_at=now, **words.fields(team))
    with transaction.atomic():
        _save(budget, force_insert=True)
        record(actor=actor, team=team, action="budget.add", target=budget, new=said(budget))
    judge_one(budget_id=budget.pk, now=now)
    return budget


def update_budget(*, actor: Actor, budget: Budget, words: BudgetWords, now: datetime) -> Budget:
    """What is not different is no change; any change arms all thresholds anew. Raises ValidationError by field, also where it was removed."""
    check(budget.team, words)
    wanted = words.fields(budget.team)
    with transaction.atomic():
        row = Budget.objects.select_for_update(of=("self",)).select_related(*RELATED).get(pk=budget.pk)
        if row.removed_at is not None:
            raise ValidationError(_("This budget was removed. Add a new one."))
        before = said(row)
        for name, value in wanted.items():
            setattr(row, name, value)
        after = said(row)
        if before == after:
            return row
        row.revision, row.changed_at = row.revision + 1, now
        _save(row)
        old = {name: value for name, value in before.items() if after[name] != value}
        record(
            actor=actor,
            team=row.team,
            action="budget.update",
            target=row,
            old=old,
            new={name: after[name] for name in old},
        )
    judge_one(budget_id=row.pk, now=now)
    return row


@transaction.atomic
def remove_budget(*, actor: Actor, budget: Budget, now: datetime) -> bool:
    """Lifts what it blocks and calls off what it planned; what was reached stays on record. False when it was removed already."""
    row = Budget.objects.select_for_update(of=("self",)).select_related(*RELATED).get(pk=budget.pk)
    if row.removed_at is not None:
        return False
    row.removed_at = now
    row.save(update_fields=["removed_at"])
    reopen(row, now=now)
    clear_event(team=row.team, cause=REACHED, subject=subject_of_budget(row), now=now, why="removed")
    record(actor=actor, team=row.team, action="budget.remove", target=row, old=said(row))
    return True


def said(budget: Budget) -> dict[str, Any]:
    """JSON-ready, as the audit log keeps it."""
    about = budget.project or budget.account or (budget.owner.display_name if budget.owner else None)
    return {
        "name": budget.name,
        "about": str(about or budget.team),
        "amount": f"{budget.amount:.2f}",
        "currency": budget.currency,
        "period": f"{budget.starts_on} – {budget.ends_on}" if budget.starts_on else "",
        "thresholds": ", ".join(f"{percent} %" for percent in budget.actual_thresholds),
        "forecast_thresholds": ", ".join(f"{percent} %" for percent in budget.forecast_thresholds),
        "hard": budget.hard,
        "stops": budget.stops,
        "notice_hours": budget.notice_hours,
    }


def check(team: Team, words: BudgetWords) -> None:
    for part in (_check_scope, _check_amount, _check_period, _check_thresholds, _check_hard):
        part(team, words)


def _check_scope(team: Team, words: BudgetWords) -> None:
    named = [name for name in ("project", "owner", "account") if getattr(words, name) is not None]
    if len(named) > 1:
        raise ValidationError({named[1]: _("A budget is of one project, one person or one account. Add one for each.")})
    if words.project is not None and words.project.team_id != team.pk:
        raise ValidationError({"project": _("Choose a project of this team.")})
    if words.account is not None and words.account.team_id != team.pk:
        raise ValidationError({"account": _("Choose a provider account of this team.")})
    if words.owner is not None and not Membership.objects.filter(team=team, user=words.owner).exists():
        raise ValidationError({"owner": _("Choose a member of this team.")})


def _check_amount(_team: Team, words: BudgetWords) -> None:
    if not 0 < words.amount < MOST_AMOUNT:
        raise ValidationError({"amount": _("Type an amount above zero.")})
    if not CURRENCY.fullmatch(words.currency):
        raise ValidationError({"currency": _("Type the three letters of a currency, as in USD.")})


def _check_period(_team: Team, words: BudgetWords) -> None:
    if words.period == BudgetPeriod.MONTH:
        for name in ("starts_on", "ends_on"):
            if getattr(words, name) is not None:
                raise ValidationError(
                    {name: _("A month needs no days. Choose “from a day until another” to name them.")}
                )
        return
    if words.starts_on is None or words.ends_on is None:
        name = "starts_on" if words.starts_on is None else "ends_on"
        raise ValidationError({name: _("Name the first day, and the day on which it is over.")})
    if not timedelta(0) < words.ends_on - words.starts_on <= LONGEST:
        raise ValidationError({"ends_on": _("Choose a day after the first, at most three years later.")})


def _check_thresholds(_team: Team, words: BudgetWords) -> None:
    for name in ("actual_thresholds", "forecast_thresholds"):
        percents = getattr(words, name)
        if len(set(percents)) > MOST_THRESHOLDS or any(not 0 < percent <= MOST_PERCENT for percent in percents):
            raise ValidationError({name: _("Name up to ten thresholds, from 1 to 1000 percent.")})
    if not words.actual_thresholds and not words.forecast_thresholds:
        raise ValidationError({"actual_thresholds": _("Name at least one threshold, or nobody is told anything.")})


def _check_hard(_team: Team, words: BudgetWords) -> None:
    if words.stops and not words.hard:
        raise ValidationError({"stops": _("Only a hard budget plans stops.")})
    if not 1 <= words.notice_hours <= MOST_NOTICE_HOURS:
        raise ValidationError({"notice_hours": _("Choose from 1 to 720 hours.")})


def _save(budget: Budget, *, force_insert: bool = False) -> None:
    try:
        with transaction.atomic():
            budget.save(force_insert=force_insert)
    except IntegrityError:
        raise ValidationError({"name": _("There is a budget of this name already.")}) from None
