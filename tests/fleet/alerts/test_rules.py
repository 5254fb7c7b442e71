"""What each rule makes of one machine: it fires, keeps what is open where the evidence is missing, or finds nothing."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace

from fleet.alerts.rules import all_rules
from fleet.alerts.snapshot import Filesystem, Happened, PriceChange
from fleet.states import GpuState
from tests.fleet.alerts.conftest import NOON
from tests.fleet.alerts.snapshots import (
    ACCOUNT,
    CARD,
    MACHINE,
    found,
    said,
    snapshot,
    with_agent,
    with_gpu,
    with_host,
)

HOUR = timedelta(hours=1)


def happened(code: int | None, *, ago: timedelta = timedelta(0), gpu: int | None = 11):
    return replace(MACHINE, happened=(Happened("xid", code, gpu, NOON - ago, 1),))


def filled(used: int, **fields: object):
    return with_host(filesystems=(Filesystem("/", used, 1_000),), **fields)


def priced(before: int, after: int, *, ago: timedelta = HOUR):
    return replace(MACHINE, price_change=PriceChange(NOON - ago, Decimal(before), Decimal(after)))


CASES = [
    ("gpu_lost", with_gpu(lost=True), ["urgent"]),
    ("gpu_count", replace(MACHINE, gpu_count=2), ["urgent"]),
    ("gpu_count", replace(MACHINE, gpu_count=None), []),
    # An agent that has named no GPU yet says nothing of their number.
    ("gpu_count", replace(MACHINE, gpu_count=2, gpus=()), []),
    ("driver_hung", with_agent(nvml_state="hung"), ["urgent"]),
    ("driver_hung", with_agent(nvml_state="mismatch"), ["warning"]),
    ("driver_hung", with_agent(nvml_state="absent"), []),
    ("driver_hung", with_agent(nvml_state="hung", heard_at=NOON - HOUR), ["keeps"]),
    ("xid", happened(79), ["urgent"]),
    ("xid", happened(48), ["urgent"]),
    ("xid", happened(94), ["warning"]),
    ("xid", happened(13), ["note"]),
    ("xid", happened(9_999), ["warning"]),
    ("xid", happened(None, gpu=None), ["warning"]),
    ("xid", happened(79, ago=2 * HOUR), []),
    ("xid", replace(happened(79, ago=2 * HOUR), gpus=with_gpu(fresh=False).gpus), ["keeps"]),
    ("ecc", with_gpu(ecc_uncorrected=2), ["urgent"]),
    ("ecc", with_gpu(ecc_uncorrected=0), []),
    ("ecc", with_gpu(ecc_uncorrected=None), []),
    ("ecc", with_gpu(remap_pending=True), ["warning"]),
    ("ecc", with_gpu(remap_pending=True, remap_failed=True), ["urgent"]),
    ("thermal", with_gpu(throttle_reasons=0x20), ["warning"]),
    ("thermal", with_gpu(throttle_reasons=0x40), ["warning"]),
    ("thermal", with_gpu(throttle_reasons=0x4), []),
    ("thermal", with_gpu(temperature_celsius=92.0), ["warning"]),
    ("thermal", with_gpu(temperature_celsius=None, throttle_reasons=None), []),
    ("power", with_gpu(throttle_reasons=0x80), ["warning"]),
    # The cap of its own full power is what a busy card runs into.
    ("power", with_gpu(throttle_reasons=0x4), []),
    ("gpu_memory", with_gpu(memory_used_bytes=80 << 30), ["note"]),
    ("gpu_memory", with_gpu(memory_used_bytes=None), []),
    ("gpu_memory", with_gpu(memory_used_bytes=80 << 30, is_parent=True), []),
    ("host_memory", with_host(memory_used_bytes=199 << 30), ["warning"]),
    ("host_memory", with_host(memory_used_bytes=None), []),
    ("disk", filled(890), []),
    ("disk", filled(910), ["warning"]),
    ("disk", filled(985), ["urgent"]),
    # 300 left, at 0.01 a second: 8.3 h.
    ("disk", filled(700, fill_bytes_per_second=0.01), ["warning"]),
    ("disk", filled(700, fill_bytes_per_second=0.05), ["urgent"]),
    ("disk", filled(700, fill_bytes_per_second=-1.0), []),
    ("disk", filled(300, fill_bytes_per_second=1.0), []),
    ("stalled", with_gpu(state=GpuState.STALLED), ["urgent"]),
    ("starved", with_gpu(state=GpuState.STARVED), ["warning"]),
    ("agent_outdated", with_agent(version="0.0.9"), ["note"]),
    ("agent_outdated", with_agent(version="0.2"), []),
    ("agent_outdated", with_agent(version="replay"), []),
    ("clock_skew", with_agent(clock_skew_seconds=-90.0), ["warning"]),
    ("clock_skew", with_agent(clock_skew_seconds=None), []),
    ("agent_backlog", with_agent(oldest_queued_at=NOON - HOUR), ["warning"]),
    ("price_changed", priced(10, 12), ["warning"]),
    ("price_changed", priced(10, 8), ["note"]),
    ("price_changed", priced(100, 101), []),
    ("price_changed", priced(10, 12, ago=48 * HOUR), []),
    ("unmanaged", replace(MACHINE, managed=False), ["note"]),
    ("lease_ending", replace(MACHINE, expires_at=NOON + 20 * HOUR), ["warning"]),
    ("lease_ending", replace(MACHINE, expires_at=NOON + HOUR), ["urgent"]),
    ("lease_ending", replace(MACHINE, expires_at=NOON + 30 * HOUR), []),
]


@pytest.mark.parametrize(
    ("kind", "machine", "expected"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_machine(kind, machine, expected):
    assert said(kind, snapshot(machine, agent_version="0.1.0")) == expected


ABOUT_MACHINES = {kind for kind, _machine, expected in CASES if expected and expected != ["keeps"]}


@pytest.mark.parametrize("kind", sorted(ABOUT_MACHINES))
def test_a_machine_that_is_off_is_over(kind):
    """What the provider shows as off has no trouble but its money."""
    for of_kind, machine, _expected in CASES:
        if of_kind == kind and kind != "price_changed":
            assert said(kind, snapshot(replace(machine, powered=False), agent_version="0.1.0")) == []


@pytest.mark.parametrize("kind", ["gpu_lost", "ecc", "thermal", "power", "gpu_memory", "stalled", "starved"])
def test_a_gpu_that_is_not_read_opens_nothing_and_closes_nothing(kind):
    machine = with_gpu(
        fresh=False,
        lost=True,
        ecc_uncorrected=9,
        throttle_reasons=0xFF,
        memory_used_bytes=80 << 30,
        state=GpuState.UNKNOWN,
    )
    cause = {"gpu_lost": "gpu.lost", "ecc": "gpu.fault", "thermal": "gpu.throttled", "power": "gpu.throttled", "gpu_memory": "memory.full"}.get(kind, f"work.{kind}")  # fmt: skip
    assert said(kind, machine) == []
    opened = {(cause, kind): frozenset({("instance:7", "gpu:11")})}
    assert said(kind, snapshot(machine, opened=opened)) == ["keeps"]


@pytest.mark.parametrize(
    ("kind", "cause", "detail", "machine"),
    [
        ("thermal", "gpu.throttled", "gpu:11", with_gpu(temperature_celsius=86.0)),
        ("gpu_memory", "memory.full", "gpu:11", with_gpu(memory_used_bytes=77 << 30)),
        ("host_memory", "memory.full", "", with_host(memory_used_bytes=186 << 30)),
        ("disk", "disk.full", "/", filled(880)),
        ("clock_skew", "agent.trouble", "", with_agent(clock_skew_seconds=20.0)),
    ],
)
def test_between_the_two_levels_what_is_open_stays_and_nothing_opens(kind, cause, detail, machine):
    assert said(kind, machine) == []
    opened = {(cause, kind): frozenset({("instance:7", detail)})}
    assert said(kind, snapshot(machine, opened=opened)) != []


def test_a_card_that_is_capped_below_its_like_elsewhere_is_held_back():
    capped = with_gpu(throttle_reasons=0x4, power_limit_watts=350.0)
    assert said("power", snapshot(capped)) == []
    assert said("power", snapshot(capped, replace(MACHINE, pk=8))) == ["warning"]


def test_a_lost_gpu_and_its_xid_fold_under_one_cause_and_put_its_part_of_the_price_at_stake():
    machine = replace(with_gpu(lost=True), happened=happened(79).happened, gpu_count=2)
    findings = [*found("gpu_lost", machine), *found("xid", machine)]
    assert {finding.key for finding in findings} == {("gpu.lost", "instance:7")}
    assert {finding.price_per_hour for finding in findings} == {Decimal("1.5")}
    assert {finding.scope for finding in findings} == {"gpu:0"}


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (ACCOUNT, []),
        (replace(ACCOUNT, failures=3, error_kind="unavailable"), ["warning"]),
        (replace(ACCOUNT, failures=3, error_kind="auth_failed"), ["urgent"]),
        (replace(ACCOUNT, failures=2), []),
        (replace(ACCOUNT, listed_at=NOON - HOUR), ["warning"]),
        (replace(ACCOUNT, listed_at=NOON - HOUR, reads=False), []),
        (replace(ACCOUNT, listed_at=None), []),
    ],
)
def test_an_account(account, expected):
    assert said("poll_failing", snapshot(accounts=(account,))) == expected


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (replace(MACHINE, gpu_model="H100 SXM"), []),
        (replace(with_gpu(name="NVIDIA A100-SXM4-80GB"), gpu_model="H100 SXM"), ["warning"]),
        (replace(with_gpu(name="NVIDIA A100-SXM4-80GB"), gpu_model="H100 SXM", agent=None), []),
        (replace(with_gpu(name="NVIDIA A100-SXM4-80GB"), gpu_model="H100 SXM", powered=False), []),
        (replace(MACHINE, gpu_memory_mib=192 * 1024), ["warning"]),
        (replace(MACHINE, gpus=(CARD, CARD)), ["note"]),
        (replace(with_gpu(is_part=True, name="NVIDIA H100 MIG 1g.10gb"), gpu_memory_mib=192 * 1024), []),
    ],
)
def test_what_is_not_as_rented(machine, expected):
    assert said("not_as_rented", machine) == expected


def test_a_list_that_leaves_out_most_machines_is_one_alert_with_all_their_money():
    lost = [replace(MACHINE, pk=pk, doubted_since=NOON - timedelta(minutes=pk)) for pk in (1, 2, 3)]
    (finding,) = found("list_lost", snapshot(*lost, MACHINE))
    assert finding.key == ("account.list_lost", "account:3")
    assert (finding.severity, finding.since, finding.price_per_hour) == (
        "warning",
        NOON - timedelta(minutes=3),
        Decimal(9),
    )
    assert finding.values == {"missing": 3, "known": 4}
    assert found("list_lost", MACHINE) == []


def test_many_unregistered_machines_are_one_alert_of_their_account():
    machines = [replace(MACHINE, pk=pk, managed=False) for pk in range(20, 25)]
    assert {finding.key for finding in found("unmanaged", snapshot(*machines))} == {("machine.unmanaged", "account:3")}


def test_a_team_may_set_every_threshold_between_its_bounds():
    for rule in all_rules():
        for threshold in rule.thresholds:
            assert threshold.low <= threshold.default <= threshold.high, (rule.kind, threshold.name)
            assert rule.limits({threshold.name: threshold.low})[threshold.name] == threshold.low
