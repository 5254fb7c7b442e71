"""docs/api.md, run: every command in it is sent, and what it says of the answer holds."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from fleet.alerts.channels.models import Channel, Route
from fleet.alerts.models import Alert, AlertEvent, Signal
from fleet.inventory.environments.models import Environment
from fleet.inventory.models import GPU, EnvironmentReport, Image, ProviderAccount
from fleet.teams.models import Scope
from fleet.telemetry.models import Agent, HostLatest, ScrapeTarget
from jobs.book.models import Attempt
from tests.api.conftest import NOW
from tests.api.resources import LISTS

GUIDE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
EXAMPLES = re.findall(r"```sh\n(.+?)```\n```json\n(.+?)```", GUIDE, re.DOTALL)


@pytest.fixture(autouse=True)
def numbers_that_the_guide_does_not_use(db):
    """Tests that ran before may have counted up to one of them."""
    with connection.cursor() as cursor:
        for table in (
            "fleet_provideraccount",
            "fleet_image",
            "fleet_environment",
            "fleet_instance",
            "fleet_gpu",
            "fleet_scrapetarget",
            "fleet_alert",
            "fleet_channel",
            "fleet_route",
            "jobs_job",
        ):
            cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), 1000)", [table])


@pytest.fixture
def seventeen(acme, account, make_instance, fleet, counted):
    """The guide's machine: number 17, with GPU 41."""
    old = fleet.instance
    known = {"tenancy": old.tenancy, "started_at": old.started_at, "price_per_hour": "40", "external_id": "seventeen"}
    machine = make_instance(id=17, name="train-01", ssh=old.ssh, **known)
    machine.gpu_count = 2
    machine.save()
    GPU.objects.create(id=41, instance=machine, uuid="GPU-41")
    latest = fleet.gpus[0].latest
    latest.gpu_id = 41
    latest.save(force_insert=True)
    host = HostLatest.objects.get(instance=old)
    host.instance = machine
    host.save(force_insert=True)
    Agent.objects.filter(instance=old).update(instance=machine)
    cloud = ProviderAccount.objects.create(id=3, team=acme, kind="sandbox", name="Lab", monitor_only=False)
    make_instance(id=21, name="lab-21", account=cloud, external_id="lab-21", price_per_hour="2.5")
    ScrapeTarget.objects.create(id=9, instance=machine, url="http://203.0.114.9:9100/metrics")
    about = {"team": acme, "instance": machine, "cause": "gpu.lost", "subject": "instance:17", "severity": "urgent"}
    evidence = {"kind": "gpu_lost", "detail": "gpu:41", "values": {"gpu": 0}, "signals": 1}
    alert = Alert.objects.create(id=4, evidence=evidence, price_per_hour="20", currency="USD", **about)
    Signal.objects.create(
        alert=alert, kind="gpu_lost", detail="gpu:41", severity="urgent", since=NOW, values={"gpu": 0}
    )
    AlertEvent.objects.create(alert=alert, at=NOW, kind="opened", severity="urgent")
    for pk, driver in ((17, "580.95.05"), (21, "570.124.06")):
        EnvironmentReport.objects.create(instance_id=pk, reported_at=NOW, digest="d", data={"driver": driver})
    image = Image.objects.create(id=4, account=cloud, external_id="img-1", name="train")
    Environment.objects.create(
        id=6, team=acme, image=image, name="train", typed={"python": "3.12", "frameworks": {"torch": "2.8.0+cu128"}}
    )
    job = fleet.job
    attempts, job.pk = [attempt.pk for attempt in job.attempts.all()], 8
    job.save(force_insert=True)
    Attempt.objects.filter(pk__in=attempts).update(job=job)
    Route.objects.create(id=7, channel=Channel.objects.create(id=3, team=acme, kind="webhook", name="three"))
    return machine


def send(command: str, secret: str):
    """What curl would send, sent."""
    # The guide's windows lie ahead; not too far, and whatever year it is.
    command = command.replace("2027-12-", f"{timezone.now().year + 1}-12-")
    words = shlex.split(
        command.replace("\\\n", " ")
        .replace("$TOKEN", secret)
        .replace("$ADMIN", secret)
        .replace("$RACKRENT", "http://testserver")
    )
    assert words.pop(0) == "curl"
    headers: dict[str, str] = {}
    pairs: dict[str, str] = {}
    address, method, body = "", "", None
    while words:
        word = words.pop(0)
        if word == "-H":
            name, value = words.pop(0).split(": ", 1)
            headers[name] = value
        elif word == "-d":
            name, value = words.pop(0).split("=", 1)
            pairs[name] = value
        elif word == "-X":
            method = words.pop(0)
        elif word == "--json":
            body = words.pop(0)
        elif word != "-G":
            address = word
    method = method or ("POST" if body else "GET")
    return Client(headers=headers).generic(method, address + query_of(pairs), body or "", "application/json")


def query_of(pairs: dict[str, str]) -> str:
    return "?" + urlencode(pairs) if pairs else ""


def shape_holds(said, answered, at="answer") -> None:
    """Every field that the guide shows is in the answer, with a value of the same kind; words are the same."""
    if isinstance(said, dict):
        for name, value in said.items():
            assert name in answered, f"{at}.{name} is not answered"
            shape_holds(value, answered[name], f"{at}.{name}")
    elif isinstance(said, list):
        assert isinstance(answered, list)
        assert answered, f"{at} is empty"
        shape_holds(said[0], answered[0], f"{at}[0]")
    elif isinstance(said, float):
        assert isinstance(answered, float), at
    elif said is not None and not (isinstance(said, str) and re.search(r"…|\dZ$|\.\d{6}$", said)):
        assert answered == said, at


def test_the_guide_has_its_examples():
    assert len(EXAMPLES) == GUIDE.count("```sh") > 15


@pytest.mark.parametrize(("command", "said"), EXAMPLES, ids=[command.split("v1")[1][:24] for command, _ in EXAMPLES])
def test_every_command_answers_as_the_guide_says(seventeen, acme, make_token, command, said):
    scope = Scope.ADMIN if "$ADMIN" in command else Scope.OPERATE if "--json" in command else Scope.READ
    secret, _ = make_token(acme, scope)
    answer = send(command, secret)
    expected = json.loads(said)
    good = (
        201
        if "--json" in command
        and "PATCH" not in command
        and not re.search(r"/plan/|/acknowledge/|/bulk/|/heartbeat/", command)
        else 200
    )
    refused = {"loses_data": 409}.get(expected.get("error"), 401 if "TOKEN" not in command else 400)
    assert answer.status_code == (refused if expected.get("error") else good)
    shape_holds(expected, answer.json())


def test_the_guide_names_every_list():
    assert [address for address in LISTS if f"`{address.split('/')[3]}`" not in GUIDE] == []
