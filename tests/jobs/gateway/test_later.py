"""Requests that are left with a gateway: sent when there is room, through the same limits, and their answers kept for whoever left them."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import httpx
import pytest
from django.utils import timezone

from jobs.gateway.later import Sent, forget_old, give_up_lost, keep_answer, take_due
from jobs.gateway.manage import MOST_LATER_BYTES, MOST_WAITING, Limits, leave_request, make_token, set_gateway
from jobs.gateway.models import Gateway, LaterRequest
from tests.jobs.conftest import ACTOR
from tests.jobs.gateway.conftest import TINY


def leave(gate, **more) -> httpx.Response:
    return httpx.post(f"{gate.base}/later/v1/chat/completions", json=TINY | more, headers=gate.headers, timeout=30)


@pytest.mark.django_db(transaction=True)
def test_it_is_answered_when_there_is_room_and_fetched_as_the_server_said_it(gate_of):
    gate = gate_of("--slots", "1", "--token-seconds", "0.05", most_running=1, queue_limit=0, retry_after_seconds=1)
    left = [leave(gate) for _request in range(3)]
    assert {answer.status_code for answer in left} == {202}
    asked = [gate.url + answer.headers["Location"] for answer in left]
    waits = httpx.get(asked[0], headers=gate.headers)
    assert (waits.status_code, waits.json()["status"]) == (202, "queued")
    assert int(waits.headers["Retry-After"]) > 0
    # All three are sent at once, one place is there: the others are turned away, wait, and come again.
    gate.rounds(lambda: not LaterRequest.objects.exclude(state="done").exists())
    for address in asked:
        answer = httpx.get(address, headers=gate.headers)
        assert (answer.status_code, answer.json()["usage"]["completion_tokens"]) == (200, 4)
    assert max(LaterRequest.objects.values_list("tries", flat=True)) > 1
    assert len(gate.engines[0].bodies) == 3
    # The caller's words are kept no longer than they are needed.
    assert {bytes(row.body) for row in LaterRequest.objects.all()} == {b""}


@pytest.fixture
def gateway(serves, make_instance) -> Gateway:
    job = serves(make_instance(managed=True, ssh=[{"host": "192.0.2.1", "port": 22, "user": "root"}]))
    return set_gateway(actor=ACTOR, job=job, limits=Limits(), now=timezone.now())


@pytest.fixture
def caller(client, gateway):
    """caller("post", "v1/chat/completions", …) asks with the gateway's token."""
    token = make_token(actor=ACTOR, gateway=gateway).secret

    def ask(method: str, path: str, data: bytes = b"{}", key: str = token):
        address = f"/gateway/v1/{gateway.name}/later/{path}"
        return getattr(client, method)(
            address, data, content_type="application/json", headers={"Authorization": f"Bearer {key}"}
        )

    return ask


@pytest.mark.django_db
def test_only_the_gateways_token_leaves_and_reads(caller, gateway, serves, make_instance):
    number = caller("post", "v1/chat/completions").json()["id"]
    assert caller("get", number, None).status_code == 202
    for key in ("", "rrg_other", "rrk_other"):
        assert caller("post", "v1/chat/completions", key=key).status_code == 401
        assert caller("get", number, None, key=key).status_code == 401
    other = serves(make_instance(name="other", managed=True, ssh=[{"host": "192.0.2.2", "port": 22, "user": "root"}]))
    stranger = set_gateway(actor=ACTOR, job=other, limits=Limits(), now=timezone.now())
    secret = make_token(actor=ACTOR, gateway=stranger).secret
    assert caller("get", number, None, key=secret).status_code == 401
    Gateway.objects.filter(pk=gateway.pk).update(enabled=False)
    assert caller("get", number, None).status_code == 401


@pytest.mark.django_db
def test_what_is_too_much_or_leads_elsewhere_is_refused(caller, gateway):
    for path in ("v1/../metrics", "v1/chat/completions?x=1\n", "v1/Chat", "v1/a/b/c/d/e"):
        assert caller("post", path.replace("?", "%3F")).status_code == 404
    assert caller("post", "v1/chat/completions", b"x" * (MOST_LATER_BYTES + 1)).status_code == 413
    now = timezone.now()
    rows = [LaterRequest(gateway=gateway, path="x", body=b"", created_at=now, next_at=now) for _ in range(MOST_WAITING)]
    LaterRequest.objects.bulk_create(rows)
    full = caller("post", "v1/chat/completions")
    assert (full.status_code, full.headers["Retry-After"]) == (429, "2")
    assert caller("get", str(uuid4()), None).status_code == 404


@pytest.mark.django_db
def test_it_is_called_off_before_it_begins_and_not_after(caller, gateway):
    number = caller("post", "v1/chat/completions").json()["id"]
    assert caller("delete", number, None).status_code == 204
    assert caller("get", number, None).status_code == 410
    second = caller("post", "v1/chat/completions").json()["id"]
    assert len(take_due(gateways=[gateway], under_way=0, now=timezone.now())) == 1
    assert caller("delete", second, None).status_code == 409


@pytest.mark.django_db
def test_each_is_taken_once_and_comes_again_only_where_it_has_reached_nobody(gateway):
    now = timezone.now()
    left = leave_request(gateway=gateway, path="chat/completions", body=b"{}", now=now)
    assert [one.number for one in take_due(gateways=[gateway], under_way=0, now=now)] == [left.pk]
    assert take_due(gateways=[gateway], under_way=0, now=now) == []
    keep_answer(sent=Sent(left.pk, 429, wait_seconds=3), now=now)
    assert take_due(gateways=[gateway], under_way=0, now=now) == []
    assert len(take_due(gateways=[gateway], under_way=0, now=now + timedelta(seconds=3))) == 1
    keep_answer(sent=Sent(left.pk, None), now=now)
    left.refresh_from_db()
    assert (left.state, left.status) == ("failed", None)
    # Too late: it has ended.
    keep_answer(sent=Sent(left.pk, 200, "application/json", b"{}"), now=now)
    left.refresh_from_db()
    assert left.state == "failed"


@pytest.mark.django_db
def test_one_that_finds_no_room_for_half_a_day_is_given_up(gateway):
    now = timezone.now()
    left = leave_request(gateway=gateway, path="chat/completions", body=b"{}", now=now)
    take_due(gateways=[gateway], under_way=0, now=now)
    keep_answer(sent=Sent(left.pk, 503), now=now + timedelta(hours=13))
    left.refresh_from_db()
    assert left.state == "failed"


@pytest.mark.django_db
def test_a_killed_process_leaves_no_request_that_seems_to_run_and_answers_go_after_a_day(gateway):
    now = timezone.now()
    left = leave_request(gateway=gateway, path="chat/completions", body=b"{}", now=now)
    take_due(gateways=[gateway], under_way=0, now=now)
    assert give_up_lost(now=now) == 1
    left.refresh_from_db()
    assert left.state == "failed"
    assert forget_old(now=now + timedelta(hours=23)) == 0
    assert forget_old(now=now + timedelta(hours=25)) == 1


@pytest.mark.django_db
def test_no_answer_becomes_a_page_of_this_address(caller, gateway):
    number = caller("post", "v1/chat/completions").json()["id"]
    now = timezone.now()
    take_due(gateways=[gateway], under_way=0, now=now)
    keep_answer(sent=Sent(LaterRequest.objects.get().pk, 200, "text/html", b"<script>alert(1)</script>"), now=now)
    answer = caller("get", number, None)
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
