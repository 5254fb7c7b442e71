from __future__ import annotations

import pytest

from fleet.teams.models import AuditEntry, Team
from fleet.telemetry.models import EnrolmentToken

from .conftest import GIB, WORKING
from .reading import found


@pytest.fixture
def sandbox(account, make_machine):
    """The sandbox team with one machine that costs 100 an hour."""
    team = Team.objects.create(name="Sandbox", slug="sandbox", is_sandbox=True)
    machine = make_machine(name="sample-01", readings=[WORKING], price="100.00")
    account.pk = None
    account.team, account.name = team, "Sandbox"
    account.save()
    machine.team, machine.account = team, account
    machine.save()
    return team


@pytest.fixture
def page(alice, as_user):
    return lambda: as_user(alice).get("/t/acme/").text


def test_a_fresh_team_is_shown_three_steps(page):
    text = page()
    assert "Three steps to your own figures" in text
    assert text.count('class="num"') == 3
    assert "no provider connected yet" in text


def test_this_machine_is_alive_without_a_gpu(page, make_machine):
    make_machine(name="here", readings=[], price=None, host={"cpu_percent": 18.0, "memory_used_bytes": 11 * GIB})
    text = page()
    assert "Rackrent runs, and this machine reports" in text
    assert 'data-series-chart="cpu"' in text
    assert "none found by NVML" in text


def test_a_priced_machine_ends_the_first_run(page, make_machine):
    make_machine(readings=[WORKING])
    assert "Three steps" not in page()


def test_the_install_line_is_made_by_a_post_and_shown_once(alice, as_user):
    client = as_user(alice)
    assert client.get("/t/acme/start/install/").status_code == 405
    text = client.post("/t/acme/start/install/", headers={"HX-Request": "true"}).text
    secret = found(r"curl -fsSL http://testserver/agent/install.sh \| sh -s -- --token (rre_[\w-]+)", text)
    token = EnrolmentToken.objects.get()
    assert token.prefix == secret[: len(token.prefix)]
    assert token.max_uses == 1
    assert secret not in client.get("/t/acme/").text


def test_it_says_when_rented_machines_could_not_reach_the_address(alice, as_user, settings):
    settings.PUBLIC_URL = ""
    text = as_user(alice).post("/t/acme/start/install/").text
    assert "PUBLIC_URL is not set" in text


def test_a_viewer_makes_no_token(vera, as_user):
    assert as_user(vera).post("/t/acme/start/install/").status_code == 403
    assert not EnrolmentToken.objects.exists()


def test_the_sandbox_is_labelled_and_never_in_the_figures(page, sandbox):
    text = page()
    assert "sample data" in text
    assert "sample-01" in text
    assert text.count('<span class="sample">sample</span>') == 1  # its one band
    assert "$100" not in text.split('id="main"')[0]


def test_the_sandboxs_own_pages_show_its_figures_as_samples(alice, as_user, sandbox):
    text = as_user(alice).get("/t/sandbox/").text
    assert '$100<span class="cents">.00' in text
    assert text.split('id="main"')[0].count('<span class="sample">sample</span>') == 4


def test_a_person_hides_the_sandbox_and_shows_it_again(alice, bob, as_user, sandbox):
    client = as_user(alice)
    assert client.get("/t/acme/sandbox/hide/").status_code == 405
    client.post("/t/acme/sandbox/hide/")
    assert "sample-01" not in client.get("/t/acme/").text
    assert "sample-01" in as_user(bob).get("/t/acme/").text
    assert AuditEntry.objects.filter(action="sandbox.hide", actor=alice).count() == 1
    client.post("/t/acme/sandbox/hide/", {"hidden": "0"})
    assert "sample-01" in client.get("/t/acme/").text
