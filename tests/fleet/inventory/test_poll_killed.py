"""kill -9 of a worker in the middle of a listing: nothing half-written, and the account is read again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from psycopg.conninfo import make_conninfo

from fleet.inventory.accounts import create_account
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.poll import claim_due
from fleet.inventory.tasks import poll
from fleet.teams.audit import Actor
from fleet.teams.models import Team
from tests.fleet.conftest import AWS_OPTIONS

WORKER = """
import django
django.setup()
from django.utils import timezone
from fleet.inventory.poll import claim_due
from fleet.inventory.tasks import poll
(claim,) = claim_due(now=timezone.now())
poll(claim.account_id, claim.started_at.isoformat())
"""


def database_address() -> str:
    """The database of the tests, as another process finds it."""
    named = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    known = {key: str(connection.settings_dict[name]) for key, name in named.items() if connection.settings_dict[name]}
    return make_conninfo("", **known)


@contextmanager
def killed_at_the_end(worker: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        worker.kill()
        worker.wait(timeout=20)


@pytest.mark.django_db(transaction=True)
def test_a_killed_poll_is_made_up_for(moto, rent, monkeypatch):
    rent("us-east-1", name="train-a100-01")
    team = Team.objects.create(name="Acme", slug="acme")
    account = create_account(actor=Actor.system("test"), team=team, kind="aws", name="AWS", values=AWS_OPTIONS)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf.settimeout(60)
        port = deaf.getsockname()[1]
        environment = {
            **os.environ,
            "DATABASE_URL": database_address(),
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        worker = subprocess.Popen([sys.executable, "-c", WORKER], env=environment)
        with killed_at_the_end(worker), deaf.accept()[0]:
            # It has claimed the account and waits for an answer that will not come.
            worker.send_signal(signal.SIGKILL)

    account.refresh_from_db()
    assert account.poll_started_at is not None
    assert claim_due(now=timezone.now()) == []
    assert not Instance.objects.exists()

    ProviderAccount.objects.update(next_poll_at=timezone.now() - timedelta(seconds=1))  # the claim has run out
    (claim,) = claim_due(now=timezone.now())
    poll(claim.account_id, claim.started_at.isoformat())
    assert Instance.objects.get().name == "train-a100-01"
    account.refresh_from_db()
    assert account.failures == 0
    assert account.poll_started_at is None
