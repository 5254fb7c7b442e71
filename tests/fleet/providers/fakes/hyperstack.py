"""Hyperstack's Infrahub API. Its description is written here by hand, from its documentation and its official package (1.56)."""

from __future__ import annotations

from decimal import Decimal
from functools import cache

import pytest

from fleet.providers import hyperstack
from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from tests.fleet.providers.fakes.base import Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.description import Description
from tests.fleet.providers.fakes.handwritten import (
    NUMBER,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    Said,
    Schema,
    many,
    nullable,
    thing,
    written,
)
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

MACHINES = "/v1/core/virtual-machines"
REASONS = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    422: "unprocessable",
    429: "too_many",
}
# Status and the state that vm_state keeps showing meanwhile.
SETTLED = {"HIBERNATING": "HIBERNATED", "RESTORING": "ACTIVE", "CREATING": "ACTIVE", "BUILD": "ACTIVE"}
FLAVOR = {"name": TEXT, "gpu": TEXT, "gpu_count": WHOLE, "cpu": WHOLE, "ram": NUMBER, "disk": WHOLE, "ephemeral": WHOLE}
MACHINE = thing(
    {
        "id": WHOLE,
        "name": TEXT,
        "status": TEXT,
        "vm_state": TEXT,
        "power_state": TEXT,
        "flavor": thing(FLAVOR),
        "environment": thing({"id": WHOLE, "name": TEXT, "region": TEXT}),
        "floating_ip": nullable(TEXT),
        "fixed_ip": nullable(TEXT),
        "image": thing({"name": TEXT}),
        "labels": TEXTS,
        "locked": TRUTH,
        "created_at": TEXT,
    },
    {"contract_id": nullable(WHOLE), "keypair": thing({"name": TEXT})},
)
SNAPSHOT = thing(
    {
        "id": WHOLE,
        "name": TEXT,
        "description": TEXT,
        "status": TEXT,
        "size": WHOLE,
        "created_at": TEXT,
        "updated_at": TEXT,
        "vm_id": WHOLE,
        "region_id": WHOLE,
        "is_image": TRUTH,
    },
    {"vm_flavor": TEXT},
)
KEY = thing({"name": TEXT, "public_key": TEXT, "environment": thing({"name": TEXT})})
ORDER = thing(
    {
        "name": {"type": "string", "maxLength": 50},
        "environment_name": TEXT,
        "flavor_name": TEXT,
        "key_name": TEXT,
        "count": WHOLE,
    },
    {"image_name": TEXT, "assign_floating_ip": TRUTH, "labels": TEXTS, "user_data": TEXT},
)
PAGED = ("page", "page_size")


def said(extra: dict[str, Schema], **options: object) -> Said:
    return Said(thing({"status": TRUTH, "message": TEXT, **extra}), **options)  # type: ignore[arg-type]


def listed(key: str, schema: Schema) -> Said:
    return said({key: many(schema), "count": WHOLE, "page": WHOLE, "page_size": WHOLE}, query=PAGED)


