"""The whole way: an account is due, the beat dispatches it, a worker reads AWS, the machine is in the fleet."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.inventory import tasks
from fleet.inventory.accounts import create_account
from fleet.inventory.checks import run_checks
from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.audit import Actor
from tests.fleet.conftest import AWS_OPTIONS
from tests.fleet.inventory.conftest import NOON


@pytest.fixture
def aws_account(moto, acme, alice) -> ProviderAccount:
    return create_account(
        actor=Actor(alice, "alice", "page"), team=acme, kind="aws", name="AWS, research", values=AWS_OPTIONS
    )


@pytest.fixture
def beat(monkeypatch):
    """beat() is one beat with a worker that is quick."""
    monkeypatch.setattr(tasks.poll, "apply_async", lambda args, **options: tasks.poll(*args))

    account_due = timezone.now() - timedelta(minutes=1)

    def run() -> None:
        ProviderAccount.objects.update(next_poll_at=account_due)
        assert tasks.dispatch_polls() == 1

    return run


def test_a_p4d_is_found_with_its_eight_a100(aws_account, beat, rent, acme):
    (wanted,) = rent("us-east-1", name="train-a100-01")
    beat()
    machine = Instance.objects.get()
    assert (machine.team, machine.external_id, machine.region) == (acme, wanted, "us-east-1")
    assert (machine.name, machine.state, machine.billing) == ("train-a100-01", "running", "full")
    assert (machine.gpu_count, machine.gpu_model, machine.instance_type) == (8, "A100 SXM 40 GB", "p4d.24xlarge")
    assert (machine.price_per_hour, machine.currency) == (Decimal("21.96"), "USD")
    assert (machine.is_exclusive, machine.managed) == (False, False)
    aws_account.refresh_from_db()
    assert (aws_account.failures, aws_account.error_detail) == (0, "")


def test_its_life_is_in_the_observation_log(aws_account, beat, rent, ec2):
    ids = rent("us-east-1")
    beat()
    ec2("us-east-1").stop_instances(InstanceIds=ids)
    beat()
    beat()
    ec2("us-east-1").terminate_instances(InstanceIds=ids)
    beat()
    machine = Instance.objects.get()
    seen = machine.observations.order_by("pk").values_list("raw_state", "billing")
    assert list(seen) == [("running", "full"), ("stopped", "storage"), ("terminated", "none")]
    assert machine.gone_at is not None


def test_one_region_that_fails_leaves_the_fleet_as_it_was(aws_account, beat, rent, monkeypatch):
    rent("us-east-1")
    beat()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    beat()
    machine = Instance.objects.get()
    assert (machine.state, machine.missed_listings) == ("running", 0)
    aws_account.refresh_from_db()
    assert (aws_account.error_kind, aws_account.failures) == ("unavailable", 1)


def test_the_account_is_checked(aws_account, rent):
    rent("us-east-1")
    results = {result["name"]: result for result in run_checks(account=aws_account, now=NOON)}
    assert results["accepted"]["as"] == "123456789012"
    assert results["machines"] == {"name": "machines", "result": "ok", "machines": 1, "gpus": 8}
    assert "lacks" not in results
