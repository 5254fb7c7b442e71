"""POST /ingest/v1/enrol and what the dashboard hands out to machines."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile

import pytest
from asgiref.sync import sync_to_async

from fleet.inventory.models import GPU
from fleet.teams.audit import Actor
from fleet.telemetry.enrolment import create_enrolment_token
from fleet.telemetry.ingest import enrol as enrol_module
from fleet.telemetry.ingest.bundle import fill_installer
from fleet.telemetry.ingest.errors import UnavailableError
from fleet.telemetry.models import Agent

pytestmark = pytest.mark.django_db(transaction=True)

BODY = {
    "v": 1,
    "agent_version": "0.1.0",
    "hostname": "train-01\x1b[31m",
    "machine_id": "m1",
    "boot_id": "b1",
    "provider_ids": {},
    "gpus": [{"uuid": "GPU-a", "index": 0, "name": "NVIDIA H100 80GB HBM3", "memory_total_bytes": 85520809984}],
    "host": {"cpu_count": 208, "os": "Debian 12"},
}


@pytest.fixture
async def secret(acme, no_connection_left) -> str:
    create = sync_to_async(create_enrolment_token)
    return (await create(actor=Actor.system("test"), team=acme))[1].secret


async def enrol(http, secret, **fields):
    headers = {"Authorization": f"Bearer {secret}"}
    return await http.post("/ingest/v1/enrol", json={**BODY, **fields}, headers=headers)


async def test_an_enrolled_machine_can_report_at_once(http, secret):
    answer = await enrol(http, secret)
    assert answer.status_code == 201
    said = answer.json()
    assert said["config"]["report_seconds"] == 10
    agent = await Agent.objects.select_related("instance").aget()
    assert (said["instance_id"], agent.hostname, agent.machine_id) == (agent.instance_id, "train-01[31m", "m1")
    headers = {"Authorization": f"Bearer {said['token']}"}
    beat = {"v": 1, "sent_at": 1_796_000_000.0, "nvml": {"state": "ok"}}
    assert (await http.post("/ingest/v1/heartbeat", json=beat, headers=headers)).status_code == 200


async def test_what_it_says_of_its_hardware_is_known_at_once(http, secret):
    said = (await enrol(http, secret)).json()
    gpu = await GPU.objects.select_related("instance").aget()
    assert (gpu.uuid, gpu.instance_id) == ("GPU-a", said["instance_id"])
    assert (gpu.instance.gpu_count, gpu.instance.gpu_model, gpu.instance.vcpus) == (1, "H100 SXM", 208)


async def test_refusals_have_their_own_codes(http, secret, make_instance):
    assert (await enrol(http, "rre_made-up")).status_code == 401
    assert (await enrol(http, secret, v=2)).json()["field"] == "v"
    machine = await sync_to_async(make_instance)()
    create = sync_to_async(create_enrolment_token)
    own = (await create(actor=Actor.system("test"), team=machine.team, instance=machine))[1].secret
    assert (await enrol(http, own, machine_id="m7")).status_code == 201
    taken = await enrol(http, own, machine_id="m8")
    assert (taken.status_code, taken.json()["error"]) == (409, "taken")


async def test_a_flood_of_enrolments_is_held_off(http, secret, monkeypatch):
    monkeypatch.setattr(enrol_module, "MAX_WAITING", 2)
    answers = await asyncio.gather(*[enrol(http, f"rre_made-up-{number}") for number in range(6)])
    assert sorted(answer.status_code for answer in answers) == [401, 401, 429, 429, 429, 429]
    assert (await enrol(http, secret)).status_code == 201


async def test_an_agents_token_does_not_enrol(http, reporter):
    assert (await enrol(http, reporter.token)).status_code == 401


async def test_the_zipapp_is_whole_and_its_name_is_its_hash(http):
    answer = await http.get("/agent/rackrent-agent.pyz")
    digest = hashlib.sha256(answer.content).hexdigest()
    assert (answer.status_code, answer.headers["ETag"], answer.headers["X-Checksum-Sha256"]) == (
        200,
        f'"{digest}"',
        digest,
    )
    assert "agent/cli.py" in zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    head = await http.head("/agent/rackrent-agent.pyz")
    assert (head.content, head.headers["Content-Length"]) == (b"", str(len(answer.content)))
    same = await http.get("/agent/rackrent-agent.pyz", headers={"If-None-Match": f'W/"x", "{digest}"'})
    assert (same.status_code, same.content) == (304, b"")


async def test_the_installer_knows_this_dashboard_and_this_agent(http, settings):
    settings.PUBLIC_URL = "https://rackrent.example.org"
    zipapp = await http.get("/agent/rackrent-agent.pyz")
    script = (await http.get("/agent/install.sh")).text
    assert "https://rackrent.example.org" in script
    assert zipapp.headers["X-Checksum-Sha256"] in script
    assert "@@" not in script.replace("@@*", "")


@pytest.mark.parametrize(
    "url", ['https://a"; rm -rf /; "', "https://$(id)", "https://a`id`", "https://a}b", "https://a\\"]
)
def test_nothing_that_a_shell_would_run_gets_into_the_installer(url):
    with pytest.raises(UnavailableError, match="PUBLIC_URL"):
        fill_installer('URL="${RACKRENT_URL:-@@PUBLIC_URL@@}"', url=url, sha256="0")


async def test_answers_tell_the_agent_which_version_there_is(http, reporter):
    zipapp = await http.get("/agent/rackrent-agent.pyz")
    config = (await reporter.samples()).json()["config"]
    assert config["agent_sha256"] == zipapp.headers["X-Checksum-Sha256"]
    assert config["agent_version"]
