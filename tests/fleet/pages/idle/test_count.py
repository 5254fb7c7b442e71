"""The badge of the rail counts machines that are idle, or that are being stopped."""

from __future__ import annotations

import re
from datetime import timedelta

from django.utils import timezone


def badge(client):
    found = re.search(
        r'id="count-idle" aria-label="\d+ idle or being stopped"( hidden)?>(\d+)<',
        client.get("/t/acme/operations/").content.decode(),
    )
    assert found is not None
    return int(found[2]), bool(found[1])


def test_idle_machines_and_stops_under_way_are_counted_once(alice, as_user, make_instance, judged, stop_of):
    idle, stopping, busy = (make_instance(name=name, gpus=1) for name in ("idle", "stopping", "busy"))
    judged(idle)
    judged(busy, "active")
    stop_of(idle, "grace")
    stop_of(stopping, "verifying")
    stop_of(busy, "watching")
    assert badge(as_user(alice)) == (2, False)


def test_what_ended_and_what_is_gone_does_not_count(alice, as_user, make_instance, judged, stop_of):
    gone = make_instance(name="gone", gone_at=timezone.now() - timedelta(hours=1))
    judged(gone)
    stop_of(make_instance(name="done"), "stopped")
    assert badge(as_user(alice)) == (0, True)


def test_another_team_sees_none_of_it(charlie, as_user, make_instance, judged):
    judged(make_instance(gpus=1))
    html = as_user(charlie).get("/t/rival/operations/").content.decode()
    assert re.search(r'id="count-idle"[^>]* hidden>0<', html)


def test_the_overview_says_how_many_stops_are_under_way(alice, as_user, make_instance, stop_of):
    client = as_user(alice)
    assert "idle stop under way" not in client.get("/t/acme/pulse/").content.decode()
    stop_of(make_instance(gpus=1), "grace")
    assert "1 idle stop under way" in client.get("/t/acme/pulse/").content.decode()
