"""The page of costs asks the same number of questions of a small fleet and of a large one, in every section of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.costs.balances.models import BalanceReading, BalanceSource
from fleet.costs.bills.models import Reconciliation
from fleet.costs.budgets.models import Budget
from fleet.inventory.models import Hold, ProviderAccount
from fleet.inventory.plans.models import PlannedAction
from fleet.states import GpuState
from fleet.teams.models import Project
from tests.fleet.costs.november import NOW, november, on
from tests.fleet.costs.seeding import spend_on

PAGE = "/t/acme/costs/"
SECTIONS = ("forecast", "parts-title", "went", "nothing", "wasters", "runway", "budgets", "reconcile")


@pytest.fixture
def grow(acme, alice, make_instance, charge, summed, time_machine):
    """grow(3) adds three of everything that the page is made from."""
    time_machine.move_to(NOW, tick=False)
    made: list[int] = []

    def add(count: int) -> None:
        for number in range(len(made), len(made) + count):
            made.append(number)
            account = ProviderAccount.objects.create(team=acme, kind="aws", name=f"a{number}")
            project = Project.objects.create(team=acme, name=f"p{number}", slug=f"p{number}")
            rent(account, project, number)
            Budget.objects.create(team=acme, name=f"b{number}", amount=100 + number, currency="USD", project=project)
            BalanceReading.objects.create(
                account=account, at=november(2 + number), amount=1000, currency="USD", source=BalanceSource.TYPED
            )
            compared(account)

    def compared(account: ProviderAccount) -> None:
        amounts = {"counted": 100, "billed": 103, "explained": 0, "left": 3, "matched": 90}
        Reconciliation.objects.create(
            account=account, month=on(1), currency="USD", matched_lines=2, made_at=NOW, **amounts
        )

    def rent(account: ProviderAccount, project: Project, number: int) -> None:
        """One machine that goes on, and one that is leased, held and about to be stopped."""
        for word, expires_at in (("goes", None), ("ends", november(20))):
            machine = make_instance(
                name=f"{word}-{number}", external_id=f"{word}-{number}", account=account, gpus=1, expires_at=expires_at
            )
            charge(machine, "2", since=november(2))
            charge(machine, "0.1", kind="disk_running", unit="gb_month", quantity=100)
            for day in (3, 4):
                spend_on(acme, on(day), "48", instance=machine, project=project, owner=alice, state=GpuState.FREE)
        PlannedAction.objects.create(
            team=acme, instance=machine, verb="stop", due_at=november(18), source="test", reason="test", notified_at=NOW
        )
        Hold.objects.create(instance=machine, kind="job", expires_at=NOW + timedelta(days=1))

    return add


@pytest.mark.parametrize("query", ["", "?by=owner", "?by=machine", "?by=state"])
def test_their_number_does_not_grow(grow, vera, as_user, query):
    client = as_user(vera)

    def count() -> int:
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            page = client.get(PAGE + query).content.decode()
        for section in SECTIONS:
            assert f'id="{section}"' in page
        return len(queries)

    grow(2)
    count()  # what is loaded once a process
    sizes = [count()]
    for more in (3, 7):
        grow(more)
        sizes.append(count())
    assert len(set(sizes)) == 1, sizes
