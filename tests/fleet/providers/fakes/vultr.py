"""Vultr's API v2. Its description is written here by hand, from its documentation and its official Go client."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from fleet.providers import vultr
from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from tests.fleet.providers.fakes.base import PLANTED, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.description import Description
from tests.fleet.providers.fakes.handwritten import NUMBER, TEXT, TEXTS, TRUTH, WHOLE, Said, many, thing, written
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

PAGED = ("per_page", "cursor")
META = thing({"total": WHOLE, "links": thing({"next": TEXT, "prev": TEXT})})
COMMON = {"id": TEXT, "os": TEXT, "plan": TEXT, "main_ip": TEXT, "region": TEXT, "date_created": TEXT, "status": TEXT}
MACHINE = thing(
    {
        **COMMON,
        "ram": WHOLE,
        "disk": WHOLE,
        "vcpu_count": WHOLE,
        "power_status": TEXT,
        "server_status": TEXT,
        "label": TEXT,
    },
    {"default_password": TEXT, "tags": TEXTS, "snapshot_id": TEXT, "user_scheme": TEXT, "os_id": WHOLE},
)
METAL = thing(
    {**COMMON, "ram": TEXT, "disk": TEXT, "cpu_count": WHOLE, "label": TEXT},
    {"default_password": TEXT, "tags": TEXTS, "snapshot_id": TEXT, "mac_address": WHOLE},
)
PLAN = thing(
    {
        "id": TEXT,
        "vcpu_count": WHOLE,
        "ram": WHOLE,
        "disk": WHOLE,
        "monthly_cost": NUMBER,
        "type": TEXT,
        "locations": TEXTS,
    },
    {"gpu_vram_gb": WHOLE, "gpu_type": TEXT, "hourly_cost": NUMBER, "disk_count": WHOLE},
)
METAL_PLAN = thing(
    {
        "id": TEXT,
        "cpu_count": WHOLE,
        "cpu_threads": WHOLE,
        "ram": WHOLE,
        "disk": WHOLE,
        "monthly_cost": NUMBER,
        "locations": TEXTS,
    },
    {"type": TEXT, "disk_count": WHOLE},
)
SNAPSHOT = thing({"id": TEXT, "date_created": TEXT, "description": TEXT, "size": WHOLE, "status": TEXT})
KEY = thing({"id": TEXT, "name": TEXT, "ssh_key": TEXT})
ORDER = thing(
    {"region": TEXT, "plan": TEXT, "label": TEXT, "tags": TEXTS},
    {
        "os_id": WHOLE,
        "snapshot_id": TEXT,
        "image_id": TEXT,
        "user_data": TEXT,
        "sshkey_id": TEXTS,
        "activation_email": TRUTH,
    },
)


def listed(key: str, schema: dict[str, Any]) -> Said:
    return Said(thing({key: many(schema), "meta": META}), query=PAGED)


@cache
def description() -> Description:
    operations = {
        "GET /v2/account": Said(
            thing({"account": thing({"balance": NUMBER, "pending_charges": NUMBER, "name": TEXT, "email": TEXT})})
        ),
        "GET /v2/instances": listed("instances", MACHINE),
        "POST /v2/instances": Said(thing({"instance": MACHINE}), status=202, body=ORDER),
        "GET /v2/instances/{id}": Said(thing({"instance": MACHINE})),
        "DELETE /v2/instances/{id}": Said(status=204),
        "POST /v2/instances/{id}/start": Said(status=204),
        "POST /v2/instances/{id}/reboot": Said(status=204),
        "GET /v2/bare-metals": listed("bare_metals", METAL),
        "POST /v2/bare-metals": Said(thing({"bare_metal": METAL}), status=202, body=ORDER),
        "GET /v2/bare-metals/{id}": Said(thing({"bare_metal": METAL})),
        "DELETE /v2/bare-metals/{id}": Said(status=204),
        "POST /v2/bare-metals/{id}/start": Said(status=204),
        "POST /v2/bare-metals/{id}/reboot": Said(status=204),
        "GET /v2/plans": listed("plans", PLAN),
        "GET /v2/plans-metal": listed("plans_metal", METAL_PLAN),
        "GET /v2/snapshots": listed("snapshots", SNAPSHOT),
        "POST /v2/snapshots": Said(
            thing({"snapshot": SNAPSHOT}), status=201, body=thing({"instance_id": TEXT}, {"description": TEXT})
        ),
        "GET /v2/ssh-keys": listed("ssh_keys", KEY),
        "POST /v2/ssh-keys": Said(thing({"ssh_key": KEY}), status=201, body=thing({"name": TEXT, "ssh_key": TEXT})),
    }
    return written(operations, error=thing({"error": TEXT, "status": WHOLE}))


class VultrFake(Fake):
    described_by = None
    variable = "VULTR_ENDPOINT_URL"
    options = {"api_key": "SECRETVULTR0123456789"}
    states = {
        "pending": Means(InstanceState.PROVISIONING, Billing.FULL),
        "resizing": Means(InstanceState.STARTING, Billing.FULL),
        "running": Means(InstanceState.RUNNING, Billing.FULL),
        "stopped": Means(InstanceState.STOPPED, Billing.FULL),
        "suspended": Means(InstanceState.UNREACHABLE, Billing.UNKNOWN),
        "failed": Means(InstanceState.ERROR, Billing.UNKNOWN),
    }
    price = Money(Decimal("5.18"), "USD")
    many = 5
    known_offer = KnownOffer("vcg-l40s-32c-360g-96vram", "L40S", 2, Money(Decimal("5.18"), "USD"))

    def __init__(self) -> None:
        super().__init__()
        self.description = description()

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        self.metals: dict[str, Row] = {}
        self.keys: list[Row] = []

    def hurry(self, patch: pytest.MonkeyPatch) -> None:
        super().hurry(patch)
        patch.setattr(vultr, "PAGE_SIZE", 2)

    def env(self) -> dict[str, str]:
        return {self.variable: f"{self.url}/v2/"}

    def row(self, number: int) -> Row:
        return self.instance(number, "vcg-l40s-32c-360g-96vram", f"train-{number}", ["team:ml"])

    def instance(self, number: int, plan: str, label: str, tags: list[str]) -> Row:
        return {
            "id": f"cb676a46-66fd-4dfb-b839-{number:012}",
            "os": "Ubuntu 24.04 x64",
            "ram": 368_640,
            "disk": 1200,
            "plan": plan,
            "main_ip": "203.0.113.10",
            "vcpu_count": 32,
            "region": "fra",
            "default_password": PLANTED,
            "date_created": "2026-11-01T08:00:00+00:00",
            "status": "active",
            "power_status": "running",
            "server_status": "ok",
            "label": label,
            "tags": tags,
            "os_id": 2284,
            "user_scheme": "root",
        }

    def metal(
        self, number: int, plan: str = "vbm-112c-2048gb-8-h100-gpu", label: str = "big", tags: tuple[str, ...] = ()
    ) -> Row:
        return {
            "id": f"cb676a46-0000-4dfb-b839-{number:012}",
            "os": "Ubuntu 24.04 x64",
            "ram": "2097152 MB",
            "disk": "2x 1.9TB NVMe, 6x 3.8TB NVMe",
            "plan": plan,
            "main_ip": "203.0.113.11",
            "cpu_count": 112,
            "region": "fra",
            "default_password": PLANTED,
            "date_created": "2026-11-01 08:00:00",
            "status": "active",
            "label": label,
            "tags": list(tags),
            "mac_address": 2_199_756_823_533,
        }

    def plans(self) -> list[Row]:
        cards = {
            "vcg-l40s-32c-360g-96vram": ("NVIDIA_L40S", 96, 5.18, 32, 368_640, 1200),
            "vcg-a100-1c-6g-4vram": ("NVIDIA_A100", 4, 0.123, 1, 6144, 70),
        }
        return [
            {
                "id": plan,
                "vcpu_count": vcpus,
                "ram": ram,
                "disk": disk,
                "disk_count": 1,
                "monthly_cost": round(hourly * 672, 2),
                "hourly_cost": hourly,
                "type": "vcg",
                "gpu_type": gpu,
                "gpu_vram_gb": vram,
                "locations": ["fra", "ewr"],
            }
            for plan, (gpu, vram, hourly, vcpus, ram, disk) in cards.items()
        ] + [
            {
                "id": "vc2-1c-1gb",
                "vcpu_count": 1,
                "ram": 1024,
                "disk": 25,
                "monthly_cost": 5,
                "type": "vc2",
                "locations": ["fra"],
            }
        ]

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def ref(self, row: Row) -> Ref:
        return Ref(str(row["id"]), str(row["region"]))

    def put_state(self, row: Row, raw_state: str) -> None:
        if raw_state in {"pending", "resizing", "suspended", "failed"}:
            row |= {"status": raw_state, "power_status": "unknown"}
        else:
            row |= {"status": "active", "power_status": raw_state}

    def leave_out(self, row: Row, what: str) -> None:
        if what == "address":
            row["main_ip"] = "0.0.0.0"
        else:
            row["plan"] = {"price": "vcg-withdrawn-plan", "gpu": "vc2-1c-1gb"}[what]

    def problem(self, status: int, message: str) -> Answer:
        return told({"error": message, "status": status}, status)

    def image(self, number: int) -> Row:
        return {
            "id": f"5359435d-28b9-4dfb-b839-{number:012}",
            "date_created": "2026-11-01T08:00:00+00:00",
            "description": f"vision {number}",
            "size": 42_949_672_960,
            "status": "complete",
        }

    def order(self) -> CreateSpec:
        return CreateSpec(name="train", offer_id="vcg-l40s-32c-360g-96vram", region="fra", gpu_count=2, image_id="2284")

    def sell_out(self) -> None:
        self.sold_out = True

    def settle(self) -> None:
        for row in self.images.values():
            row["status"] = "complete"

    def page(self, request: Request, key: str, rows: list[Row]) -> Answer:
        size, start = int(request.query.get("per_page", "100")), int(request.query.get("cursor", "at-0").split("-")[1])
        following = f"at-{start + size}" if start + size < len(rows) else ""
        meta = {"total": len(rows), "links": {"next": following, "prev": ""}}
        return told({key: rows[start : start + size], "meta": meta})

    def missing(self) -> Answer:
        return self.problem(404, "Invalid instance.")

    @route("GET", "/v2/account", "verify")
    def account(self, request: Request) -> Answer:
        return told(
            {"account": {"balance": -100.5, "pending_charges": 60.25, "name": "Ops", "email": "ops@example.com"}}
        )

    @route("GET", "/v2/instances", "list")
    def listing(self, request: Request) -> Answer:
        return self.page(request, "instances", list(self.machines.values()))

    @route("GET", "/v2/bare-metals", "list")
    def metal_listing(self, request: Request) -> Answer:
        return self.page(request, "bare_metals", list(self.metals.values()))

    @route("POST", "/v2/instances", "create")
    def create(self, request: Request) -> Answer:
        order = request.json
        if self.sold_out:
            return self.problem(400, "Server add failed: plan is not available in the selected region.")
        if order["plan"] not in {plan["id"] for plan in self.plans()}:
            return self.problem(400, "Invalid plan chosen.")
        row = self.instance(self.number(), order["plan"], order["label"], order["tags"])
        return told({"instance": self.add(row)}, 202)

    @route("POST", "/v2/bare-metals", "create")
    def create_metal(self, request: Request) -> Answer:
        order = request.json
        row = self.metal(self.number(), order["plan"], order["label"], tuple(order["tags"]))
        self.metals[row["id"]] = row
        return told({"bare_metal": row}, 202)

    @route("GET", "/v2/instances/{}", "find")
    def find(self, request: Request, machine_id: str) -> Answer:
        return told({"instance": self.machines[machine_id]}) if machine_id in self.machines else self.missing()

    @route("GET", "/v2/bare-metals/{}", "find")
    def find_metal(self, request: Request, machine_id: str) -> Answer:
        return told({"bare_metal": self.metals[machine_id]}) if machine_id in self.metals else self.missing()

    @route("DELETE", "/v2/instances/{}", "terminate")
    def destroy(self, request: Request, machine_id: str) -> Answer:
        return told(None, 204) if self.machines.pop(machine_id, None) else self.missing()

    @route("DELETE", "/v2/bare-metals/{}", "terminate")
    def destroy_metal(self, request: Request, machine_id: str) -> Answer:
        return told(None, 204) if self.metals.pop(machine_id, None) else self.missing()

    @route("POST", "/v2/instances/{}/start", "start")
    def start(self, request: Request, machine_id: str) -> Answer:
        self.machines[machine_id]["power_status"] = "running"
        return told(None, 204)

    @route("POST", "/v2/instances/{}/reboot", "reboot")
    def reboot(self, request: Request, machine_id: str) -> Answer:
        return told(None, 204) if machine_id in self.machines else self.missing()

    @route("POST", "/v2/bare-metals/{}/reboot", "reboot")
    def reboot_metal(self, request: Request, machine_id: str) -> Answer:
        return told(None, 204) if machine_id in self.metals else self.missing()

    @route("GET", "/v2/plans", "offers")
    def list_plans(self, request: Request) -> Answer:
        return self.page(request, "plans", self.plans())

    @route("GET", "/v2/plans-metal", "metal_offers")
    def metal_plans(self, request: Request) -> Answer:
        row = {
            "id": "vbm-112c-2048gb-8-h100-gpu",
            "cpu_count": 112,
            "cpu_threads": 224,
            "ram": 2_097_152,
            "disk": 1920,
            "disk_count": 2,
            "monthly_cost": 16074.24,
            "type": "NVMe",
            "locations": ["fra"],
        }
        return self.page(request, "plans_metal", [row])

    @route("GET", "/v2/snapshots", "images")
    def snapshots(self, request: Request) -> Answer:
        return self.page(request, "snapshots", list(self.images.values()))

    @route("POST", "/v2/snapshots", "save_image")
    def snapshot(self, request: Request) -> Answer:
        row = {**self.image(self.number()), "description": request.json["description"], "status": "pending", "size": 0}
        self.images[row["id"]] = row
        return told({"snapshot": row}, 201)

    @route("GET", "/v2/ssh-keys", "keys")
    def list_keys(self, request: Request) -> Answer:
        return self.page(request, "ssh_keys", self.keys)

    @route("POST", "/v2/ssh-keys", "add_key")
    def add_key(self, request: Request) -> Answer:
        self.keys.append({"id": f"key-{self.number()}", **request.json})
        return told({"ssh_key": self.keys[-1]}, 201)


FAKE = VultrFake
