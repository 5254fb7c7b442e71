"""A list costs the same queries however long it is: every list, found in the router."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.alerts.channels.models import Channel, Delivery, Route
from fleet.alerts.door import raise_event
from fleet.alerts.models import MaintenanceWindow
from fleet.costs.attribution.models import AttributionRule, MachineSplit, Reattribution, UnixUser
from fleet.costs.attribution.sync import sync_attribution
from fleet.costs.balances.models import BalanceReading
from fleet.costs.bills.models import Bill, BillLine, Reconciliation, ReconciliationLine
from fleet.costs.budgets.models import Budget
from fleet.costs.charges.models import TypedCharge
from fleet.costs.rightsizing.models import RightSizing
from fleet.costs.spend.models import Adjustment, ExchangeRate
from fleet.idle.policies.models import IdlePolicy, MachineUse
from fleet.idle.schedules.models import PowerSchedule
from fleet.idle.shutdown.models import IdleSaving, IdleStop
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.environments.models import Environment
from fleet.inventory.models import EnvironmentReport, Hold, HoldKind, Image, Observation, ProviderAccount, SshKey
from fleet.inventory.offers.models import Offer, OfferSource, ProviderScore
from fleet.inventory.operations.models import Operation
from fleet.inventory.plans.models import LaunchBlock, PlannedAction
from fleet.inventory.provider_word.models import ProviderNotice, ProviderUsage
from fleet.quality.models import AcceptanceReport, HealthDay, NeighbourEvidence
from fleet.teams.audit import Actor, record
from fleet.teams.models import Membership, Project, Role, Team
from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.models import Agent, GpuLatest, HostLatest, MachineEvent, ScrapeTarget
from fleet.telemetry.serving.models import ServingLatest
from fleet.telemetry.sources.models import PrometheusSource, SourceMachine
from jobs.book.models import Attempt, Job, Node
from jobs.uploads.models import JobUpload
from tests.api.conftest import NOW, PUBLIC_KEY
from tests.api.resources import LISTS


@pytest.fixture
def more(fleet, acme, alice, make_instance):
    """Three more rows of everything, each with relations of its own."""

    def add() -> None:
        for number in range(3):
            other = Team.objects.create(name=f"Other {number}", slug=f"other-{number}")
            Membership.objects.create(team=other, user=alice, role=Role.ADMIN)
            project = Project.objects.create(team=other, name="Own", slug="own")
            cloud = ProviderAccount.objects.create(team=other, kind="aws", name="AWS")
            image = Image.objects.create(account=cloud, external_id="ami", name="ami")
            Environment.objects.create(team=other, image=image, name="ami", typed_by=alice, edited_by=alice)
            owned = {"team": other, "account": cloud, "owner": alice, "project": project, "image": image}
            machine = make_instance(name=f"more-{number}", gpus=2, **owned)
            Hold.objects.create(instance=machine, kind=HoldKind.PERSON, owner=alice)
            MachineEvent.objects.create(instance=machine, gpu=machine.gpus.first(), at=NOW, kind="xid", code=79)
            Agent.objects.create(instance=machine, token_hash=f"more-{number}", prefix="rra_more")
            EnvironmentReport.objects.create(instance=machine, reported_at=NOW, digest="d", data={})
            seen = {"state": "running", "billing": "full", "currency": "USD", "rule_version": 1}
            Observation.objects.create(instance=machine, seen_at=NOW + timedelta(minutes=number), **seen)
            seen_at = {"first_seen_at": NOW, "last_seen_at": NOW}
            ProviderNotice.objects.create(account=cloud, instance=machine, kind="unpaid", key="n", **seen_at)
            ProviderUsage.objects.create(instance=machine, slot=NOW, at=NOW, cpu_percent=1.0)
            NeighbourEvidence.objects.create(instance=machine, hour=NOW, score=0)
            HealthDay.objects.create(instance=machine, provider="runpod", day=NOW.date())
            HostLatest.objects.create(instance=machine, sampled_at=NOW, received_at=NOW)
            judged = {"since": NOW, "judged_at": NOW, "mode": "batch", "window_minutes": 60}
            IdleVerdictRow.objects.create(instance=machine, answer="active", **judged)
            ServingLatest.objects.create(instance=machine, engine="vllm", model="llama", port=8000)
            ScrapeTarget.objects.create(instance=machine, url="http://203.0.114.7/metrics")
            GpuLatest.objects.create(gpu=machine.gpus.first(), sampled_at=NOW, received_at=NOW)
            raise_event(team=other, cause="x.y", subject=str(machine.pk), severity="note", instance=machine, now=NOW)
            channel = Channel.objects.create(team=other, kind="webhook", name=f"more-{number}")
            Delivery.objects.create(channel=channel)
            Route.objects.create(channel=channel)
            Operation.objects.create(team=other, account=cloud, instance=machine, kind="stop", token=f"more-{number}")
            BalanceReading.objects.create(account=cloud, at=NOW, amount=118, currency="USD", source="typed")
            AttributionRule.objects.create(team=other, order=number + 2, project=project, owner=alice, created_by=alice)
            MachineSplit.objects.create(instance=machine, split="holds")
            UnixUser.objects.create(team=other, instance=machine, name=f"user-{number}", owner=alice, project=project)
            sync_attribution(team=other, now=NOW)
            hours = {"start": NOW - timedelta(hours=9), "until": NOW}
            Reattribution.objects.create(team=other, project=project, **hours).instances.add(machine)
            stop = IdleStop.objects.create(team=other, instance=machine, verb="stop", stage="grace", since=NOW)
            IdleSaving.objects.create(
                team=other, instance=machine, stop=stop, since=NOW, counted_until=NOW, most_until=NOW, currency="USD"
            )
            Budget.objects.create(team=other, name="Own", amount=100, currency="USD", project=project)
            IdlePolicy.objects.create(team=other, name="Own", project=project, account=cloud).excluded.add(machine)
            MachineUse.objects.create(instance=machine, mode="pinned", changed_by=alice)
            RightSizing.objects.create(
                team=other, instance=machine, looked_at=NOW, why="stale", told={"hours": 60}, currency="USD"
            )
            asked = AgentAction.objects.create(instance=machine, name="accept", expires_at=NOW)
            AcceptanceReport.objects.create(instance=machine, action=asked, verdict="pass")
            whose = {"account": cloud, "project": project, "owner": alice}
            LaunchBlock.objects.create(team=other, source="budget:1", reason="spent", **whose)
            later = NOW + timedelta(days=1)
            bill = Bill.objects.create(
                team=other, account=cloud, source="csv", digest=f"{number}", starts_at=NOW, ends_at=later, line_count=1,
                state="current", imported_by=alice,
            )  # fmt: skip
            BillLine.objects.create(
                bill=bill, account=cloud, key=f"{number}", kind="compute", amount=1, starts_at=NOW, ends_at=later
            )
            month = Reconciliation.objects.create(
                account=cloud, month="2026-11-01", currency="USD", counted=1, billed=1, explained=0, left=0, matched=1,
                matched_lines=1, made_at=NOW,
            )  # fmt: skip
            ReconciliationLine.objects.create(
                reconciliation=month, meter="compute", starts_at=NOW, ends_at=later, status="differs", counted=0, billed=1,
                left=1,
            )  # fmt: skip
            Adjustment.objects.create(
                team=other, account=cloud, at=NOW, amount=1, currency="USD", kind="credit", reason="x", created_by=alice
            )
            PlannedAction.objects.create(team=other, instance=machine, verb="stop", due_at=NOW, source="budget:1")
            schedule = PowerSchedule.objects.create(team=other, name=f"more-{number}", project=project, stop_at="20:00")
            schedule.machines.add(machine)
            priced = {"kind": "address", "name": "ip", "unit": "hour", "price": 1, "currency": "USD"}
            TypedCharge.objects.create(
                team=other, account=cloud, instance=machine, starts_at=NOW, created_by=alice, **priced
            )
            MaintenanceWindow.objects.create(team=other, starts_at=NOW, ends_at=NOW + timedelta(hours=1))
            source = PrometheusSource.objects.create(team=other, name="Own", url="https://prometheus.example")
            SourceMachine.objects.create(source=source, label="more", instance=machine, last_at=NOW)
            prices = OfferSource.objects.create(team=other, kind="import", name="Prices")
            Offer.objects.create(source=prices, key="x", provider="lambda", currency="USD", seen_at=NOW)
            ExchangeRate.objects.create(
                team=other, currency="CNY", into="USD", day=NOW.date(), rate=1, created_by=alice
            )
            ProviderScore.objects.create(team=other, provider="lambda", value=4, by=alice)
            SshKey.objects.create(team=other, public_key=PUBLIC_KEY, private_key=b"sealed")
            job = Job.objects.create(team=other, project=project, name="more", command="true", created_by=alice)
            attempt = Attempt.objects.create(job=job, number=1, marker=f"rr-job-more-{number}", directory="more")
            Node.objects.create(attempt=attempt, instance=machine, rank=0)
            sizes = {"size_bytes": 1, "packed_bytes": 1, "unpacked_bytes": 1, "file_count": 1}
            JobUpload.objects.create(team=other, name="x", sha256="0", created_by=alice, **sizes)
            record(actor=Actor.system("test"), team=other, action="instance.update", target=machine)

    return add


@pytest.mark.parametrize("address", LISTS)
def test_a_longer_list_costs_no_more_queries(more, alice, as_user, address):
    client = as_user(alice)

    def ask() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as queries:
            rows = client.get(address).json()["results"]
        return len(rows), len(queries)

    rows, queries = ask()
    more()
    more_rows, more_queries = ask()
    assert more_rows >= rows + 3
    assert more_queries == queries
    # Session, person, teams, roles; then the rows, for `latest` GPUs, hosts, agents and exporters, for exporters host keys,
    # for routes their projects, for re-attributions, idle policies and schedules their machines, for jobs their attempts and nodes; for offers the models that there are, and ratings, for the order and for the page.
    more_of = {
        "/api/v1/latest/": 4,
        "/api/v1/scrape-targets/": 1,
        "/api/v1/routes/": 1,
        "/api/v1/offers/": 4,
        "/api/v1/jobs/": 2,
    }
    for name in ("reattributions", "idle-policies", "power-schedules"):
        more_of[f"/api/v1/{name}/"] = 1
    assert queries <= 4 + 1 + more_of.get(address, 0)
