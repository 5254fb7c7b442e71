from __future__ import annotations

from datetime import timedelta

import pytest
from channels.layers import InMemoryChannelLayer
from django.utils import timezone

from fleet.alerts.channels.calendar import make_feed
from fleet.alerts.channels.links import Signed, sign
from fleet.alerts.channels.models import Channel
from fleet.alerts.channels.models import Route as Hears
from fleet.alerts.door import raise_event
from fleet.alerts.models import MaintenanceWindow
from fleet.costs.attribution.models import AttributionRule, UnixUser
from fleet.costs.bills.models import BillUpload, Reconciliation
from fleet.costs.budgets.models import Budget
from fleet.costs.charges.models import TypedCharge
from fleet.costs.rightsizing.models import RightSizing
from fleet.costs.spend.models import Adjustment, ExchangeRate
from fleet.idle.policies.models import IdlePolicy
from fleet.idle.schedules.models import PowerSchedule
from fleet.idle.shutdown.models import IdleStop
from fleet.inventory.environments.models import Environment
from fleet.inventory.models import Hold, HoldKind, Image
from fleet.inventory.offers.models import OfferSource, ProviderScore
from fleet.inventory.operations.models import Operation, OperationKind
from fleet.inventory.plans.models import LaunchBlock, PlannedAction
from fleet.teams.audit import Actor
from fleet.teams.invitations import create_invitation
from fleet.teams.models import Role, Scope
from fleet.teams.tokens import create_token
from fleet.telemetry.models import Agent, EnrolmentToken, ScrapeTarget
from fleet.telemetry.sources.models import PrometheusSource, SourceMachine
from jobs.book.models import Attempt, Job, Node
from jobs.serving.models import Server
from tests.fleet.teams.routes import WORDS, Route


@pytest.fixture
def by():
    """by(alice) is alice acting on a page."""
    return lambda user: Actor(user, user.username, "page", "192.0.2.7")


@pytest.fixture
def announced(monkeypatch, django_capture_on_commit_callbacks):
    """`with announced() as users:` collects whose open connections are told to check again."""
    from contextlib import contextmanager

    @contextmanager
    def collect():
        users: list[str] = []
        layer = InMemoryChannelLayer()

        async def group_send(group: str, message: dict[str, object]) -> None:
            assert message["type"] == "access.changed"
            users.append(group)

        monkeypatch.setattr(layer, "group_send", group_send)
        monkeypatch.setattr("fleet.teams.access.get_channel_layer", lambda: layer)
        with django_capture_on_commit_callbacks(execute=True):
            yield users

    return collect


