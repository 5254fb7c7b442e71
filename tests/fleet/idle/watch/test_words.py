"""Every reason has words, in both languages, with its readings in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.utils import translation

from fleet.idle.shutdown import course
from fleet.idle.shutdown.words import WHY
from fleet.idle.verdict import verdict
from fleet.idle.watch.words import ANSWERS, answer_text, reason_text
from fleet.inventory.models import HoldKind

SOURCE = Path(verdict.__file__).read_text()
READINGS = {"utilization", "sm_activity", "tensor_activity", "dram_activity", "power", "cpu", "disk", "network"}
CODES = sorted({*re.findall(r'Reason\("(\w+)"', SOURCE), *READINGS} | {f"hold_{kind}" for kind in HoldKind.values})
MOMENTS = {"worked", "kernel_active", "stale", "from_the_future", "ready_too_lately", "started_lately", "clock_jumped"}


def told(code, **changes):
    is_moment = code in MOMENTS or code.startswith("hold_")
    value, limit = ("2026-11-30T08:00:00+00:00", None) if is_moment else (0.5, 0.9)
    return {"code": code, "subject": "GPU 3", "value": value, "limit": limit, **changes}


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_reason_has_words(language):
    assert len(CODES) > 35
    with translation.override(language):
        for code in CODES:
            for reason in (told(code), told(code, value=None, limit=None)):
                text = reason_text(reason)
                assert text
                assert text != code
                assert "%" not in text.replace(" %", "")
    if language != "en":
        assert not re.search("[A-Za-z]{6}", re.sub("GPU 3|Nov", "", text))


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (told("utilization", subject="", value=0.0, limit=2.0), "GPUs read 0 % in every reading"),
        (told("utilization", subject="", value=1.0, limit=2.0), "GPUs were at most 1.00 % busy in any reading"),
        (told("utilization", value=97.0, limit=2.0), "GPU 3 was up to 97.0 % busy"),
        (told("memory_held", value=62 << 30, limit=80 << 30), "62.0 GiB of 80.0 GiB of GPU memory held"),
        (told("memory_held", value=62 << 30, limit=None), "62.0 GiB of GPU memory held"),
        (told("forgotten_session", value=1, limit=4.0), "Open SSH sessions: 1, and nothing else for 4 h"),
        (told("network", subject="", value=9e6, limit=1e6), "The network moved up to 9.00 MB/s (from 1.00 MB/s on that counts)"),
        (told("requests", subject="llama", value=0, limit=0), "llama had no request"),
        (told("requests", subject="llama", value=3, limit=0), "llama answered requests: 3"),
        (told("gpus_missing", value=6, limit=8), "6 of 8 GPUs report"),
        (told("gpus_missing", value=None, limit=None), "It is not known how many GPUs are rented"),
        (told("sparse", subject="host", value=0.71, limit=0.9), "machine: 71.0 % of the time was read; 90.0 % are needed"),
        (told("hold_job", subject="", value=None), "A job holds it"),
        (told("hold_person", subject="bob"), "Somebody holds it: bob, until 30 Nov 08:00"),
        ({"code": "of a newer release"}, "of a newer release"),
    ],
)  # fmt: skip
def test_readings_stand_in_the_words(reason, text):
    assert reason_text(reason) == text


def test_answers_have_words():
    assert set(ANSWERS) == {answer.value for answer in verdict.Answer}
    assert answer_text("idle") == "idle"


def test_ends_of_courses_have_words():
    found = set(re.findall(r'why="(\w+)"|return "(\w+)"|terms, "(\w+)"', Path(course.__file__).read_text()))
    assert {word for words_ in found for word in words_ if word} | {"unknown", "active"} <= set(WHY)
