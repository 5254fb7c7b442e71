"""Operations as pages show them: step by step on the machine, all of them in a list, one of them with everything that happened."""

from __future__ import annotations

import pytest

from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.requests import request_launch, request_save_image, request_stop
from fleet.providers.base import CreateSpec

LIST = "/t/acme/operations/"


def text(answer) -> str:
    return str(answer.content.decode())


@pytest.fixture
def stop(machine, by_alice):
    return request_stop(actor=by_alice, instance=machine)


@pytest.fixture
def shown(machine, as_user, vera):
    return lambda: text(as_user(vera).get(f"/t/acme/instances/{machine.pk}/pulse/"))


def test_the_machines_page_goes_with_the_operation(stop, shown, driver):
    assert 'data-at="now" aria-current="step"><b>Accepted' in shown()
    driver.step()
    assert "proves nothing yet" in shown()
    driver.run(seconds=600)
    page = shown()
    assert "Proved" in page
    assert 'data-at="todo"' not in page
    assert "Stop: proved" in page, "the timeline of the machine"


def test_what_ended_long_ago_is_history(stop, shown, driver):
    driver.run(seconds=600)
    driver.wait(3600)
    assert "Operation" not in shown().split('id="stats"')[0].split('id="operation"')[1]


def test_the_money_since_is_said(stop, shown, driver):
    driver.wait(3600)
    assert "since it was asked for" in shown()


def test_an_image_is_told_in_words_of_images(machine, by_alice, driver, shown, as_user, vera):
    operation = request_save_image(actor=by_alice, instance=machine, name="tuned")
    driver.run(seconds=600)
    operation.refresh_from_db()
    assert operation.seen_state == "ready"
    assert "the provider shows a ready image" in shown()
    assert as_user(vera).get(f"{LIST}{operation.pk}/").status_code == as_user(vera).get(LIST).status_code == 200


class TestList:
    def test_open_ones_first(self, stop, driver, by_alice, rented, as_user, vera):
        driver.run(seconds=600)
        request_launch(actor=by_alice, account=rented, spec=CreateSpec(name="new-01", offer_id="x"), offer={})
        page = text(as_user(vera).get(LIST))
        assert page.index("new-01") < page.index("Stop ")
        assert 'hx-trigger="every 5s"' in page

    @pytest.mark.parametrize(
        ("query", "found"),
        [("state=open", True), ("state=failed", False), ("kind=stop", True), ("kind=start", False), ("q=zzz", False)],
    )
    def test_filters(self, stop, as_user, vera, query, found):
        assert (f"/operations/{stop.pk}/" in text(as_user(vera).get(f"{LIST}?{query}"))) is found

    def test_nonsense_filters_nothing(self, stop, as_user, vera):
        assert f"/operations/{stop.pk}/" in text(as_user(vera).get(f"{LIST}?state=x&kind=y&account=z&page=w"))

    def test_a_closed_list_asks_no_more(self, stop, driver, as_user, vera):
        driver.run(seconds=600)
        assert "hx-trigger" not in text(as_user(vera).get(LIST, headers={"HX-Request": "true"}))

    def test_another_team_sees_none(self, stop, as_user, charlie):
        assert as_user(charlie).get(LIST).status_code == 404
        assert as_user(charlie).get(f"{LIST}{stop.pk}/").status_code == 404


class TestOne:
    def test_every_step_is_told(self, stop, driver, as_user, vera):
        driver.run(seconds=600)
        page = text(as_user(vera).get(f"{LIST}{stop.pk}/"))
        assert "Sent to the provider" in page
        assert stop.token in page
        assert "Give it up" not in page

    def test_an_operator_gives_it_up_with_a_reason(self, stop, as_user, bob, vera):
        address = f"{LIST}{stop.pk}/abandon/"
        assert "id_reason_error" in text(as_user(bob).post(address, {"reason": ""}))
        assert as_user(vera).post(address, {"reason": "x"}).status_code == 403
        assert as_user(bob).post(address, {"reason": "done by hand"}).status_code == 302
        failed = Operation.objects.get()
        assert (failed.state, failed.error_kind, failed.error_detail) == ("failed", "abandoned", "done by hand")

    def test_a_launch_becomes_the_page_of_its_machine(self, driver, by_alice, rented, as_user, bob):
        launch = request_launch(
            actor=by_alice, account=rented, spec=CreateSpec(name="new-01", offer_id="h100x8"), offer={}
        )
        address = f"{LIST}{launch.pk}/?follow=1"
        assert "new-01" in text(as_user(bob).get(address))
        driver.run(seconds=600)
        launch.refresh_from_db()
        machine_page = f"/t/acme/instances/{launch.instance_id}/"
        assert as_user(bob).get(address).headers["Location"] == machine_page
        assert as_user(bob).get(address, headers={"HX-Request": "true"}).headers["HX-Redirect"] == machine_page
        assert as_user(bob).get(f"{LIST}{launch.pk}/").status_code == 200, "its history stays readable"