@cache
def description() -> Description:
    one = f"{MACHINES}/{{id}}"
    flavors = many(
        thing({"gpu": TEXT, "region_name": TEXT, "flavors": many(thing({**FLAVOR, "stock_available": TRUTH}))})
    )
    image = thing({"id": WHOLE, "name": TEXT, "region_name": TEXT, "is_public": TRUTH, "size": WHOLE})
    operations = {
        f"GET {MACHINES}": listed("instances", MACHINE),
        f"POST {MACHINES}": said({"instances": many(MACHINE)}, body=ORDER),
        f"GET {one}": said({"instance": MACHINE}),
        f"DELETE {one}": said({}),
        f"GET {one}/start": said({}),
        f"GET {one}/stop": said({}),
        f"GET {one}/hibernate": said({}, query=("retain_ip",)),
        f"GET {one}/hibernate-restore": said({}),
        f"GET {one}/hard-reboot": said({}),
        f"POST {one}/snapshots": said(
            {"snapshot": SNAPSHOT}, status=201, body=thing({"name": TEXT, "description": TEXT}, {"labels": TEXTS})
        ),
        "GET /v1/core/snapshots": listed("snapshots", SNAPSHOT),
        "GET /v1/core/snapshots/{id}": said({"snapshot": SNAPSHOT}),
        "POST /v1/core/snapshots/{id}/restore": said({"instance": MACHINE}, body=thing({"new_vm_name": TEXT})),
        "GET /v1/core/images": said(
            {"images": many(thing({"region_name": TEXT, "type": TEXT, "images": many(image)}))}
        ),
        "GET /v1/core/flavors": said({"data": flavors}),
        "GET /v1/core/environments": listed("environments", thing({"id": WHOLE, "name": TEXT, "region": TEXT})),
        "GET /v1/core/keypairs": listed("keypairs", KEY),
        "POST /v1/core/keypairs": said(
            {"keypair": KEY}, body=thing({"name": TEXT, "environment_name": TEXT, "public_key": TEXT})
        ),
        "GET /v1/pricebook": Said(many(thing({"id": WHOLE, "name": TEXT, "value": TEXT}))),
        "GET /v1/billing/user-credit/credit": said({"data": thing({"credit": NUMBER, "threshold": NUMBER})}),
    }
    return written(operations, error=thing({"status": TRUTH, "error_reason": TEXT, "message": TEXT}))


