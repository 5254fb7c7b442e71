"""The past is attributed again on purpose only, and it shows."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from fleet.costs.attribution.again import reattribute, settle_reattributions
from fleet.costs.attribution.models import AttributionSpan, ShareHour
from fleet.costs.attribution.money import estimate
from fleet.costs.attribution.sync import sync_attribution
from fleet.costs.book.models import LedgerChange
from fleet.costs.spend.models import CostDay, CostGroupDay, CostMonth
from fleet.teams.models import AuditEntry, Project
from tests.fleet.costs.attribution.conftest import HOUR, MINUTE, NOON, told
from tests.fleet.costs.seeding import spend_on


@pytest.fixture
def again(acme, alice, by):
    """again([machine], project=project) gives it the ten hours before noon."""

    def make(machines=(), **more):
        said = {
            "start": NOON - 10 * HOUR,
            "until": NOON,
            "project": None,
            "owner": None,
            "reason": "It was for Vision.",
        }
        return reattribute(
            actor=by(alice),
            team=acme,
            now=NOON + 5 * MINUTE,
            instances=[one.pk for one in machines],
            **{**said, **more},
        )

    return make


@pytest.fixture
def known(acme, machine):
    """A machine with spans."""
    instance = machine()
    sync_attribution(team=acme, now=NOON - 50 * HOUR)
    LedgerChange.objects.all().delete()
    return instance


def test_hours_are_cut_out_and_given_away(known, again, project, bob):
    entry = again([known], project=project, owner=bob, start=NOON - 10 * HOUR, until=NOON - 4 * HOUR)
    assert told(known) == [
        (-100, -10, "", "", "machine"),
        (-10, -4, "Vision", "bob", "again"),
        (-4, None, "", "", "machine"),
    ]
    given = AttributionSpan.objects.get(source="again")
    assert (given.reattribution, given.note, given.created_by) == (entry, "It was for Vision.", entry.created_by)


def test_hours_of_several_spans_keep_their_jobs(acme, known, again, project, rule):
    AttributionSpan.objects.update(job="early", labels={"a": "b"})
    rule(owner=project.team.members.first(), now=NOON - 5 * HOUR)
    again([known], project=project)
    rows = AttributionSpan.objects.filter(source="again").order_by("period")
    assert [(row.job, row.labels) for row in rows] == [("early", {"a": "b"}), ("", {})]
    assert told(known)[-1] == (0, None, "", "alice", "rule")


def test_what_was_given_once_can_be_given_again(known, again, project, bob):
    again([known], project=project)
    again([known], owner=bob, start=NOON - 5 * HOUR)
    assert told(known)[1:3] == [(-10, -5, "Vision", "", "again"), (-5, 0, "", "bob", "again")]


def test_hours_before_the_machine_was_there_are_nobodys(acme, machine, again, project):
    young = machine(since=NOON - 3 * HOUR)
    sync_attribution(team=acme, now=NOON - HOUR)
    again([young], project=project)
    assert told(young) == [(-3, 0, "Vision", "", "again"), (0, None, "", "", "machine")]


def test_split_hours_are_split_no_more(known, again, project, bob):
    AttributionSpan.objects.update(split="holds")
    for hours in (11, 10, 1):
        ShareHour.objects.create(instance=known, hour=NOON - hours * HOUR, owner=bob, share=Decimal("0.5"))
    again([known], project=project)
    assert list(ShareHour.objects.values_list("hour", flat=True)) == [NOON - 11 * HOUR]
    assert AttributionSpan.objects.get(source="again").split == "whole"


def test_a_rule_is_applied_to_the_past(acme, machine, again, project, rule, bob):
    plain, given, other = machine(), machine("train-02", owner=bob), machine("serve-01")
    gone = machine("train-03", gone_at=NOON - 2 * HOUR)
    sync_attribution(team=acme, now=NOON - 20 * HOUR)
    made = rule(project=project, name_pattern="train-*", now=NOON + MINUTE)
    entry = again(rule=made, project=made.project)
    assert set(entry.instances.all()) == {plain, gone}
    assert told(plain)[1] == (-10, 0, "Vision", "", "again")
    assert all("again" not in row for row in (*told(given), *told(other)))


def test_the_sums_are_asked_for_from_its_first_hour(known, again, project):
    again([known], project=project)
    assert list(LedgerChange.objects.values_list("instance", "from_at")) == [(known.pk, NOON - 10 * HOUR)]


def test_it_is_in_the_audit_log(known, again, project, alice):
    entry = again([known], project=project)
    line = AuditEntry.objects.get(action="attribution.again")
    assert (line.actor, line.target_id) == (alice, str(entry.pk))
    assert line.new["reason"] == "It was for Vision."
    assert (line.new["project"], line.new["machines"]) == ("Vision", 1)


def test_what_it_moved_stays_on_record(acme, known, again, project):
    day = NOON.date()
    spend_on(acme, day, "24", instance=known)
    entry = again([known], project=project)
    assert entry.before == [{"project": None, "owner": None, "amounts": {"USD": "24.00000000000000"}}]
    assert settle_reattributions(team=acme) == 0
    for model in (CostDay, CostGroupDay, CostMonth):
        model.objects.all().delete()
    spend_on(acme, day, "14", instance=known)
    spend_on(acme, day, "10", instance=known, project=project)
    LedgerChange.objects.all().delete()
    assert settle_reattributions(team=acme) == 1
    assert settle_reattributions(team=acme) == 0
    entry.refresh_from_db()
    assert {row["project"]: Decimal(row["amounts"]["USD"]) for row in entry.after} == {None: 14, project.pk: 10}


def test_what_will_be_moved_is_known_before(acme, known, project, bob):
    yesterday = (NOON - 24 * HOUR).date()
    spend_on(acme, yesterday, "24", instance=known)
    spend_on(acme, yesterday, "48", instance=known, project=project, currency="EUR")
    midnight = NOON - 12 * HOUR
    whole = estimate(team=acme, instances=[known.pk], start=midnight - 24 * HOUR, until=midnight, now=NOON)
    assert whole.is_exact
    assert whole.moved_to((project.pk, None)) == {"USD": 24}
    assert whole.moved_to((None, bob.pk)) == {"USD": 24, "EUR": 48}
    part = estimate(team=acme, instances=[known.pk], start=midnight - 6 * HOUR, until=midnight, now=NOON)
    assert not part.is_exact
    assert part.moved_to((project.pk, None)) == {"USD": 6}


def test_a_day_of_23_hours_counts_as_one(acme, known):
    acme.time_zone = "America/New_York"
    acme.save()
    from datetime import UTC, date, datetime

    day = date(2026, 3, 8)
    spend_on(acme, day, "23", instance=known)
    start = datetime(2026, 3, 8, 5, tzinfo=UTC)
    found = estimate(team=acme, instances=[known.pk], start=start, until=start + 23 * HOUR, now=NOON)
    assert found.is_exact
    assert found.moved_to((7, None)) == {"USD": 23}
    part = estimate(team=acme, instances=[known.pk], start=start, until=start + HOUR, now=NOON)
    assert part.moved_to((7, None)) == {"USD": 1}


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"until": NOON + HOUR}, "until"),
        ({"until": NOON - 10 * HOUR}, "until"),
        ({"start": NOON - 10 * HOUR + MINUTE}, "start"),
        ({"start": NOON - 900 * HOUR, "until": NOON - 800 * HOUR}, "until"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(known, again, said, field):
    before = told(known)
    with pytest.raises(ValidationError) as refused:
        again([known], **said)
    assert list(refused.value.message_dict) == [field]
    assert told(known) == before


def test_machines_people_and_projects_of_others_are_refused(known, again, machine, rival, charlie):
    theirs = machine("theirs", team=rival)
    project = Project.objects.create(team=rival, name="Secret", slug="secret")
    for said, field in (
        ({"machines": [known, theirs]}, "instances"),
        ({"machines": []}, "instances"),
        ({"machines": [known], "owner": charlie}, "owner"),
        ({"machines": [known], "project": project}, "project"),
    ):
        with pytest.raises(ValidationError) as refused:
            again(**said)
        assert list(refused.value.message_dict) == [field]
