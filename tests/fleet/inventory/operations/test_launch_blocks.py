"""While a block is in force nothing that it covers is launched or started, by whatever door; an admin may, with a reason that is kept."""

from __future__ import annotations

import pytest

from fleet.inventory.models import Instance
from fleet.inventory.operations.bulk import request_many
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.refusals import LaunchBlocked, NotAdmin
from fleet.inventory.operations.requests import request_launch, request_start
from fleet.inventory.plans.blocks import block_launches, lift_block, lift_blocks_of
from fleet.inventory.plans.models import LaunchBlock
from fleet.providers.base import CreateSpec
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry, Project
from tests.fleet.inventory.operations.liar import NOON

SPEC = CreateSpec(name="train-02", offer_id="h100x8")
FORM = {"key": "0123456789abcdef", "name": "train-02", "offer_id": "h100x8", "market": "on_demand"}
BUDGETS = Actor.system("budgets")
WHY = "the budget of November is spent"
AGAINST = {"override_reason": "paid for by the customer"}


@pytest.fixture
def by_bob(bob) -> Actor:
    return Actor(bob, "bob", "page")


@pytest.fixture
def block(acme):
    """block(project=…) is a block in force of that."""

    def write(**of):
        return block_launches(actor=BUDGETS, team=acme, source="budget:7", reason=WHY, now=NOON, **of)

    return write


@pytest.fixture
def launch(rented, by_bob):
    def ask(actor=by_bob, **more):
        return request_launch(actor=actor, account=rented, spec=SPEC, offer={}, **more)

    return ask


@pytest.fixture
def stopped(machine):
    Instance.objects.update(state="stopped", billing="storage")
    machine.refresh_from_db()
    return machine


class TestWhatItCovers:
    def test_all_of_the_team(self, block, launch, project):
        block()
        for more in ({}, {"project": project}):
            with pytest.raises(
                LaunchBlocked, match=r"Machines of this team may not be launched.*spent.*Raise the budget"
            ):
                launch(**more)

    def test_a_project_and_no_other(self, block, launch, project, acme):
        block(project=project)
        with pytest.raises(LaunchBlocked, match="project Vision"):
            launch(project=project)
        launch(project=Project.objects.create(team=acme, name="Other", slug="other"))

    def test_an_account_and_a_person(self, block, launch, rented, bob, by_alice):
        block(account=rented, owner=bob)
        with pytest.raises(LaunchBlocked, match="account Lab, Machines of bob"):
            launch()
        launch(by_alice)

    def test_another_team_never(self, rival, charlie, launch):
        block_launches(actor=BUDGETS, team=rival, source="budget:1", reason=WHY, now=NOON)
        assert launch().state == "requested"


class TestStarts:
    def test_a_start_spends_too(self, block, stopped, by_bob):
        block(owner=by_bob.user)
        assert request_start(actor=by_bob, instance=stopped).kind == "start"
        Operation.objects.all().delete()
        Instance.objects.update(owner=by_bob.user)
        with pytest.raises(LaunchBlocked):
            request_start(actor=by_bob, instance=stopped)

    def test_many_are_refused_one_by_one(self, block, stopped, by_bob):
        block()
        (begun,) = request_many(actor=by_bob, instances=[stopped], kind="start")
        assert isinstance(begun.refusal, LaunchBlocked)

    def test_the_page_says_so_and_an_admin_may_say_why_not(self, block, stopped, as_user, alice, bob):
        block()
        address = f"/t/acme/instances/{stopped.pk}/act/start/"
        page = as_user(bob).get(address).content.decode()
        assert WHY in page
        assert "Back to the machine" in page
        assert "Why the block does not count" in as_user(alice).get(address).content.decode()
        as_user(alice).post(address, {"key": FORM["key"], **AGAINST})
        assert Operation.objects.get().override_reason == AGAINST["override_reason"]


