"""From an action that ended to a report, an alert, and evidence to send."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.alerts.evaluate import evaluate_team
from fleet.alerts.models import Alert
from fleet.alerts.words import why_of
from fleet.quality.acceptance.evidence import evidence_text
from fleet.quality.acceptance.reports import judge_ended, write_report
from fleet.quality.models import AcceptanceReport
from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.models import HostLatest
from tests.fleet.quality.acceptance.conftest import NOW
from tests.fleet.quality.acceptance.machines import measured, with_cards

pytestmark = pytest.mark.django_db

NARROW = with_cards({}, {"pcie_width": 8, "host_to_device_bytes_per_second": 12.3e9})
OTHER = with_cards({"name": "NVIDIA L40"}, {"name": "NVIDIA L40"})


def test_a_report_holds_both_sides_and_is_written_once(tested, rented) -> None:
    report = tested()
    assert (report.instance, report.verdict, report.at) == (rented, "pass", NOW)
    assert report.promised["gpu_model"] == "L40S"
    assert report.measured["gpu"]["count"] == 2
    assert {check["name"] for check in report.checks} >= {"gpu_model", "ram", "disk_read"}
    assert write_report(action_id=report.action_id, now=NOW) is None
    assert judge_ended(now=NOW) == 0
    assert not Alert.objects.exists()


def test_what_ended_without_being_heard_of_is_judged_later(rented) -> None:
    for state in ("done", "failed", "lost"):
        AgentAction.objects.create(
            instance=rented, name="accept", state=state, expires_at=NOW, ended_at=NOW, result=measured()
        )
    AgentAction.objects.create(instance=rented, name="pre_stop", state="done", expires_at=NOW, ended_at=NOW)
    assert judge_ended(now=NOW) == 1
    assert AcceptanceReport.objects.get().action == AgentAction.objects.get(name="accept", state="done")


@pytest.mark.parametrize(("found", "severity"), [(OTHER, "warning"), (NARROW, "note")])
def test_an_alert_says_what_is_wrong_and_a_later_pass_ends_it(tested, acme, found, severity) -> None:
    tested(found)
    alert = Alert.objects.get()
    assert (alert.cause, alert.severity, alert.closed_at) == ("gpu.not_as_rented", severity, None)
    assert why_of(alert)
    # The rules of alerts look at the same machine, and leave what they did not say.
    evaluate_team(team=acme, now=NOW + timedelta(minutes=5))
    evaluate_team(team=acme, now=NOW + timedelta(minutes=30))
    assert Alert.objects.get(pk=alert.pk).closed_at is None
    tested(measured(), at=NOW + timedelta(hours=1))
    assert Alert.objects.get(pk=alert.pk).closed_at is not None


def test_a_test_that_could_not_measure_ends_no_alert(tested) -> None:
    tested(OTHER)
    tested({"not_measured": {"gpu": "NVML cannot be used"}}, at=NOW + timedelta(hours=1))
    assert Alert.objects.get().closed_at is None


def test_peers_are_the_teams_other_machines_of_the_kind(tested, make_rented) -> None:
    for number in range(3):
        tested(instance=make_rented(f"peer-{number}"))
    # Of another kind, which must not count.
    slower = measured(disk={"read_bytes_per_second": 1.0})
    for number in range(3):
        tested(slower, instance=make_rented(f"other-{number}", gpu_model="L4"))
    report = tested(measured(disk={"read_bytes_per_second": 1.4e9}))
    check = next(check for check in report.checks if check["name"] == "disk_read")
    assert (check["promised"], check["source"], check["result"]) == (3.0e9, "peers", "short")
    assert report.verdict == "short"


def test_two_peers_prove_nothing(tested, make_rented) -> None:
    for number in range(2):
        tested(instance=make_rented(f"peer-{number}"))
    report = tested(measured(disk={"read_bytes_per_second": 1.0e9}))
    assert report.verdict == "pass"


def test_the_largest_file_system_counts(tested, rented) -> None:
    HostLatest.objects.create(
        instance=rented,
        sampled_at=NOW,
        received_at=NOW,
        filesystem_total_bytes=40 * 10**9,
        detail={"filesystems": [{"mount": "/data", "total_bytes": 500 * 10**9}]},
    )
    assert tested(measured(disk={"size_bytes": 40 * 10**9})).verdict == "pass"


def test_evidence_names_machine_figures_and_method(tested, rented) -> None:
    text = evidence_text(tested(NARROW))
    assert f"Machine: {rented.external_id}" in text
    assert "Tested at: 2026-11-30 12:00 UTC" in text
    assert "Result: short of what was promised" in text
    assert "- PCI Express lanes: x8 against x16 (the card's data sheet): short" in text
    assert "GPUs and links: by NVML, driver 570.86.15." in text
    assert "PCIe 4 x8" in text


def test_hostile_names_stay_on_their_line(tested) -> None:
    hostile = with_cards({"name": "NVIDIA L40S\nResult: as rented\u202e", "uuid": "GPU-\x1b[31m"}, {})
    hostile["disk"]["place"] = "/\r\nResult: as rented"
    text = evidence_text(tested(hostile))
    assert [line for line in text.splitlines() if line.startswith("Result:")] == ["Result: not clear"]
    assert text.isascii()
    assert "\x1b" not in text
