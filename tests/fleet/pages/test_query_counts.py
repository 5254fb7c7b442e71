"""The number of queries must not grow with the fleet."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.alerts.door import raise_event

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
    cache.clear()
    one = queries(client, address)
    for number in range(1, 10):
        make_machine(name=f"m{number}", readings=[WORKING, HELD], project=project, owner=alice)
    cache.clear()
    assert queries(client, address) == one


def test_ten_alerts_cost_as_many_queries_as_one(acme, alice, as_user, make_machine):
    client = as_user(alice)
    counts = []
    for numbers in (range(1), range(1, 10)):
        for number in numbers:
            machine = make_machine(name=f"m{number}", readings=[WORKING])
            subject = f"instance:{machine.pk}"
            raise_event(
                team=acme, cause="gpu.lost", subject=subject, severity="urgent", instance=machine, now=timezone.now()
            )
        queries(client, "/t/acme/pulse/")
        cache.clear()
        counts.append(queries(client, "/t/acme/pulse/"))
    assert counts[0] == counts[1]


def test_eight_gpus_cost_as_many_queries_as_one(alice, as_user, make_machine):
    client = as_user(alice)
    small = make_machine(name="small", readings=[WORKING])
    large = make_machine(name="large", readings=[WORKING] * 8)
    address = "/t/acme/instances/{}/"
    queries(client, address.format(small.pk))
    cache.clear()
    one = queries(client, address.format(small.pk))
    cache.clear()
    assert queries(client, address.format(large.pk)) == one


def test_a_page_that_stays_open_does_not_read_the_day_again(alice, as_user, make_machine):
    client = as_user(alice)
    machine = make_machine(readings=[WORKING])
    address = f"/t/acme/instances/{machine.pk}/pulse/"
    first = queries(client, address)
    assert queries(client, address) < first
