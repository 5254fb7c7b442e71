"""Notices of providers: kept once, closed when they are no longer listed, told as an alert, in calendars and on timelines."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import translation

from fleet.alerts.channels.calendar import notices as planned
from fleet.alerts.evaluate import evaluate_team
from fleet.alerts.models import Alert
from fleet.alerts.words import title_of, why_of
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.poll import poll_account
from fleet.inventory.provider_word.models import ProviderNotice, ProviderReading
from fleet.inventory.provider_word.notices import keep_notices, prune_notices
from fleet.inventory.provider_word.reading import NOTICES, claim_reading, ensure_readings, refresh_reading
from fleet.providers.base import Capability, InstanceState, Notice, NoticeKind, Ref
from fleet.providers.errors import Unavailable
from tests.fleet.inventory.conftest import NOON

MINUTE = timedelta(minutes=1)


def notice(ref: str = "i-1", key: str = "n-1", kind: NoticeKind = NoticeKind.MAINTENANCE, **fields: object) -> Notice:
    return Notice(ref=Ref(ref, "eu-1"), kind=kind, key=key, **fields)  # type: ignore[arg-type]


@pytest.fixture
def told(lab, provider, listed):
    """told(notice, …, minutes=2) is a complete answer then. i-2 is off: a debt locks those, too."""
    provider.machines = [listed("i-1"), listed("i-2", state=InstanceState.STOPPED, raw_state="off")]
    assert poll_account(account=lab, now=NOON).error is None

    def keep(*announced: Notice, minutes: float = 0) -> list[ProviderNotice]:
        keep_notices(account=lab, told=announced, now=NOON + minutes * MINUTE)
        return list(ProviderNotice.objects.order_by("pk"))

    return keep


def test_the_same_notice_is_one_row_until_it_is_no_longer_listed(told):
    told(notice(detail="reboot"), notice("i-2"))
    first, second = told(notice(detail="reboot, later"), minutes=2)
    assert (first.detail, first.first_seen_at, first.last_seen_at) == ("reboot, later", NOON, NOON + 2 * MINUTE)
    assert (first.gone_at, second.gone_at) == (None, NOON + 2 * MINUTE)
    (again, _) = told(minutes=4)
    assert again.gone_at == NOON + 4 * MINUTE
    (back, _) = told(notice(), minutes=6)
    assert (back.pk, back.gone_at, back.first_seen_at) == (first.pk, None, NOON)
    told(minutes=8)
    assert prune_notices(now=NOON + timedelta(days=89)) == 0
    assert prune_notices(now=NOON + timedelta(days=91)) == 2


def test_what_is_hostile_is_cut_or_unknown_and_strangers_are_left_out(told):
    (row,) = told(
        notice(key="k" * 999, detail="d" * 9_999, starts_at=NOON + timedelta(days=4_000)), notice("of-nobody")
    )
    assert (len(row.key), len(row.detail), row.starts_at) == (200, 500, None)


def test_a_reading_asks_every_two_minutes_and_a_cut_one_closes_nothing(told, lab, provider, monkeypatch):
    answers: list[Notice | Exception] = [notice()]

    def notices(self):
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
            yield answer

    monkeypatch.setattr(provider, "notices", notices, raising=False)
    monkeypatch.setattr(provider, "capabilities", provider.capabilities | {Capability.NOTICES})

    def ask(now) -> bool:
        due = ProviderReading.objects.get(account=lab, subject=NOTICES.name)
        assert claim_reading(due.pk, seen_next_at=due.next_at, now=now)
        taken = ProviderReading.objects.select_related("account").get(pk=due.pk)
        return refresh_reading(reading=taken, now=now)

    with time_machine.travel(NOON, tick=False):
        assert ensure_readings() == 1
        assert ask(NOON)
        next_at = ProviderReading.objects.get(account=lab).next_at
        assert 2 * MINUTE <= next_at - NOON <= 2.5 * MINUTE
        answers[:] = [Unavailable("cut")]
        assert not ask(NOON + 2 * MINUTE)
        assert ProviderNotice.objects.get().gone_at is None
        answers[:] = []
        assert ask(NOON + 4 * MINUTE)
        assert ProviderNotice.objects.get().gone_at == NOON + 4 * MINUTE


class TestAlert:
    @pytest.mark.parametrize(
        ("kind", "severity"),
        [
            (NoticeKind.INTERRUPTION, "urgent"),
            (NoticeKind.MAINTENANCE, "warning"),
            (NoticeKind.RETIREMENT, "warning"),
            (NoticeKind.UNPAID, "warning"),
            (NoticeKind.OTHER, "note"),
        ],
    )
    def test_it_is_raised_by_its_kind_and_ends_with_the_notice(self, told, acme, kind, severity):
        told(notice(kind=kind, starts_at=NOON + 90 * MINUTE, detail="<b>soon</b>"))
        evaluate_team(team=acme, now=NOON + MINUTE)
        alert = Alert.objects.get(cause="machine.notice", closed_at=None)
        assert alert.severity == severity
        assert title_of(alert) == "name of i-1 has a notice from its provider"
        assert "2026-11-30 13:30" in why_of(alert)
        assert "<b>soon</b>" in why_of(alert)
        with translation.override("zh-hans"):
            assert title_of(alert).endswith("收到服务商的通知")
        told(minutes=2)
        evaluate_team(team=acme, now=NOON + 3 * MINUTE)
        assert not Alert.objects.filter(cause="machine.notice", closed_at=None).exists()

    def test_a_machine_that_is_gone_and_an_account_that_is_cut_off_raise_none(self, told, acme):
        told(notice())
        Instance.objects.update(gone_at=NOON)
        evaluate_team(team=acme, now=NOON + MINUTE)
        Instance.objects.update(gone_at=None)
        ProviderAccount.objects.update(disconnected_at=NOON)
        evaluate_team(team=acme, now=NOON + 2 * MINUTE)
        assert not Alert.objects.filter(cause="machine.notice").exists()


def test_what_is_announced_for_a_time_stands_in_the_calendar(told, acme, rival):
    told(notice(starts_at=NOON + timedelta(days=1), detail="reboot"), notice("i-2"))
    (entry,) = planned(acme, NOON)
    assert (entry.starts_at, entry.values["machine"]) == (NOON + timedelta(days=1), "name of i-1")
    assert list(planned(rival, NOON)) == []
    told(minutes=2)
    assert list(planned(acme, NOON)) == []


def test_the_timeline_of_the_machine_names_it_escaped(told, as_user, vera):
    told(notice(detail="<b>reboot</b>"))
    with time_machine.travel(NOON + MINUTE, tick=False):
        page = as_user(vera).get(f"/t/acme/instances/{Instance.objects.get(external_id='i-1').pk}/").text
    assert "Maintenance by the provider" in page
    assert "&lt;b&gt;reboot" in page
    assert "<b>reboot" not in page