class TestDoors:
    def test_the_form_names_the_block_and_orders_nothing(self, block, rented, as_user, bob):
        block()
        assert WHY in as_user(bob).get("/t/acme/launch/").content.decode()
        answer = as_user(bob).post("/t/acme/launch/", {**FORM, "account": rented.pk, **AGAINST})
        assert answer.status_code == 422
        assert "Raise the budget" in answer.content.decode()
        assert not Operation.objects.exists()

    def test_an_admin_gives_a_reason_on_the_form(self, block, rented, as_user, alice):
        block()
        form = {**FORM, "account": rented.pk}
        answer = as_user(alice).post("/t/acme/launch/", form)
        assert "id_override_reason_error" in answer.content.decode()
        as_user(alice).post("/t/acme/launch/", {**form, **AGAINST})
        assert Operation.objects.get().override_reason == AGAINST["override_reason"]
        assert AuditEntry.objects.get(action="operation.requested").new["override_reason"] == AGAINST["override_reason"]

    def test_offers_say_it(self, block, as_user, vera):
        block()
        assert WHY in as_user(vera).get("/t/acme/offers/").content.decode()

    def test_the_api_answers_409_and_an_admin_overrides(self, block, rented, as_user, alice, bob):
        block()
        asked = {"account": rented.pk, "offer": "h100x8", "name": "train-02"}
        send = lambda user, **more: as_user(user).post(  # noqa: E731
            "/api/v1/operations/launch/", {**asked, **more}, content_type="application/json"
        )
        answer = send(bob)
        assert (answer.status_code, answer.json()["error"]) == (409, "launch_blocked")
        assert WHY in answer.json()["detail"]
        assert send(bob, **AGAINST).json()["error"] == "not_admin"
        assert send(alice, **AGAINST).status_code == 201

    def test_a_retry_of_what_was_begun_before_is_that_one(self, block, launch):
        begun = launch(idempotency_key="k")
        block()
        assert launch(idempotency_key="k") == begun
        with pytest.raises(LaunchBlocked):
            launch(idempotency_key="another")


class TestReasons:
    def test_only_of_an_admin(self, block, launch, by_alice):
        block()
        with pytest.raises(NotAdmin):
            launch(**AGAINST)
        assert launch(by_alice, **AGAINST).override_reason

    def test_it_counts_against_blocks_of_its_day_alone(self, block, launch, by_alice, driver, world, acme, fresh):
        block()
        begun = launch(by_alice, **AGAINST)
        driver.wait(1)
        block_launches(actor=BUDGETS, team=acme, source="budget:8", reason=WHY, now=driver.now)
        driver.run(60)
        assert (fresh(begun).error_kind, world.calls) == ("launch_blocked", [])


class TestBeforeItIsSent:
    def test_what_waits_when_the_budget_closes_is_not_sent(self, block, launch, driver, world, fresh):
        waiting = launch()
        block()
        driver.run(60)
        assert (fresh(waiting).state, fresh(waiting).error_kind, world.calls) == ("failed", "launch_blocked", [])

    def test_one_that_came_to_nothing_is_not_sent_again_until_it_is_lifted(self, block, launch, driver, world, fresh):
        world.lies["dropped"] = 1
        waiting = launch()
        driver.run(30)
        written = block()
        driver.run(1_800)
        assert len(world.calls) == 1
        assert fresh(waiting).error_kind == "launch_blocked"
        lift_block(actor=BUDGETS, block=written, now=driver.now)
        driver.run(1_800)
        assert len(world.calls) == 2


class TestWriting:
    def test_one_is_in_force_per_source(self, block, acme):
        assert block() == block()
        assert lift_blocks_of(actor=BUDGETS, team=acme, source="budget:7", now=NOON)
        assert not lift_blocks_of(actor=BUDGETS, team=acme, source="budget:7", now=NOON)
        assert block().pk != LaunchBlock.objects.earliest("pk").pk

    def test_both_are_in_the_audit_log(self, block, acme):
        lift_block(actor=BUDGETS, block=block(), reason="a mistake", now=NOON)
        assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)[:9])[-2:] == [
            "launch_block.write",
            "launch_block.lift",
        ]

    def test_the_api_lists_them_and_an_admin_lifts(self, block, as_user, alice, bob, charlie):
        written = block()
        lists = {user.username: as_user(user).get("/api/v1/launch-blocks/?in_force=true").json()["results"] for user in (bob, charlie)}  # fmt: skip
        assert [row["reason"] for row in lists["bob"]] == [WHY]
        assert lists["charlie"] == []
        address = f"/api/v1/launch-blocks/{written.pk}/lift/"
        answers = [
            as_user(user).post(address, {"reason": "a mistake"}, content_type="application/json").status_code
            for user in (bob, charlie, alice, alice)
        ]
        assert answers == [403, 404, 200, 409]
        assert LaunchBlock.objects.get().lifted_reason == "a mistake"
