"""Enrolment: who is let in, how often, and as which machine."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections

from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.models import AuditEntry
from fleet.teams.secrets import hash_token
from fleet.telemetry.agents import move_agent
from fleet.telemetry.enrolment import (
    InvalidToken,
    MachineTaken,
    TokenNotValid,
    create_enrolment_token,
    enrol_machine,
    revoke_enrolment_token,
)
from fleet.telemetry.matching import candidates
from fleet.telemetry.models import Agent, EnrolmentToken
from tests.fleet.telemetry.enrolling import ACTOR, claim, enrol, now


@pytest.mark.django_db
def test_a_machine_that_nobody_lists_gets_an_entry_named_as_it_calls_itself(acme, token_for, project):
    enrolled = enrol_machine(secret=token_for(project=project), claim=claim(), now=now())
    machine = enrolled.agent.instance
    assert (machine.team, machine.name, machine.account.kind) == (acme, "train-01", "manual")
    assert (machine.managed, machine.project) == (True, project)
    assert hash_token(enrolled.token.secret) == enrolled.agent.token_hash
    entry = AuditEntry.objects.get(action="agent.enrol")
    assert (entry.via, entry.team) == ("agent", acme)
    assert enrolled.token.secret not in str(entry.new)


@pytest.mark.django_db
def test_the_provider_ids_find_the_listed_machine(token_for, listed):
    machine = listed("i-0abc")
    agent = enrol(token_for(), provider_ids={"aws_instance_id": "i-0abc"})
    assert (agent.instance, agent.match_conflict) == (machine, "")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "external_id", "extra", "claimed"),
    [
        ("google", "4419911", {}, {"gcp_instance_id": "4419911"}),
        ("azure", "group/train-01", {"vm_id": "5C2A-01"}, {"azure_vm_id": "5c2a-01"}),
        ("runpod", "pod7", {}, {"runpod_pod_id": "pod7"}),
        ("vast", "1234", {}, {"vast_instance_id": "1234"}),
    ],
)
def test_ids_as_machines_know_them_find_what_adapters_list(acme, token_for, kind, external_id, extra, claimed):
    cloud = ProviderAccount.objects.create(team=acme, kind=kind, name="Cloud")
    machine = Instance.objects.create(team=acme, account=cloud, external_id=external_id, name="x", extra=extra)
    assert enrol(token_for(), provider_ids=claimed).instance == machine


@pytest.mark.django_db
def test_an_id_counts_for_its_own_provider_only(token_for, listed):
    listed("i-0abc")
    agent = enrol(token_for(), provider_ids={"runpod_pod_id": "i-0abc"})
    assert agent.instance.account.kind == "manual"


@pytest.mark.django_db
def test_an_id_never_reaches_into_another_team(token_for, rival):
    cloud = ProviderAccount.objects.create(team=rival, kind="aws", name="Cloud")
    theirs = Instance.objects.create(team=rival, account=cloud, external_id="i-0abc", name="theirs")
    agent = enrol(token_for(), provider_ids={"aws_instance_id": "i-0abc"})
    assert agent.instance != theirs
    assert agent.match_conflict == ""


@pytest.mark.django_db
def test_two_machines_with_one_id_are_a_conflict_that_is_shown_and_not_merged(token_for, listed):
    machine = listed("i-0abc")
    first = enrol(token_for(), "m1", provider_ids={"aws_instance_id": "i-0abc"})
    second = enrol(token_for(), "m2", provider_ids={"aws_instance_id": "i-0abc"})
    assert first.instance == machine
    assert (second.instance.account.kind, second.match_conflict) == ("manual", "taken")


@pytest.mark.django_db
def test_ids_that_name_several_machines_name_none(token_for, listed):
    listed("i-1")
    listed("i-1", region="eu-west-1")
    agent = enrol(token_for(), provider_ids={"aws_instance_id": "i-1"})
    assert (agent.instance.account.kind, agent.match_conflict) == ("manual", "several")


@pytest.mark.django_db
def test_an_address_is_a_hint_that_a_person_settles(token_for, listed):
    machine = listed("i-1", ssh=[{"host": "203.0.113.9", "port": 22, "user": "root", "kind": "direct"}])
    agent = enrol(token_for(), ip_address="203.0.113.9")
    assert (agent.instance.account.kind, agent.match_conflict) == ("manual", "address")
    assert candidates(agent) == [machine]
    move_agent(actor=ACTOR, agent=agent, instance=machine)
    agent.refresh_from_db()
    assert (agent.instance, agent.match_conflict) == (machine, "")


@pytest.mark.django_db
@pytest.mark.parametrize("address", [None, "203.0.113.10"])
def test_another_address_is_no_hint(token_for, listed, address):
    listed("i-1", ssh=[{"host": "203.0.113.9", "port": 22, "user": "root", "kind": "direct"}])
    assert enrol(token_for(), ip_address=address).match_conflict == ""


@pytest.mark.django_db
def test_the_address_of_a_machine_with_an_agent_is_no_hint(token_for, listed):
    listed("i-1", ssh=[{"host": "203.0.113.9", "port": 22, "user": "root", "kind": "direct"}])
    enrol(token_for(), "m1", provider_ids={"aws_instance_id": "i-1"})
    assert enrol(token_for(), "m2", ip_address="203.0.113.9").match_conflict == ""


@pytest.mark.django_db
def test_a_machine_that_is_gone_is_matched_by_nobody(token_for, listed):
    listed("i-1", gone_at=now())
    agent = enrol(token_for(), provider_ids={"aws_instance_id": "i-1"})
    assert agent.instance.account.kind == "manual"


@pytest.mark.django_db
def test_the_same_machine_keeps_its_entry_and_uses_nothing_up(token_for):
    secret = token_for()
    first = enrol(secret)
    second = enrol(secret, hostname="renamed")
    assert (first.pk, first.instance_id) == (second.pk, second.instance_id)
    assert first.token_hash != second.token_hash
    assert EnrolmentToken.objects.get().uses == 1
    assert Agent.objects.count() == 1


@pytest.mark.django_db
def test_a_clone_with_other_ids_is_another_machine(token_for, listed):
    first, second = listed("i-1"), listed("i-2")
    secret = token_for(max_uses=2)
    original = enrol(secret, "same", provider_ids={"aws_instance_id": "i-1"})
    clone = enrol(secret, "same", provider_ids={"aws_instance_id": "i-2"})
    assert (original.instance, clone.instance) == (first, second)


@pytest.mark.django_db
def test_machines_without_an_id_of_their_own_are_never_taken_for_each_other(token_for):
    secret = token_for(max_uses=2)
    assert enrol(secret, "").instance_id != enrol(secret, "").instance_id


@pytest.mark.django_db
def test_a_token_lets_in_as_many_as_it_says(token_for):
    secret = token_for(max_uses=2)
    enrol(secret, "m1")
    enrol(secret, "m2")
    with pytest.raises(TokenNotValid, match="as many machines as it may"):
        enrol(secret, "m3")
    assert Agent.objects.count() == 2


@pytest.mark.django_db
def test_a_token_for_one_machine_is_for_one_machine(token_for, make_instance):
    machine = make_instance()
    secret = token_for(instance=machine, max_uses=50)
    assert enrol(secret, "m1").instance == machine
    with pytest.raises(MachineTaken):
        enrol(secret, "m2")
    assert enrol(secret, "m1").instance == machine


@pytest.mark.django_db
def test_a_second_agent_for_a_machine_is_told_to_have_the_first_revoked(token_for, make_instance):
    machine = make_instance()
    first = enrol(token_for(instance=machine), "m1")
    with pytest.raises(MachineTaken, match="Revoke it"):
        enrol(token_for(instance=machine), "m2")
    Agent.objects.filter(pk=first.pk).update(revoked_at=now())
    assert enrol(token_for(instance=machine), "m2").instance == machine


@pytest.mark.django_db
def test_what_is_not_valid_says_why(acme, token_for):
    with pytest.raises(TokenNotValid, match="not known"):
        enrol("rre_made-up")
    expired = token_for()
    EnrolmentToken.objects.update(expires_at=now() - timedelta(seconds=1))
    with pytest.raises(TokenNotValid, match="expired"):
        enrol(expired)
    token, secret = create_enrolment_token(actor=ACTOR, team=acme)
    assert revoke_enrolment_token(actor=ACTOR, token=token)
    assert not revoke_enrolment_token(actor=ACTOR, token=token)
    with pytest.raises(TokenNotValid, match="revoked"):
        enrol(secret.secret)


@pytest.mark.django_db
def test_a_token_is_stored_as_its_hash_and_reaches_no_other_team(acme, rival, token_for, project, make_instance):
    secret = token_for()
    stored = EnrolmentToken.objects.get()
    assert (stored.token_hash, secret[:10]) == (hash_token(secret), stored.prefix)
    machine = make_instance()
    for wrong in ({"instance": machine}, {"project": project}):
        with pytest.raises(InvalidToken, match="another team") as refused:
            create_enrolment_token(actor=ACTOR, team=rival, **wrong)
        assert refused.value.field == next(iter(wrong))
    for wrong in ({"max_uses": 0}, {"max_uses": 10**9}, {"lifetime": timedelta(0)}, {"lifetime": timedelta(days=9999)}):
        with pytest.raises(InvalidToken):
            create_enrolment_token(actor=ACTOR, team=acme, **wrong)


@pytest.mark.django_db(transaction=True)
def test_uses_are_counted_right_when_many_come_at_once(token_for):
    secret = token_for(max_uses=3)
    start = threading.Barrier(8)
    refused: list[BaseException] = []

    def work(number: int) -> None:
        try:
            start.wait(10)
            enrol(secret, f"m{number}")
        except TokenNotValid as error:
            refused.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (Agent.objects.count(), len(refused), EnrolmentToken.objects.get().uses) == (3, 5, 3)
