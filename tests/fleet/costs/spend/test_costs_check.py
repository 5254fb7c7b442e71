"""`manage.py costs_check`: says which sums do not agree, and has them made again."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from fleet.costs.spend.models import CostMonth
from fleet.costs.spend.roll import sum_costs
from fleet.costs.spend.tasks import sum_days
from tests.fleet.costs.spend.ledger_rows import at, charged

NOON = at("2026-05-10 12:00")


@pytest.fixture
def summed(acme, make_instance):
    charged(make_instance(name="train-01"), "compute", at("2026-05-08 00:00"), at("2026-05-09 00:00"), "1")
    sum_costs(now=NOON)


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("costs_check", *arguments, stdout=out)
    return out.getvalue()


def test_sums_that_agree(summed):
    assert told() == "acme: all sums agree\n"


def test_sums_that_do_not_are_an_error_until_they_are_made_again(summed):
    CostMonth.objects.update(amount=7)
    with pytest.raises(CommandError, match="1 sums do not agree"):
        told("acme")
    assert "cost_month 2026-05-01" in told("acme", "--sum-again")
    sum_days()
    assert told() == "acme: all sums agree\n"


def test_a_team_that_is_not_there(summed):
    with pytest.raises(CommandError, match="no team nobody"):
        told("nobody")
