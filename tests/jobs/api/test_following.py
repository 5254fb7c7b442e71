"""A log that is followed and a job that is waited for, through a real server: live, until the end, and at no cost while nothing comes."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest
from django.db import connection
from django.utils import timezone

from fleet.teams.models import APIToken, Scope
from jobs.api import handover, stream, watch
from jobs.book.events import change_job
from jobs.book.manage import add_attempt
from jobs.book.models import Attempt, JobState, Node
from jobs.logs.part import Part
from jobs.logs.store import store_part
from tests.jobs.api.conftest import JOBS
from tests.jobs.api.served import Served, wait_until
from tests.jobs.conftest import ACTOR, newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def served(settings, monkeypatch) -> Iterator[Served]:
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.05)
    with Served() as server:
        yield server


@pytest.fixture
def job(begin, machine):
    return begin("python train.py", machine, retries=1)


@pytest.fixture
def reader(served, acme, make_token) -> Iterator[httpx.Client]:
    """Somebody with a token that only reads."""
    secret, _row = make_token(acme, Scope.READ)
    limits = httpx.Limits(max_connections=None)
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=served.url, headers=headers, timeout=30, trust_env=False, limits=limits) as client:
        yield client


def write(job, text: str, *, skipped: int = 0) -> None:
    node = Node.objects.get(attempt=newest(job), rank=0)
    assert store_part(node=node, part=Part(node.log_offset + skipped, text.encode(), skipped), at=timezone.now())


def end(job) -> None:
    assert change_job(job, JobState.SUCCEEDED, at=timezone.now())


def followed(reader, job, **asked: object):
    return reader.stream("GET", f"{JOBS}{job.pk}/log/", params={"follow": "true", **asked})


def test_lines_come_as_they_are_written_and_the_answer_ends_with_the_job(reader, job):
    write(job, "one\ntwo\n")
    with followed(reader, job) as answer:
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-store"
        lines = answer.iter_lines()
        assert [next(lines), next(lines)] == ["one", "two"]
        for text in ("three", "four"):
            write(job, f"{text}\n")
            assert next(lines) == text
        write(job, "last\n")
        end(job)
        assert list(lines) == ["last"]


def test_a_log_of_megabytes_comes_whole(reader, job):
    text = "".join(f"line {number} {'x' * 60}\n" for number in range(40_000))
    write(job, text)
    end(job)
    with followed(reader, job) as answer:
        assert answer.read().decode() == text


def test_from_a_line_on_with_numbers_gaps_and_without_what_moves_a_cursor(reader, job):
    write(job, "one\ntwo\n")
    write(job, "\x1b[31mthree\x1b[0m\x1b]0;title\x07\a\n10%\r100%\n", skipped=50)
    end(job)
    with followed(reader, job, **{"from": 2, "numbers": "true"}) as answer:
        text = answer.read().decode()
    assert text == "2\ttwo\n[… 50 bytes left out …]\n3\tthree\n4\t100%\n"
    with followed(reader, job, q="THREE") as answer:
        assert answer.read().decode() == "[… 50 bytes left out …]\nthree\n"


def test_the_next_attempt_is_followed_too_unless_one_was_asked_for(reader, job, machine):
    write(job, "first\n")
    with followed(reader, job) as answer, followed(reader, job, attempt=1) as one:
        lines = answer.iter_lines()
        assert next(lines) == "first"
        Attempt.objects.filter(job=job).update(state=JobState.FAILED)
        add_attempt(actor=ACTOR, job=job, machines=[machine], now=timezone.now())
        assert one.read().decode() == "first\n"
        write(job, "second\n")
        end(job)
        assert list(lines) == ["[attempt 2]", "second"]


def test_what_waits_holds_no_thread_no_connection_and_nobodys_place(reader, job, served, settings, monkeypatch):
    monkeypatch.setattr(handover, "MOST_EACH", 100)
    monkeypatch.setattr(watch, "LOOK_SECONDS", 2.0)
    write(job, "one\n")
    before, connected = threading.active_count(), connections_besides()
    answers = [followed(reader, job) for _ in range(30)]
    opened = [answer.__enter__() for answer in answers]
    try:
        assert settings.REQUESTS_AT_ONCE < 30
        lines = [answer.iter_lines() for answer in opened]
        assert [next(one) for one in lines] == ["one"] * 30
        assert served.application.places.taken == 30
        # The loop's own threads, and that of a request that is being answered.
        wait_until(lambda: threading.active_count() - before < 15)
        wait_until(lambda: connections_besides() <= connected + 1)
        assert reader.get(f"{JOBS}{job.pk}/").status_code == 200
        write(job, "two\n")
        assert [next(one) for one in lines] == ["two"] * 30
    finally:
        for answer in answers:
            answer.__exit__(None, None, None)
    wait_until(lambda: served.application.places.taken == 0)


def connections_besides() -> int:
    """Of the server, and of whatever else another test left running; not the one that asks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])


