"""One row of everything in alice's team, and tokens to ask for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import asyncssh
import pytest
from django.test import Client
from django.utils import timezone

from fleet.alerts.channels.models import Channel, Delivery, Route
from fleet.alerts.door import raise_event
from fleet.alerts.models import MaintenanceWindow
from fleet.costs.attribution.models import AttributionRule, MachineSplit, Reattribution, UnixUser
from fleet.costs.attribution.sync import sync_attribution
from fleet.costs.balances.models import BalanceReading
from fleet.costs.bills.models import Bill, BillLine, Reconciliation, ReconciliationLine
from fleet.costs.budgets.models import Budget, Crossing
from fleet.costs.charges.models import TypedCharge
from fleet.costs.rightsizing.models import RightSizing
from fleet.costs.spend.models import Adjustment, ExchangeRate
from fleet.idle.policies.models import IdlePolicy, MachineUse
from fleet.idle.schedules.models import PowerSchedule
from fleet.idle.shutdown.models import IdleSaving, IdleStop, IdleStopEvent
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.environments.models import Environment
from fleet.inventory.models import EnvironmentReport, Hold, HoldKind, Image, Observation, ProviderAccount, SshKey
from fleet.inventory.offers.models import Offer, OfferSource, ProviderScore
from fleet.inventory.operations.models import Operation, OperationEvent
from fleet.inventory.plans.models import LaunchBlock, PlannedAction
from fleet.inventory.provider_word.models import ProviderNotice, ProviderUsage
from fleet.providers.base import Market, Tenancy
from fleet.quality.models import AcceptanceReport, HealthDay, NeighbourEvidence
from fleet.states import GpuState
from fleet.teams.audit import Actor, record
from fleet.teams.models import APIToken, Scope
from fleet.teams.secrets import new_token
from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.models import Agent, GpuLatest, HostLatest, MachineEvent, ScrapeTarget
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.columns import HOUR, ROLLUPS
from fleet.telemetry.rollups.fleet_models import (
    UTILIZATION_BINS,
    FleetRollupHour,
    FleetRollupProgress,
    RollupGroup,
)
from fleet.telemetry.serving.models import ServingLatest
from fleet.telemetry.sources.models import PrometheusSource, SourceMachine
from jobs.book.models import Attempt, Job, JobEvent, Node
from jobs.findings.models import JobFinding
from jobs.logs.part import Part
from jobs.logs.store import store_part
from jobs.metrics.models import JobPoint
from jobs.uploads.models import JobUpload

PUBLIC_KEY = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
REASONS = [{"code": "utilization", "subject": "", "value": 0.0, "limit": 2.0}]


@pytest.fixture
def make_token():
    """make_token(team, Scope.READ) -> (secret, row)"""

    def make(team, scope=Scope.READ, **fields):
        new = new_token("rrk")
        row = APIToken.objects.create(
            team=team, name="script", scope=scope, token_hash=new.hash, prefix=new.prefix, **fields
        )
        return new.secret, row

    return make


@pytest.fixture
def as_token(make_token):
    """as_token(acme) is a script with a token of that team."""

    def script(team, scope=Scope.READ, **fields) -> Client:
        secret, _ = make_token(team, scope, **fields)
        return Client(headers={"Authorization": f"Bearer {secret}"})

    return script


@pytest.fixture
def fleet(acme, alice, bob, project, account, make_instance):
    """Everything the API can list, once, with as many optional values filled as one row can have."""
    cloud = ProviderAccount.objects.create(
        team=acme, kind="aws", name="AWS", credentials=b"sealed", options={"regions": "us-east-1", "secret": "hush"}
    )
    image = Image.objects.create(account=cloud, external_id="ami-1", name="train", created_at=NOW)
    Environment.objects.create(
        team=acme, image=image, name="train", typed={"python": "3.12"}, typed_at=NOW, typed_by=bob,
        price_per_month="1.5", edited_at=NOW, edited_by=bob,
    )  # fmt: skip
    instance = make_instance(
        name="train-01",
        gpus=2,
        image=image,
        owner=bob,
        project=project,
        labels={"purpose": "pretraining"},
        price_per_hour="32.7726",
        market=Market.SPOT,
        tenancy=Tenancy.DEDICATED_GPU,
        started_at=NOW,
        ssh=[{"host": "198.51.100.20", "port": 22, "user": "root", "kind": "direct"}],
    )
    bare = make_instance(name="bare-02")
    Observation.objects.create(
        instance=instance, seen_at=NOW, state="running", billing="full", currency="USD", rule_version=1
    )
    ProviderUsage.objects.create(
        instance=instance, slot=NOW, at=NOW, gpu_utilization_percent=[97.0, None], cpu_percent=34.0
    )
    NeighbourEvidence.objects.create(
        instance=instance, hour=NOW, score=77, reasons=[{"code": "cpu_pressure", "before": 0.0, "now": 16.5}]
    )
    HealthDay.objects.create(instance=instance, provider="runpod", day=NOW.date(), gpu_hours=192, score=100)
    ProviderNotice.objects.create(
        account=cloud,
        instance=instance,
        kind="maintenance",
        key="n",
        starts_at=NOW,
        first_seen_at=NOW,
        last_seen_at=NOW,
    )
    operation = Operation.objects.create(
        team=acme, account=cloud, instance=instance, kind="stop", token="rr-0123456789abcdef", price_per_hour="32.7726",
        requested_by=bob, requested_label="bob", state="verifying", accepted_at=NOW, sent_at=NOW, seen_at=NOW,
    )  # fmt: skip
    OperationEvent.objects.create(operation=operation, at=NOW, kind="accepted", state="accepted")
    BalanceReading.objects.create(account=cloud, at=NOW, amount=118, currency="USD", source="typed")
    budget = Budget.objects.create(team=acme, name="Vision", amount=5000, currency="USD", project=project, hard=True)
    Crossing.objects.create(
        budget=budget,
        period_from=NOW.date(),
        revision=1,
        basis="actual",
        percent=80,
        at=NOW,
        amount=5000,
        currency="USD",
        spent=4012,
    )
    AttributionRule.objects.create(team=acme, order=1, name_pattern="train-*", project=project, created_by=alice)
    MachineSplit.objects.create(instance=instance, split="holds")
    UnixUser.objects.create(team=acme, name="ada", owner=alice, project=project)
    sync_attribution(team=acme, now=NOW)
    again = Reattribution.objects.create(
        team=acme, start=NOW - timedelta(hours=9), until=NOW, project=project, owner=bob, reason="x", actor_label="bob",
        before=[{"project": None, "owner": None, "amounts": {"USD": "1.005"}}], after=[],
    )  # fmt: skip
    again.instances.add(instance)
    RightSizing.objects.create(
        team=acme, instance=instance, looked_at=NOW, kind="fewer", saving_per_month="1197.20", currency="USD",
        change={"kind": "fewer", "saving": "1197.20", "losses": [{"code": "local_disk"}]}, measured={"gpus": 4},
    )  # fmt: skip
    policy = IdlePolicy.objects.create(
        team=acme, name="Notebooks", project=project, account=cloud, action="stop", limits={"cpu_percent": 20.0},
        warn_minutes=[10], office_days=[0, 1], office_from="09:00", office_until="18:00", holidays="DE", max_age_hours=72,
        delete_after_days=7, delete_consent_at=NOW, delete_consent_by=alice, created_at=NOW, changed_at=NOW,
    )  # fmt: skip
    policy.excluded.add(bare)
    MachineUse.objects.create(instance=instance, mode="batch", lease_until=NOW, changed_at=NOW, changed_by=bob)
    stop = IdleStop.objects.create(
        team=acme, instance=instance, policy_name="Lab", verb="stop", stage="grace", since=NOW, deadline=NOW + timedelta(minutes=30),
        delivered_at=NOW, quiet_since=NOW - timedelta(hours=1), because=[{"code": "utilization", "subject": "", "value": 0.0, "limit": 2.0}],
        price_per_hour="32.7726", began_at=NOW, terms={"grace_seconds": 1800},
    )  # fmt: skip
    IdleStopEvent.objects.create(stop=stop, at=NOW, kind="grace", by_label="", values={})
    IdleSaving.objects.create(
        team=acme, instance=bare, stop=stop, since=NOW, counted_until=NOW + timedelta(hours=1), most_until=NOW + timedelta(days=7),
        price_per_hour="32.2726", currency="USD", amount="32.2726", gpu_count=8,
    )  # fmt: skip
    AcceptanceReport.objects.create(
        instance=instance,
        action=AgentAction.objects.create(instance=instance, name="accept", state="done", expires_at=NOW),
        at=NOW,
        verdict="short",
        checks=[
            {"name": "pcie_width", "promised": 16, "measured": 8, "unit": "lanes", "result": "short", "source": "card"}
        ],
        promised={"gpu_model": "H100 SXM", "gpu_count": 2},
        measured={"gpu": {"driver": "570.86.15", "count": 2, "gpus": [{"uuid": "GPU-x", "name": "NVIDIA H100"}]}},
    )
    LaunchBlock.objects.create(team=acme, account=cloud, project=project, owner=bob, source="budget:7", reason="spent")
    PlannedAction.objects.create(
        team=acme, instance=instance, verb="stop", due_at=NOW, source="budget:7", reason="spent", notified_at=NOW
    )
    PowerSchedule.objects.create(
        team=acme, name="Nights", project=project, days=[0, 1, 2, 3, 4], start_at="08:00", stop_at="20:00"
    )
    bill = Bill.objects.create(
        team=acme, account=cloud, source="csv", file_name="november.csv", digest="d" * 64, starts_at=NOW,
        ends_at=NOW + timedelta(days=1), line_count=1, state="current", imported_by=bob,
    )  # fmt: skip
    BillLine.objects.create(
        bill=bill, account=cloud, key="L-1", kind="compute", instance=instance, external_id="train-01", amount="48",
        starts_at=NOW, ends_at=NOW + timedelta(days=1), currency="USD", quantity=24, unit="hours",
    )  # fmt: skip
    month = Reconciliation.objects.create(
        account=cloud, month="2026-11-01", currency="USD", counted=40, billed=48, explained=5, left=3, matched=0,
        matched_lines=0, made_at=NOW,
    )  # fmt: skip
    ReconciliationLine.objects.create(
        reconciliation=month, instance=instance, meter="compute", starts_at=NOW, ends_at=NOW + timedelta(days=1),
        status="differs", counted=40, billed=48, left=3, reasons=[{"kind": "edges", "amount": "5"}],
    )  # fmt: skip
    Adjustment.objects.create(
        team=acme, account=cloud, instance=instance, at=NOW, amount="-5", currency="USD", kind="refund", reason="outage",
        created_by=bob,
    )  # fmt: skip
    EnvironmentReport.objects.create(instance=instance, reported_at=NOW, digest="d", data={"os": "Debian 12"})
    Hold.objects.create(
        instance=instance, kind=HoldKind.PERSON, owner=bob, expires_at=timezone.now() + timedelta(hours=1)
    )
    IdleVerdictRow.objects.create(
        instance=instance, answer="idle", because=REASONS, parts={"bob": {"answer": "idle", "because": REASONS}}, quiet_since=NOW, since=NOW,
        judged_at=NOW, active_at=NOW, mode="interactive", window_minutes=60,
    )  # fmt: skip
    record(actor=Actor(alice, "alice", "page", "192.0.2.7"), team=acme, action="instance.update", target=instance)
    agent = Agent.objects.create(
        instance=instance,
        token_hash="h",
        prefix="rra_abc",
        version="0.1.0",
        heartbeat_at=timezone.now(),
        nvml_state="ok",
    )
    MachineEvent.objects.create(instance=instance, gpu=instance.gpus.first(), at=NOW, kind="xid", code=79)
    exporter = ScrapeTarget.objects.create(instance=bare, url="http://203.0.114.7:9400/metrics", last_ok_at=NOW)
    read_at = timezone.now() - timedelta(seconds=2)
    gpu = instance.gpus.get(index=0)
    reading = {"utilization_percent": 97.0, "memory_used_bytes": 2**34, "power_watts": 371.0}
    GpuLatest.objects.create(gpu=gpu, sampled_at=read_at, received_at=read_at, **reading)
    HostLatest.objects.create(instance=instance, sampled_at=read_at, received_at=read_at, cpu_percent=34.0)
    ServingLatest.objects.create(
        instance=instance,
        engine="vllm",
        model="llama",
        port=8000,
        sampled_at=read_at,
        received_at=read_at,
        ttft_count=3,
    )
    alert = raise_event(
        team=acme, cause="gpu.lost", subject=f"instance:{instance.pk}", severity="urgent", instance=instance,
        signal="gpu_lost", detail="gpu:1", values={"gpu": 0}, now=read_at,
    )  # fmt: skip
    window = MaintenanceWindow.objects.create(
        team=acme, instance=bare, starts_at=timezone.now(), ends_at=timezone.now() + timedelta(hours=1), created_by=bob
    )
    # Not asked any more, so that its pace is not the machine's.
    source = PrometheusSource.objects.create(
        team=acme, name="Own", url="https://prometheus.example", token=b"sealed", enabled=False
    )
    label = SourceMachine.objects.create(source=source, label="train-01", instance=instance, last_at=NOW)
    prices = OfferSource.objects.create(team=acme, kind="import", name="Prices", read_at=NOW)
    offer = Offer.objects.create(
        source=prices, key="big", provider="lambda", instance_type="big", gpu_model="H100 SXM", gpu_count=8,
        gpu_memory_mib=81_559, price_per_hour="31.92", currency="USD", priced_on=NOW.date(), seen_at=NOW,
    )  # fmt: skip
    ProviderScore.objects.create(team=acme, provider="lambda", value=4, by=bob)
    ExchangeRate.objects.create(
        team=acme, currency="CNY", into="USD", day=NOW.date(), rate="0.1389", created_by=alice, created_at=NOW
    )
    TypedCharge.objects.create(
        team=acme, account=cloud, instance=instance, kind="address", name="ip-1", unit="hour", price="0.005", currency="USD", starts_at=NOW,
        created_by=bob,
    )  # fmt: skip
    SshKey.objects.create(team=acme, public_key=PUBLIC_KEY, private_key=b"sealed")
    channel = Channel.objects.create(team=acme, kind="webhook", name="hook", secret=b"sealed")
    route = Route.objects.create(channel=channel, severities=["urgent"])
    route.projects.add(project)
    delivery = Delivery.objects.create(channel=channel, alert=alert, state="sent", sent_at=NOW)
    job = Job.objects.create(
        team=acme, project=project, name="run-1", kind="training", command="python train.py", environment={"A": "1"}, secrets=b"sealed",
        secret_names=["HF_TOKEN"], state="running", started_at=NOW, created_at=NOW, created_by=bob, created_label="bob",
    )  # fmt: skip
    attempt = Attempt.objects.create(
        job=job, number=1, state="running", marker="rr-job-0123456789abcdef", directory=".rackrent/jobs/rr-job-0123456789abcdef"
    )  # fmt: skip
    JobUpload.objects.create(
        team=acme, name="x", sha256="0", size_bytes=1, packed_bytes=1, unpacked_bytes=1, file_count=1
    )
    node = Node.objects.create(attempt=attempt, instance=instance, rank=0, state="running", reached_at=NOW)
    JobEvent.objects.create(job=job, attempt=attempt, node=node, at=NOW, kind="started", by=bob)
    JobPoint.objects.create(
        attempt=attempt, at=NOW, source="log", line=1, step=10, steps=200, loss=float("nan"), epoch=0.5
    )
    JobFinding.objects.create(
        attempt=attempt, code="not_a_number", sure="certain", because=[{"code": "loss", "values": {"step": 10}}],
        remedies=[{"code": "lower_rate", "values": {}, "saves_bytes": None}], lines=[1], found_at=NOW, seen_at=NOW,
    )  # fmt: skip
    store_part(node=node, part=Part(0, b"step 10/200 loss nan\n"), at=NOW)
    return SimpleNamespace(
        source=source,
        offer=offer,
        label=label,
        channel=channel,
        route=route,
        delivery=delivery,
        alert=alert,
        window=window,
        agent=agent,
        read_at=read_at,
        instance=instance,
        bare=bare,
        gpus=list(instance.gpus.order_by("index")),
        account=cloud,
        image=image,
        exporter=exporter,
        job=job,
        node=node,
    )


@pytest.fixture
def counted(acme, account):
    """An H100 that worked for the last two whole hours at 90 percent and 500 W, as rollups of the fleet keep it."""
    now = timezone.now()
    ensure_partitions(now=now)
    hour = HOUR.floor(now)
    group = RollupGroup.objects.create(team=acme, account=account, gpu_model="H100 SXM", tenancy="dedicated_host")
    seconds = {f"{state.value}_seconds": 0.0 for state in GpuState} | {"working_seconds": 3600.0}
    for number in (1, 2):
        FleetRollupHour.objects.create(
            group=group,
            bucket_at=hour - number * HOUR.width,
            utilization_gpus=[int(percent == 90) for percent in range(UTILIZATION_BINS)],
            power_watts=500.0,
            power_gpus=1,
            **seconds,
        )
    for resolution in ROLLUPS:
        FleetRollupProgress.objects.create(resolution=resolution.name, rolled_until=hour)
    return hour
