"""Policies of acme, written by alice."""

from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.idle.policies.models import IdlePolicy
from fleet.teams.audit import Actor


@pytest.fixture
def by_alice(alice):
    return Actor(alice, "alice", "page")


@pytest.fixture
def policy(acme):
    """policy("Vision", action="stop") is a row as it is, without a use-case's checks."""

    def make(name="All", **fields):
        return IdlePolicy.objects.create(**{"team": acme, "name": name, **fields})

    return make


@pytest.fixture
def clock_now():
    return timezone.now()
