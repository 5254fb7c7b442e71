"""One contract for every HTTP sender, against a stand-in that checks signature, shape and lengths and answers badly in the usual ways."""

from __future__ import annotations

import inspect
import json
import pkgutil
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from fleet.alerts.channels import senders
from fleet.alerts.channels.senders import http
from fleet.alerts.channels.senders.base import Outcome, Result, Sender
from fleet.alerts.channels.senders.http import HttpSender
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.words import FAILURES
from fleet.guard import Guard
from tests.fakes.services import PAGE, STAND_INS, Answer
from tests.fleet.alerts.channels.conftest import LOOPBACK, SENT_AT, make_message

KINDS = sorted(STAND_INS)
HOSTILE = "@here <!channel> <@U1> <b>x</b> [a](http://evil.example) *_~`|> @everyone &amp; \u202e"
each = pytest.mark.parametrize("kind", KINDS)


def send(kind, service, message=None, *, wrong=False, guard=LOOPBACK) -> Outcome:
    return SENDERS[kind].send(message or make_message(), STAND_INS[kind].typed(service.url, wrong=wrong), guard)


def test_every_sender_of_the_package_is_registered_and_has_a_stand_in():
    modules = [name for _finder, name, _package in pkgutil.iter_modules(senders.__path__)]
    assert set(modules) - {"base", "http", "text", "registry"} == set(SENDERS)
    assert set(SENDERS) == {*STAND_INS, "email"}


@pytest.mark.parametrize("kind", SENDERS)
def test_it_describes_itself(kind):
    sender = SENDERS[kind]
    assert isinstance(sender, Sender)
    assert not inspect.isabstract(type(sender))
    assert sender.limits.title > 0 < sender.limits.per_minute
    assert any(field.secret for field in sender.fields) or kind == "email"


@each
def test_a_message_is_taken(kind, service):
    outcome = send(kind, service)
    assert outcome.result == Result.SENT, outcome
    assert b"train-01 lost a GPU" in service.taken[0].raw
    assert b"https://rackrent.example/a/signed/" in service.taken[0].raw or kind == "pagerduty"


@each
def test_the_same_attempt_has_the_same_key(kind, service):
    send(kind, service)
    send(kind, service, replace(make_message(), sent_at=SENT_AT + timedelta(seconds=60)))
    first, second = service.taken
    if kind == "webhook":
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
    if kind == "pagerduty":
        assert first.body["dedup_key"] == second.body["dedup_key"]


@each
def test_a_message_that_is_too_long_is_cut_and_taken(kind, service):
    long = make_message(title="长" * 9_000, lines=["<&*字" * 9_000, "tail"], facts=[("a", "b" * 9_000)])
    assert send(kind, service, long).result == Result.SENT
    assert "…" in json.dumps(service.taken[0].body, ensure_ascii=False)


@each
@pytest.mark.parametrize("line", ["长" * 30_000, "<&" * 15_000])
def test_what_takes_more_bytes_than_signs_is_cut_and_taken(kind, service, line):
    long = make_message(title=line, lines=[line, "tail"], facts=[("长", line)] * 3)
    assert send(kind, service, long).result == Result.SENT


@pytest.mark.parametrize("kind", ["teams"])
def test_what_grows_in_json_is_cut_too(kind, service):
    long = make_message(title='"' * 9_000, lines=['"\\' * 9_000, "tail"])
    assert send(kind, service, long).result == Result.SENT


@each
def test_names_from_machines_call_nobody_and_make_no_link(kind, service):
    message = make_message(title=HOSTILE, lines=[HOSTILE], facts=[(HOSTILE, HOSTILE)])
    assert send(kind, service, message).result == Result.SENT
    body = service.taken[0].body
    for unwanted in UNWANTED.get(kind, ()):
        assert unwanted not in json.dumps(body, ensure_ascii=False)


UNWANTED = {
    "slack": ['"text":"@here <'],
    "discord": ["[a](http", " @everyone", "<@U1"],
    "telegram": ["<!channel>", "<b>x</b>", "@everyone", "://evil"],
    "dingtalk": ["[a](http", "@everyone"],
    "wecom": ["[a](http", "<@U1>"],
}


@pytest.mark.parametrize("kind", sorted(kind for kind, made in STAND_INS.items() if made.wrong))
def test_a_wrong_secret_breaks_the_channel_and_says_so(kind, service):
    outcome = send(kind, service, wrong=True)
    assert outcome.result == Result.BROKEN, outcome
    assert outcome.code in FAILURES


