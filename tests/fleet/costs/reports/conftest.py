from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
import time_machine
from django.core import mail
from django.core.mail import EmailMessage

from fleet.costs.spend.models import CostProgress
from fleet.states import GpuState
from tests.fleet.costs.seeding import spend_on

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def _first_of_december():
    with time_machine.travel("2026-12-01T09:00:00Z", tick=False):
        yield


@pytest.fixture
def now() -> datetime:
    return datetime(2026, 12, 1, 9, tzinfo=UTC)


@pytest.fixture
def outbox(settings) -> list[EmailMessage]:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    return mail.outbox


@pytest.fixture
def summed(acme):
    """All of November's days are summed."""
    return CostProgress.objects.create(team=acme, summed_until=datetime(2026, 12, 1, 8, tzinfo=UTC), time_zone="UTC")


@pytest.fixture
def november(acme, alice, summed, project, make_instance):
    """Money in October and November; a machine with a hostile name that bought nothing."""
    busy, idle = make_instance(name="train-01"), make_instance(name=HOSTILE, external_id="evil")
    spend_on(acme, date(2026, 10, 9), 1000, instance=busy, project=project)
    for day in range(1, 31):
        spend_on(acme, date(2026, 11, day), 40, instance=busy, project=project)
    spend_on(acme, date(2026, 11, 20), 250, instance=idle, state=GpuState.HELD_IDLE)
    spend_on(acme, date(2026, 11, 21), 50, instance=idle, state=GpuState.STALLED)
    spend_on(acme, date(2026, 11, 22), 70, instance=busy, currency="CNY", meter="disk_running")
