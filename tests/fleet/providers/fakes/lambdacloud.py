"""Lambda Cloud: one page of machines, types by region, launch, restart, terminate."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fleet.providers import lambdacloud
from fleet.providers.base import Billing, CreateSpec, InstanceState, Money
from tests.fleet.providers.fakes.base import PLANTED, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

H100X8 = "gpu_8x_h100_sxm5"
REGION = {"name": "us-west-1", "description": "California, USA"}
CODES = {
    401: "global/invalid-api-key",
    403: "global/forbidden",
    404: "global/not-found",
    409: "global/conflict",
    422: "global/invalid-parameters",
    429: "global/too-many-requests",
}
SOLD_OUT = "instance-operations/launch/insufficient-capacity"


class LambdaFake(Fake):
    described_by = "lambda_openapi_1.10.json"
    variable = "LAMBDA_ENDPOINT_URL"
    options = {"api_key": "secret_lambda_SECRET0123456789"}
    states = {
        "booting": Means(InstanceState.STARTING, Billing.FULL),
        "active": Means(InstanceState.RUNNING, Billing.FULL),
        "unhealthy": Means(InstanceState.UNREACHABLE, Billing.FULL),
        "terminating": Means(InstanceState.TERMINATING, Billing.FULL),
        "terminated": Means(InstanceState.TERMINATED, Billing.NONE),
        "preempted": Means(InstanceState.ERROR, Billing.UNKNOWN),
    }
    price = Money(Decimal("23.92"), "USD")
    scoped = False
    always_told = frozenset({"price"})
    known_offer = KnownOffer(H100X8, "H100 SXM", 8, Money(Decimal("23.92"), "USD"))

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        self.keys = [{"id": "k1", "name": "alice", "public_key": "ssh-ed25519 AAAAC3alice alice@laptop"}]

    def hurry(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(lambdacloud.PACE, "seconds", 0.0)

    def kinds(self) -> dict[str, Row]:
        return {
            H100X8: kind(H100X8, "H100 (80 GB SXM5)", 2392, gpus=8),
            "gpu_1x_a10": kind("gpu_1x_a10", "A10 (24 GB PCIe)", 75, gpus=1),
            "cpu_4x_general": kind("cpu_4x_general", "N/A", 20, gpus=0),
        }

    def row(self, number: int) -> Row:
        machine: Row = {
            "id": f"{number:032x}",
            "name": f"train {number}",
            "ip": "198.51.100.2",
            "private_ip": "10.0.0.2",
            "ssh_key_names": ["alice"],
            "file_system_names": [],
            "region": REGION,
            "instance_type": self.kinds()[H100X8],
            "hostname": "h1",
            "jupyter_token": PLANTED,
            "jupyter_url": f"https://jupyter.example/?token={PLANTED}",
            "tags": [{"key": "use", "value": "eval"}],
        }
        self.put_state(machine, "active")
        return machine

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def put_state(self, row: Row, raw_state: str) -> None:
        going = raw_state in {"active", "booting", "unhealthy"}
        can: Row = {"available": True} if going else {"available": False, "reason_code": "vm-is-terminating"}
        row |= {
            "status": raw_state,
            "actions": dict.fromkeys(("migrate", "rebuild", "restart", "cold_reboot", "terminate"), can),
        }

    def leave_out(self, row: Row, what: str) -> None:
        if what == "address":
            row.pop("ip")
        elif what == "gpu":
            row["instance_type"] = self.kinds()["cpu_4x_general"]
        else:
            row["instance_type"].pop("price_cents_per_hour")

    def problem(self, status: int, message: str) -> Answer:
        # Lambda says by 400 what others say by 422.
        return problem(CODES.get(status, "global/internal-error"), 400 if status == 422 else status, message)

    def settle(self) -> None:
        for row in list(self.machines.values()):
            if row["status"] == "terminating":
                del self.machines[row["id"]]
            elif row["status"] == "booting":
                self.put_state(row, "active")

    def image(self, number: int) -> Row:
        return {
            "id": f"43336648-096d-4cba-9aa2-{number:012x}",
            "created_time": "2026-11-01T10:00:00Z",
            "updated_time": "2026-11-01T10:00:00Z",
            "name": "Lambda Stack 24.04",
            "description": "",
            "family": "lambda-stack-24-04",
            "version": f"24.4.{number}",
            "architecture": "x86_64",
            "region": REGION,
        }

    def order(self) -> CreateSpec:
        return CreateSpec(name="train", offer_id=H100X8, region=str(REGION["name"]), gpu_count=8)

    def sell_out(self) -> None:
        self.sold_out = True

    @route("GET", "/api/v1/instances", "list")
    def listing(self, request: Request) -> Answer:
        return told({"data": list(self.machines.values())})

    @route("GET", "/api/v1/instances/{}", "find")
    def find(self, request: Request, machine_id: str) -> Answer:
        return told({"data": self.machines[machine_id]}) if machine_id in self.machines else unknown()

    @route("POST", "/api/v1/instance-operations/terminate", "terminate")
    def terminate(self, request: Request) -> Answer:
        (machine_id,) = request.json["instance_ids"]
        if machine_id not in self.machines:
            return unknown()
        self.put_state(self.machines[machine_id], "terminating")
        return told({"data": {"terminated_instances": [self.machines[machine_id]]}})

    @route("POST", "/api/v1/instance-operations/restart", "reboot")
    def restart(self, request: Request) -> Answer:
        (machine_id,) = request.json["instance_ids"]
        if machine_id not in self.machines:
            return unknown()
        self.put_state(self.machines[machine_id], "booting")
        return told({"data": {"restarted_instances": [self.machines[machine_id]]}})

    @route("POST", "/api/v1/instance-operations/launch", "create")
    def launch(self, request: Request) -> Answer:
        order: dict[str, Any] = request.json
        if order["instance_type_name"] not in self.kinds():
            return problem("global/object-does-not-exist", 404, "no such type")
        if self.sold_out:
            return problem(SOLD_OUT, 400, "Not enough capacity to fulfill launch request.")
        if [key["name"] for key in self.keys if key["name"] in order["ssh_key_names"]] != order["ssh_key_names"]:
            return problem("global/object-does-not-exist", 404, "no such key")
        row = self.row(self.number()) | {"name": order["name"], "tags": order["tags"]}
        row["instance_type"] = self.kinds()[order["instance_type_name"]]
        self.put_state(row, "booting")
        return told({"data": {"instance_ids": [self.add(row)["id"]]}})

    @route("GET", "/api/v1/instance-types", "offers")
    def types(self, request: Request) -> Answer:
        rows = {
            name: {"instance_type": one, "regions_with_capacity_available": [] if name == "gpu_1x_a10" else [REGION]}
            for name, one in self.kinds().items()
        }
        return told({"data": rows})

    @route("GET", "/api/v1/images", "images")
    def listed_images(self, request: Request) -> Answer:
        return told({"data": list(self.images.values())})

    @route("GET", "/api/v1/ssh-keys", "keys")
    def listed_keys(self, request: Request) -> Answer:
        return told({"data": self.keys})

    @route("POST", "/api/v1/ssh-keys", "keys")
    def add_key(self, request: Request) -> Answer:
        self.keys.append({"id": f"k{len(self.keys) + 1}", **request.json})
        return told({"data": self.keys[-1]})


def kind(name: str, gpu: str, cents: int, *, gpus: int) -> Row:
    specs = {"vcpus": 26 * max(gpus, 1), "memory_gib": 225 * max(gpus, 1), "storage_gib": 2816, "gpus": gpus}
    return {
        "name": name,
        "description": f"{gpus}x {gpu}",
        "gpu_description": gpu,
        "price_cents_per_hour": cents,
        "specs": specs,
    }


def problem(code: str, status: int, message: str) -> Answer:
    return told({"error": {"code": code, "message": message, "suggestion": "Look again."}}, status)


def unknown() -> Answer:
    return problem("global/object-does-not-exist", 404, "Specified instance does not exist.")


FAKE = LambdaFake
