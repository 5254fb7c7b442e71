"""What an agent writes is text of a stranger: cleaned where it comes in, escaped wherever it is shown."""

from __future__ import annotations

import csv
import io
import json
import time

import pytest
from asgiref.sync import sync_to_async

from fleet.inventory.models import GPU, EnvironmentReport
from fleet.telemetry.models import GpuLatest, HostLatest, HostSample, MachineEvent
from fleet.telemetry.sanitise import clean, clean_map

HTML = "<script>alert(1)</script><img src=x onerror=alert(2)>"
TERMINAL = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b2J\x00\x7f"
LINES = "line\r\nSet-Cookie: a=b\u2028\u2029next"
BIDI = "user\u202egnp.exe\u2066\u200b"
SURROGATE = "half \ud800"
FORMULA = '=HYPERLINK("http://evil")'
ALL = (HTML, TERMINAL, LINES, BIDI, SURROGATE, FORMULA)


@pytest.mark.parametrize("text", ALL)
def test_nothing_that_a_terminal_or_a_log_obeys_is_left(text):
    cleaned = clean(text)
    assert cleaned.isprintable()
    cleaned.encode()


def test_ordinary_text_in_any_script_is_left_alone():
    for text in ("NVIDIA H100 80GB HBM3", "训练机-01", "Ångström ½", "  two  spaces "):
        assert clean(text) == text


def test_text_is_cut():
    assert clean("x" * 4000) == "x" * 200
    assert clean_map({"k" * 400: "v" * 400}, 10) == {"k" * 64: "v" * 10}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("text", ALL)
async def test_every_string_of_every_body_is_cleaned(machine, reporter, text):
    gpu = {
        "uuid": "GPU-a",
        "processes": [{"pid": 7, "name": text, "user": text, "resolved": True}],
        "unavailable": {text: text},
        "state": text,
    }
    host = {
        "disks": [{"device": text, "read_iops": 1.0}],
        "interfaces": [{"name": text, "rx_bytes_per_second": 1.0}],
        "filesystems": [{"mount": text, "used_bytes": 1}],
        "disk_scope": text,
    }
    now = time.time()
    body = {
        "v": 1,
        "agent_version": text,
        "boot_id": text,
        "sent_at": now,
        "samples": [{"at": now, "gpus": [gpu], "host": host}],
        "events": [{"at": now, "kind": "xid", "detail": text}],
        "inventory": [
            {"uuid": "GPU-a", "name": text, "pci_bus_id": text, "mig_parent": text[:96], "mig_profile": text}
        ],
        "environment": {"hostname": text, "os": text, "frameworks": {text: text}, "provider_ids": {text: text}},
    }
    answer = await reporter.post("samples", json.dumps(body).encode())
    assert answer.status_code == 200, answer.text
    await reporter.post("heartbeat", {"v": 1, "sent_at": now, "nvml": {"state": text, "detail": text}})
    stored = await sync_to_async(everything_stored)()
    assert stored
    assert all(found.isprintable() for found in stored), [found for found in stored if not found.isprintable()]


def everything_stored() -> list[str]:
    rows = [
        *GPU.objects.values_list("name", "pci_bus_id", "mig_parent_uuid", "mig_profile"),
        *MachineEvent.objects.values_list("detail", flat=True),
        *GpuLatest.objects.values_list("health", "processes"),
        *HostLatest.objects.values_list("detail", flat=True),
        *HostSample.objects.values_list("devices", flat=True),
        *EnvironmentReport.objects.values_list("data", flat=True),
    ]
    from fleet.telemetry.models import Agent

    rows += Agent.objects.values_list("version", "boot_id", "nvml_state", "nvml_detail")
    return list(strings_in(rows))


def strings_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from strings_in(list(value.keys()))
        yield from strings_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item)


@pytest.mark.django_db
@pytest.mark.parametrize("text", [HTML, FORMULA])
def test_a_machines_page_escapes_what_its_agent_said(make_instance, vera, as_user, text):
    from tests.fleet.telemetry.conftest import enrolled

    machine = make_instance(gpus=1)
    agent, _ = enrolled(machine)
    agent.nvml_detail = agent.version = clean(text, 40)
    agent.save()
    GPU.objects.update(name=clean(text, 120))
    EnvironmentReport.objects.create(
        instance=machine, reported_at="2026-11-30T00:00:00Z", digest="x", data={"os": text, "frameworks": {text: text}}
    )
    MachineEvent.objects.create(instance=machine, at="2026-11-30T00:00:00Z", kind="xid", detail=text)
    page = as_user(vera).get(f"/t/acme/instances/{machine.pk}/").text
    assert "<script>alert" not in page
    assert "<img src=x" not in page


@pytest.mark.django_db
def test_chart_data_is_json_that_cannot_end_its_block(make_instance, vera, as_user):
    """Plotly draws names as HTML: what it is given has no tag that a browser would obey."""
    machine = make_instance(gpus=1)
    GPU.objects.update(name=HTML)
    page = as_user(vera).get(f"/t/acme/instances/{machine.pk}/").text
    for block in page.split('<script id="chart-data"')[1:]:
        data = block.partition(">")[2].partition("</script>")[0]
        assert "<" not in data
        json.loads(data)


def test_a_cleaned_string_is_one_cell_of_a_csv():
    for text in ALL:
        out = io.StringIO()
        csv.writer(out).writerow([clean(text), "next"])
        rows = list(csv.reader(io.StringIO(out.getvalue())))
        assert rows == [[clean(text), "next"]]