def test_when_the_reader_leaves_nothing_is_asked_any_more(reader, job, served, monkeypatch):
    write(job, "one\n")
    with followed(reader, job) as answer:
        # Whoever lets go of it closes the answer.
        lines = answer.iter_lines()
        assert next(lines) == "one"
        assert served.application.places.taken == 1
    wait_until(lambda: served.application.places.taken == 0)
    asked: list[object] = []
    monkeypatch.setattr(watch, "ask_standings", asked.append)
    threading.Event().wait(0.3)
    assert asked == []


def test_a_token_that_is_revoked_hears_no_more(reader, job, monkeypatch):
    monkeypatch.setattr(stream, "ALLOWED_SECONDS", 0.1)
    write(job, "one\n")
    with followed(reader, job) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "one"
        APIToken.objects.update(revoked_at=timezone.now())
        assert list(lines) == []
    assert job.is_open


def test_it_goes_on_for_no_longer_than_it_may_and_says_from_where(reader, job, monkeypatch):
    monkeypatch.setattr(stream, "LONGEST_SECONDS", 0.5)
    write(job, "one\ntwo\n")
    with followed(reader, job) as answer:
        assert answer.read().decode() == "one\ntwo\n[goes on: from=3]\n"


def test_one_caller_keeps_so_many_answers_open(reader, job, monkeypatch):
    monkeypatch.setattr(handover, "MOST_EACH", 1)
    write(job, "one\n")
    with followed(reader, job) as answer:
        # Whoever lets go of it closes the answer.
        lines = answer.iter_lines()
        assert next(lines) == "one"
        with followed(reader, job) as second:
            second.read()
            assert (second.status_code, second.json()["error"]) == (429, "throttled")


def test_strangers_follow_nothing(served, reader, job, rival, make_token):
    write(job, "secret\n")
    theirs, _row = make_token(rival, Scope.ADMIN)
    address = f"{served.url}{JOBS}{job.pk}/log/?follow=true"
    for headers, status in (({}, 401), ({"Authorization": f"Bearer {theirs}"}, 404)):
        answer = httpx.get(address, headers=headers, trust_env=False)
        assert answer.status_code == status
        assert "secret" not in answer.text
    assert served.application.places.taken == 0
    assert reader.get(f"{JOBS}{job.pk}/log/", params={"follow": "yes"}).json()["field"] == "follow"
    assert reader.get(f"{JOBS}{job.pk}/log/", params={"follow": "true", "rank": 3}).json()["field"] == "rank"


def test_who_waits_is_answered_when_it_has_ended_or_the_time_is_over(reader, job):
    early = reader.get(f"{JOBS}{job.pk}/", params={"wait": 1})
    assert (early.status_code, early.json()["state"]) == (200, "queued")
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(reader.get(f"{JOBS}{job.pk}/", params={"wait": 30})))
    waiting.start()
    end(job)
    waiting.join(20)
    assert answers[0].json()["state"] == "succeeded"
    assert reader.get(f"{JOBS}{job.pk}/", params={"wait": 30}).json()["ended_at"]
    assert reader.get(f"{JOBS}{job.pk}/", params={"wait": 61}).json()["field"] == "wait"
