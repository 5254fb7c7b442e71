"""A policy is read as a sentence, in both languages."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest
from django.utils import translation

from fleet.idle.policies.models import IdlePolicy
from fleet.idle.policies.places import countries, country_words
from fleet.idle.policies.words import more_words, sentence
from fleet.teams.models import Project

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
OFFICE = {"office_days": [0, 1, 2, 3, 4], "office_from": time(9), "office_until": time(18)}
VISION = Project(name="Vision", slug="vision")


def said(left_out=0, **fields):
    return sentence(IdlePolicy(name="One", **fields), left_out)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "Machines idle for 1 h are told of, and go on running."),
        ({"project": VISION, "action": "stop"}, "Machines of Vision idle for 1 h are stopped 30 min after a warning."),
        (
            {"project": VISION, "action": "stop", "holidays": "DE", **OFFICE},
            "Machines of Vision idle for 1 h are stopped 30 min after a warning, outside 09:00–18:00 on workdays in Germany.",
        ),
        (
            {"action": "terminate", "time_zone": "Asia/Shanghai", **OFFICE},
            "Machines idle for 1 h are terminated 30 min after a warning, outside 09:00–18:00 (Asia/Shanghai) from Monday to Friday.",
        ),
        (
            {"action": "stop", **OFFICE, "office_days": [0, 5], "holidays": "DE-BY"},
            "Machines idle for 1 h are stopped 30 min after a warning, outside 09:00–18:00 on Monday, Saturday that is no holiday in Germany (BY).",
        ),
        ({**OFFICE}, "Machines idle for 1 h are told of, and go on running."),
        ({"mode": "serving", "window_minutes": 90}, "Machines without a request for 1 h 30 min are told of, and go on running."),
        ({"mode": "batch", "provider": "runpod"}, "Machines at RunPod without work or a heartbeat for 1 h are told of, and go on running."),
        ({"mode": "pinned", "label_name": "tier", "label_value": "prod"}, "Machines labelled tier=prod are never idle."),
        ({"left_out": 2}, "All machines except 2 idle for 1 h are told of, and go on running."),
        ({"left_out": 1, "tenancy": "fraction"}, "Machines with the tenancy “part of a GPU”, except 1, idle for 1 h are told of, and go on running."),
        ({"window_from": "recommended", "recommended_minutes": 95}, "Machines idle for 1 h 35 min are told of, and go on running."),
    ],
)  # fmt: skip
def test_the_sentence(fields, text):
    assert said(**fields) == text


def test_in_chinese():
    with translation.override("zh-hans"):
        assert said(project=VISION, action="stop", holidays="CN", **OFFICE) == (
            "Vision 的机器闲置 1 小时后，会在发出警告 30 分后停止，但中国工作日 09:00–18:00 除外。"
        )


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        ({}, []),
        ({"action": "stop"}, ["Where a stop would lose data, it only tells."]),
        ({"action": "stop", "accept_loss": True, "stop_without_hook": True, "warn_minutes": [10, 5]},
         ["Reminded again 10, 5 min before.", "Also where a stop loses data.", "Also where the machine's own preparation fails."]),
        ({"window_from": "recommended"}, ["History recommends no time yet: until it does, nothing is stopped."]),
        ({"max_age_hours": 72}, ["No machine runs longer than 3 d without a person's word."]),
        ({"delete_after_days": 7}, ["Would delete machines 7 days after their stop: nobody has agreed to it, so nothing is deleted."]),
        ({"delete_after_days": 7, "delete_consent_at": NOW}, ["Machines are deleted, disks and all, 7 days after their stop."]),
    ],
)  # fmt: skip
def test_what_else_it_does(fields, texts):
    assert more_words(IdlePolicy(name="One", **fields)) == texts


def test_places_have_names_in_both_languages():
    assert country_words("DE-BY") == "Germany (BY)"
    assert ("CN", "China") in countries()
    with translation.override("zh-hans"):
        assert country_words("DE") == "德国"
        assert ("CN", "中国") in countries()
