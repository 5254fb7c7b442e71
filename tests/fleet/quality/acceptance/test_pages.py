"""The machine's page and the page of its reports."""

from __future__ import annotations

import pytest

from fleet.quality.models import AcceptanceReport
from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.models import Agent
from tests.fleet.quality.acceptance.conftest import NOW
from tests.fleet.quality.acceptance.machines import with_cards

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]


@pytest.fixture
def at_noon(time_machine):
    time_machine.move_to(NOW, tick=False)


@pytest.fixture
def page(rented):
    return f"/t/acme/instances/{rented.pk}/"


def test_the_machines_page_says_how_its_test_went(client, alice, page, tested) -> None:
    client.force_login(alice)
    assert "Not tested yet" in client.get(page).text
    tested(with_cards({}, {"pcie_width": 8}))
    text = client.get(page).text
    assert "Short of what was promised" in text
    assert "PCI Express lanes: x8 of x16" in text
    assert f"{page}acceptance/" in text


def test_the_report_shows_every_figure_and_text_to_send(client, alice, page, tested) -> None:
    report = tested(with_cards({}, {"pcie_width": 8}))
    client.force_login(alice)
    text = client.get(f"{page}acceptance/").text
    assert "x8" in text
    assert "Test of a rented machine" in text
    assert text.count("data-copy") >= 1
    assert client.get(f"{page}acceptance/?report={report.pk}").status_code == 200
    assert client.get(f"{page}acceptance/?report=999999").status_code == 404
    assert client.get(f"{page}acceptance/?report=x").status_code == 404


def test_what_machines_say_is_escaped(client, alice, page, tested) -> None:
    tested({**with_cards({"name": "<script>alert(1)</script>"}), "not_measured": {"<b>x</b>": "<i>why</i>"}})
    client.force_login(alice)
    text = client.get(f"{page}acceptance/").text
    assert "<script>alert(1)" not in text
    assert "<i>why" not in text
    assert "<b>x</b>" not in text


def test_an_operator_asks_and_sees_that_it_is_asked_for(client, alice, page) -> None:
    client.force_login(alice)
    assert client.get(f"{page}acceptance/ask/").status_code == 405
    assert not AgentAction.objects.exists()
    answer = client.post(f"{page}acceptance/ask/", {"when_busy": "on"}, follow=True)
    assert "A test is asked for" in answer.text
    action = AgentAction.objects.get()
    assert (action.asked_by, action.options["when_busy"]) == (alice, True)
    again = client.post(f"{page}acceptance/ask/", follow=True)
    assert "asked for already" in again.text
    assert AgentAction.objects.count() == 1


def test_a_silent_agent_is_explained(client, alice, page) -> None:
    Agent.objects.update(actions=[])
    client.force_login(alice)
    assert "does not offer the test" in client.get(f"{page}acceptance/").text
    assert "silent" in client.post(f"{page}acceptance/ask/", follow=True).text


def test_a_try_that_failed_is_told(client, alice, page, rented) -> None:
    AgentAction.objects.create(
        instance=rented, name="accept", state="failed", expires_at=NOW, detail="its GPUs work: nothing was tested"
    )
    client.force_login(alice)
    assert "its GPUs work" in client.get(page).text
    assert "its GPUs work" in client.get(f"{page}acceptance/").text


def test_another_team_sees_none_of_it(client, charlie, page, tested) -> None:
    tested()
    client.force_login(charlie)
    assert client.get(f"{page}acceptance/").status_code == 404
    assert client.post(f"{page}acceptance/ask/").status_code == 404
    assert AcceptanceReport.objects.count() == 1
    assert AgentAction.objects.count() == 1
