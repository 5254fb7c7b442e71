"""How many operations are in hand at once, as the product is installed: no account takes all of the places."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.inventory.accounts import create_account
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.requests import request_launch
from fleet.inventory.operations.tasks import dispatch_operations, drive_operation
from fleet.providers.base import CreateSpec


@pytest.fixture
def sent(monkeypatch) -> list[int]:
    ids: list[int] = []
    monkeypatch.setattr(drive_operation, "apply_async", lambda args, **_more: ids.append(args[0]))
    return ids


def test_an_account_whose_provider_hangs_leaves_places_to_the_others(rented, acme, by_alice, driver, sent):
    other = create_account(
        actor=by_alice, team=acme, kind="liar", name="Other", values={"key": "k"}, monitor_only=False
    )
    hanging = [order(by_alice, rented) for _ in range(6)]
    driver.wait(1)
    dispatch_operations()
    in_hand = set(sent)
    assert 0 < len(in_hand) < len(hanging)
    Operation.objects.filter(pk__in=in_hand).update(claimed_until=driver.now + timedelta(minutes=3))
    waiting = order(by_alice, other)
    driver.wait(1)
    sent.clear()
    dispatch_operations()
    assert sent == [waiting.pk]


def order(actor, account) -> Operation:
    return request_launch(actor=actor, account=account, spec=CreateSpec(name="t", offer_id="h100x8"), offer={})
