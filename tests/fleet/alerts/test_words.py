"""Every rule has its words, and they are made of what the rule really says."""

from __future__ import annotations

import pytest
from django.utils import translation
from msgspec.structs import replace

from fleet.alerts.causes import all_causes
from fleet.alerts.models import Alert, Signal
from fleet.alerts.rule_words import RULE_WORDS, THRESHOLD_WORDS, threshold_words
from fleet.alerts.rules import all_rules, rule_of
from fleet.alerts.rules.xids import XIDS
from fleet.alerts.standing import Limit, Standing
from fleet.alerts.words import remedy_of, title_of, values_words, why_of
from fleet.alerts.xid_words import XID_WORDS
from tests.fleet.alerts.conftest import NOON
from tests.fleet.alerts.snapshots import ACCOUNT, AGENT, MACHINE, found, snapshot
from tests.fleet.alerts.test_rules import CASES, HOUR


def test_every_rule_threshold_and_xid_has_its_words_and_no_other_has():
    assert set(RULE_WORDS) == {rule.kind for rule in all_rules()}
    assert set(THRESHOLD_WORDS) == {(rule.kind, limit.name) for rule in all_rules() for limit in rule.thresholds}
    assert set(XID_WORDS) == set(XIDS)
    assert {rule.cause for rule in all_rules()} <= {cause.name for cause in all_causes()}


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_what_a_rule_says_is_said_with_its_values(language):
    generic = {}
    with translation.override(language):
        for kind, machine, _expected in CASES:
            for finding in found(kind, snapshot(machine, agent_version="0.1.0")):
                text = values_words(kind, finding.values)
                assert "%" not in text.replace(" %", "").replace("+20 %", ""), text
                if text == str(RULE_WORDS[kind].name) and not finding.keeps:
                    generic[kind] = finding.values
    assert generic == {}


def test_silence_and_unread_accounts_are_said_too():
    gone = replace(AGENT, heard_at=NOON - HOUR)
    (silent,) = found("agent_silent", snapshot(replace(MACHINE, agent=gone)))
    assert (
        values_words("agent_silent", silent.values)
        == "no report since 2026-11-30 11:00; Cloud says running and bills it"
    )
    (unread,) = found("poll_failing", snapshot(accounts=(replace(ACCOUNT, failures=5),)))
    assert values_words("poll_failing", unread.values) == "no complete listing of Cloud since 2026-11-30 12:00"


def test_values_of_another_release_are_no_error():
    assert values_words("disk", {"mount": "/"}) == "Disk nearly full"
    assert values_words("of_a_later_release", {}) == "of a later release"


def test_an_alert_says_what_is_why_and_what_to_do(acme, machine):
    alert = Alert(
        team=acme, instance=machine, cause="gpu.lost", subject=f"instance:{machine.pk}", severity="urgent",
        evidence={"kind": "xid", "detail": "x", "values": {"code": 79, "times": 2, "gpu": 3}, "signals": 2},
    )  # fmt: skip
    assert title_of(alert) == "train-01 lost a GPU"
    assert why_of(alert) == (
        "GPU 3: XID 79, 2 times: the GPU fell off the bus: the host no longer reaches it; 1 more signal"
    )
    assert remedy_of(alert) == "Restart the machine. If it happens again, ask the provider for another one."


def test_what_a_machine_says_of_itself_stays_text(acme):
    signal = Signal(kind="driver_hung", values={"state": "error", "detail": "<b>100%(x)s</b>"})
    assert values_words(signal.kind, signal.values).endswith("(<b>100%(x)s</b>)")


@pytest.mark.parametrize(
    ("kind", "value", "english", "chinese"),
    [
        ("poll_failing", 1.0, "1 listing failed", "连续 1 次读取账号失败"),
        ("poll_failing", 3.0, "3 listings in a row failed", "连续 3 次读取账号失败"),
        ("power", 82.5, "a GPU may draw less than 82.5 % of what its like may draw elsewhere", "一块 GPU 的功率上限低于其他机器上同型号卡的 82.5%"),
    ],
)  # fmt: skip
def test_a_limit_reads_as_a_sentence(kind, value, english, chinese):
    rule = rule_of(kind)
    assert rule is not None
    limit = Limit(rule.thresholds[0], threshold_words(kind, rule.thresholds[0].name), value, is_own=True)
    assert limit.text == english
    with translation.override("zh-hans"):
        assert limit.text == chinese


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_limit_has_its_value_in_its_sentence(language):
    with translation.override(language):
        for rule in all_rules():
            for limit in Standing(rule, None).limits:
                assert f"{limit.value:g}" in limit.text
                assert "%(" not in limit.text + str(limit.words.label)
                assert "%%" not in limit.text + str(limit.words.label)
