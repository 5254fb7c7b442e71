"""Two workers on one operation, and two people on one machine: PostgreSQL decides, and the provider hears it once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock
from typing import Any

import pytest
from django.db import connection

from fleet.inventory.accounts import create_account
from fleet.inventory.models import Instance
from fleet.inventory.operations.claims import LEASE, claim, due_ids
from fleet.inventory.operations.driver import advance, drive
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.refusals import OperationOpen
from fleet.inventory.operations.requests import request_reboot, request_stop, request_terminate

WORKERS = 6


def at_once(work: Callable[[int], Any]) -> list[Any]:
    barrier = Barrier(WORKERS)

    def worker(number: int) -> Any:
        try:
            barrier.wait(timeout=20)
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(worker, range(WORKERS)))


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    @pytest.fixture(autouse=True)
    def _no_broker(self, monkeypatch):
        monkeypatch.setattr("fleet.inventory.operations.requests.hurry", lambda _pk: None)

    def test_one_of_many_workers_calls_the_provider(self, machine, by_alice, world):
        operation = request_reboot(actor=by_alice, instance=machine)
        answers = at_once(lambda _number: drive(operation_id=operation.pk))
        assert answers.count(True) == 1
        assert world.calls == [("reboot", machine.external_id)]

    def test_one_of_many_requests_begins(self, machine, by_alice):
        def ask(_number: int) -> bool:
            try:
                request_terminate(actor=by_alice, instance=machine, accept_loss=True)
            except OperationOpen:
                return False
            return True

        assert at_once(ask).count(True) == 1
        assert Operation.objects.count() == 1

    def test_the_same_key_is_one_operation_for_everybody(self, machine, by_alice):
        asked = at_once(lambda _n: request_stop(actor=by_alice, instance=machine, idempotency_key="k").pk)
        assert len(set(asked)) == 1

    def test_readings_polls_and_requests_do_not_lock_each_other_out(self, machine, by_alice, driver, world):
        operation = request_stop(actor=by_alice, instance=machine)
        lock = Lock()

        def work(number: int) -> None:
            if number == 0:
                drive(operation_id=operation.pk)
            elif number == 1:
                driver.poll()
            else:
                with lock, pytest.raises(OperationOpen):
                    request_stop(actor=by_alice, instance=machine)

        at_once(work)
        assert world.calls == [("stop", machine.external_id)]


def test_a_worker_that_outlived_its_claim_writes_nothing(machine, by_alice, world, driver, fresh):
    """It hangs in the call; another takes over and proves the stop; then the first comes back with its answer."""
    operation = request_stop(actor=by_alice, instance=machine)

    def hang(step: str) -> None:
        if step == "after stop":
            world.interrupt = lambda _step: None
            driver.wait(LEASE.total_seconds() + 1)
            driver.run(60)

    world.interrupt = hang
    drive(operation_id=operation.pk)
    done = fresh(operation)
    assert done.state == "proved"
    assert list(done.events.values_list("kind", flat=True)).count("accepted") == 0


def test_what_a_person_ended_is_not_written_by_the_worker_that_had_it(machine, by_alice, world, driver, fresh):
    operation = request_reboot(actor=by_alice, instance=machine)
    mine = claim(operation_id=operation.pk, now=driver.now)
    assert mine is not None
    stop = request_stop(actor=by_alice, instance=machine)
    advance(mine)
    assert (fresh(operation).error_kind, world.calls) == ("superseded", [])
    assert fresh(stop).state == "requested"


def test_a_broken_account_leaves_workers_to_the_others(machine, by_alice, driver, acme, make_instance, world):
    other = create_account(
        actor=by_alice, team=acme, kind="liar", name="Other", values={"key": "k"}, monitor_only=False
    )
    many = [make_instance(name=f"m{n}", account=machine.account, external_id=f"x{n}", region="r1") for n in range(5)]
    for instance in many:
        request_stop(actor=by_alice, instance=instance)
    calm = request_stop(
        actor=by_alice, instance=make_instance(name="calm", account=other, external_id="c", region="r1")
    )
    chosen = due_ids(now=driver.now, at_once=3, per_account=2)
    assert len(chosen) == 3
    assert calm.pk in chosen
    for pk in chosen:
        assert claim(operation_id=pk, now=driver.now)
    assert due_ids(now=driver.now, at_once=3, per_account=2) == []
    assert Instance.objects.count() == 7
