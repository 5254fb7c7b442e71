"""The page of costs: the month that is asked for, and only for members."""

from __future__ import annotations


def test_a_viewer_sees_it_and_another_team_learns_nothing(vera, charlie, as_user, acme):
    assert as_user(vera).get("/t/acme/costs/").status_code == 200
    assert as_user(charlie).get("/t/acme/costs/").status_code == 404


def test_the_month_asked_for_is_chosen(vera, as_user, acme):
    page = as_user(vera).get("/t/acme/costs/?month=2026-02").content.decode()
    assert "Costs in February 2026" in page
