"""A team's own Prometheus, as tests have it: sources of acme, and answers of one that never was."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.telemetry.sources.manage import SourceWords, add_source
from fleet.telemetry.sources.pages import Series
from tests.fleet.telemetry.enrolling import ACTOR

CARD = "GPU-0a1b2c3d-0000-1111-2222-333344445555"


@pytest.fixture
def make_source(settings, acme):
    """make_source("http://127.0.0.1:9090") is a source of acme; loopback is allowed."""
    settings.ALLOWED_NETWORKS = ["127.0.0.0/8"]

    def make(url: str, *, token: str = "", history_hours: int = 0, **words: Any):
        told = SourceWords(**{"name": "Own", "url": url, **words})
        return add_source(actor=ACTOR, team=acme, words=told, token=token, history_hours=history_hours)

    return make


def one(name: str, values: list[tuple[float, float]], **labels: str) -> Series:
    """A series as Prometheus answers it."""
    return Series({"__name__": name, "job": "exporters", **labels}, [(at, str(value)) for at, value in values])


def gpu_series(values: list[tuple[float, float]], *, name: str = "DCGM_FI_DEV_GPU_UTIL", **labels: str):
    known = {"gpu": "0", "UUID": CARD, "modelName": "NVIDIA H100", "Hostname": "node-1", "instance": "10.0.0.7:9400"}
    return one(name, values, **{**known, **labels})
