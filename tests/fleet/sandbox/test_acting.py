"""Acts at the sandbox, and its lies, by the real adapter over a real loopback port; operations prove them as with any provider."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest
import time_machine
from django.db.models import Min

from fleet.inventory.accounts import create_account
from fleet.inventory.models import Image, Instance, ProviderAccount
from fleet.inventory.operations.claims import due
from fleet.inventory.operations.driver import drive
from fleet.inventory.operations.models import OPEN_STATES, Operation
from fleet.inventory.operations.offered import offer_of
from fleet.inventory.operations.requests import (
    request_launch,
    request_reboot,
    request_save_image,
    request_start,
    request_stop,
    request_terminate,
)
from fleet.inventory.operations.sweeping import sweep
from fleet.inventory.poll import claim, poll_account
from fleet.providers.base import CreateSpec, ImageState, Market, OfferQuery, Ref
from fleet.providers.sandbox import Sandbox
from fleet.sandbox.desk import Desk
from fleet.sandbox.http_api import SandboxAPI
from fleet.teams.audit import Actor
from tests.fleet.inventory.conftest import NOON
from tests.fleet.sandbox.loopback import serving

SPEC = CreateSpec(name="try-01", offer_id="sb.l4x1", region="ap-tokyo-1", disk_gb=50)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now.timestamp()


@dataclass
class Lab:
    """The sandbox in this process, an account of acme with its full key, and a driver wound by hand."""

    desk: Desk
    clock: Clock
    port: int
    traveller: time_machine.Traveller
    account: ProviderAccount

    def lie(self, **lies: int) -> dict[str, float]:
        headers = {"Authorization": f"Bearer {self.desk.full_key}"}
        answer = httpx.put(f"http://127.0.0.1:{self.port}/v1/lies", json=lies, headers=headers, trust_env=False)
        found: dict[str, float] = answer.raise_for_status().json()
        return found

    def wait(self, seconds: float) -> None:
        self.clock.now += timedelta(seconds=seconds)
        self.traveller.shift(seconds)

    def poll(self) -> None:
        account = ProviderAccount.objects.get(pk=self.account.pk)
        claim(account_id=account.pk, seen_next_poll_at=account.next_poll_at, now=self.clock.now)
        account.refresh_from_db()
        assert poll_account(account=account, now=self.clock.now).error is None

    def run(self, seconds: float) -> None:
        end = self.clock.now + timedelta(seconds=seconds)
        while self.clock.now < end:
            for pk in due(now=self.clock.now).values_list("pk", flat=True):
                drive(operation_id=pk)
            sweep(now=self.clock.now)
            following = Operation.objects.filter(state__in=OPEN_STATES).aggregate(at=Min("next_at"))["at"] or end
            self.wait(max((min(following, end) - self.clock.now).total_seconds(), 1))


@pytest.fixture
def lab(db, tmp_path, monkeypatch, acme, alice) -> Iterator[Lab]:
    clock = Clock()
    desk = Desk(tmp_path / "provider.json", clock)
    with serving(SandboxAPI(desk)) as port, time_machine.travel(NOON, tick=False) as traveller:
        monkeypatch.setenv("SANDBOX_PORT", str(port))
        account = create_account(
            actor=Actor(alice, "alice", "page"),
            team=acme,
            kind="sandbox",
            name="Lab",
            values={"key": desk.full_key},
            monitor_only=False,
        )
        lab = Lab(desk, clock, port, traveller, account)
        lab.poll()
        Instance.objects.update(managed=True)
        lab.wait(1)
        yield lab


@pytest.fixture
def adapter(lab) -> Sandbox:
    return Sandbox({"key": lab.desk.full_key})


@pytest.fixture
def machine(lab) -> Instance:
    return Instance.objects.select_related("account", "team").get(name="llm-pre-01")


@pytest.fixture
def by(alice) -> Actor:
    return Actor(alice, "alice", "page")


def now(row):
    return type(row).objects.get(pk=row.pk)


class TestHonest:
    def test_launched_saved_stopped_started_restarted_and_ended(self, lab, by):
        launch = request_launch(actor=by, account=lab.account, spec=SPEC, offer=offer_of(lab.account, SPEC))
        lab.run(120)
        assert now(launch).state == "proved"
        machine = now(launch).instance
        machine.refresh_from_db()
        assert (machine.state, machine.instance_type, machine.disk_gb) == ("running", "sb.l4x1", 50)
        for request, after, more in (
            (request_save_image, "running", {"name": "tuned"}),
            (request_stop, "stopped", {}),
            (request_start, "running", {}),
            (request_reboot, "running", {}),
            (request_terminate, "terminated", {"accept_loss": True}),
        ):
            operation = request(actor=by, instance=machine, **more)
            lab.run(180)
            assert now(operation).state == "proved", operation.kind
            assert now(machine).state == after
        lab.poll()
        assert Image.objects.filter(account=lab.account, name="tuned").exists()

    def test_a_machine_starts_from_an_image_that_was_saved(self, lab, adapter, machine):
        ref = Ref(machine.external_id, machine.region)
        image = adapter.save_image(ref, "tuned")
        assert image.state is ImageState.PENDING
        lab.wait(90)
        assert {found.name: found.state for found in adapter.images()}["tuned"] is ImageState.READY
        spec = CreateSpec(name="again", offer_id="sb.l4x1", image_id=image.external_id)
        made = adapter.instance(adapter.create(spec, "rr-0000000000000001"))
        assert made is not None
        assert (made.image_id, made.image_name) == (image.external_id, "tuned")

    def test_an_order_sent_twice_makes_one_machine_that_bears_its_token(self, lab, adapter):
        refs = {adapter.create(SPEC, "rr-0123456789abcdef") for _ in range(2)}
        assert len(refs) == 1
        made = adapter.instance(refs.pop())
        assert made is not None
        assert "rr-0123456789abcdef" in made.labels.values()

    def test_what_is_gone_is_none_and_may_be_ended_again(self, adapter):
        nobody = Ref("sb-nobody", "us-south-1")
        assert adapter.instance(nobody) is None
        adapter.terminate(nobody)

    def test_offers_are_priced_for_the_whole_machine(self, adapter):
        offers = list(adapter.offers(OfferQuery()))
        h100 = [offer for offer in offers if offer.external_id == "sb.h100x8" and offer.region == "us-west-2"]
        prices = {offer.market: str(offer.price.amount) for offer in h100 if offer.price}
        assert prices == {Market.ON_DEMAND: "23.92", Market.SPOT: "13.20"}


class TestLies:
    def test_200_and_still_running(self, lab, by, machine):
        lab.lie(still_running=2)
        stop = request_stop(actor=by, instance=machine)
        lab.run(100)
        assert (now(stop).state, now(machine).state) == ("verifying", "running")
        lab.run(900)
        assert (now(stop).state, now(stop).attempts) == ("proved", 3)

    def test_stopped_and_charged_as_before_is_no_stop(self, lab, by, machine):
        lab.lie(bills_on=1)
        stop = request_stop(actor=by, instance=machine)
        lab.run(100)
        assert (now(stop).state, now(machine).state, now(machine).billing) == ("verifying", "stopped", "full")
        lab.run(3 * 3600)
        assert now(stop).state == "verifying"
        end = request_terminate(actor=by, instance=machine, accept_loss=True)
        lab.run(120)
        assert (now(end).state, now(machine).billing) == ("proved", "none")

    def test_accepted_and_forgotten(self, lab, by, machine):
        lab.lie(forgets=1)
        stop = request_stop(actor=by, instance=machine)
        lab.run(50)
        assert (now(stop).state, now(machine).state) == ("verifying", "running")
        lab.run(600)
        assert now(stop).state == "proved"

    def test_429_storm_then_an_hour_of_500(self, lab, by, machine):
        lab.lie(busy=5, broken_seconds=3600)
        stop = request_stop(actor=by, instance=machine)
        lab.run(3600)
        assert (now(stop).state, now(machine).state) == ("verifying", "running")
        lab.run(3600)
        assert now(stop).state == "proved"

    def test_410(self, lab, by, machine):
        lab.lie(gone=10)
        stop = request_stop(actor=by, instance=machine)
        lab.run(60)
        assert (now(stop).error_kind, now(machine).state) == ("unavailable", "running")
        lab.run(3600)
        assert now(stop).state == "proved"

    def test_late_listing_and_created_although_an_error_was_answered(self, lab, by):
        lab.lie(late_listing_seconds=400, error_but_created=1)
        launch = request_launch(actor=by, account=lab.account, spec=SPEC, offer={})
        lab.run(900)
        assert now(launch).state == "proved"
        assert sum(rental.name == "try-01" for rental in lab.desk.all()) == 1

    def test_terminated_and_back_again(self, lab, by, machine):
        lab.lie(returns=1)
        end = request_terminate(actor=by, instance=machine, accept_loss=True)
        lab.run(60)
        assert now(end).state == "proved"
        lab.run(120)
        lab.poll()
        assert now(machine).state == "running"
        lab.run(120)
        assert (now(end).state, now(machine).state) == ("proved", "terminated")
        assert end.events.filter(kind="reopened").exists()

    def test_a_lie_that_there_is_not_is_refused_and_changes_nothing(self, lab):
        lab.lie(busy=3)
        with pytest.raises(httpx.HTTPStatusError):
            lab.lie(sloth=1)
        assert lab.lie() == dict.fromkeys(lab.lie(), 0)

    def test_a_key_that_only_reads_sets_none(self, lab):
        headers = {"Authorization": f"Bearer {lab.desk.read_key}"}
        url = f"http://127.0.0.1:{lab.port}/v1/lies"
        assert httpx.put(url, json={"busy": 1}, headers=headers, trust_env=False).status_code == 403
