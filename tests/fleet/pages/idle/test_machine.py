"""Beside a machine: whether it is idle and why, and the stop under way."""

from __future__ import annotations

import html
import re
from datetime import timedelta

from django.utils import timezone

from tests.fleet.pages.conftest import HELD

LOW = {"code": "utilization", "subject": "", "value": 0.0, "limit": 2.0}


def panel(client, machine):
    body = client.get(f"/t/acme/instances/{machine.pk}/").content.decode()
    found = re.search(r'<section class="panel idle-why".*?</section>', body, re.DOTALL)
    return found[0] if found else ""


def text_of(markup):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def test_it_says_the_verdict_and_its_reasons(bob, as_user, make_machine, judged, policy):
    machine = make_machine(readings=[HELD])
    judged(machine, because=[LOW], policy=policy)
    said = text_of(panel(as_user(bob), machine))
    assert said.startswith("Idle since")
    assert "GPUs read 0 % in every reading" in said
    assert "Judged over 1 h." in said


def test_what_is_not_judged_says_so(bob, as_user, make_machine):
    said = text_of(panel(as_user(bob), make_machine(readings=[HELD])))
    assert "Not judged yet" in said
    assert "What is not judged is never stopped." in said


def test_a_stop_under_way_can_be_answered_there(bob, vera, as_user, make_machine, stop_of, plan_of):
    machine = make_machine(readings=[HELD])
    stop = stop_of(machine, "grace", deadline=timezone.now() + timedelta(minutes=20))
    plan_of(machine)
    found = panel(as_user(bob), machine)
    assert "data-left=" in found
    assert found.count('name="back" value="machine"') == 3
    assert f"/t/acme/idle/stops/{stop.pk}/veto/" in found
    assert "Planned: stop" in found
    assert "<form" not in panel(as_user(vera), machine)


def test_it_is_renewed_with_the_page(bob, as_user, make_machine, stop_of):
    machine = make_machine(readings=[HELD])
    address = f"/t/acme/instances/{machine.pk}/pulse/"
    assert "To be stopped" not in as_user(bob).get(address).content.decode()
    stop_of(machine, "grace", deadline=timezone.now() + timedelta(minutes=20))
    body = as_user(bob).get(address).content.decode()
    assert 'id="idle" hx-swap-oob="true"' in body
    assert "To be stopped" in body


def test_a_machine_that_is_gone_has_no_such_panel(bob, as_user, make_machine):
    assert panel(as_user(bob), make_machine(readings=[HELD], gone_at=timezone.now())) == ""
