"""Every address of a team, by everybody who is not its member or not of the right role.

A new page is covered as soon as it has an address. One that takes a number needs a thing of acme in `things` (conftest.py).
"""

from __future__ import annotations

from tests.fleet.teams.routes import WORDS, team_routes

ROUTES = {route.name: route for route in team_routes()}
# What every member may send, and why.
FOR_EVERY_MEMBER = {
    "leave_team": "nobody has to stay",
    "costs_report_send": "who reads money may have it mailed to themselves",
    "costs_report_wish": "everybody chooses for themselves",
    "calendar_make": "a calendar of their own",
    "calendar_revoke": "a calendar of their own",
    "channel_new": "a channel of their own",
    "hide_sandbox": "everybody chooses for themselves",
    "planner_config": "it asks for a plan, and nothing is kept",
    "planner_symptom": "it asks what a message means, and nothing is kept",
}


EVERY_ROUTE = [ROUTES[_name] for _name in sorted(ROUTES)]


def test_a_stranger_is_asked_to_sign_in(address, client, apart):
    for route in EVERY_ROUTE:
        with apart(route.name):
            for answer in (client.get(address(route)), client.post(address(route))):
                assert answer.status_code == 302
                assert answer.headers["Location"].startswith("/login/?next=/t/acme/")


def test_for_another_team_nothing_is_there(address, charlie, as_user, apart):
    browser = as_user(charlie)
    for route in EVERY_ROUTE:
        with apart(route.name):
            assert browser.get(address(route)).status_code == 404
            assert browser.post(address(route)).status_code == 404


def test_what_a_viewer_may_not_send_is_refused(address, vera, as_user, apart):
    for route in EVERY_ROUTE:
        with apart(route.name):
            answer = as_user(vera).post(address(route))
            codes = {200, 302, 400, 422} if route.name in FOR_EVERY_MEMBER else {403, 405}
            assert answer.status_code in codes


def test_the_owner_gets_an_answer(address, alice, as_user, apart):
    browser = as_user(alice)
    for route in EVERY_ROUTE:
        with apart(route.name):
            answer = browser.get(address(route))
            assert answer.status_code in {200, 302, 400, 405}
            assert not answer.headers.get("Location", "").startswith("/login/")


def test_a_thing_of_another_team_cannot_be_reached_through_the_own_one(address, charlie, as_user, apart):
    browser = as_user(charlie)
    routes = [route for route in EVERY_ROUTE if set(route.kinds) - set(WORDS)]
    assert routes
    for route in routes:
        with apart(route.name):
            path = address(route, "rival")
            codes = {browser.get(path).status_code, browser.post(path).status_code}
            assert 404 in codes
            assert codes <= {404, 405}
