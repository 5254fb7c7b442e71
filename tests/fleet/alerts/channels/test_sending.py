"""From the event to the message: retries, dead letters, order, floods, and crashes at every step."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from fleet.alerts.channels import sending
from fleet.alerts.channels.credentials import parted
from fleet.alerts.channels.manage import RouteWords, add_channel, update_channel
from fleet.alerts.channels.manage import test_channel as try_channel
from fleet.alerts.channels.models import Channel, Delivery
from fleet.alerts.channels.recording import back_off_seconds
from fleet.alerts.channels.senders.base import Outcome, Result
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.sending import claim_due, work_off
from fleet.alerts.door import clear_event, raise_event
from tests.fleet.alerts.channels.conftest import Recorder, states, work
from tests.fleet.alerts.conftest import minutes

pytestmark = pytest.mark.usefixtures("clock")


def quiet_machine(team, machine, *, severity="urgent", now=None):
    return raise_event(
        team=team, cause="machine.unreachable", subject=f"instance:{machine.pk}", severity=severity,
        instance=machine, now=now or timezone.now(),
    )  # fmt: skip


def heard_again(team, machine):
    clear_event(team=team, cause="machine.unreachable", subject=f"instance:{machine.pk}", now=timezone.now())


def one_row(channel: Channel) -> Delivery:
    return channel.deliveries.get()


def test_an_event_is_told_once_and_its_line_says_so(acme, machine, recorder, make_channel):
    channel = make_channel()
    quiet_machine(acme, machine)
    assert work() == 1
    assert work() == 0
    assert recorder.titles == ["train-01 went quiet"]
    row = one_row(channel)
    assert (row.state, row.response_id, row.attempts) == ("sent", "r1", 1)


def test_it_is_kept_or_lost_with_the_event(acme, machine, recorder, make_channel):
    make_channel()
    with transaction.atomic():
        quiet_machine(acme, machine)
        transaction.set_rollback(True)
    assert not Delivery.objects.exists()


def test_the_broker_is_told_when_it_is_committed(acme, machine, make_channel, recorder, monkeypatch, django_capture_on_commit_callbacks):  # fmt: skip
    asked = []
    monkeypatch.setattr("fleet.alerts.channels.tasks.dispatch_channels.apply_async", lambda **kwargs: asked.append(1))
    make_channel()
    with django_capture_on_commit_callbacks(execute=True):
        quiet_machine(acme, machine)
    assert asked == [1]


def test_it_is_tried_again_after_a_pause_that_grows(acme, machine, recorder, make_channel, clock):
    channel = make_channel()
    recorder.outcomes = [Outcome(Result.RETRY, "server", "HTTP 500")] * 3
    quiet_machine(acme, machine)
    waits = []
    for _attempt in range(3):
        assert work() == 1
        assert work() == 0, "it waits"
        channel.refresh_from_db()
        waits.append((channel.hold_until - timezone.now()).total_seconds())
        clock.move_to(channel.hold_until)
    assert waits[0] < waits[1] < waits[2]
    assert work() == 1
    channel.refresh_from_db()
    assert (channel.failures, states(channel)) == (0, ["sent"])
    assert len({message.key for message in recorder.sent}) == 4, "none of them was taken: each is a message of its own"


@pytest.mark.parametrize("failures", range(20))
def test_the_pause_is_spread_and_has_an_end(failures):
    assert 5 <= back_off_seconds(failures, 0) < back_off_seconds(failures, 0.99) < 1_800


def test_retry_after_is_obeyed(acme, machine, recorder, make_channel):
    channel = make_channel()
    recorder.outcomes = [Outcome(Result.RETRY, "rate", retry_after_seconds=77)]
    quiet_machine(acme, machine)
    work()
    channel.refresh_from_db()
    assert channel.hold_until == timezone.now() + timedelta(seconds=77)


def test_a_day_and_twenty_attempts_later_it_is_given_up(acme, machine, recorder, make_channel, clock):
    channel = make_channel()
    recorder.outcomes = [Outcome(Result.RETRY, "server", "HTTP 503")] * 200
    quiet_machine(acme, machine)
    began = timezone.now()
    while work():
        channel.refresh_from_db()
        clock.move_to(channel.hold_until)
    row = one_row(channel)
    assert (row.state, row.error, row.error_detail) == ("dead", "server", "HTTP 503")
    assert row.attempts > 20
    assert timezone.now() - began >= timedelta(hours=24)


def test_a_service_that_asks_for_a_second_only_does_not_use_up_the_attempts(acme, machine, recorder, make_channel, clock):  # fmt: skip
    channel = make_channel()
    recorder.outcomes = [Outcome(Result.RETRY, "server", retry_after_seconds=1)] * 8
    quiet_machine(acme, machine)
    began = timezone.now()
    while work():
        channel.refresh_from_db()
        clock.move_to(channel.hold_until)
    assert states(channel) == ["sent"]
    assert timezone.now() - began > timedelta(minutes=10)


def test_what_was_given_up_is_told_when_the_channel_works_again(acme, machine, make_instance, recorder, make_channel, clock):  # fmt: skip
    channel = make_channel()
    quiet_machine(acme, machine)
    channel.deliveries.update(state="dead", error="server")
    channel.failures = 3
    channel.save()
    quiet_machine(acme, make_instance(name="train-02"))
    work()
    clock.shift(5)
    work()
    assert recorder.titles == ["train-02 went quiet", "train-01 went quiet"]


def test_a_message_that_is_refused_does_not_stop_the_next_one(acme, machine, make_instance, recorder, make_channel, clock):  # fmt: skip
    channel = make_channel()
    recorder.outcomes = [Outcome(Result.REFUSED, "refused")]
    quiet_machine(acme, machine)
    work()
    clock.shift(5)
    quiet_machine(acme, make_instance(name="train-02"))
    work()
    assert states(channel) == ["dead", "sent"]


class TestBroken:
    def test_nothing_is_sent_until_a_person_mends_it_and_then_what_is_still_open(
        self, acme, machine, make_instance, recorder, make_channel, alice, by, clock
    ):
        channel = make_channel()
        recorder.outcomes = [Outcome(Result.BROKEN, "gone", "93000")]
        quiet_machine(acme, machine)
        work()
        clock.shift(60)
        other = make_instance(name="train-02")
        quiet_machine(acme, other)
        assert work() == 0
        channel.refresh_from_db()
        assert (channel.broken, states(channel)) == ("gone", ["dead", "dead"])
        clock.shift(60)
        heard_again(acme, machine)
        try_channel(actor=by(alice), channel=channel, now=timezone.now())
        work()
        clock.shift(5)
        work()
        assert recorder.titles == ["train-01 went quiet", "Rackrent reaches this channel", "train-02 went quiet"]

    def test_a_test_that_fails_leaves_it_broken(self, acme, recorder, make_channel, alice, by):
        channel = make_channel()
        Channel.objects.filter(pk=channel.pk).update(broken="gone", broken_at=timezone.now())
        recorder.outcomes = [Outcome(Result.BROKEN, "unauthorized")]
        try_channel(actor=by(alice), channel=channel, now=timezone.now())
        work()
        channel.refresh_from_db()
        assert channel.broken == "unauthorized"

    def test_credentials_that_no_key_opens(self, acme, machine, recorder, make_channel, settings):
        from cryptography.fernet import Fernet

        channel = make_channel()
        settings.CREDENTIAL_KEYS = [Fernet.generate_key().decode()]
        quiet_machine(acme, machine)
        work()
        channel.refresh_from_db()
        assert channel.broken == "no_credentials"
        assert not recorder.sent


class Killed(BaseException):
    """The process is gone: nothing after it runs."""


@pytest.mark.parametrize("idempotent", [True, False])
class TestACrash:
    @pytest.fixture(autouse=True)
    def _sender(self, monkeypatch, idempotent):
        monkeypatch.setitem(SENDERS, "recorder", Recorder(idempotent=idempotent))

    def start(self, acme, machine, make_channel) -> tuple[Channel, Recorder]:
        channel = make_channel()
        quiet_machine(acme, machine)
        sender = SENDERS["recorder"]
        assert isinstance(sender, Recorder)
        return channel, sender

    def crash(self) -> None:
        ((channel, claim),) = claim_due(now=timezone.now(), at_once=50)
        with pytest.raises(Killed):
            work_off(channel, claim)

    def after_the_lease(self, clock) -> None:
        assert work() == 0, "its claim still holds"
        clock.shift(sending.LEASE)
        work()

    @pytest.mark.parametrize("step", ["waiting_rows", "_take", "message_of"])
    def test_before_it_is_sent_nothing_is_told_twice(self, acme, machine, make_channel, clock, monkeypatch, step):
        channel, sender = self.start(acme, machine, make_channel)
        with monkeypatch.context() as patch:
            patch.setattr(sending, step, _killed)
            self.crash()
        self.after_the_lease(clock)
        assert sender.titles == ["train-01 went quiet"]
        assert states(channel) == ["sent"]

    def test_between_sending_and_recording_it_is_told_once_more_under_the_same_key(self, acme, machine, make_channel, clock, monkeypatch):  # fmt: skip
        channel, sender = self.start(acme, machine, make_channel)
        with monkeypatch.context() as patch:
            patch.setattr(sending, "record_outcome", _killed)
            self.crash()
        assert states(channel) == ["sending"]
        self.after_the_lease(clock)
        assert len(sender.sent) == 2
        assert len({message.key for message in sender.sent}) == 1
        assert states(channel) == ["sent"]

    def test_a_second_crash_gives_no_third_message_where_nobody_would_know_it(self, acme, machine, make_channel, clock, monkeypatch, idempotent):  # fmt: skip
        channel, sender = self.start(acme, machine, make_channel)
        with monkeypatch.context() as patch:
            patch.setattr(sending, "record_outcome", _killed)
            self.crash()
            clock.shift(sending.LEASE)
            self.crash()
        clock.shift(sending.LEASE)
        work()
        assert len(sender.sent) == (3 if idempotent else 2)
        row = one_row(channel)
        assert (row.state, row.error) == (("sent", "") if idempotent else ("dead", "uncertain"))

    def test_no_answer_counts_like_a_crash(self, acme, machine, make_channel, clock, idempotent):
        channel, sender = self.start(acme, machine, make_channel)
        sender.outcomes = [Outcome(Result.UNCERTAIN, "no_answer")] * 2
        for _time in range(4):
            work()
            clock.shift(600)
        assert len(sender.sent) == (3 if idempotent else 2)
        assert states(channel) == ["sent" if idempotent else "dead"]

    def test_news_wait_for_a_message_that_nobody_knows_the_end_of(self, acme, machine, make_channel, clock):
        _channel, sender = self.start(acme, machine, make_channel)
        sender.outcomes = [Outcome(Result.UNCERTAIN, "no_answer")]
        work()
        heard_again(acme, machine)
        clock.shift(600)
        work()
        clock.shift(600)
        work()
        assert sender.titles == ["train-01 went quiet", "train-01 went quiet", "Resolved: train-01 went quiet"]


def _killed(*args: object, **kwargs: object) -> None:
    raise Killed


def test_a_pause_for_the_others_pace_is_waited_out(
    acme, machine, make_instance, recorder, make_channel, clock, monkeypatch
):
    recorder.gathers = False
    make_channel()
    for name in ("train-01", "train-02", "train-03"):
        quiet_machine(acme, machine if name == "train-01" else make_instance(name=name))
    monkeypatch.setattr(sending, "SHORT_PAUSE_SECONDS", 5.0)
    monkeypatch.setattr(sending, "sleep", clock.shift)
    ((channel, claim),) = claim_due(now=timezone.now(), at_once=50)
    assert work_off(channel, claim) == 3


def test_channels_of_one_team_take_half_of_the_places(acme, rival, machine, recorder, make_channel, charlie, by):
    for number in range(6):
        make_channel(f"ops {number}")
    theirs = add_channel(actor=by(charlie), team=rival, kind="recorder", name="theirs", owner=None, typed={"url": "https://hooks.example/x"}, hears=RouteWords())  # fmt: skip
    quiet_machine(acme, machine)
    try_channel(actor=by(charlie), channel=theirs, now=timezone.now())
    now = timezone.now()
    first = claim_due(now=now, at_once=4)
    assert len(first) == 3
    assert theirs.pk in {channel for channel, _claim in first}
    assert claim_due(now=now, at_once=4) == [], "the other places are for other teams"
    work_off(*first[0])


def test_a_claim_that_nobody_picked_up_is_given_again_soon(acme, machine, recorder, make_channel, clock):
    make_channel()
    quiet_machine(acme, machine)
    ((channel, claim),) = claim_due(now=timezone.now(), at_once=1)
    clock.shift(sending.PICKED_UP_WITHIN)
    ((_same, newer),) = claim_due(now=timezone.now(), at_once=1)
    assert work_off(channel, claim) == 0
    assert work_off(channel, newer) == 1


def test_a_sender_that_fails_inside_is_an_outcome_without_its_text(acme, machine, recorder, make_channel, caplog):
    channel = make_channel()
    recorder.outcomes = [RuntimeError("Bearer s3cret-token")]
    quiet_machine(acme, machine)
    work()
    row = one_row(channel)
    assert (row.state, row.error, row.error_detail) == ("failed", "failed", "RuntimeError")
    assert "s3cret" not in caplog.text


def test_what_a_service_echoes_of_the_secret_is_masked(acme, machine, recorder, make_channel):
    channel = make_channel()
    recorder.outcomes = [Outcome(Result.REFUSED, "refused", "HTTP 404 Route POST:/services/T0/s3cr3t-token not found")]
    _plain, channel.secret = parted(recorder, {"url": "https://hooks.example/services/T0/s3cr3t-token"})
    channel.save()
    quiet_machine(acme, machine)
    work()
    assert "s3cr3t" not in one_row(channel).error_detail


def test_two_workers_do_not_send_through_one_channel(acme, machine, recorder, make_channel):
    make_channel()
    quiet_machine(acme, machine)
    now = timezone.now()
    ((channel, claim),) = claim_due(now=now, at_once=50)
    assert claim_due(now=now, at_once=50) == []
    assert work_off(channel, claim) == 1
    assert work_off(channel, claim) == 0, "the claim was used up"


class TestOrder:
    def test_what_came_and_went_before_it_was_sent_is_one_message(self, acme, machine, recorder, make_channel):
        make_channel()
        quiet_machine(acme, machine)
        heard_again(acme, machine)
        work()
        assert recorder.titles == ["Resolved: train-01 went quiet"]

    def test_resolve_never_goes_before_open(self, acme, machine, recorder, make_channel, clock):
        channel = make_channel()
        recorder.outcomes = [Outcome(Result.RETRY, "server")]
        quiet_machine(acme, machine)
        work()
        heard_again(acme, machine)
        clock.shift(60)
        work()
        assert recorder.titles == ["train-01 went quiet", "Resolved: train-01 went quiet"]
        assert states(channel) == ["sent", "sent"]

    def test_incidents_get_every_step_in_its_order(self, acme, machine, monkeypatch, make_channel, clock):
        sender = Recorder(idempotent=True, gathers=False)
        monkeypatch.setitem(SENDERS, "recorder", sender)
        make_channel()
        quiet_machine(acme, machine)
        heard_again(acme, machine)
        for _time in range(3):
            work()
            clock.shift(2)
        assert [message.event for message in sender.sent] == ["opened", "resolved"]
        assert len({message.thread for message in sender.sent}) == 1


class TestFlood:
    def test_many_alerts_are_one_message_with_a_count(self, acme, make_instance, recorder, make_channel):
        channel = make_channel()
        for number in range(40):
            quiet_machine(acme, make_instance(name=f"train-{number:02}"))
        assert work() == 1
        (message,) = recorder.sent
        assert message.title == "40 alerts: 40 × went quiet"
        assert "and 30 more" in message.lines
        assert set(states(channel)) == {"sent"}

    def test_a_few_are_told_one_by_one_at_the_channels_pace(self, acme, make_instance, recorder, make_channel, clock):
        make_channel()
        for number in range(3):
            quiet_machine(acme, make_instance(name=f"train-{number:02}"))
        assert work() == 1
        clock.shift(0.5)
        assert work() == 0, "60 a minute"
        clock.shift(0.5)
        assert work() == 1
        clock.shift(1)
        assert work() == 1
        assert len(recorder.sent) == 3


class TestQuietAndDigest:
    def test_a_digest_gathers_until_its_hour(self, acme, machine, make_instance, recorder, make_channel, clock):
        make_channel(digest="daily", time_zone="Asia/Shanghai")
        quiet_machine(acme, machine)
        assert work() == 0
        clock.shift(timedelta(hours=2))
        quiet_machine(acme, make_instance(name="train-02"), severity="warning")
        # 09:00 in Shanghai is 01:00 UTC.
        clock.move_to(minutes(13 * 60))
        assert work() == 1
        assert recorder.titles == ["2 alerts: 2 × went quiet"]

    def test_what_gets_urgent_at_night_brings_along_what_was_held_back(self, acme, machine, recorder, make_channel):
        from datetime import time

        channel = make_channel(quiet_from=time(11), quiet_until=time(15))
        quiet_machine(acme, machine, severity="warning")
        assert work() == 0
        quiet_machine(acme, machine, severity="urgent")
        assert work() == 1
        assert recorder.titles == ["Got worse: train-01 went quiet"]
        assert states(channel) == ["sent", "sent"]


def test_switched_off_means_silent_at_once(acme, machine, recorder, make_channel, alice, by):
    channel = make_channel()
    quiet_machine(acme, machine)
    update_channel(actor=by(alice), channel=channel, name="ops", enabled=False, typed={})
    assert work() == 0
    assert states(channel) == ["suppressed"]


def test_the_cost_of_a_message_does_not_grow_with_the_flood(acme, make_instance, recorder, make_channel, django_assert_max_num_queries):  # fmt: skip
    make_channel()
    for number in range(100):
        quiet_machine(acme, make_instance(name=f"train-{number:02}"))
    with django_assert_max_num_queries(40):
        assert work() == 1
