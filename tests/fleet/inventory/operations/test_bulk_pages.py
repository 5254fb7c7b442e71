"""The same act on many machines: one question that lists them, those left out with the reason, and a page that follows each."""

from __future__ import annotations

import pytest

from fleet.inventory.machines import place_hold
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation
from fleet.teams.audit import Actor

ACT = "/t/acme/instances/act/"
KEY = "0123456789abcdef"


def text(answer) -> str:
    return str(answer.content.decode())


@pytest.fixture
def machines(machine, world, driver):
    """Three registered ones that run."""
    world.add()
    world.add()
    driver.wait(60)
    driver.poll()
    Instance.objects.update(managed=True)
    return list(Instance.objects.order_by("pk"))


def sent(kind, machines, **more):
    return {"kind": kind, "machine": [machine.pk for machine in machines], "key": KEY, **more}


def test_the_question_lists_each_and_the_sum(machines, as_user, bob):
    page = text(as_user(bob).get(ACT, sent("stop", machines)))
    assert "Stop 3 machines?" in page
    assert all(f"/instances/{machine.pk}/" in page for machine in machines)
    assert "saves $" in page
    assert not Operation.objects.exists()


def test_those_that_cannot_are_listed_with_the_reason(machines, as_user, bob, driver):
    held, unmanaged, _free = machines
    place_hold(actor=Actor(bob, "bob", "page"), instance=held, owner=bob, reason="evaluation", now=driver.now)
    Instance.objects.filter(pk=unmanaged.pk).update(managed=False)
    page = text(as_user(bob).get(ACT, sent("stop", machines)))
    assert "Stop 1 machine?" in page
    assert "2 are left out" in page
    assert "evaluation" in page
    assert "Nobody registered" in page


def test_each_is_begun_and_followed(machines, as_user, bob, driver):
    client = as_user(bob)
    answer = client.post(ACT, sent("stop", machines))
    batch = f"/t/acme/instances/acted/{KEY}/"
    assert answer.headers["Location"] == batch
    assert Operation.objects.filter(kind="stop").count() == 3
    page = text(client.get(batch))
    assert "3 under way" in page
    assert 'hx-trigger="every 3s"' in page
    driver.run(seconds=900)
    done = text(client.get(batch, headers={"HX-Request": "true"}))
    assert "3 proved" in done
    assert "hx-trigger" not in done


def test_sending_it_again_shows_the_same(machines, as_user, bob):
    client = as_user(bob)
    first, second = (client.post(ACT, sent("stop", machines)) for _time in range(2))
    assert first.headers["Location"] == second.headers["Location"]
    assert Operation.objects.count() == 3


def test_the_reason_of_those_left_out_stands_beside_those_that_go(machines, as_user, bob):
    client = as_user(bob)
    Instance.objects.filter(pk=machines[0].pk).update(state="stopped", billing="storage")
    client.post(ACT, sent("stop", machines))
    page = text(client.get(f"/t/acme/instances/acted/{KEY}/"))
    assert "2 under way" in page
    assert "It is stopped." in page


def test_what_destroys_data_takes_the_act_and_the_number(machines, as_user, bob):
    client = as_user(bob)
    assert "terminate 3" in text(client.get(ACT, sent("terminate", machines)))
    refused = client.post(ACT, sent("terminate", machines, phrase="terminate 2"))
    assert refused.status_code == 422
    assert "id_phrase_error" in text(refused)
    assert not Operation.objects.exists()
    assert client.post(ACT, sent("terminate", machines, phrase="terminate 3")).status_code == 302
    assert Operation.objects.filter(kind="terminate").count() == 3


def test_nothing_marked(as_user, bob, acme):
    assert "No machine was chosen" in text(as_user(bob).get(f"{ACT}?kind=stop"))


def test_who_may(machines, as_user, vera, charlie, bob):
    values = sent("stop", machines)
    assert as_user(vera).get(ACT, values).status_code == as_user(vera).post(ACT, values).status_code == 403
    assert as_user(charlie).get(ACT, values).status_code == 404
    assert as_user(bob).get(ACT, {**values, "kind": "explode"}).status_code == 404
    assert as_user(bob).get(ACT, {**values, "machine": [999_999]}).status_code == 404


def test_the_question_makes_no_query_for_each_machine(machines, as_user, bob, django_assert_max_num_queries):
    client = as_user(bob)
    client.get(ACT, sent("stop", machines[:1]))
    with django_assert_max_num_queries(16):
        client.get(ACT, sent("stop", machines))


def test_the_list_offers_marks_to_those_who_may(machines, as_user, bob, vera):
    assert 'form="bulk"' in text(as_user(bob).get("/t/acme/instances/"))
    assert 'form="bulk"' not in text(as_user(vera).get("/t/acme/instances/"))


def test_the_list_filters_those_under_way(machines, as_user, bob, vera):
    as_user(bob).post(ACT, sent("stop", machines[:1]))
    page = text(as_user(vera).get("/t/acme/instances/?acting=1"))
    assert "1 of 3 machines" in page
    assert "stop: requested" in page