class HyperstackFake(Fake):
    described_by = None
    variable = "HYPERSTACK_ENDPOINT_URL"
    options = {"api_key": "SECRET-hyperstack-0123456789"}
    states = {
        "CREATING": Means(InstanceState.PROVISIONING, Billing.NONE),
        "BUILD": Means(InstanceState.PROVISIONING, Billing.NONE),
        "ACTIVE": Means(InstanceState.RUNNING, Billing.FULL),
        "SHUTOFF": Means(InstanceState.STOPPED, Billing.FULL),
        "HIBERNATING": Means(InstanceState.STOPPING, Billing.NONE),
        "HIBERNATED": Means(InstanceState.STOPPED, Billing.STORAGE),
        "RESTORING": Means(InstanceState.STARTING, Billing.NONE),
        "DELETING": Means(InstanceState.TERMINATING, Billing.NONE),
        "DELETED": Means(InstanceState.TERMINATED, Billing.NONE),
        "ERROR": Means(InstanceState.ERROR, Billing.NONE),
    }
    price = Money(Decimal("3.80"), "USD")
    many = 5
    known_offer = KnownOffer("n3-H100x2", "H100 PCIe", 2, Money(Decimal("3.80"), "USD"))

    def __init__(self) -> None:
        super().__init__()
        self.description = description()

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        self.keys: list[Row] = []
        self.prices = {"H100-80G-PCIe": "1.90", "H100-80G-PCIe-spot": "1.52", "vCPU (cpu-only-flavors)": "0.02"}

    def hurry(self, patch: pytest.MonkeyPatch) -> None:
        super().hurry(patch)
        patch.setattr(hyperstack, "PAGE_SIZE", 2)

    def env(self) -> dict[str, str]:
        return {self.variable: f"{self.url}/v1/"}

    def authorized(self, request: Request) -> bool:
        return request.headers.get("api_key") == self.options["api_key"]

    def row(self, number: int) -> Row:
        return self.machine(number, f"train-{number}", "n3-H100x2", ["team:ml"])

    def machine(self, number: int, name: str, flavor: str, labels: list[str]) -> Row:
        return {
            "id": number,
            "name": name,
            "status": "ACTIVE",
            "vm_state": "active",
            "power_state": "RUNNING",
            "flavor": self.flavor(flavor),
            "environment": {"id": 1, "name": "default-CANADA-1", "region": "CANADA-1"},
            "floating_ip": "203.0.113.5",
            "fixed_ip": "10.0.0.5",
            "image": {"name": "Ubuntu Server 24.04 LTS R570 CUDA 12.8"},
            "labels": labels,
            "locked": False,
            "created_at": "2026-11-01T08:00:00",
            "contract_id": None,
            "keypair": {"name": "alice"},
        }

    def flavor(self, name: str) -> Row:
        gpu = "H100-80G-PCIe-spot" if name.endswith("-spot") else "H100-80G-PCIe"
        return {"name": name, "gpu": gpu, "gpu_count": 2, "cpu": 56, "ram": 360.0, "disk": 100, "ephemeral": 1500}

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def ref(self, row: Row) -> Ref:
        return Ref(str(row["id"]), row["environment"]["region"])

    def put_state(self, row: Row, raw_state: str) -> None:
        row["status"] = raw_state

    def leave_out(self, row: Row, what: str) -> None:
        if what == "address":
            row["floating_ip"] = None
        elif what == "price":
            self.prices.pop("H100-80G-PCIe")
        else:
            row["flavor"] = {**row["flavor"], "gpu": "", "gpu_count": 0}

    def problem(self, status: int, message: str) -> Answer:
        return told({"status": False, "error_reason": REASONS.get(status, "error"), "message": message}, status)

    def good(self, **content: object) -> Answer:
        return told({"status": True, "message": "done", **content}, 201 if "snapshot" in content else 200)

    def missing(self) -> Answer:
        return self.problem(404, "Virtual machine not found")

    def image(self, number: int) -> Row:
        return {
            "id": number,
            "name": f"vision {number}",
            "description": "",
            "status": "SUCCESS",
            "size": 100,
            "created_at": "2026-11-01T08:00:00",
            "updated_at": "2026-11-01T08:10:00",
            "vm_id": 1,
            "region_id": 1,
            "is_image": False,
            "vm_flavor": "n3-H100x2",
        }

    def image_id_of(self, row: Row) -> str:
        return f"snapshot:{row['id']}"

    def order(self) -> CreateSpec:
        return CreateSpec(
            name="Train",
            offer_id="n3-H100x2",
            region="CANADA-1",
            gpu_count=2,
            image_id="Ubuntu Server 24.04 LTS R570 CUDA 12.8",
            ssh_public_key="ssh-ed25519 AAAAC3Nza alice",
        )

    def sell_out(self) -> None:
        self.sold_out = True

    def settle(self) -> None:
        for row in self.machines.values():
            row["status"] = SETTLED.get(row["status"], row["status"])
        for row in self.images.values():
            row["status"] = "SUCCESS"

    def page(self, request: Request, key: str, rows: list[Row]) -> Answer:
        page, size = int(request.query.get("page", "1")), int(request.query.get("page_size", "10"))
        shown = rows[(page - 1) * size : page * size]
        return self.good(**{key: shown}, count=len(rows), page=page, page_size=size)

    @route("GET", MACHINES, "list")
    def listing(self, request: Request) -> Answer:
        return self.page(request, "instances", list(self.machines.values()))

    @route("POST", MACHINES, "create")
    def create(self, request: Request) -> Answer:
        order = request.json
        if self.sold_out:
            return self.problem(400, "Not enough stock: the flavor is out of stock in this region.")
        if order["flavor_name"] not in {"n3-H100x2", "n3-H100x2-spot"}:
            return self.problem(400, "Flavor does not exist")
        row = self.machine(self.number(), order["name"], order["flavor_name"], order["labels"])
        return self.good(instances=[self.add(row | {"status": "CREATING", "floating_ip": None})])

    @route("GET", f"{MACHINES}/{{}}", "find")
    def find(self, request: Request, machine_id: str) -> Answer:
        return self.good(instance=self.machines[machine_id]) if machine_id in self.machines else self.missing()

    @route("DELETE", f"{MACHINES}/{{}}", "terminate")
    def delete(self, request: Request, machine_id: str) -> Answer:
        return self.good() if self.machines.pop(machine_id, None) else self.missing()

    @route("GET", f"{MACHINES}/{{}}/start", "start")
    def start(self, request: Request, machine_id: str) -> Answer:
        return self.moved(machine_id, "SHUTOFF", "ACTIVE")

    @route("GET", f"{MACHINES}/{{}}/stop", "shut_off")
    def shut_off(self, request: Request, machine_id: str) -> Answer:
        return self.moved(machine_id, "ACTIVE", "SHUTOFF")

    @route("GET", f"{MACHINES}/{{}}/hibernate", "stop")
    def hibernate(self, request: Request, machine_id: str) -> Answer:
        return self.moved(machine_id, "ACTIVE", "HIBERNATING")

    @route("GET", f"{MACHINES}/{{}}/hibernate-restore", "restore")
    def restore(self, request: Request, machine_id: str) -> Answer:
        return self.moved(machine_id, "HIBERNATED", "RESTORING")

    @route("GET", f"{MACHINES}/{{}}/hard-reboot", "reboot")
    def reboot(self, request: Request, machine_id: str) -> Answer:
        return self.moved(machine_id, "ACTIVE", "ACTIVE")

    def moved(self, machine_id: str, before: str, after: str) -> Answer:
        row = self.machines.get(machine_id)
        if row is None:
            return self.missing()
        if row["status"] != before:
            return self.problem(400, f"The machine is {row['status']}, not {before}")
        row["status"] = after
        return self.good()

    @route("POST", f"{MACHINES}/{{}}/snapshots", "save_image")
    def save(self, request: Request, machine_id: str) -> Answer:
        row = {**self.image(self.number()), "name": request.json["name"], "status": "CREATING"}
        self.images[self.image_id_of(row)] = row
        return self.good(snapshot=row)

    @route("GET", "/v1/core/snapshots", "images")
    def snapshots(self, request: Request) -> Answer:
        return self.page(request, "snapshots", list(self.images.values()))

    @route("GET", "/v1/core/snapshots/{}", "snapshot")
    def snapshot(self, request: Request, snapshot_id: str) -> Answer:
        return told({"status": True, "message": "", "snapshot": self.images[f"snapshot:{snapshot_id}"]})

    @route("POST", "/v1/core/snapshots/{}/restore", "create")
    def come_back(self, request: Request, snapshot_id: str) -> Answer:
        row = self.machine(self.number(), request.json["new_vm_name"], "n3-H100x2", [])
        return self.good(instance=self.add(row))

    @route("GET", "/v1/core/images", "own_images")
    def list_images(self, request: Request) -> Answer:
        rows = [
            {
                "id": 1,
                "name": "Ubuntu Server 24.04 LTS",
                "region_name": "CANADA-1",
                "is_public": True,
                "size": 5_000_000_000,
            },
        ]
        return self.good(images=[{"region_name": "CANADA-1", "type": "Ubuntu", "images": rows}])

    @route("GET", "/v1/core/flavors", "offers")
    def flavors(self, request: Request) -> Answer:
        rows = [
            {**self.flavor(name), "stock_available": name == "n3-H100x2"} for name in ("n3-H100x2", "n3-H100x2-spot")
        ]
        return self.good(data=[{"gpu": "H100-80G-PCIe", "region_name": "CANADA-1", "flavors": rows}])

    @route("GET", "/v1/core/environments", "environments")
    def environments(self, request: Request) -> Answer:
        return self.page(request, "environments", [{"id": 1, "name": "default-CANADA-1", "region": "CANADA-1"}])

    @route("GET", "/v1/core/keypairs", "keys")
    def list_keys(self, request: Request) -> Answer:
        return self.page(request, "keypairs", self.keys)

    @route("POST", "/v1/core/keypairs", "add_key")
    def add_key(self, request: Request) -> Answer:
        key = request.json
        self.keys.append(
            {"name": key["name"], "public_key": key["public_key"], "environment": {"name": key["environment_name"]}}
        )
        return self.good(keypair=self.keys[-1])

    @route("GET", "/v1/pricebook", "pricebook")
    def pricebook(self, request: Request) -> Answer:
        return told(
            [{"id": number, "name": name, "value": value} for number, (name, value) in enumerate(self.prices.items())]
        )

    @route("GET", "/v1/billing/user-credit/credit", "balance")
    def credit(self, request: Request) -> Answer:
        return self.good(data={"credit": float(self.purse), "threshold": 0})


FAKE = HyperstackFake
