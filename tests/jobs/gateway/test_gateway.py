"""A gateway of real nginx before real SSH servers: who gets in, who waits, who is turned away, and where requests go."""

from __future__ import annotations

import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import httpx
import pytest
from django.utils import timezone

from jobs.gateway.manage import Limits, make_token, set_gateway
from jobs.gateway.models import Gateway
from tests.jobs.conftest import ACTOR
from tests.jobs.gateway.conftest import TINY
from tests.jobs.machines import children

pytestmark = pytest.mark.django_db(transaction=True)


def all_at_once(gate, count: int, **more) -> list[httpx.Response]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _number: gate.ask(**more), range(count)))


def test_only_its_token_opens_it_and_no_caller_is_known_to_a_server(gate_of):
    gate = gate_of(job_fields={"secrets": {"VLLM_API_KEY": "sk-verysecret"}}, key_name="VLLM_API_KEY")
    gate.engines[0].key = "sk-verysecret"
    answer = gate.ask()
    assert (answer.status_code, answer.json()["usage"]["completion_tokens"]) == (200, 4)
    asked = f"{gate.base}/v1/chat/completions"
    for headers in ({}, {"Authorization": "Bearer rrg_no"}, {"Authorization": "Bearer sk-verysecret"}):
        refused = httpx.post(asked, json=TINY, headers=headers)
        assert refused.status_code == 401
        assert refused.json()["error"]["code"] == "invalid_api_key"
    # Nothing but the API is reached through it.
    for path in ("/metrics", "/health", "/v1/../metrics", "/check", ""):
        assert httpx.get(gate.base + path, headers=gate.headers).status_code == 404
    assert httpx.get(f"{gate.url}/check/{gate.gateway.name}", headers=gate.headers).status_code == 404
    before = gate.token
    gate.token = make_token(actor=ACTOR, gateway=gate.gateway).secret
    assert gate.ask().status_code == 200
    assert httpx.post(asked, json=TINY, headers={"Authorization": f"Bearer {before}"}).status_code == 401
    kept = str(Gateway.objects.values())
    assert gate.token not in kept
    assert "sk-verysecret" not in kept


def test_as_many_are_let_in_as_run_and_wait_and_the_rest_hear_when_to_come_again(gate_of):
    gate = gate_of(
        "--slots", "1", "--token-seconds", "0.4", replicas=2, most_running=1, queue_limit=2, retry_after_seconds=7
    )
    answers = all_at_once(gate, 12)
    assert Counter(answer.status_code for answer in answers) == {200: 4, 429: 8}
    turned_away = next(answer for answer in answers if answer.status_code == 429)
    assert turned_away.headers["Retry-After"] == "7"
    assert turned_away.json()["error"]["code"] == "rate_limit_exceeded"
    # Two replicas, the less busy one first.
    assert [len(engine.bodies) for engine in gate.engines] == [2, 2]
    assert gate.ask().status_code == 200


def test_beyond_the_rate_requests_wait_their_turn_and_beyond_the_queue_are_turned_away(gate_of):
    gate = gate_of("--token-seconds", "0", most_running=2, queue_limit=2, requests_per_second=2)
    began = monotonic()
    # Three begin at once: one by the rate, as many as run at once beyond it. Two wait for half a second each.
    answers = [gate.ask().status_code for _request in range(5)]
    assert answers == [200] * 5
    assert monotonic() - began >= 0.9
    assert 429 in [answer.status_code for answer in all_at_once(gate, 10)]


def test_a_server_that_does_not_answer_in_time_is_given_up(gate_of):
    gate = gate_of("--prefill-seconds", "4", timeout_seconds=1)
    answer = gate.ask()
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")


def test_words_come_as_they_are_made(gate_of):
    gate = gate_of("--token-seconds", "0.3")
    body = TINY | {"stream": True}
    with httpx.stream("POST", f"{gate.base}/v1/chat/completions", json=body, headers=gate.headers) as response:
        came = [monotonic() for line in response.iter_lines() if line.startswith("data: {")]
    assert came[3] - came[0] >= 0.8


def test_a_replica_that_is_not_well_is_left_out_until_it_is(gate_of):
    gate = gate_of(replicas=2)
    sick, well = gate.engines
    sick.engine.is_loaded.clear()
    gate.rounds(gate.has_up(1))
    before = len(sick.bodies)
    assert {gate.ask().status_code for _request in range(6)} == {200}
    assert len(sick.bodies) == before
    well.engine.is_loaded.clear()
    gate.rounds(gate.has_up(0))
    nobody = gate.ask()
    assert (nobody.status_code, nobody.json()["error"]["code"]) == (503, "no_replica")
    assert int(nobody.headers["Retry-After"]) > 0
    assert Gateway.objects.get().state == "no_replica"
    for engine in gate.engines:
        engine.engine.is_loaded.set()
    gate.rounds(gate.has_up(2))
    assert gate.ask().status_code == 200


def test_a_connection_that_is_cut_is_made_again(gate_of):
    gate = gate_of()
    # Of each SSH server of this test, the processes that hold a connection.
    for server in children(os.getpid()):
        for pid in children(server):
            os.kill(pid, signal.SIGKILL)
    gate.rounds(lambda: gate.ask().status_code != 200)
    gate.rounds(lambda: gate.ask().status_code == 200)


def test_new_limits_hold_at_once_and_a_closed_gateway_lets_nobody_in(gate_of):
    gate = gate_of("--token-seconds", "0.3", "--slots", "1", most_running=8, queue_limit=8)
    assert {answer.status_code for answer in all_at_once(gate, 4, max_tokens=1)} == {200}
    limits = Limits(most_running=1, queue_limit=0)
    set_gateway(actor=ACTOR, job=gate.job, limits=limits, now=timezone.now())
    gate.rounds(lambda: "_conn places_" + gate.gateway.name + " 1;" in gate.keeper.nginx.text)
    gate.rounds(lambda: 429 in {answer.status_code for answer in all_at_once(gate, 4, max_tokens=1)})
    set_gateway(actor=ACTOR, job=gate.job, limits=limits, now=timezone.now(), enabled=False)
    gate.keeper.round(now=timezone.now())
    assert not gate.keeper.nginx.runs
