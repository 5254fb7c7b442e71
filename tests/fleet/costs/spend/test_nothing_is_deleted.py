"""Whom money belongs to, and what cost it, cannot be deleted from under it; a whole team can."""

from __future__ import annotations

from datetime import date

import pytest
from django.db.models import RestrictedError

from fleet.costs.spend.models import CostDay
from tests.fleet.costs.seeding import spend_on


@pytest.fixture
def money(acme, account, bob, project, make_instance):
    machine = make_instance()
    spend_on(acme, date(2026, 11, 3), 100, account=account, instance=machine, project=project, owner=bob)
    return {"account": account, "project": project, "owner": bob, "machine": machine}


@pytest.mark.parametrize("name", ["account", "project", "owner", "machine"])
def test_what_money_is_of_stays(money, name):
    with pytest.raises(RestrictedError):
        money[name].delete()
    assert CostDay.objects.count() == 1


def test_a_team_goes_with_its_money(money, acme):
    acme.delete()
    assert not CostDay.objects.exists()
