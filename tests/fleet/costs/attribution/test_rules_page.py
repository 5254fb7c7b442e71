"""The page of rules: what each does and would have done, previews before anything is saved, and who may do what."""

from __future__ import annotations

from decimal import Decimal

import pytest
import time_machine
from django.urls import reverse

from fleet.costs.attribution.models import AttributionRule, AttributionSpan, Reattribution
from fleet.costs.attribution.standing import board_of, unattributed
from fleet.costs.attribution.sync import sync_attribution
from fleet.teams.members import remove_member
from fleet.teams.models import Membership
from fleet.teams.projects import archive_project
from tests.fleet.costs.attribution.conftest import HOUR, MINUTE, NOON, told
from tests.fleet.costs.seeding import spend_on

RULES = "/t/acme/costs/rules/"
NEW = f"{RULES}new/"
AGAIN = f"{RULES}again/"


@pytest.fixture(autouse=True)
def _noon():
    with time_machine.travel(NOON + 20 * MINUTE, tick=False):
        yield


def said(**more):
    plain = dict.fromkeys(("name_pattern", "account", "label_key", "label_value", "project", "owner", "labels"), "")
    return {**plain, "split": "whole", **more}


def test_a_rule_is_previewed_and_then_saved(machine, acme, project, alice, as_user):
    instance, other = machine(), machine("serve-01")
    sync_attribution(team=acme, now=NOON - HOUR)
    browser = as_user(alice)
    asked = said(name_pattern="train-*", project=project.pk)
    page = browser.post(NEW, asked)
    text = page.content.decode()
    assert "1 machine would change hands" in text
    assert "train-01" in text
    assert "serve-01" not in text
    assert "2026-11-30 12:00" in text
    assert not AttributionRule.objects.exists()
    saved = browser.post(NEW, {**asked, "save": "1"})
    assert saved.status_code == 302
    assert told(instance)[-1] == (0, None, "Vision", "", "rule")
    assert told(other)[-1][2:] == ("", "", "machine")


def test_a_change_begins_another_rule(machine, acme, project, bob, alice, rule, as_user):
    instance = machine()
    made = rule(project=project, now=NOON - 2 * HOUR)
    browser = as_user(alice)
    address = f"{RULES}{made.pk}/"
    assert "1 machine would change hands" in browser.post(address, said(owner=bob.pk)).content.decode()
    browser.post(address, said(owner=bob.pk, save="1"))
    assert told(instance)[-2:] == [(-100, 0, "Vision", "", "rule"), (0, None, "", "bob", "rule")]
    assert browser.get(address).status_code == 404


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ({"name_pattern": "train-*"}, "gives its machines nothing"),
        ({"label_value": "x", "labels": "a=b"}, "Name the label"),
        ({"project": "999999"}, "Select a valid choice"),
    ],
)
def test_a_rule_that_cannot_be_is_said_and_nothing_typed_is_lost(machine, alice, as_user, sent, text):
    page = as_user(alice).post(NEW, said(**sent, save="1"))
    assert page.status_code == 422
    assert text in page.content.decode()
    assert "train-*" in page.content.decode() or "name_pattern" not in sent
    assert not AttributionRule.objects.exists()


def test_rules_are_moved_and_ended(machine, project, bob, alice, rule, as_user):
    first, second = rule(project=project), rule(owner=bob)
    browser = as_user(alice)
    browser.post(f"{RULES}{second.pk}/move/", {"up": "1"})
    top = AttributionRule.objects.get(ended_at=None, order=first.order)
    assert top.owner == bob
    browser.post(f"{RULES}{top.pk}/end/")
    assert [row.project for row in AttributionRule.objects.filter(ended_at=None)] == [project]


def test_the_board_says_what_each_rule_does_and_would_have_done(machine, acme, project, bob, rule):
    train, gone, mine, left = (
        machine("train-01"),
        machine("train-02", gone_at=NOON - 5 * HOUR),
        machine("mine", owner=bob),
        machine("x"),
    )
    made = rule(project=project, name_pattern="train-*")
    day = NOON.date()
    for instance, amount in ((train, 10), (gone, 5), (mine, 3), (left, 2)):
        spend_on(acme, day, amount, instance=instance)
    board = board_of(acme, now=NOON)
    (one,) = board.rules
    assert (one.rule, one.tally.machines, one.tally.cost) == (made, 1, {"USD": Decimal(15)})
    assert (board.by_hand.machines, board.by_hand.cost) == (1, {"USD": Decimal(3)})
    assert (board.nobody.machines, board.nobody.cost) == (1, {"USD": Decimal(2)})


def test_a_rule_of_an_archived_project_or_of_somebody_who_left_says_so(machine, project, bob, alice, rule, by, as_user):
    rule(project=project, owner=bob)
    archive_project(actor=by(alice), project=project)
    remove_member(actor=by(alice), membership=Membership.objects.get(user=bob))
    text = as_user(alice).get(RULES).content.decode()
    assert "The project is archived" in text
    assert "The owner left the team" in text


