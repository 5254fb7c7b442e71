"""Crusoe Cloud's gateway, v1. It checks signatures as Crusoe does."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar

import httpx
import pytest

from fleet.providers import crusoe, reading
from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from fleet.providers.crusoe_auth import decoded, signed
from tests.fleet.providers.fakes.base import Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.description import SPECS, Description
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

PROJECT = "/v1/projects/p-1"
MACHINES = f"{PROJECT}/compute/vms/instances"
CODES = {401: "bad_credential", 403: "unauthorized", 404: "not_found", 409: "conflict", 429: "too_many_requests"}
WHEN = "2026-11-01T08:00:00Z"
MOVES = {"START": ("start", "STATE_RUNNING"), "STOP": ("stop", "STATE_SHUTOFF"), "RESET": ("reboot", "STATE_RUNNING")}
EIGHT = "h100-80gb-sxm-ib.8x"


@cache
def description() -> Description | None:
    path = SPECS / "crusoe-cloud-api-gateway-v1-openapi.json"
    if not path.exists():
        return None
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    # The description forgets what is answered for a machine that is not there.
    for operation in document["paths"]["/projects/{project_id}/compute/vms/instances/{vm_id}"].values():
        operation["responses"]["404"] = {"$ref": "#/responses/notFoundError"}
    return Description(document)


class CrusoeFake(Fake):
    described_by = None
    variable = "CRUSOE_ENDPOINT_URL"
    options: ClassVar[dict[str, str]] = {
        "access_key": "AK-1",
        "secret_key": "U0VDUkVULWNydXNvZS0wMTIzNDU2Nzg5",
        "project_id": "p-1",
        "prices": f"{EIGHT} 31.20",
    }
    states = {
        "STATE_CREATING": Means(InstanceState.PROVISIONING, Billing.UNKNOWN),
        "STATE_STARTING": Means(InstanceState.STARTING, Billing.FULL),
        "STATE_RUNNING": Means(InstanceState.RUNNING, Billing.FULL),
        "RUNNING": Means(InstanceState.RUNNING, Billing.FULL),
        "STATE_STOPPING": Means(InstanceState.STOPPING, Billing.FULL),
        "STATE_SHUTOFF": Means(InstanceState.STOPPED, Billing.STORAGE),
        "STATE_DELETING": Means(InstanceState.TERMINATING, Billing.UNKNOWN),
        "STATE_DELETED": Means(InstanceState.TERMINATED, Billing.NONE),
    }
    price = Money(Decimal("31.20"), "USD")
    can_lack = frozenset({"address", "gpu"})
    many = 5
    answers_partially = True
    known_offer = KnownOffer(EIGHT, "H100 SXM", 8, Money(Decimal("31.20"), "USD"))

    def __init__(self) -> None:
        super().__init__()
        self.description = description()

    def reset(self) -> None:
        super().reset()
        self.sold_out = self.partial = False
        self.operations: dict[str, Row] = {}
        self.saving: list[Row] = []

    def hurry(self, patch: pytest.MonkeyPatch) -> None:
        super().hurry(patch)
        patch.setattr(crusoe, "PAGE_SIZE", 2)
        patch.setattr(reading, "pause", lambda seconds: None)

    def env(self) -> dict[str, str]:
        return {self.variable: f"{self.url}/v1/"}

    def authorized(self, request: Request) -> bool:
        url = httpx.URL(f"http://crusoe.test{request.path}", params=dict(request.query))
        signature = signed(
            decoded(self.options["secret_key"]), request.method, url, request.headers.get("X-Crusoe-Timestamp", "")
        )
        return request.headers.get("Authorization") == f"Bearer 1.0:{self.options['access_key']}:{signature}"

    def row(self, number: int) -> Row:
        return self.machine(number, f"train-{number}", EIGHT)

    def machine(self, number: int, name: str, kind: str) -> Row:
        address = {"address": "203.0.113.30", "id": "a-1", "type": "dynamic"}
        return {
            "id": f"vm-{number}",
            "name": name,
            "type": kind,
            "state": "STATE_RUNNING",
            "project_id": "p-1",
            "location": "us-east1-a",
            "billing_type": "On-demand",
            "created_at": WHEN,
            "updated_at": WHEN,
            "disks": [self.disk(number, "os", "128GiB"), self.disk(number, "data", "1TiB")],
            "network_interfaces": [
                {
                    "id": "n-1",
                    "name": "",
                    "network": "net-1",
                    "subnet": "sub-1",
                    "interface_type": "",
                    "mac_address": "00:00:5e:00:53:af",
                    "ips": [{"private_ipv4": {"address": "10.0.0.3"}, "public_ipv4": address}],
                    "external_dns_name": "",
                }
            ],
            "host_channel_adapters": [],
            "maintenance_policy": "unspecified",
        }

    def disk(self, number: int, purpose: str, size: str) -> Row:
        return {
            "id": f"disk-{number}-{purpose}",
            "name": purpose,
            "type": "persistent-ssd",
            "size": size,
            "location": "us-east1-a",
            "block_size": 4096,
            "created_at": WHEN,
            "updated_at": WHEN,
            "serial_number": "s",
            "attachment_type": purpose,
            "mode": "read-write",
        }

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def ref(self, row: Row) -> Ref:
        return Ref(str(row["id"]), str(row["location"]))

    def put_state(self, row: Row, raw_state: str) -> None:
        row["state"] = raw_state

    def leave_out(self, row: Row, what: str) -> None:
        if what == "address":
            row["network_interfaces"] = []
        else:
            row["type"] = "c1a.8x"

    def problem(self, status: int, message: str) -> Answer:
        return told({"code": CODES.get(status, "bad_request"), "message": message}, status)

    def image(self, number: int) -> Row:
        return {
            "id": f"09ae8411-0fbb-411c-898c-{number:012}",
            "name": f"vision {number}",
            "description": "",
            "tags": [],
            "created_at": WHEN,
            "locations": ["us-east1-a"],
        }

    def order(self) -> CreateSpec:
        return CreateSpec(
            name="Train",
            offer_id=EIGHT,
            region="us-east1-a",
            gpu_count=8,
            image_id="ubuntu22.04-nvidia-sxm-docker:latest",
            ssh_public_key="ssh-ed25519 AAAAC3Nza alice",
        )

    def sell_out(self) -> None:
        self.sold_out = True

    def make_partially(self) -> None:
        self.partial = True

    def settle(self) -> None:
        self.images |= {row["id"]: row for row in self.saving}
        self.saving = []

    def missing(self) -> Answer:
        return self.problem(404, "resource does not exist")

    def operation(self, machine_id: str, state: str = "IN_PROGRESS", result: Row | None = None) -> Answer:
        row: Row = {
            "operation_id": f"op-{self.number()}",
            "state": state,
            "metadata": {"id": machine_id, "operation_name": "x"},
            "result": result,
            "started_at": WHEN,
            "completed_at": "",
        }
        self.operations[row["operation_id"]] = row
        return told({"operation": row})

    @route("GET", MACHINES, "list")
    def listing(self, request: Request) -> Answer:
        rows = list(self.machines.values())
        start, size = int(request.query.get("next_token", "at-0").split("-")[1]), int(request.query["limit"])
        following = f"at-{start + size}" if start + size < len(rows) else ""
        return told({"items": rows[start : start + size], "next_page_token": following, "prev_page_token": ""})

    @route("POST", MACHINES, "create")
    def create(self, request: Request) -> Answer:
        order = request.json
        if order["type"] != EIGHT:
            return self.problem(400, "no such type")
        row = self.machine(self.number(), order["name"], order["type"])
        if self.sold_out:
            reply = self.operation(row["id"])
            self.fail("out_of_stock", "no machines of this type are free")
            return reply
        reply = self.operation(self.id_of(self.add(row)))
        if self.partial:
            self.fail("internal", "network could not be attached")
        return reply

    def fail(self, code: str, message: str) -> None:
        """The last operation ends so, after it was accepted."""
        last = list(self.operations)[-1]
        self.operations[last] = {
            **self.operations[last],
            "state": "FAILED",
            "result": {"code": code, "message": message},
        }

    @route("GET", f"{MACHINES}/operations/{{}}", "operation")
    def find_operation(self, request: Request, operation_id: str) -> Answer:
        row = self.operations[operation_id]
        return told(row if row["state"] == "FAILED" else {**row, "state": "SUCCEEDED"})

    @route("GET", f"{MACHINES}/{{}}", "find")
    def find(self, request: Request, machine_id: str) -> Answer:
        return told(self.machines[machine_id]) if machine_id in self.machines else self.missing()

    @route("PATCH", f"{MACHINES}/{{}}", lambda request: MOVES[request.json["action"]][0])
    def act(self, request: Request, machine_id: str) -> Answer:
        if machine_id not in self.machines:
            return self.missing()
        self.machines[machine_id]["state"] = MOVES[request.json["action"]][1]
        return self.operation(machine_id)

    @route("DELETE", f"{MACHINES}/{{}}", "terminate")
    def delete(self, request: Request, machine_id: str) -> Answer:
        return self.operation(machine_id) if self.machines.pop(machine_id, None) else self.missing()

    @route("GET", f"{PROJECT}/compute/vms/types", "types")
    def types(self, request: Request) -> Answer:
        return told({"items": [self.kind(EIGHT, 8, "H100-80GB"), self.kind("c1a.8x", 0, "")]})

    def kind(self, name: str, gpus: int, gpu: str) -> Row:
        return {
            "product_name": name,
            "description": "",
            "cpu_cores": 176,
            "cpu_type": "intel",
            "memory_gb": 960,
            "memory_type": "RAM",
            "disk_gb": 7680,
            "disk_type": "NVMe",
            "num_gpu": gpus,
            "gpu_type": gpu,
        }

    @route("GET", "/v1/capacities", "offers")
    def capacities(self, request: Request) -> Answer:
        rows = [
            {"location": place, "type": kind, "quantity": free, "quota_type": quota}
            for place, kind, free, quota in (
                ("us-east1-a", EIGHT, 2, "A"),
                ("us-east1-a", EIGHT, 0, "B"),
                ("eu-iceland1-a", EIGHT, 0, "A"),
                ("us-east1-a", "c1a.8x", 9, "A"),
            )
        ]
        return told({"items": rows})

    @route("GET", f"{PROJECT}/compute/custom-images", "images")
    def list_images(self, request: Request) -> Answer:
        return told({"items": list(self.images.values())})

    @route("POST", f"{PROJECT}/compute/custom-images", "save_image")
    def save(self, request: Request) -> Answer:
        self.saving.append({**self.image(self.number()), "name": request.json["name"]})
        return self.operation(request.json["DiskID"])


FAKE = CrusoeFake
