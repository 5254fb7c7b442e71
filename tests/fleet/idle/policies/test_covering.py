"""Which policy a machine is judged by."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.costs.attribution.models import AttributionSpan
from fleet.idle.policies.covering import judged_by, machines_of, stops, way_of, window_of
from fleet.idle.policies.models import IdlePolicy, MachineUse
from fleet.idle.verdict.evidence import Mode
from fleet.idle.verdict.limits import Limits
from fleet.inventory.models import ProviderAccount
from fleet.providers.base import Tenancy
from fleet.teams.models import Team
from fleet.telemetry.models import HostLatest

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


def policy_of(machine):
    return judged_by([machine])[machine.pk].policy


def test_a_machine_that_no_policy_covers_is_judged_by_defaults_and_never_stopped(make_instance):
    machine = make_instance()
    judged = judged_by([machine])[machine.pk]
    assert (judged.policy, judged.window, judged.mode, judged.limits) == (
        None, timedelta(minutes=60), Mode.INTERACTIVE, Limits()
    )  # fmt: skip
    assert stops(judged.policy) is False


def test_the_first_by_position_that_covers_it_counts(policy, make_instance):
    policy("Later", position=20, created_at=BEGAN)
    first = policy("First", position=10)
    assert policy_of(make_instance()) == first


@pytest.mark.parametrize("away", [{"enabled": False}, {"removed_at": BEGAN}], ids=["switched off", "removed"])
def test_one_that_does_not_stand_is_passed_over(policy, make_instance, away):
    policy("Away", position=1, **away)
    second = policy("Second", position=2)
    assert policy_of(make_instance()) == second


def test_an_excluded_machine_falls_to_the_next_policy(policy, make_instance):
    machine, other = make_instance(), make_instance(name="other")
    first, second = policy("First", position=1), policy("Second", position=2)
    first.excluded.add(machine)
    assert policy_of(machine) == second
    assert policy_of(other) == first


@pytest.mark.parametrize(
    ("scope", "covers"),
    [
        ({"tenancy": "fraction"}, True),
        ({"tenancy": "dedicated_host"}, False),
        ({"provider": "manual"}, True),
        ({"provider": "runpod"}, False),
        ({"label_name": "tier"}, True),
        ({"label_name": "tier", "label_value": "dev"}, True),
        ({"label_name": "tier", "label_value": "theirs"}, False),
        ({"label_name": "from", "label_value": "provider"}, True),
        ({"label_name": "count", "label_value": "3"}, True),
        ({"label_name": "team"}, False),
        ({"tenancy": "fraction", "label_name": "team"}, False),
    ],
    ids=str,
)
def test_all_of_a_scope_must_hold(policy, make_instance, scope, covers):
    machine = make_instance(
        tenancy=Tenancy.FRACTION,
        labels={"tier": "dev"},
        provider_labels={"tier": "theirs", "from": "provider", "count": 3},
    )
    scoped = policy("Scoped", **scope)
    assert policy_of(machine) == (scoped if covers else None)


def test_of_an_account(policy, make_instance, account, acme):
    other = ProviderAccount.objects.create(team=acme, kind="manual", name="Other")
    scoped = policy("Scoped", account=account)
    assert policy_of(make_instance()) == scoped
    assert policy_of(make_instance(name="elsewhere", account=other)) is None


def test_of_a_project_by_hand_or_by_a_rule_of_attribution(policy, make_instance, project, acme):
    scoped = policy("Scoped", project=project)
    by_hand, by_rule, nobodys = make_instance(project=project), make_instance(name="rule"), make_instance(name="no")
    AttributionSpan.objects.create(
        instance=by_rule, period=DateTimeTZRange(BEGAN, None), project=project, source="rule"
    )
    AttributionSpan.objects.create(
        instance=nobodys, period=DateTimeTZRange(BEGAN, BEGAN + timedelta(hours=1)), project=project, source="rule"
    )
    found = judged_by([by_hand, by_rule, nobodys])
    assert [found[machine.pk].policy for machine in (by_hand, by_rule, nobodys)] == [scoped, scoped, None]


def test_what_people_gave_it_to_outweighs_a_rule(policy, make_instance, project, acme):
    scoped = policy("Scoped", project=project)
    other = acme.projects.create(name="Speech", slug="speech")
    machine = make_instance(project=other)
    AttributionSpan.objects.create(
        instance=machine, period=DateTimeTZRange(BEGAN, None), project=project, source="rule"
    )
    assert policy_of(machine) is None
    assert machines_of(scoped) == []


def test_nothing_of_another_team(policy, make_instance, rival):
    policy("Acme's")
    theirs = ProviderAccount.objects.create(team=rival, kind="manual", name="Theirs")
    assert policy_of(make_instance(name="theirs", team=rival, account=theirs)) is None


def test_the_machines_own_mode_outweighs_the_policys(policy, make_instance):
    policy("Serving", mode="serving")
    own, plain = make_instance(), make_instance(name="plain")
    MachineUse.objects.create(instance=own, mode="pinned")
    MachineUse.objects.create(instance=plain, mode="")
    found = judged_by([own, plain])
    assert (found[own.pk].mode, found[plain.pk].mode) == (Mode.PINNED, Mode.SERVING)


def test_the_machines_own_mode_counts_without_a_policy(make_instance):
    machine = make_instance()
    MachineUse.objects.create(instance=machine, mode="batch")
    assert judged_by([machine])[machine.pk].mode == Mode.BATCH


@pytest.mark.parametrize(
    ("fields", "minutes", "stopped"),
    [
        ({"action": "alert"}, 60, False),
        ({"action": "stop"}, 60, True),
        ({"action": "terminate", "window_minutes": 90}, 90, True),
        ({"action": "stop", "enabled": False}, 60, False),
        ({"action": "stop", "removed_at": BEGAN}, 60, False),
        ({"action": "stop", "window_from": "recommended"}, 60, False),
        ({"action": "stop", "window_from": "recommended", "recommended_minutes": 95}, 95, True),
        ({"action": "stop", "window_from": "recommended", "recommended_minutes": 2}, 5, True),
        ({"action": "stop", "window_from": "fixed", "recommended_minutes": 95}, 60, True),
    ],
    ids=str,
)
def test_its_window_and_whether_it_stops(fields, minutes, stopped):
    row = IdlePolicy(name="One", **fields)
    assert (window_of(row), stops(row)) == (timedelta(minutes=minutes), stopped)


def test_thresholds_that_differ_and_those_that_do_not():
    row = IdlePolicy(name="One", limits={"cpu_percent": 40, "settling": 600})
    assert way_of(row).limits == Limits(cpu_percent=40.0, settling=timedelta(minutes=10))


def test_a_threshold_that_nobody_knows_is_no_default():
    with pytest.raises(TypeError):
        way_of(IdlePolicy(name="One", limits={"cpu": 40}))


def test_the_same_queries_for_many_machines_of_many_teams(policy, make_instance, project):
    policy("Scoped", project=project, provider="runpod").excluded.add(make_instance(name="out"))
    machines = [make_instance(name=f"m-{number}") for number in range(3)]
    with CaptureQueriesContext(connection) as few:
        judged_by(machines)
    for number in range(4):
        team = Team.objects.create(name=f"T{number}", slug=f"t{number}")
        theirs = ProviderAccount.objects.create(team=team, kind="manual", name="x")
        IdlePolicy.objects.create(team=team, name="Theirs", provider="manual").excluded.add(machines[0])
        machines += [make_instance(name=f"n-{number}-{one}", team=team, account=theirs) for one in range(5)]
    with CaptureQueriesContext(connection) as many:
        judged_by(machines)
    assert len(few) == len(many) == 6


def test_what_a_policy_covers_though_it_is_not_saved(acme, make_instance):
    machine = make_instance(labels={"tier": "dev"})
    make_instance(name="gone", labels={"tier": "dev"}, gone_at=BEGAN)
    make_instance(name="plain")
    assert machines_of(IdlePolicy(team=acme, name="New", label_name="tier")) == [machine]


@pytest.mark.parametrize(
    ("mode", "limit", "listed", "percent"),
    [("interactive", None, 192, 0.47), ("interactive", 16.0, 192, 5.62), ("serving", None, 192, 15.0), ("batch", None, None, 15.0)],
)  # fmt: skip
def test_what_one_core_at_work_is_of_the_machine(make_instance, mode, limit, listed, percent):
    """A container's limit is what its percent is of; a serving engine spins while it waits."""
    one = make_instance(vcpus=listed)
    now = timezone.now()
    HostLatest.objects.create(instance=one, sampled_at=now, received_at=now, cpu_limit_cores=limit)
    MachineUse.objects.create(instance=one, mode=mode)
    assert judged_by([one])[one.pk].limits.cpu_percent == percent