@pytest.fixture
def things(acme, alice, bob, project, account, make_instance, by):
    """the way to a place in an address -> something of acme that fits there"""
    instance = make_instance(gpus=1)
    invitation, _ = create_invitation(actor=by(alice), team=acme, role=Role.VIEWER)
    token, _ = create_token(actor=by(alice), team=acme, name="x", scope=Scope.READ)
    tomorrow = timezone.now() + timedelta(days=1)
    enrolment = EnrolmentToken.objects.create(team=acme, token_hash="e", expires_at=tomorrow)
    exporter = ScrapeTarget.objects.create(instance=instance, url="http://203.0.114.7:9400/metrics")
    source = PrometheusSource.objects.create(team=acme, name="Own", url="https://prometheus.example")
    row = SourceMachine.objects.create(source=source, label="node-1", last_at=timezone.now())
    quiet = raise_event(
        team=acme, cause="machine.unreachable", subject="x", severity="note", instance=instance, now=timezone.now()
    )
    window = MaintenanceWindow.objects.create(team=acme, starts_at=timezone.now(), ends_at=tomorrow)
    channel = Channel.objects.create(team=acme, kind="slack", name="Ops")
    prices = OfferSource.objects.create(team=acme, kind="import", name="Prices")
    score = ProviderScore.objects.create(team=acme, provider="lambda", value=4)
    operation = Operation.objects.create(
        team=acme,
        account=account,
        instance=instance,
        kind=OperationKind.STOP,
        token="rr-1",
        idempotency_key="batch:b1:1",
    )
    zeros = dict.fromkeys(("counted", "billed", "explained", "left", "matched"), 0)
    month = Reconciliation.objects.create(
        account=account, month="2026-11-01", currency="USD", matched_lines=0, made_at=timezone.now(), **zeros
    )
    adjustment = Adjustment.objects.create(
        team=acme, account=account, at=timezone.now(), amount=1, currency="USD", kind="credit", reason="x"
    )
    upload = BillUpload.objects.create(team=acme, account=account, file_name="x.csv", content=b"x", created_by=bob)
    image = Image.objects.create(account=account, external_id="img-1", name="img-1")
    suggestion = RightSizing.objects.create(
        team=acme, instance=instance, looked_at=timezone.now(), why="busy", told={"percent": 91}, currency="USD"
    )
    budget = Budget.objects.create(team=acme, name="Vision", amount=100, currency="USD")
    block = LaunchBlock.objects.create(team=acme, source="budget:1", reason="spent")
    plan = PlannedAction.objects.create(team=acme, instance=instance, verb="stop", due_at=tomorrow, source="budget:1")
    charge = TypedCharge.objects.create(
        team=acme,
        account=account,
        kind="address",
        name="ip",
        unit="hour",
        price=1,
        currency="USD",
        starts_at=timezone.now(),
    )
    policy = IdlePolicy.objects.create(team=acme, name="All")
    job = Job.objects.create(team=acme, name="run-1", command="true", kind="serving", serving={"port": 8000})
    attempt = Attempt.objects.create(
        job=job, number=1, marker="rr-job-12345678", directory=".rackrent/jobs/rr-job-12345678"
    )
    Server.objects.create(node=Node.objects.create(attempt=attempt, instance=instance, rank=0))
    return {
        "costs/bills": month.pk,
        "costs/bills/ask": account.pk,
        "costs/bills/import": upload.pk,
        "costs/adjustments": adjustment.pk,
        "costs/budgets": budget.pk,
        "costs/right-sizing": suggestion.pk,
        "costs/blocks": block.pk,
        "costs/planned": plan.pk,
        "idle/planned": plan.pk,
        "idle/schedules": PowerSchedule.objects.create(team=acme, name="Nights", days=[0], stop_at="20:00").pk,
        "costs/rules": AttributionRule.objects.create(team=acme, order=1, project=project).pk,
        "costs/rules/users": UnixUser.objects.create(team=acme, name="ada", owner=bob).pk,
        "costs/charges": charge.pk,
        "idle/policies": policy.pk,
        "api/v1/idle-policies": policy.pk,
        "images": image.pk,
        "environments": Environment.objects.create(team=acme, name="Template").pk,
        "offers/lists": prices.pk,
        "offers/ratings": score.pk,
        "instances/acted": "b1",
        "operations": operation.pk,
        "calendar": make_feed(actor=by(alice), team=acme, user=alice, now=timezone.now()),
        "a": sign(Signed(quiet.pk, 0, channel.pk, "nonce")),
        "settings/channels": channel.pk,
        "settings/routes": Hears.objects.create(channel=channel).pk,
        "alerts": quiet.pk,
        "alerts/maintenance": window.pk,
        "costs/rates": ExchangeRate.objects.create(
            team=acme, currency="CNY", into="USD", day=timezone.now().date(), rate=1
        ).pk,
        "settings/sources": source.pk,
        "settings/sources/machines": row.pk,
        "exporters": exporter.pk,
        "holds": Hold.objects.create(instance=instance, kind=HoldKind.PERSON, owner=bob).pk,
        "instances": instance.pk,
        "api/v1/jobs": job.pk,
        "gateway/v1": "abcdefgh2345",
        "gateway/v1/<str:name>/later": "0e6a9f64-3f0c-4bd5-9f6c-6a4f3c1f2f11",
        "gateway/v1/<str:name>/later/v1": "chat/completions",
        "jobs": job.pk,
        "jobs/<int:pk>/log": 0,
        "jobs/<int:pk>/trust": 0,
        "idle/stops": IdleStop.objects.create(
            team=acme, instance=instance, policy_name="Nights", verb="stop", stage="grace", since=timezone.now()
        ).pk,
        "settings/agents": Agent.objects.create(instance=instance, token_hash="a").pk,
        "settings/agents/tokens": enrolment.pk,
        "settings/invitations": invitation.pk,
        "settings/members": bob.pk,
        "settings/projects": project.pk,
        "settings/providers": account.pk,
        "settings/tokens": token.pk,
    }


@pytest.fixture
def address(things):
    def at(route: Route, team: str = "acme") -> str:
        missing = set(route.kinds) - set(things) - set(WORDS)
        assert not missing, f"{route.path} needs something of {missing}: add one of acme to `things` in {__file__}"
        return route.at(team, {**things, **WORDS})

    return at
