"""Policies are written by people: what is kept, what is refused, and what each change takes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from fleet.idle.policies.models import IdlePolicy
from fleet.idle.policies.said import PolicySaid
from fleet.idle.policies.saving import consent_delete, move_policy, remove_policy, save_policy, take_back_consent
from fleet.inventory.models import ProviderAccount
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry, Project

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
STOP = {"action": "stop"}
OFFICE: dict[str, Any] = {"office_days": (0, 1, 2, 3, 4), "office_from": time(9), "office_until": time(18)}


@pytest.fixture
def save(acme, by_alice):
    def saved(said=None, *, policy=None, confirmed=True, delete_consent=None, **fields):
        said = said or PolicySaid(**{"name": "All", **fields})
        return save_policy(
            actor=by_alice, team=acme, said=said, now=NOW, policy=policy, confirmed=confirmed,
            delete_consent=delete_consent,
        )  # fmt: skip

    return saved


@pytest.fixture
def change(save):
    return lambda policy, confirmed=True, delete_consent=None, **fields: save(
        replace(PolicySaid.of(policy), **fields), policy=policy, confirmed=confirmed, delete_consent=delete_consent
    )


def actions():
    return list(AuditEntry.objects.filter(target_type="IdlePolicy").order_by("pk").values_list("action", flat=True))


def mistakes(refusal) -> set[str]:
    return set(refusal.value.message_dict)


def test_what_is_said_is_kept_and_said_again(save, project, make_instance):
    machine = make_instance()
    said = PolicySaid(
        name="Vision", project=project, excluded=frozenset({machine.pk}), mode="serving", window_minutes=90,
        limits={"cpu_percent": 40.0}, action="stop", grace_minutes=20, warn_minutes=(10, 5), holidays="DE", **OFFICE,
    )  # fmt: skip
    row = save(said)
    row.refresh_from_db()
    assert PolicySaid.of(row) == said
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.new["then"], entry.new["excluded"]) == ("idle_policy.add", "stop", [machine.pk])


def test_by_default_nothing_is_done(save):
    row = save(name="All", confirmed=False)
    assert (row.action, row.accept_loss, row.delete_after_days) == ("alert", False, None)


def test_it_is_tidied(save):
    row = save(
        name="  Two\nlines ", limits={"cpu_percent": 15.0, "sm_activity": 0.02}, holidays="de-by", warn_minutes=(5, 10, 5), **OFFICE
    )  # fmt: skip
    assert (row.name, row.limits, row.holidays, row.warn_minutes) == ("Two lines", {"sm_activity": 0.02}, "DE-BY", [10, 5])  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"name": ""}, "name"),
        ({"mode": "lazy"}, "mode"),
        ({"action": "burn"}, "action"),
        ({"window_minutes": 4}, "window_minutes"),
        ({"window_minutes": 100_000}, "window_minutes"),
        ({"grace_minutes": 0}, "grace_minutes"),
        ({"warn_minutes": (30,)}, "warn_minutes"),
        ({"warn_minutes": (0,)}, "warn_minutes"),
        ({"warn_minutes": (1, 2, 3, 4, 5, 6)}, "warn_minutes"),
        ({"hook_minutes": 0}, "hook_minutes"),
        # Agents give a program an hour at most.
        ({"hook_minutes": 61}, "hook_minutes"),
        ({"provider": "nobody"}, "provider"),
        ({"tenancy": "flat"}, "tenancy"),
        ({"label_value": "dev"}, "label_name"),
        ({"excluded": frozenset({2**31})}, "excluded"),
        ({"limits": {"cpu": 3}}, "limits"),
        ({"limits": {"cpu_percent": 0}}, "limits"),
        ({"limits": {"cpu_percent": float("nan")}}, "limits"),
        ({"wrong_stop_gpu_hours": -1}, "wrong_stop_gpu_hours"),
        ({"wrong_stop_gpu_hours": float("nan")}, "wrong_stop_gpu_hours"),
        ({"action": "terminate"}, "accept_loss"),
        ({"action": "stop", "mode": "pinned"}, "action"),
        ({**OFFICE, "office_days": (7,)}, "office_days"),
        ({**OFFICE, "office_days": ()}, "office_days"),
        ({**OFFICE, "office_from": None}, "office_from"),
        ({**OFFICE, "office_until": None}, "office_until"),
        ({"office_days": (1,)}, "office_from"),
        ({"action": "stop", "office_days": tuple(range(7)), "office_from": time(0), "office_until": time(0)}, "office_days"),
        ({**OFFICE, "time_zone": "Berlin"}, "time_zone"),
        ({**OFFICE, "holidays": "XX"}, "holidays"),
        ({**OFFICE, "holidays": "DE-XX"}, "holidays"),
        ({**OFFICE, "holidays": "DE-Augsburg"}, "holidays"),
        ({"holidays": "DE"}, "holidays"),
        ({"max_age_hours": 0}, "max_age_hours"),
        ({"delete_after_days": 0}, "delete_after_days"),
    ],
    ids=str,
)  # fmt: skip
def test_mistakes_name_their_field(save, fields, named):
    with pytest.raises(ValidationError) as refusal:
        save(**fields)
    assert mistakes(refusal) == {named}
    assert not IdlePolicy.objects.exists()


def test_all_mistakes_are_told_at_once(save):
    with pytest.raises(ValidationError) as refusal:
        save(window_minutes=1, label_value="x", holidays="XX")
    assert mistakes(refusal) == {"window_minutes", "label_name", "holidays"}


def test_nothing_of_another_team(save, rival, make_instance):
    theirs = ProviderAccount.objects.create(team=rival, kind="manual", name="Theirs")
    machine = make_instance(team=rival, account=theirs)
    with pytest.raises(ValidationError) as refusal:
        save(project=Project.objects.create(team=rival, name="P", slug="p"), account=theirs, excluded=frozenset({machine.pk}))  # fmt: skip
    assert mistakes(refusal) == {"project", "account", "excluded"}


def test_an_account_of_another_provider_would_cover_nothing(save, account):
    with pytest.raises(ValidationError) as refusal:
        save(account=account, provider="runpod")
    assert mistakes(refusal) == {"provider"}


def test_a_project_that_was_archived_since_may_stay(save, change, project):
    row = save(project=project)
    Project.objects.filter(pk=project.pk).update(archived_at=NOW)
    assert change(row, window_minutes=30).window_minutes == 30
    with pytest.raises(ValidationError) as refusal:
        save(name="Another", project=Project.objects.get(pk=project.pk))
    assert mistakes(refusal) == {"project"}


def test_a_name_is_taken_once_and_free_again_after_it_was_removed(save, by_alice):
    first = save()
    with pytest.raises(ValidationError) as refusal:
        save()
    assert mistakes(refusal) == {"name"}
    assert remove_policy(actor=by_alice, policy=first, now=NOW) is True
    assert remove_policy(actor=by_alice, policy=first, now=NOW) is False
    assert save().pk != first.pk


class TestConfirming:
    """One that stops machines is switched on by somebody who said that they know what it does."""

    @pytest.mark.parametrize("action", ["stop", "terminate"])
    def test_without_it_nothing_is_saved(self, save, action):
        with pytest.raises(ValidationError) as refusal:
            save(action=action, accept_loss=True, confirmed=False)
        assert mistakes(refusal) == {"confirmed"}
        assert not IdlePolicy.objects.exists()

    @pytest.mark.parametrize(
        "fields",
        [{"window_minutes": 30}, {"grace_minutes": 10}, {"accept_loss": True}, {"stop_without_hook": True},
         {"label_name": "tier"}, {"limits": {"cpu_percent": 50.0}}, OFFICE],
        ids=str,
    )  # fmt: skip
    def test_a_change_of_what_was_agreed_to_needs_it_again(self, save, change, fields):
        row = save(**STOP)
        with pytest.raises(ValidationError) as refusal:
            change(row, confirmed=False, **fields)
        assert mistakes(refusal) == {"confirmed"}

    @pytest.mark.parametrize("fields", [{"name": "Other"}, {"action": "alert"}, {"enabled": False}, {"warn_minutes": (5,)}], ids=str)  # fmt: skip
    def test_what_makes_it_do_no_more_needs_none(self, save, change, fields):
        assert change(save(**STOP), confirmed=False, **fields).revision == 2

    def test_switching_it_on_again_needs_it(self, save, change):
        row = save(enabled=False, confirmed=False, **STOP)
        with pytest.raises(ValidationError):
            change(row, confirmed=False, enabled=True)


def test_a_change_is_told_by_what_changed_and_no_change_is_none(save, change):
    row = save(**STOP)
    assert change(row).revision == 1
    assert change(row, window_minutes=30).revision == 2
    last = AuditEntry.objects.order_by("-pk")[0]
    assert (last.action, last.old, last.new) == ("idle_policy.change", {"window_minutes": 60}, {"window_minutes": 30})
    assert actions() == ["idle_policy.add", "idle_policy.change"]


def test_a_removed_one_is_changed_no_more(save, change, by_alice):
    row = save()
    remove_policy(actor=by_alice, policy=row, now=NOW)
    with pytest.raises(ValidationError, match="removed"):
        change(row, window_minutes=30)


def test_they_count_in_the_order_in_which_people_put_them(save, by_alice, acme):
    first, second, third = (save(name=name) for name in ("One", "Two", "Three"))
    assert move_policy(actor=by_alice, policy=third, up=True, now=NOW) is True
    assert move_policy(actor=by_alice, policy=first, up=True, now=NOW) is False
    remove_policy(actor=by_alice, policy=second, now=NOW)
    assert move_policy(actor=by_alice, policy=second, up=True, now=NOW) is False
    assert move_policy(actor=by_alice, policy=first, up=False, now=NOW) is True
    order = IdlePolicy.objects.filter(removed_at=None).order_by("position").values_list("name", flat=True)
    assert list(order) == ["Three", "One"]
    moved = AuditEntry.objects.filter(action="idle_policy.move")[0]
    assert (moved.old, moved.new) == ({"order": 3}, {"order": 2})


class TestDeleting:
    """Machines are deleted after a stop only where a person agreed to it, for these machines and after so many days."""

    def test_days_alone_are_no_consent(self, save):
        assert save(delete_after_days=7).delete_consent_at is None

    def test_it_is_given_and_taken_back_with_who_and_when(self, save, by_alice, alice):
        row = save(delete_after_days=7)
        assert consent_delete(actor=by_alice, policy=row, now=NOW) is True
        assert consent_delete(actor=by_alice, policy=row, now=NOW) is False
        row.refresh_from_db()
        assert (row.delete_consent_at, row.delete_consent_by) == (NOW, alice)
        assert take_back_consent(actor=by_alice, policy=row, now=NOW) is True
        assert take_back_consent(actor=by_alice, policy=row, now=NOW) is False
        assert actions()[1:] == ["idle_policy.consent_delete", "idle_policy.take_back_consent"]

    def test_it_may_be_given_with_the_policy(self, save, change, alice):
        row = save(delete_after_days=7, delete_consent=True)
        assert row.delete_consent_by == alice
        assert change(row, delete_consent=False).delete_consent_at is None

    @pytest.mark.parametrize("fields", [{"delete_after_days": 3}, {"label_name": "tier"}, {"excluded": frozenset()}], ids=str)  # fmt: skip
    def test_other_machines_or_days_were_not_agreed_to(self, save, change, make_instance, fields):
        row = save(delete_after_days=7, delete_consent=True, excluded=frozenset({make_instance().pk}))
        assert change(row, **fields).delete_consent_at is None

    def test_what_else_changes_leaves_it(self, save, change):
        row = save(delete_after_days=7, delete_consent=True)
        assert change(row, window_minutes=30).delete_consent_at == NOW

    def test_it_stays_where_it_is_given_with_the_change(self, save, change):
        row = save(delete_after_days=7, delete_consent=True)
        assert change(row, delete_after_days=3, delete_consent=True).delete_consent_at == NOW

    def test_without_days_there_is_nothing_to_agree_to(self, save):
        with pytest.raises(ValidationError) as refusal:
            save(delete_consent=True)
        assert mistakes(refusal) == {"delete_after_days"}
        assert not IdlePolicy.objects.exists()

    def test_a_script_cannot_agree(self, save):
        with pytest.raises(ValidationError) as refusal:
            consent_delete(actor=Actor(None, "token ci", "api"), policy=save(delete_after_days=7), now=NOW)
        assert mistakes(refusal) == {"delete_consent"}


@pytest.mark.parametrize(
    ("fields", "kept"),
    [({"window_minutes": 30}, True), ({"grace_minutes": 5}, True), ({"mode": "batch"}, False), ({"restart_minutes": 60}, False),
     ({"label_name": "tier"}, False), ({"limits": {"cpu_percent": 50.0}}, False)],
    ids=str,
)  # fmt: skip
def test_a_recommendation_is_for_what_it_was_reckoned_for(save, change, fields, kept):
    row = save(window_from="recommended", **STOP)
    IdlePolicy.objects.filter(pk=row.pk).update(recommended_minutes=95, recommended_at=NOW)
    change(IdlePolicy.objects.get(pk=row.pk), **fields)
    row.refresh_from_db()
    assert (row.recommended_minutes == 95) is kept
