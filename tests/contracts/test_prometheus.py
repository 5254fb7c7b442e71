"""A real Prometheus, configured as docs/metrics.md says, reads a real web process: both dashboards find what they ask for."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path

import httpx
import pytest
from django.utils import timezone

from fleet.inventory.models import Instance, ProviderAccount
from fleet.providers.base import Billing
from fleet.states import GpuState
from fleet.teams.models import APIToken, Project, Scope, Team
from fleet.teams.secrets import new_token
from fleet.telemetry.models import Agent, GpuLatest
from fleet.telemetry.rollups.models import GpuStateTotal
from fleet.telemetry.state_codes import SECONDS_COLUMNS
from tests.contracts.prometheus import (
    ROOT,
    Prometheus,
    as_grafana_asks,
    documented_config,
    panel_queries,
    running_prometheus,
    wait_for,
)
from tests.e2e.conftest import METRICS_TOKEN, Server, server  # noqa: F401  # a fixture
from tests.fleet.costs.seeding import spend_on
from tests.fleet.telemetry.conftest import batch, enrolled

pytestmark = pytest.mark.django_db(transaction=True)

STOCK = ROOT.parent / "shared" / "exporters" / "dcgm-exporter__grafana-dashboard-12239.json"
OURS = ROOT / "static" / "grafana" / "rackrent.json"
MACHINES = ("train-01", 'odd "name" (2)')
GPUS_EACH = 2


@pytest.fixture
def team(db) -> Team:
    return Team.objects.create(name="Acme", slug="acme")


@pytest.fixture
def secret(team: Team) -> str:
    token = new_token("rrk")
    row = {"team": team, "name": "prometheus", "scope": Scope.READ}
    APIToken.objects.create(token_hash=token.hash, prefix=token.prefix, **row)
    return token.secret


@pytest.fixture
def rented(team: Team, server: Server) -> None:  # noqa: F811
    """Two machines, each with an agent that has just reported over the wire."""
    account = ProviderAccount.objects.create(team=team, kind="manual", name="By hand")
    project = Project.objects.create(team=team, name="Vision", slug="vision")
    for name in MACHINES:
        price = {"billing": Billing.FULL, "price_per_hour": Decimal("8.5"), "currency": "USD", "state": "running"}
        machine = Instance.objects.create(
            team=team, account=account, name=name, external_id=name, project=project, gpu_count=GPUS_EACH, **price
        )
        spend_on(team, timezone.now().astimezone(UTC).date(), "17", instance=machine, project=project)
        agent, token = enrolled(machine)
        # Reports as seldom as it may: its readings must not grow old while the test looks at them.
        Agent.objects.filter(pk=agent.pk).update(report_seconds=300)
        report(server.url, token, name)
        seconds = {SECONDS_COLUMNS[state]: 300.0 for state in GpuState}
        GpuStateTotal.objects.bulk_create(GpuStateTotal(gpu=gpu, **seconds) for gpu in machine.gpus.all())


def report(url: str, token: str, machine: str) -> None:
    uuids = [f"GPU-{machine}-{index}" for index in range(GPUS_EACH)]
    reading = {
        "utilization_percent": 97.0, "memory_used_bytes": 60 << 30, "memory_reserved_bytes": 1 << 30, "memory_total_bytes": 80 << 30,
        "sm_activity": 0.9, "tensor_activity": 0.5, "power_watts": 612.5, "temperature_celsius": 61.0, "sm_clock_mhz": 1755,
    }  # fmt: skip
    host = {
        "cpu_percent": 34.0, "disk_read_bytes_per_second": 1e6, "disk_write_bytes_per_second": 2e6,
        "network_rx_bytes_per_second": 3e6, "network_tx_bytes_per_second": 4e6,
    }  # fmt: skip
    now = time.time()
    sample = {"at": now, "host": host, "gpus": [{"uuid": uuid, **reading} for uuid in uuids]}
    inventory = [{"uuid": uuid, "index": place, "name": "NVIDIA H100 80GB HBM3"} for place, uuid in enumerate(uuids)]
    events = [{"at": now, "kind": "xid", "gpu": uuids[0], "code": 31}]
    headers = {"Authorization": f"Bearer {token}"}
    body = batch(sample, inventory=inventory, events=events)
    answer = httpx.post(f"{url}/ingest/v1/samples", json=body, headers=headers, trust_env=False)
    assert answer.status_code == 200, answer.text


@pytest.fixture
def prometheus(rented: None, secret: str, server: Server, tmp_path: Path) -> Iterator[Prometheus]:  # noqa: F811
    file = tmp_path / "rackrent.token"
    file.write_text(secret + "\n")
    own = {
        "scheme: https": "scheme: http",
        "scrape_interval: 15s": "scrape_interval: 1s",
        "/etc/prometheus/rackrent.token": str(file),
        "rackrent.example.org": server.url.removeprefix("http://"),
    }
    with running_prometheus(documented_config("metrics.md", changes=own), tmp_path) as started:
        # Rates need two readings.
        wait_for(lambda: started.ask("min(count_over_time(rackrent_gpu_state_seconds_total[1m])) >= 2"))
        yield started


def the_stock_dashboard_finds_every_gpu(prometheus: Prometheus) -> None:
    if not STOCK.exists():
        pytest.skip("NVIDIA's dashboard is not at ../shared/exporters")
    queries = panel_queries(STOCK)
    assert len(queries) == 8
    every = {name: prometheus.values_of(name, "DCGM_FI_DEV_GPU_TEMP") for name in ("instance", "gpu")}
    assert every == {"instance": sorted(MACHINES), "gpu": ["0", "1"]}
    for title, query in queries:
        rows = prometheus.ask(as_grafana_asks(query, every))
        if re.match(r"(avg|sum)\(", query):
            assert len(rows) == 1, title
            continue
        owners = {(row["metric"]["instance"], row["metric"]["gpu"]) for row in rows}
        assert owners == set(product(MACHINES, ("0", "1"))), title
        assert len(rows) == len(owners), title


def the_stock_dashboard_finds_one_gpu_of_one_machine(prometheus: Prometheus) -> None:
    if not STOCK.exists():
        pytest.skip("NVIDIA's dashboard is not at ../shared/exporters")
    for title, query in panel_queries(STOCK):
        for machine in MACHINES:
            assert len(prometheus.ask(as_grafana_asks(query, {"instance": [machine], "gpu": ["1"]}))) == 1, title


def every_panel_of_our_dashboard_has_data(prometheus: Prometheus) -> None:
    queries = panel_queries(OURS)
    assert len(queries) >= 20
    chosen = {"instance": [*MACHINES], "provider": ["manual"], "project": ["vision"], "currency": ["USD"]}
    for title, query in queries:
        assert prometheus.ask(as_grafana_asks(query, chosen)), f"{title}: {query}"
        # "All" is `.*`, which keeps machines without a project.
        anything = {name: "$currency" if name == "currency" else ".*" for name in chosen}
        asked = query
        for name, pattern in anything.items():
            asked = asked.replace(f"${name}", pattern).replace("$currency", "USD")
        assert prometheus.ask(asked), f"{title}: {asked}"


def every_variable_of_our_dashboard_has_values(prometheus: Prometheus) -> None:
    for variable in json.loads(OURS.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            ((selector, label),) = re.findall(r"^label_values\((.+), (\w+)\)$", variable["query"]["query"])
            asked = re.sub(r"\$\w+", ".*", selector)
            assert prometheus.values_of(label, asked), variable["name"]


def the_questions_of_the_page_are_answered(prometheus: Prometheus) -> None:
    (block,) = re.findall(r"```promql\n(.+?)```", (ROOT / "docs" / "metrics.md").read_text(), re.DOTALL)
    for line in block.splitlines():
        assert prometheus.ask(line.partition("  #")[0]), line


def money_comes_through_to_the_last_digit(prometheus: Prometheus) -> None:
    (row,) = prometheus.ask("sum(rackrent_instance_price_per_hour)")
    assert float(row["value"][1]) == 17
    assert {row["value"][1] for row in prometheus.ask("DCGM_FI_DEV_FB_USED")} == {"61440"}


LOOKS = (
    the_stock_dashboard_finds_every_gpu,
    the_stock_dashboard_finds_one_gpu_of_one_machine,
    every_panel_of_our_dashboard_has_data,
    every_variable_of_our_dashboard_has_values,
    the_questions_of_the_page_are_answered,
    money_comes_through_to_the_last_digit,
)


def test_what_is_asked_is_answered(prometheus: Prometheus, subtests: pytest.Subtests):
    """One Prometheus for all who only look: it takes seconds until it has read twice."""
    for look in LOOKS:
        with subtests.test(look.__name__):
            look(prometheus)


def test_our_own_health_is_read_as_the_operators_page_says(rented: None, server: Server, tmp_path: Path):  # noqa: F811
    file = tmp_path / "health.token"
    file.write_text(METRICS_TOKEN)
    own = {
        "scheme: https": "scheme: http",
        "scrape_interval: 15s": "scrape_interval: 1s",
        "/etc/prometheus/rackrent-health.token": str(file),
        "rackrent.example.org": server.url.removeprefix("http://"),
    }
    with running_prometheus(documented_config("operate.md", changes=own), tmp_path) as started:
        # Counts reach Valkey every few seconds.
        stored = 'rackrent_samples_stored_total{kind="gpu", source="agent"}'
        wait_for(lambda: started.ask(f"{stored} >= {GPUS_EACH * len(MACHINES)}"))
        assert started.ask('up{job="rackrent"} == 1')
        assert started.ask("rackrent_agents{state='reporting'} == 2")


def test_what_stops_being_read_ends_by_itself(prometheus: Prometheus):
    assert prometheus.ask("DCGM_FI_DEV_GPU_UTIL")
    Agent.objects.update(report_seconds=10, interval_seconds=5)
    GpuLatest.objects.update(sampled_at=timezone.now() - timedelta(minutes=2))
    wait_for(lambda: not prometheus.ask("DCGM_FI_DEV_GPU_UTIL"))
    assert prometheus.ask("rackrent_instance_gpus{state='unknown'} == 2")
