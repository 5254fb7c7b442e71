"""A budget of acme on 17 November at noon, and money spent on it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.costs.budgets.judging import judge_one
from fleet.costs.budgets.manage import BudgetWords, add_budget
from fleet.teams.audit import Actor
from tests.fleet.costs.seeding import spend_on

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
TODAY = date(2026, 11, 17)


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def by_alice(alice):
    return Actor(alice, "alice", "page")


@pytest.fixture
def budget(acme, by_alice, clock, account):
    """budget(hard=True) is one of $1,000 for this month, judged once."""

    def add(amount="1000", **words):
        said = BudgetWords(amount=Decimal(amount), **{"currency": "USD", "forecast_thresholds": (), **words})
        return add_budget(actor=by_alice, team=acme, words=said, now=NOON)

    return add


@pytest.fixture
def spent(acme, account):
    """spent(500) was spent today."""

    def spend(amount, day=TODAY, **more):
        return spend_on(acme, day, amount, account=account, **more)

    return spend


@pytest.fixture
def judge():
    """judge(budget, hours=3) judges it so much later than noon."""

    def again(budget, hours=0.0):
        return judge_one(budget_id=budget.pk, now=NOON + timedelta(hours=hours))

    return again
