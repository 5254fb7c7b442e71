"""Judges budgets and writes what comes of it: crossings, alerts, blocks, plans, in one transaction under a lock on the budget.

Everything is brought to what must be, not changed by what happened: a judge that died is followed by the next, and two at once take turns.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.findings import NOTE, URGENT, WARNING
from fleet.alerts.models import Signal
from fleet.costs.budgets.acting import BUDGETS, close, reopen
from fleet.costs.budgets.judge import SPENT, WHOLE, Measure, Spent, Threshold, Verdict, judge_budget
from fleet.costs.budgets.measuring import Outlook, limits_of, outlook_of, period_of, spent_of, used_of
from fleet.costs.budgets.models import Budget, Crossing
from fleet.costs.budgets.periods import Period
from fleet.costs.budgets.words import REACHED, values_of
from fleet.teams.audit import record

logger = logging.getLogger(__name__)
MOST = 80
RELATED = ("team", "project", "owner", "account")


@dataclass(frozen=True, slots=True)
class Measured:
    period: Period
    spent: Spent
    outlook: Outlook


def judge_all(*, now: datetime) -> int:
    """Returns how many thresholds were reached. One budget that cannot be judged keeps no other from it."""
    reached = 0
    for pk in Budget.objects.filter(removed_at=None).order_by("pk").values_list("pk", flat=True):
        try:
            reached += len(judge_one(budget_id=pk, now=now).fired)
        except Exception:
            logger.exception("The budget %d could not be judged", pk)
    return reached


def judge_one(*, budget_id: int, now: datetime) -> Verdict:
    budget = Budget.objects.select_related(*RELATED).get(pk=budget_id)
    used = used_of([budget], now)[budget.pk]
    outlook = outlook_of(budget, used.amount, now)
    with transaction.atomic():
        locked = Budget.objects.select_for_update(of=("self",)).select_related(*RELATED).get(pk=budget_id)
        if locked.removed_at is not None or locked.revision != budget.revision:
            # Whoever changed it judges it anew.
            return Verdict()
        locked.judged_at, locked.outlook = now, outlook.kept(period_of(locked, now))
        locked.save(update_fields=["judged_at", "outlook"])
        return _judge(locked, Measured(period_of(locked, now), spent_of(locked, used, now), outlook), now)


def _judge(budget: Budget, measured: Measured, now: datetime) -> Verdict:
    rows = {
        Threshold(Measure(row.basis), row.percent): row
        for row in Crossing.objects.filter(budget=budget, period_from=measured.period.first, revision=budget.revision)
    }
    known = {threshold: row.fell_back_at is None for threshold, row in rows.items()}
    verdict = judge_budget(limits_of(budget, measured.period), measured.spent, measured.outlook.forecast, known, now)
    for threshold in verdict.fired:
        rows[threshold] = _cross(budget, threshold, measured, now)
    for threshold in verdict.fell_back:
        _set_fallen(rows[threshold], now)
    for threshold in verdict.again:
        _set_fallen(rows[threshold], None)
    _tell(budget, verdict, measured, now)
    if verdict.blocks:
        close(budget, since=rows[SPENT].at, values=values_of(budget, measured.period), now=now)
    else:
        reopen(budget, now=now)
    return verdict


def _cross(budget: Budget, threshold: Threshold, measured: Measured, now: datetime) -> Crossing:
    row = Crossing.objects.create(
        budget=budget,
        period_from=measured.period.first,
        revision=budget.revision,
        basis=threshold.basis,
        percent=threshold.percent,
        at=now,
        amount=budget.amount,
        currency=budget.currency,
        spent=measured.spent.amount,
        will_end=measured.outlook.will_end,
    )
    new = {"percent": threshold.percent, "basis": threshold.basis, "amount": str(measured.spent.amount)}
    record(actor=BUDGETS, team=budget.team, action="budget.cross", target=budget, new=new)
    return row


def _set_fallen(row: Crossing, at: datetime | None) -> None:
    row.fell_back_at = at
    row.save(update_fields=["fell_back_at"])


def subject_of_budget(budget: Budget) -> str:
    return f"budget:{budget.pk}"


def signal_of(threshold: Threshold) -> str:
    return f"budget:{threshold.basis}:{threshold.percent}"


def severity_of(threshold: Threshold) -> str:
    if threshold.percent >= WHOLE:
        return WARNING if threshold.basis is Measure.FORECAST else URGENT
    return WARNING if threshold.percent >= MOST and threshold.basis is Measure.ACTUAL else NOTE


def _tell(budget: Budget, verdict: Verdict, measured: Measured, now: datetime) -> None:
    """The worst first: what is reached at once is one message."""
    will_end = "" if measured.outlook.forecast is None else str(measured.outlook.forecast)
    for threshold in sorted(verdict.standing, key=lambda one: (-one.percent, one.basis)):
        raise_event(
            team=budget.team,
            cause=REACHED,
            subject=subject_of_budget(budget),
            severity=severity_of(threshold),
            signal=signal_of(threshold),
            account=budget.account,
            values=values_of(
                budget,
                measured.period,
                basis=threshold.basis,
                percent=threshold.percent,
                spent=str(measured.spent.amount),
                will_end=will_end,
                blocks=verdict.blocks,
            ),
            now=now,
        )
    _clear_others(budget, {signal_of(threshold) for threshold in verdict.standing}, now)


def _clear_others(budget: Budget, standing_signals: set[str], now: datetime) -> None:
    open_kinds = Signal.objects.filter(
        alert__team=budget.team_id, alert__cause=REACHED, alert__subject=subject_of_budget(budget), cleared_at=None
    ).values_list("kind", flat=True)
    for kind in sorted(set(open_kinds) - standing_signals):
        clear_event(team=budget.team, cause=REACHED, subject=subject_of_budget(budget), signal=kind, now=now)
