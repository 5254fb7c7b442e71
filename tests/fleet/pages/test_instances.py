from __future__ import annotations

import re

import pytest

from fleet.telemetry.models import Agent

from .conftest import FREE, HELD, WORKING


@pytest.fixture
def listed(alice, as_user):
    """listed("?q=…") is the names in the list, in order."""

    def names(query=""):
        text = as_user(alice).get(f"/t/acme/instances/{query}").text
        return re.findall(r'<a class="name" href="[^"]+">([^<]+)</a>', text)

    return names


@pytest.fixture
def fleet(make_machine, alice, project):
    make_machine(name="alpha", readings=[WORKING] * 8, price="24.00", gpu_model="H100 SXM", project=project)
    make_machine(name="beta", readings=[WORKING, HELD], price="6.00", gpu_model="A100 SXM", owner=alice)
    make_machine(name="gamma", readings=[FREE], price="0.50", gpu_model="RTX 4090")
    make_machine(name="delta", readings=[WORKING], price=None, gpu_model="L40S", seconds=900)


def test_most_expensive_first_and_unknown_prices_last(fleet, listed):
    assert listed() == ["alpha", "beta", "gamma", "delta"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?sort=name", ["alpha", "beta", "delta", "gamma"]),
        ("?sort=-name", ["gamma", "delta", "beta", "alpha"]),
        ("?sort=price", ["gamma", "beta", "alpha", "delta"]),
        ("?sort=-busy", ["alpha", "beta", "gamma", "delta"]),
        ("?sort=nonsense", ["alpha", "beta", "gamma", "delta"]),
        ("?q=h100", ["alpha"]),
        ("?q=vision", ["alpha"]),
        ("?q=alice", ["beta"]),
        ("?q=%3Cscript%3E", []),
        ("?state=held", ["beta"]),
        ("?state=held&state=free", ["beta", "gamma"]),
        ("?state=unknown", ["delta"]),
        ("?state=bogus", ["alpha", "beta", "gamma", "delta"]),
        ("?provider=manual", ["alpha", "beta", "gamma", "delta"]),
        ("?provider=aws", []),
        ("?page=99", []),
        ("?page=x", ["alpha", "beta", "gamma", "delta"]),
    ],
)
def test_the_address_narrows_and_sorts(fleet, listed, query, names):
    assert listed(query) == names


def test_groups_carry_their_own_totals(fleet, alice, as_user):
    text = as_user(alice).get("/t/acme/instances/?group=project").text
    assert re.search(r'colspan="7">Vision <span class="dim-2">1 machine, 8 GPUs', text)
    assert "no project" in text


def test_the_foot_agrees_with_the_strip(fleet, alice, as_user):
    text = as_user(alice).get("/t/acme/instances/").text
    assert '$30<span class="cents">.50</span>' in text
    assert (
        '<td class="n">$30.50<span class="two money-held">$3.50 idle</span><span class="two">1 without a price</span></td>'
        in text
    )
    assert '$3<span class="cents">.50</span>' in text


def test_a_narrowed_list_still_shows_the_whole(fleet, alice, as_user):
    text = as_user(alice).get("/t/acme/instances/?q=gamma").text
    assert "1 of 4 machines" in text
    assert "all 4 machines" in text


def test_a_script_gets_the_list_alone(fleet, alice, as_user):
    text = as_user(alice).get("/t/acme/instances/", headers={"HX-Request": "true"}).text
    assert text.startswith('<div id="list"')


def test_long_lists_come_in_pages(alice, as_user, make_instance, listed):
    for number in range(105):
        make_instance(name=f"m{number:03}")
    assert len(listed("?sort=name")) == 100
    assert listed("?sort=name&page=2") == ["m100", "m101", "m102", "m103", "m104"]
    text = as_user(alice).get("/t/acme/instances/?sort=name&page=2", headers={"HX-Request": "true"}).text
    assert "<thead" not in text


def test_an_empty_team_is_told_what_to_do(alice, as_user):
    assert "No machine is known yet" in as_user(alice).get("/t/acme/instances/").text


def test_a_search_without_hits_offers_the_way_back(fleet, alice, as_user):
    text = as_user(alice).get("/t/acme/instances/?q=zzz").text
    assert "No machine fits" in text
    assert 'href="/t/acme/instances/">Show all machines' in text


def test_unknown_levels_are_hatched_and_never_zero(make_machine, alice, as_user):
    make_machine(readings=[WORKING], seconds=900)
    text = as_user(alice).get("/t/acme/instances/").text
    assert text.count('<span class="unk">') >= 2
    assert "0%" not in text


def test_charlie_finds_nothing(fleet, charlie, as_user):
    client = as_user(charlie)
    assert client.get("/t/acme/instances/").status_code == 404
    assert client.get("/t/acme/instances.csv").status_code == 404


def test_the_page_waits_as_long_for_a_slow_agent_as_the_server_does(alice, as_user, make_instance):
    quick, slow = make_instance(name="quick", gpus=1), make_instance(name="slow", gpus=1)
    Agent.objects.create(instance=quick, token_hash="q")
    Agent.objects.create(instance=slow, token_hash="s", interval_seconds=60, report_seconds=60)
    for address in ("/t/acme/instances/", "/t/acme/"):
        page = as_user(alice).get(address).text
        stale = {
            int(pk): int(seconds) for pk, seconds in re.findall(r'data-machine="(\d+)"[^>]*data-stale="(\d+)"', page)
        }
        assert stale[quick.pk] == 30
        assert stale[slow.pk] > 120
