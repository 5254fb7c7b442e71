"""The number of queries must not grow with the fleet."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from .conftest import HELD, WORKING

PAGES = ("/t/acme/", "/t/acme/pulse/", "/t/acme/states/", "/t/acme/instances/", "/t/acme/instances.csv")


def queries(client, address):
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


@pytest.mark.parametrize("address", PAGES)
def test_ten_machines_cost_as_many_queries_as_one(address, alice, as_user, make_machine, project):
    client = as_user(alice)
    make_machine(name="m0", readings=[WORKING, HELD], project=project, owner=alice)
    queries(client, address)  # what is loaded once a process
    from django.core.cache import cache

    cache.clear()
    one = queries(client, address)
    for number in range(1, 10):
        make_machine(name=f"m{number}", readings=[WORKING, HELD], project=project, owner=alice)
    cache.clear()
    assert queries(client, address) == one
