"""The cases that other systems stop wrongly or never, from what machines sent to the verdict: nobody who works is idle, and who is idle is found."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.idle.policies.models import IdlePolicy, MachineUse
from fleet.idle.watch.judging import judge_all, judge_machine
from fleet.idle.watch.models import GpuFloor, IdleVerdictRow
from fleet.inventory.machines import place_hold
from fleet.inventory.models import EnvironmentReport, Hold, HoldKind
from fleet.teams.audit import Actor
from fleet.telemetry.models import Agent, GpuLatest, HostLatest, MachineEvent
from fleet.telemetry.serving.models import ServingLatest, ServingRollupFiveMinutes
from tests.fleet.idle.watch.machines import GIB, NOW, History, ago, always, between, rolled_so_far, silent

BUSY = {"utilization_percent": 96.0, "sm_activity": 0.6, "power_watts": 540.0}
# case -> (what it sent, code that must be among the reasons)
ACTIVE = {
    "one of the GPUs works, the others are unused": (History(gpu={1: always(**BUSY)}), "utilization"),
    "all but one GPU are unused, and the one worked half an hour ago": (History(gpu={1: between(31, 30, **BUSY)}), "worked"),
    "a kernel that was seen once": (History(gpu={0: between(40, 40, utilization_percent=3.0)}), "utilization"),
    "work that only SM activity shows": (History(gpu={1: always(sm_activity=0.015)}), "sm_activity"),
    "NCCL hang": (
        History(gpu={None: always(utilization_percent=100.0, sm_activity=None, power_watts=95.0)}),
        "stalled",
    ),
    "data preparation": (History(host=between(50, 12, cpu_percent=71.0)), "cpu"),
    "data preparation that began after the last rollup": (History(host=between(2, 0, cpu_percent=71.0)), "cpu"),
    "model download": (History(host=between(30, 20, network_rx_bytes_per_second=4e7)), "network"),
    "checkpoint upload": (
        History(host=between(9, 0, network_tx_bytes_per_second=6e7, disk_read_bytes_per_second=6e7)),
        "disk",
    ),
    "a cell that computes on the CPU": (History(host=between(20, 18, jupyter_busy_kernels=1)), "busy_kernels"),
    "somebody just logged in": (History(host=between(1, 0, ssh_sessions=1)), "ssh_sessions"),
}  # fmt: skip
UNKNOWN = {
    "the agent is silent": (History(gpu={None: silent(4)}, host=silent(4)), "stale"),
    "an agent gap": (History(gpu={None: silent(45, 30)}, host=silent(45, 30)), "sparse"),
    "a gap after the last rollup": (History(gpu={None: silent(8, 1)}), "sparse"),
    "one GPU that stopped reporting": (History(gpu={1: silent(75)}), "stale"),
    "MIG-like: utilization is not read": (
        History(gpu={None: always(utilization_percent=None, sm_activity=None)}),
        "not_read",
    ),
    "the host's counters are not read": (History(host=always(disk_read_bytes_per_second=None)), "host_reading_missing"),
}
IDLE = {
    "forgotten notebook": History(),
    "rented and empty": History(gpu={None: always(memory_used_bytes=0, process_count=0, power_watts=61.0)}),
    "zombies hold memory": History(gpu={None: always(memory_used_bytes=79 * GIB, process_count=6)}),
    "a chip without activity counters": History(gpu={None: always(sm_activity=None)}),
    "what every machine does by its clock for seconds": History(host=between(20, 19.9, cpu_percent=88.0), step=timedelta(seconds=5)),
    "work that ended before the window": History(gpu={None: between(75, 66, **BUSY)}, host=between(75, 66, cpu_percent=80)),
}  # fmt: skip


def verdict_of(machine) -> IdleVerdictRow:
    rolled_so_far()
    judge_all(now=NOW)
    return IdleVerdictRow.objects.get(instance=machine)


def codes(row: IdleVerdictRow) -> list[str]:
    return [reason["code"] for reason in row.because]


@pytest.fixture
def verdicts(resting):
    """verdicts(cases, of) makes a machine for each case, `of` it, and judges them all at once."""

    def judge_cases(cases, of) -> dict[str, IdleVerdictRow]:
        machines = {case: of(case) for case in cases}
        rolled_so_far()
        assert judge_all(now=NOW) == len(machines)
        rows = IdleVerdictRow.objects.in_bulk([machine.pk for machine in machines.values()])
        return {case: rows[machine.pk] for case, machine in machines.items()}

    return judge_cases


@pytest.mark.parametrize(("cases", "answer"), [(ACTIVE, "active"), (UNKNOWN, "unknown")], ids=["use", "not read"])
def test_what_works_or_was_not_read_is_never_idle(cases, answer, resting, verdicts, subtests):
    found = verdicts(cases, lambda case: resting(cases[case][0], name=case))
    for case, row in found.items():
        with subtests.test(case):
            assert (row.answer, cases[case][1] in codes(row)) == (answer, True), row.because


def test_the_truly_idle_are_found(resting, verdicts, subtests):
    for case, row in verdicts(IDLE, lambda case: resting(IDLE[case], name=case)).items():
        with subtests.test(case):
            assert row.answer == "idle", row.because
            assert row.quiet_since == ago(hours=1)
            assert {"utilization", "cpu", "disk", "network"} <= set(codes(row))


@pytest.fixture
def changed(resting):
    """changed("its name", change) is a resting machine of an account of its own that `change` was done to."""

    def make(case, change):
        machine = resting(name=case)
        account = machine.account
        account.pk, account.name = None, case[:80]
        account.save()
        machine.account = account
        machine.save()
        change(machine)
        return machine

    return make


def begun(machine, **changes):
    for name, value in changes.items():
        setattr(machine, name, value)
    machine.save()


def booted(machine):
    MachineEvent.objects.create(instance=machine, kind="agent_started", at=ago(minutes=30))


def new_driver(machine):
    EnvironmentReport.objects.create(instance=machine, reported_at=ago(minutes=30), digest="new", data={})


def about_agent(**changes):
    return lambda machine: Agent.objects.filter(instance=machine).update(**changes)


def about_account(**changes):
    def change(machine):
        for name, value in changes.items():
            setattr(machine.account, name, value)
        machine.account.save()

    return change


def cut_into_mig(machine):
    """Two instances of the first card, one of which reports nothing that tells work."""
    parent, _other = machine.gpus.all()
    for number, values in enumerate(({"sm_activity": 0.0}, {})):
        part = machine.gpus.create(uuid=f"MIG-{machine.pk}-{number}", index=number, mig_parent_uuid=parent.uuid)
        GpuLatest.objects.create(gpu=part, sampled_at=ago(seconds=5), received_at=NOW, **values)


CIRCUMSTANCES = {
    "reused machine: the provider began it anew": (lambda one: begun(one, started_at=ago(minutes=70)), "started_lately"),
    "set-up phase: listed as running since": (lambda one: begun(one, state_since=ago(minutes=40)), "started_lately"),
    "its agent came a while ago": (about_agent(enrolled_at=ago(minutes=50)), "started_lately"),
    "it booted": (booted, "started_lately"),
    "another driver or image": (new_driver, "started_lately"),
    "the clock jumped": (about_agent(clock_jumped_at=ago(minutes=20)), "clock_jumped"),
    "the driver hangs": (about_agent(nvml_state="hung"), "driver_hung"),
    "stale provider": (lambda one: begun(one, last_seen_at=ago(minutes=9)), "provider_unclear"),
    "the provider refuses the key": (about_account(failures=2), "provider_unclear"),
    "a list left it out": (lambda one: begun(one, missed_listings=1), "provider_unclear"),
    "a doubted list": (lambda one: begun(one, doubted_since=ago(minutes=5)), "provider_unclear"),
    "on its way": (lambda one: begun(one, state="stopping"), "provider_unclear"),
    "two of its GPUs are missing": (lambda one: begun(one, gpu_count=4), "gpus_missing"),
    "a GPU left the inventory": (lambda one: one.gpus.filter(index=1).update(removed_at=NOW), "gpus_missing"),
    "a GPU fell off the bus": (lambda one: GpuLatest.objects.filter(gpu__instance=one, gpu__index=1).update(lost=True), "gpu_lost"),
    "MIG": (cut_into_mig, "not_read"),
    "no agent, only the provider": (lambda one: (GpuLatest.objects.filter(gpu__instance=one).delete(), HostLatest.objects.filter(instance=one).delete()), "stale"),
}  # fmt: skip


def test_circumstances_that_leave_rest_unproved(resting, verdicts, changed, subtests):
    found = verdicts(CIRCUMSTANCES, lambda case: changed(case, CIRCUMSTANCES[case][0]))
    for case, row in found.items():
        with subtests.test(case):
            assert (row.answer, CIRCUMSTANCES[case][1] in codes(row)) == ("unknown", True), row.because


def hold(kind, **until):
    return lambda machine: Hold.objects.create(instance=machine, kind=kind, started_at=ago(hours=3), **until)


def endpoint(machine, *, requests=0, failed=None, mode="", first_seen_at=None, counted=300.0, **latest):
    told = {
        "first_seen_at": first_seen_at or ago(days=1),
        "sampled_at": ago(seconds=5),
        "requests_running": 0,
        **latest,
    }
    row = ServingLatest.objects.create(instance=machine, engine="vllm", model="llama", port=8000, **told)
    for number in range(14):
        at = NOW.replace(minute=0, second=0) - timedelta(minutes=5) * (12 - number)
        ServingRollupFiveMinutes.objects.create(
            endpoint=row,
            bucket_at=at,
            samples=30,
            interval_seconds=counted,
            requests_finished=requests,
            requests_failed=failed,
        )
    if mode:
        MachineUse.objects.create(instance=machine, mode=mode)


WORDS = {
    "a job": (hold("job"), "active", "hold_job"),
    "a person, for ever": (hold("person"), "active", "hold_person"),
    "a heartbeat that is renewed": (hold("heartbeat", expires_at=NOW + timedelta(minutes=4)), "active", "hold_heartbeat"),
    "a heartbeat that ran out": (hold("heartbeat", expires_at=ago(minutes=2)), "idle", "utilization"),
    "a hold that was taken back": (hold("person", ended_at=ago(minutes=5)), "idle", "utilization"),
    "pinned": (lambda one: MachineUse.objects.create(instance=one, mode="pinned"), "active", "pinned"),
    "a served model without traffic": (endpoint, "active", "serves"),
    "its metrics hang, and its memory is still held": (lambda one: endpoint(one, sampled_at=ago(hours=3)), "active", "serves"),
    "a server that nobody asks": (lambda one: endpoint(one, mode="serving"), "idle", "requests"),
    "a request in the window": (lambda one: endpoint(one, mode="serving", requests=1), "active", "requests"),
    "a request that failed": (lambda one: endpoint(one, mode="serving", failed=1), "active", "requests"),
    "a queue was seen": (lambda one: endpoint(one, mode="serving", last_request_at=ago(minutes=50)), "active", "requests_waiting"),
    "counters that nobody reads": (lambda one: endpoint(one, mode="serving", requests=None), "unknown", "requests_not_read"),
    "counters with gaps": (lambda one: endpoint(one, mode="serving", counted=150.0), "unknown", "requests_not_read"),
    "a model that became ready lately": (
        lambda one: endpoint(one, mode="serving", first_seen_at=ago(minutes=20)), "unknown", "ready_too_lately",
    ),
    "a server with no endpoint": (lambda one: MachineUse.objects.create(instance=one, mode="serving"), "unknown", "no_endpoint"),
    "it is off": (lambda one: begun(one, state="stopped"), "off", "off"),
    "power above the GPU's own rest": (
        lambda one: [GpuFloor.objects.create(gpu=gpu, watts=50.0, reckoned_at=NOW) for gpu in one.gpus.all()], "active", "power",
    ),
    "power at rest with memory held": (
        lambda one: [GpuFloor.objects.create(gpu=gpu, watts=50.0, held_watts=70.0, reckoned_at=NOW) for gpu in one.gpus.all()],
        "idle", "utilization",
    ),
    "a policy that calls more a use": (
        lambda one: IdlePolicy.objects.create(team=one.team, account=one.account, name="strict", limits={"cpu_percent": 1.0}), "active", "cpu",
    ),
    "a policy with a longer window": (
        lambda one: IdlePolicy.objects.create(team=one.team, account=one.account, name="long", window_minutes=180), "unknown", "sparse",
    ),
}  # fmt: skip


def test_what_people_runs_and_servers_say(verdicts, changed, subtests):
    for case, row in verdicts(WORDS, lambda case: changed(case, WORDS[case][0])).items():
        with subtests.test(case):
            _change, answer, code = WORDS[case]
            assert (row.answer, code in codes(row)) == (answer, True), row.because


def test_a_mig_card_counts_as_one_and_its_power_as_of_each_part(resting):
    machine = resting(gpus=1)
    parent = machine.gpus.get()
    GpuLatest.objects.filter(gpu=parent).update(utilization_percent=None, sm_activity=None, power_watts=300.0)
    GpuFloor.objects.create(gpu=parent, watts=60.0, reckoned_at=NOW)
    for number in range(2):
        part = machine.gpus.create(uuid=f"MIG-{machine.pk}-{number}", index=number, mig_parent_uuid=parent.uuid)
        GpuLatest.objects.create(gpu=part, sampled_at=ago(seconds=5), received_at=NOW, sm_activity=0.0)
    row = verdict_of(machine)
    assert (row.answer, codes(row)) == ("active", ["power", "power"])


def test_a_job_that_was_picked_up_between_the_verdict_and_the_order_keeps_its_machine(resting, bob):
    machine = resting()
    assert verdict_of(machine).answer == "idle"
    place_hold(actor=Actor(bob, "bob", "page"), instance=machine, kind=HoldKind.JOB, reason="run 8")
    assert judge_machine(instance=machine, now=NOW).codes == ["hold_job"]
    assert IdleVerdictRow.objects.get(instance=machine).answer == "active"


def test_work_that_began_since_keeps_its_machine(resting):
    machine = resting()
    assert verdict_of(machine).answer == "idle"
    GpuLatest.objects.filter(gpu__instance=machine, gpu__index=0).update(utilization_percent=90.0, busy_at=NOW)
    assert judge_machine(instance=machine, now=NOW).answer == "active"
