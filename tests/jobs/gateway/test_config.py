"""What is written for nginx is what nginx takes, and nothing that a person typed means anything to it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.gateway.config import GateConfig, NginxConfig, nginx_config, per_minute
from jobs.gateway.nginx import Nginx
from tests.programs import needs

GATE = GateConfig(
    name="abcdefgh2345",
    sockets=("/tmp/a-0.sock", "/tmp/a-1.sock"),
    most_running=8,
    queue_limit=4,
    requests_per_second=5.4,
    timeout_seconds=60,
    retry_after_seconds=3,
    server_key="sk-abc_DEF.123/x+y==",
)


def wanted(*gates: GateConfig, directory: Path | str = "/tmp/x") -> NginxConfig:
    return NginxConfig(str(directory), "127.0.0.1:8500", "http://127.0.0.1:8400", "localhost", gates)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sockets": ()},
        {"requests_per_second": None},
        {"queue_limit": 0},
        {"requests_per_second": 0.02, "queue_limit": 0},
        {"server_key": ""},
    ],
)
def test_nginx_takes_it(tmp_path, changes):
    nginx = Nginx(needs("nginx"), tmp_path)
    other = replace(GATE, name="zyxwvuts9876")
    path = nginx._write("next.conf", nginx_config(wanted(replace(GATE, **changes), other, directory=tmp_path)))
    assert nginx._refuses(path) == ""
    assert path.stat().st_mode & 0o777 == 0o600
    assert "problem" not in nginx._refuses(path)


def test_nginx_says_what_is_wrong(tmp_path):
    nginx = Nginx(needs("nginx"), tmp_path)
    assert "unknown directive" in nginx.serve("nonsense;")
    assert not nginx.runs


@given(st.text(min_size=1, max_size=40))
def test_a_key_that_could_mean_something_to_nginx_is_in_no_configuration(key):
    gate = replace(GATE, server_key=key)
    if re.fullmatch(r"[A-Za-z0-9._~+/=-]+", key):
        assert f'Authorization "Bearer {key}"' in nginx_config(wanted(gate))
    else:
        with pytest.raises(ValueError, match="key"):
            nginx_config(wanted(gate))


def test_as_many_are_let_in_as_run_and_wait():
    text = nginx_config(wanted(GATE))
    assert "limit_conn places_abcdefgh2345 20;" in text
    assert "limit_req zone=rate_abcdefgh2345 burst=20 delay=16;" in text
    assert "rate=324r/m" in text
    assert "sk-abc" not in repr(GATE)


@given(st.floats(0.001, 10_000))
def test_a_rate_is_at_least_one_a_minute(rate):
    assert abs(per_minute(rate) - max(60 * rate, 1)) <= 0.5
