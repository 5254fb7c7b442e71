"""Who comes back as the machine that it was: not one that was revoked, and not another that shows the same machine id."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.teams.audit import Actor
from fleet.telemetry.agents import move_agent, revoke_agent
from fleet.telemetry.enrolment import MachineTaken, TokenNotValid
from fleet.telemetry.matching import THERE_FOR
from fleet.telemetry.models import Agent
from tests.fleet.telemetry.enrolling import ACTOR, enrol, now

pytestmark = pytest.mark.django_db


def revoke(agent: Agent) -> None:
    assert revoke_agent(actor=ACTOR, agent=agent)


def silent(agent: Agent) -> None:
    Agent.objects.filter(pk=agent.pk).update(enrolled_at=now() - THERE_FOR, heartbeat_at=now() - THERE_FOR)


def test_a_spent_token_does_not_let_a_revoked_agent_back_in(token_for, make_instance):
    for secret, refusal in ((token_for(), TokenNotValid), (token_for(instance=make_instance()), MachineTaken)):
        agent = enrol(secret)
        revoke(agent)
        with pytest.raises(refusal):
            enrol(secret)
        agent.refresh_from_db()
        assert agent.revoked_at is not None


def test_a_token_made_before_the_revocation_gives_no_place_back(token_for, listed):
    ids = {"aws_instance_id": "i-1"}
    machine = listed("i-1")
    secret, unlisted = token_for(max_uses=5), token_for(max_uses=5)
    first = enrol(secret, provider_ids=ids)
    revoke(first)
    again = enrol(secret, provider_ids=ids)
    assert (first.instance, again.match_conflict) == (machine, "revoked")
    assert again.instance != machine
    other = enrol(unlisted, "m2")
    revoke(other)
    assert enrol(unlisted, "m2").instance != other.instance


def test_a_token_for_one_machine_made_before_the_revocation_is_refused(token_for, make_instance):
    machine = make_instance()
    spent, spare = token_for(instance=machine), token_for(instance=machine)
    revoke(enrol(spent))
    with pytest.raises(MachineTaken, match="revoked after"):
        enrol(spare)


def test_a_token_made_after_the_revocation_gives_the_place_back(token_for, listed):
    ids = {"aws_instance_id": "i-1"}
    machine = listed("i-1")
    for fields in ({}, {"provider_ids": ids}):
        first = enrol(token_for(), "m1", **fields)
        revoke(first)
        again = enrol(token_for(), "m1", **fields)
        assert (again.instance_id, again.match_conflict, again.revoked_at) == (first.instance_id, "", None)
        revoke(again)
    assert again.instance == machine


def test_a_copy_with_the_same_machine_id_is_a_conflict_and_takes_no_token(token_for):
    first = enrol(token_for(), boot_id="b1")
    copy = enrol(token_for(), boot_id="b2")
    assert (copy.match_conflict, copy.instance == first.instance) == ("same_id", False)
    kept = Agent.objects.get(pk=first.pk)
    assert (kept.token_hash, kept.revoked_at) == (first.token_hash, None)
    unknown_boot = enrol(token_for(), boot_id="")
    assert unknown_boot.match_conflict == "same_id"


def test_a_copy_uses_its_token_up(token_for):
    secret = token_for()
    enrol(secret, boot_id="b1")
    with pytest.raises(TokenNotValid):
        enrol(secret, boot_id="b2")


def test_a_machine_that_was_silent_may_come_back_after_a_boot(token_for):
    secret = token_for()
    first = enrol(secret, boot_id="b1")
    silent(first)
    again = enrol(secret, boot_id="b2")
    assert (again.pk, again.boot_id) == (first.pk, "b2")
    Agent.objects.update(batch_at=now(), enrolled_at=now() - timedelta(days=1))
    with pytest.raises(TokenNotValid):
        enrol(secret, boot_id="b3")


def test_each_of_two_copies_keeps_its_own_place(token_for):
    secret = token_for(max_uses=2)
    first, copy = enrol(secret, boot_id="b1"), enrol(secret, boot_id="b2")
    assert enrol(secret, boot_id="b1").instance_id == first.instance_id
    assert enrol(secret, boot_id="b2").instance_id == copy.instance_id


def test_a_person_may_say_that_it_is_the_same_machine(token_for, alice):
    first = enrol(token_for(), boot_id="b1")
    again = enrol(token_for(), boot_id="b2")
    move_agent(actor=Actor.system("test"), agent=again, instance=first.instance)
    moved = Agent.objects.get()
    assert (moved.pk, moved.instance, moved.match_conflict) == (again.pk, first.instance, "")


def test_a_token_for_a_machine_that_is_gone_lets_nobody_in(token_for, make_instance):
    secret = token_for(instance=make_instance(gone_at=now()))
    with pytest.raises(TokenNotValid, match="gone"):
        enrol(secret)