@each
@pytest.mark.parametrize(
    ("answer", "result", "wait"),
    [
        (Answer(429, "slow down", {"Retry-After": "17"}), Result.RETRY, 17),
        (Answer(429), Result.RETRY, None),
        (Answer(429, {"retry_after": 2.5}), Result.RETRY, 2.5),
        (Answer(429, {"ok": False, "parameters": {"retry_after": 9}}), Result.RETRY, 9),
        (Answer(500, "oops"), Result.RETRY, None),
        (Answer(503, PAGE, {"Retry-After": "99999999"}), Result.RETRY, 3_600),
        (Answer(301, "", {"Location": "http://127.0.0.1:9/"}), Result.BROKEN, None),
        (Answer(401), Result.BROKEN, None),
        (Answer(403, PAGE), Result.BROKEN, None),
        (Answer(404), Result.BROKEN, None),
        (Answer(410), Result.BROKEN, None),
        (Answer(400, "no"), Result.REFUSED, None),
        (Answer(413, PAGE), Result.REFUSED, None),
        (Answer(200, '{"ok"', cut=True), Result.UNCERTAIN, None),
        (Answer(200, "no gzip", {"Content-Encoding": "gzip"}), Result.UNCERTAIN, None),
        (Answer(502, PAGE), Result.UNCERTAIN, None),
        (Answer(504, ""), Result.UNCERTAIN, None),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
def test_bad_answers(kind, service, answer, result, wait):
    service.script = [answer]
    outcome = send(kind, service)
    assert (outcome.result, outcome.retry_after_seconds) == (result, wait)
    assert outcome.code in FAILURES
    assert len(service.taken) == 1
    assert "<" not in outcome.detail


@each
def test_a_page_instead_of_an_answer_is_no_success(kind, service):
    service.script = [Answer(200, PAGE, {"Content-Type": "text/html"})]
    outcome = send(kind, service)
    # A webhook of one's own and a workflow may answer with whatever they like.
    assert outcome.result == (Result.SENT if kind in {"webhook", "teams"} else Result.UNCERTAIN)


@each
def test_no_answer_in_time_is_uncertain(kind, service, monkeypatch):
    monkeypatch.setattr(HttpSender, "timeout_seconds", 0.2)
    service.script = [Answer(hang=True)]
    assert send(kind, service).result == Result.UNCERTAIN


@each
def test_headers_that_drip_without_end_are_not_waited_for(kind, service, monkeypatch):
    monkeypatch.setattr(http, "MOST_SECONDS", 0.3)
    service.script = [Answer(drip=True)]
    assert send(kind, service).result == Result.UNCERTAIN


@each
@pytest.mark.parametrize(
    ("event", "told"), [("opened", True), ("worsened", True), ("resolved", False), ("acknowledged", False)]
)
def test_it_says_how_bad_it_is_where_it_asks_for_somebody(kind, service, event, told):
    send(kind, service, make_message(event=event, is_resolved=event == "resolved"))
    said = json.dumps(service.taken[0].body, ensure_ascii=False)
    acted = kind == "pagerduty" and not told
    assert ("Urgent: train-01 lost a GPU" in said) == told
    assert acted or "train-01 lost a GPU" in said


@each
def test_nobody_there_is_tried_again(kind):
    config = STAND_INS[kind].typed("http://127.0.0.1:9")
    assert SENDERS[kind].send(make_message(), config, LOOPBACK).result == Result.RETRY


@each
def test_the_installations_own_network_is_refused(kind, service):
    outcome = send(kind, service, guard=Guard())
    assert (outcome.result, outcome.code) == (Result.BROKEN, "address")
    assert not service.taken


@pytest.mark.parametrize(
    ("kind", "body", "result", "code"),
    [
        ("slack", {"ok": False, "error": "channel_is_archived"}, Result.BROKEN, "gone"),
        ("telegram", {"ok": False, "error_code": 400, "description": "Bad Request: chat not found"}, Result.BROKEN, "not_found"),
        ("telegram", {"ok": False, "error_code": 429, "parameters": {"retry_after": 5}}, Result.RETRY, "rate"),
        ("feishu", {"code": 11232, "msg": "frequency limited"}, Result.RETRY, "rate"),
        ("feishu", {"code": 19024, "msg": "Key Words Not Found"}, Result.BROKEN, "keyword"),
        ("feishu", {"code": 19001, "msg": "param invalid: incoming webhook access token invalid"}, Result.BROKEN, "not_found"),
        ("dingtalk", {"errcode": 130101, "errmsg": "send too fast"}, Result.RETRY, "rate"),
        ("dingtalk", {"errcode": 310000, "errmsg": "keywords not in content"}, Result.BROKEN, "keyword"),
        ("dingtalk", {"errcode": 400, "errmsg": "what"}, Result.REFUSED, "refused"),
        ("wecom", {"errcode": 45009, "errmsg": "api freq out of limit"}, Result.RETRY, "rate"),
        ("wecom", {"errcode": 93000, "errmsg": "invalid webhook url"}, Result.BROKEN, "gone"),
    ],
)  # fmt: skip
def test_an_error_that_comes_with_status_200(kind, service, body, result, code):
    service.script = [Answer(200, body)]
    outcome = send(kind, service)
    assert (outcome.result, outcome.code) == (result, code)


@pytest.mark.parametrize("kind", ["pagerduty"])
@pytest.mark.parametrize(("event", "actions"), [("improved", []), ("signal", []), ("test", ["trigger", "resolve"])])
def test_pagerduty_gets_no_incident_that_nobody_has_to_work_on(kind, service, event, actions):
    assert send(kind, service, make_message(event=event)).result == Result.SENT
    assert [request.body["event_action"] for request in service.taken] == actions


@pytest.mark.parametrize(("kind", "event", "action"), [("pagerduty", "opened", "trigger"), ("pagerduty", "acknowledged", "acknowledge"), ("pagerduty", "snoozed", "acknowledge"), ("pagerduty", "resolved", "resolve")])  # fmt: skip
def test_pagerduty_gets_one_incident_an_alert(kind, service, event, action):
    assert send(kind, service, make_message(event=event)).result == Result.SENT
    assert (service.taken[0].body["event_action"], service.taken[0].body["dedup_key"]) == (action, "alert-7-0")


def test_a_retry_after_may_be_a_date(monkeypatch):
    from fleet.alerts.channels.senders.http import retry_after

    response = httpx.Response(429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})
    assert retry_after(response) is None
    assert retry_after(httpx.Response(429, headers={"Retry-After": "nan"})) is None
