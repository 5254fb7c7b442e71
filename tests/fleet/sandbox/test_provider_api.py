"""The sandbox provider over HTTP, as an adapter meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from fleet.sandbox.desk import Desk, StateError
from fleet.sandbox.http_api import SandboxAPI

JSON = dict[str, Any]


class Clock:
    def __init__(self) -> None:
        self.now = 1_796_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Desk:
    return Desk(tmp_path / "provider.json", clock)


@pytest.fixture
def call(desk: Desk):
    """call("GET", "/v1/instances") is (status, JSON)."""

    async def send(method: str, path: str, *, key: str | None = None, **more) -> tuple[int, JSON]:
        transport = httpx.ASGITransport(SandboxAPI(desk))
        headers = {"Authorization": f"Bearer {desk.full_key if key is None else key}", **more.pop("headers", {})}
        async with httpx.AsyncClient(transport=transport, base_url="http://sandbox") as client:
            response = await client.request(method, path, headers=headers, **more)
        return response.status_code, response.json()

    return send


async def everything(call) -> list[JSON]:
    machines: list[JSON] = []
    page: JSON = {"next": ""}
    while page["next"] is not None:
        _, page = await call("GET", f"/v1/instances?cursor={page['next']}&limit=7")
        machines += page["instances"]
    return machines


async def test_a_listing_comes_in_pages_without_gap_or_repeat(call) -> None:
    ids = [machine["id"] for machine in await everything(call)]
    assert len(ids) == len(set(ids)) == 24


async def test_the_fleet_is_as_mixed_as_real_ones(call) -> None:
    machines = await everything(call)
    assert {machine["tenancy"] for machine in machines} == {
        "dedicated_host",
        "dedicated_gpu",
        "community_host",
        "fraction",
    }
    assert {machine["market"] for machine in machines} == {"on_demand", "spot", "prepaid"}
    assert len({machine["region"] for machine in machines}) >= 5
    assert 95 <= sum(machine["gpu"]["count"] for machine in machines) <= 115


async def test_no_key_and_a_wrong_key_are_refused(call) -> None:
    assert (await call("GET", "/v1/account", key=""))[0] == 401
    assert (await call("GET", "/v1/account", key="sbk_guess"))[0] == 401


async def test_a_read_key_reads_and_does_nothing_else(call, desk: Desk) -> None:
    assert (await call("GET", "/v1/account", key=desk.read_key))[0] == 200
    status, answer = await call("DELETE", "/v1/instances/sb-9e0b77", key=desk.read_key)
    assert (status, answer["error"]["code"]) == (403, "read_only")


async def test_stopping_takes_a_while_and_can_be_asked_for_twice(call, clock: Clock) -> None:
    status, machine = await call("POST", "/v1/instances/sb-9e0b77/stop")
    assert (status, machine["status"]) == (202, "stopping")
    assert (await call("POST", "/v1/instances/sb-9e0b77/stop"))[1]["status"] == "stopping"
    clock.now += 30
    machine = (await call("GET", "/v1/instances/sb-9e0b77"))[1]
    assert machine["status"] == "stopped"
    assert machine["stopped_at"].startswith("2026-")
    assert machine["ssh"] is None


async def test_starting_again_gives_a_new_start(call, clock: Clock) -> None:
    before = (await call("GET", "/v1/instances/sb-e5a810"))[1]
    assert before["status"] == "stopped"
    assert (await call("POST", "/v1/instances/sb-e5a810/start"))[1]["status"] == "starting"
    clock.now += 60
    after = (await call("GET", "/v1/instances/sb-e5a810"))[1]
    assert after["status"] == "running"
    assert after["started_at"] > before["started_at"]


async def test_a_terminated_machine_stays_listed_for_an_hour(call, clock: Clock) -> None:
    assert (await call("DELETE", "/v1/instances/sb-9e0b80"))[0] == 202
    clock.now += 60
    assert (await call("GET", "/v1/instances/sb-9e0b80"))[1]["status"] == "terminated"
    assert (await call("DELETE", "/v1/instances/sb-9e0b80"))[0] == 202
    status, answer = await call("POST", "/v1/instances/sb-9e0b80/start")
    assert (status, answer["error"]["code"]) == (409, "wrong_state")
    clock.now += 3700
    assert (await call("GET", "/v1/instances/sb-9e0b80"))[0] == 404


async def test_a_new_machine_is_provisioned_once_for_one_key(call, clock: Clock) -> None:
    order = {"offer": "sb.l4x1", "name": "mine", "labels": {"project": "eval"}}
    status, machine = await call("POST", "/v1/instances", json=order, headers={"Idempotency-Key": "op-1"})
    assert (status, machine["status"], machine["name"]) == (201, "provisioning", "mine")
    again = (await call("POST", "/v1/instances", json=order, headers={"Idempotency-Key": "op-1"}))[1]
    assert again["id"] == machine["id"]
    clock.now += 90
    assert (await call("GET", f"/v1/instances/{machine['id']}"))[1]["status"] == "running"


@pytest.mark.parametrize(
    ("order", "status", "code", "field"),
    [
        ({"offer": "none"}, 422, "invalid", "offer"),
        ({"offer": "sb.l4x1", "region": "moon"}, 422, "invalid", "region"),
        ({"offer": "sb.l4x1", "disk_gb": "much"}, 422, "invalid", "disk_gb"),
        ({"offer": "sb.l4x1", "labels": []}, 422, "invalid", "labels"),
        ({"offer": "sb.l4x1", "name": ""}, 422, "invalid", "name"),
        ({"offer": "sb.l4x1", "market": "spot"}, 409, "no_capacity", "sb.l4x1"),
    ],
)
async def test_a_bad_order_names_the_field(call, order: JSON, status: int, code: str, field: str) -> None:
    answered, answer = await call("POST", "/v1/instances", json=order)
    assert (answered, answer["error"]["code"]) == (status, code)
    assert field in answer["error"]["message"]


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b"[]", 400), (b"x" * 70_000, 413)])
async def test_a_bad_body_is_said_to_be_one(call, body: bytes, status: int) -> None:
    assert (await call("POST", "/v1/instances", content=body))[0] == status


async def test_unknown_paths_methods_and_limits_are_refused(call) -> None:
    assert (await call("GET", "/v2/instances"))[0] == 404
    assert (await call("GET", "/v1/instances/sb-none"))[0] == 404
    assert (await call("PUT", "/v1/instances"))[0] == 405
    assert (await call("GET", "/v1/instances?limit=many"))[0] == 422


async def test_offers_and_images_are_listed(call) -> None:
    offers = (await call("GET", "/v1/offers?limit=100"))[1]["offers"]
    assert {"NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090"} <= {offer["gpu"]["model"] for offer in offers}
    assert [offer for offer in offers if offer["spot_price_per_hour"]]
    assert (await call("GET", "/v1/images"))[1]["total"] == 5


async def test_money_is_written_as_decimals(call) -> None:
    machine = (await call("GET", "/v1/instances/sb-0a1c41"))[1]
    assert (machine["price_per_hour"], machine["currency"]) == ("23.92", "USD")
    assert machine["storage_price_per_hour"] == "0.547945"


class TestOverTime:
    async def test_a_machine_ordered_just_now_comes_up(self, call, clock: Clock) -> None:
        assert (await call("GET", "/v1/instances/sb-d1f300"))[1]["status"] == "provisioning"
        clock.now += 80
        assert (await call("GET", "/v1/instances/sb-d1f300"))[1]["status"] == "running"

    async def test_a_spot_machine_is_reclaimed_and_comes_back(self, call, clock: Clock) -> None:
        clock.now += 41 * 60
        machine = (await call("GET", "/v1/instances/sb-7c6652"))[1]
        assert (machine["status"], machine["status_reason"]) == ("reclaimed", "spot capacity was reclaimed")
        clock.now += 15 * 60
        assert (await call("GET", "/v1/instances/sb-7c6652"))[1]["status"] == "running"

    async def test_a_night_away_goes_through_every_change(self, call, desk: Desk, clock: Clock) -> None:
        clock.now += 86400 * 2
        assert desk.get("sb-7c6652").status in {"running", "reclaimed", "provisioning"}
        assert clock.now - desk.get("sb-7c6652").status_since < 6 * 3600

    async def test_a_lease_ends_in_the_future(self, call, desk: Desk, clock: Clock) -> None:
        first = desk.get("sb-c00d15").lease_ends_at
        assert first == clock.now + 20 * 3600
        clock.now += 21 * 3600
        assert desk.get("sb-c00d15").lease_ends_at == first + 7 * 86400


class TestAfterARestart:
    async def test_rentals_keys_and_birth_are_as_before(self, call, desk: Desk, clock: Clock, tmp_path: Path) -> None:
        await call("POST", "/v1/instances/sb-9e0b77/stop")
        made = (await call("POST", "/v1/instances", json={"offer": "sb.l4x1"}, headers={"Idempotency-Key": "k"}))[1]
        again = Desk(tmp_path / "provider.json", clock)
        assert again.rentals == desk.rentals
        assert (again.full_key, again.read_key, again.born_at) == (desk.full_key, desk.read_key, desk.born_at)
        assert again.create({"offer": "sb.l4x1"}, "k").id == made["id"]

    def test_its_file_is_for_its_owner_only(self, desk: Desk, tmp_path: Path) -> None:
        assert (tmp_path / "provider.json").stat().st_mode & 0o777 == 0o600

    def test_a_file_of_another_release_is_left_alone(self, desk: Desk, tmp_path: Path, clock: Clock) -> None:
        path = tmp_path / "provider.json"
        path.write_text('{"version": 99}')
        with pytest.raises(StateError, match="Move it away"):
            Desk(path, clock)
        assert path.read_text() == '{"version": 99}'
