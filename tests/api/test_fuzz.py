"""Whatever is asked, the answer is an answer or a refusal of one shape, never a failure of ours."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from django.core import signing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rest_framework.throttling import SimpleRateThrottle

from config.api import router
from fleet.teams.models import Scope
from tests.api.resources import LISTS

SAMPLES = ["/api/v1/samples/gpus/", "/api/v1/samples/hosts/"]


def parameters_of(view) -> list[str]:
    filterset = getattr(view, "filterset_class", None)
    return sorted({*(filterset.base_filters if filterset else ()), "limit", "ordering", "cursor", "team"})


FILTERS = {f"/api/v1/{prefix}/": parameters_of(view) for prefix, view, _ in router.registry} | {
    address: ["since", "until", "fields", "statistic", "max_points", "gpu", "instance", "team"] for address in SAMPLES
}

NASTY = [
    "\0", "a:\0", "-1", "0", "1e999", "NaN", "Infinity", "9" * 19, "9" * 400, "٣", ",", "null", "{}", "%", "\\", "'",
    ":", "\U0010ffff", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "infinity", "running", "-id", "x" * 3000,
]  # fmt: skip
VALUES = st.sampled_from(NASTY) | st.text(max_size=40) | st.integers().map(str) | st.datetimes().map(str)
QUIET = settings(
    max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def ask(fleet, acme, make_token, client):
    """Without throttles: what is asked is the matter here."""
    rates = dict.fromkeys(SimpleRateThrottle.THROTTLE_RATES, "1000000/minute")
    secret, _ = make_token(acme, Scope.ADMIN)

    def get(address, parameters=None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SimpleRateThrottle, "THROTTLE_RATES", rates)
            answer = client.get(address, parameters, headers={"Authorization": f"Bearer {secret}"})
        if answer.status_code != 200:
            assert answer.status_code in {400, 403, 404}, answer.text
            assert set(answer.json()) == {"error", "detail", "field"}
        return answer

    return get


@pytest.mark.parametrize("address", sorted(FILTERS))
def test_no_nasty_value_breaks_a_filter(ask, address):
    for name in FILTERS[address]:
        for value in NASTY:
            ask(address, {"instance": "1", name: value} if address in SAMPLES else {name: value})


@pytest.mark.parametrize("address", sorted(FILTERS))
@given(data=st.data())
@QUIET
def test_no_filter_value_breaks_a_list(ask, address, data):
    names = st.sampled_from(FILTERS[address]) | st.text(max_size=10)
    parameters = data.draw(st.dictionaries(names, VALUES, min_size=1, max_size=3))
    if address in SAMPLES:
        parameters.setdefault("instance", "1")
    ask(address, parameters)


@given(key=VALUES)
@example("9" * 18)
@example("9" * 19)
@example("0")
@QUIET
def test_no_id_breaks_a_row(ask, key):
    for address in ("/api/v1/instances/", "/api/v1/teams/", "/api/v1/latest/"):
        ask(f"{address}{quote(key, safe='')}/")


@pytest.mark.parametrize("address", LISTS)
@given(
    text=st.none() | VALUES, row_id=st.integers(min_value=-(2**70), max_value=2**70) | st.none() | st.text(max_size=5)
)
@settings(QUIET, max_examples=20)
def test_no_cursor_breaks_a_list(ask, address, text, row_id):
    """Cursors are signed: made-up ones end there. One with our signature and the wrong contents is a 400 as well."""
    ask(address, {"cursor": json.dumps([text, row_id])})
    ask(address, {"cursor": signing.dumps([text, row_id], salt="cursor")})