def test_money_of_nobody_is_never_negative(machine, acme, project, account):
    day = NOON.date()
    spend_on(acme, day, "7", instance=machine())
    spend_on(acme, day, "-20", account=account, meter="adjustment")
    spend_on(acme, day, "9", account=account, project=project)
    assert unattributed(acme, now=NOON) == ({"USD": Decimal(7)}, {"USD": Decimal(20)})


def test_the_past_is_attributed_again_after_a_look(machine, acme, project, alice, as_user):
    instance = machine()
    sync_attribution(team=acme, now=NOON - 50 * HOUR)
    spend_on(acme, (NOON - 24 * HOUR).date(), "24", instance=instance)
    browser = as_user(alice)
    sent = {
        "name_pattern": "train-*", "rule": "", "start": "2026-11-29T00:00", "until": "2026-11-30T00:00",
        "project": project.pk, "owner": "", "reason": "It was for Vision.",
    }  # fmt: skip
    assert "$24.00 would move to Vision" in browser.post(AGAIN, sent).content.decode()
    assert not Reattribution.objects.exists()
    assert browser.post(AGAIN, {**sent, "save": "1"}).status_code == 302
    text = browser.get(RULES).content.decode()
    for words in ("It was for Vision.", "alice", "being summed", "nobody: $24.00"):
        assert words in text
    assert "again" in {row[4] for row in told(instance)}


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ({"name_pattern": ""}, "Name machines or choose a rule"),
        ({"name_pattern": "absent-*"}, "Choose at least one machine"),
        ({"until": "2026-11-30T13:00"}, "Only hours that are over"),
        ({"start": "2026-11-29T00:30"}, "full hours"),
        ({"reason": ""}, "This field is required"),
    ],
)
def test_what_cannot_be_attributed_again_is_said(machine, acme, alice, as_user, sent, text):
    machine()
    sync_attribution(team=acme, now=NOON - HOUR)
    plain = {"name_pattern": "train-*", "rule": "", "start": "2026-11-29T00:00", "until": "2026-11-30T00:00"}
    page = as_user(alice).post(AGAIN, {**plain, "project": "", "owner": "", "reason": "x", "save": "1", **sent})
    assert page.status_code == 422
    assert text in page.content.decode()
    assert not Reattribution.objects.exists()


def test_members_see_rules_and_only_admins_change_them(machine, project, rule, alice, bob, vera, as_user):
    made = rule(project=project)
    for user in (bob, vera):
        browser = as_user(user)
        page = browser.get(RULES)
        assert page.status_code == 200
        assert "New rule" not in page.content.decode()
        assert browser.get(NEW).status_code == 403
        for address in (NEW, AGAIN, f"{RULES}{made.pk}/", f"{RULES}{made.pk}/end/", f"{RULES}{made.pk}/move/"):
            assert browser.post(address, said(project=project.pk, save="1")).status_code == 403
    assert AttributionRule.objects.filter(ended_at=None).get() == made


def test_another_team_finds_nothing(machine, rival, project, rule, charlie, as_user):
    made = rule(project=project)
    browser = as_user(charlie)
    assert browser.get(RULES).status_code == 404
    assert browser.post(f"/t/rival/costs/rules/{made.pk}/end/").status_code == 404
    made.refresh_from_db()
    assert made.ended_at is None


def test_a_machine_says_whose_it_is_and_who_operates_splits_it(machine, acme, project, rule, bob, vera, alice, as_user):
    instance = machine()
    rule(project=project, now=NOON - 3 * HOUR)
    address = reverse("instance", args=["acme", instance.pk])
    text = as_user(vera).get(address).content.decode()
    assert "Whose it is" in text
    assert "by rule 1" in text
    assert (
        as_user(vera).post(reverse("machine_split", args=["acme", instance.pk]), {"split": "holds"}).status_code == 403
    )
    assert "Attribute the past again" not in as_user(bob).get(address).content.decode()
    as_user(bob).post(reverse("machine_split", args=["acme", instance.pk]), {"split": "holds"})
    assert AttributionSpan.objects.get(instance=instance, period__upper_inf=True).split == "holds"
    as_user(bob).post(reverse("machine_split", args=["acme", instance.pk]), {"split": "by moonlight"})
    assert AttributionSpan.objects.get(instance=instance, period__upper_inf=True).split == "holds"


def test_names_are_escaped(machine, acme, project, alice, rule, as_user):
    machine("<script>alert(1)</script>")
    page = as_user(alice).post(NEW, said(project=project.pk, name_pattern="<script>*"))
    assert "<script>alert" not in page.content.decode()
    assert "&lt;script&gt;alert" in page.content.decode()
