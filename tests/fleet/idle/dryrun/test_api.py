"""GET /api/v1/idle-policies/<id>/dry-run/ says what the page shows, to those who may see it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.fleet.idle.dryrun.recording import hours, record

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
SIGNS = "w" * 12 + hours(6) + "w" + "." * 20 + "w" * 12


@pytest.fixture
def now(rented, policy, time_machine):
    end = record(rented(), SIGNS, MONDAY)
    time_machine.move_to(end, tick=False)
    return end


def address(policy, rest=""):
    return f"/api/v1/idle-policies/{policy.pk}/dry-run/{rest}"


def test_figures_and_every_stop(now, policy, alice, as_user):
    found = as_user(alice).get(address(policy)).json()
    figures = {
        name: found[name] for name in ("stops", "wrong_stops", "unclear_stops", "saved", "harm", "net", "currency")
    }
    assert figures == {
        "stops": 2, "wrong_stops": 1, "unclear_stops": 0, "saved": "27.81", "harm": "2.00", "net": "25.81", "currency": "USD",
    }  # fmt: skip
    assert [(one["stopped_at"], one["verdict"], one["saved"]) for one in found["each"]] == [
        ("2026-11-02T02:30:00Z", "right", "26.82"),
        ("2026-11-02T08:35:00Z", "wrong", "0.99"),
    ]
    assert found["recommendation"]["why"] == "few_days"


def test_a_window_of_ones_own(now, policy, alice, as_user):
    found = as_user(alice).get(address(policy, "?window=120&days=7")).json()
    assert (found["window_minutes"], found["stops"]) == (120, 1)


@pytest.mark.parametrize("asked", ["window=4", "window=x", "days=8", "cost=free", "gpu_hours=-1", "colour=red"])
def test_nonsense_is_refused_by_name(now, policy, alice, as_user, asked):
    found = as_user(alice).get(address(policy, f"?{asked}"))
    assert found.status_code == 400
    assert asked.split("=")[0] in found.content.decode()


def test_others_get_404(now, policy, charlie, as_user):
    assert as_user(charlie).get(address(policy)).status_code == 404


def test_nobody_changes_anything_by_it(now, policy, alice, as_user):
    assert as_user(alice).post(address(policy)).status_code == 405
    as_user(alice).get(address(policy))
    policy.refresh_from_db()
    assert policy.recommended_at is None
