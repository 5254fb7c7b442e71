"""Vast.ai: hosts' asks, and machines made of them; pages of 25 by a token."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from fleet.providers import vast
from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from tests.fleet.providers.fakes.base import PLANTED, Billed, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

ASK = 4711
WORDS = {401: "auth_error", 403: "forbidden", 404: "not_found", 409: "conflict", 422: "invalid_args"}
# actual_status, intended_status, cur_state, next_state
RUNNING = ("running", "running", "running", "running")
STOPPED = ("stopped", "stopped", "stopped", "stopped")
SHOWN: dict[str, tuple[str | None, str, str, str]] = {
    "null": (None, "running", "running", "running"),
    "created": ("created", "running", "running", "running"),
    "loading": ("loading", "running", "running", "running"),
    "running": RUNNING,
    "running, to be stopped": ("running", "stopped", "running", "stopped"),
    "stopped": STOPPED,
    "exited, stopped": ("exited", "stopped", "stopped", "stopped"),
    "stopped, waiting": ("stopped", "running", "stopped", "running"),
    "frozen": ("frozen", "frozen", "running", "running"),
    "exited": ("exited", "running", "running", "running"),
    "rebooting": ("rebooting", "running", "running", "running"),
    "unknown": ("unknown", "running", "running", "running"),
    "offline": ("offline", "running", "running", "running"),
}


class VastFake(Fake):
    described_by = "vastai_openapi.yaml"
    closed = True
    variable = "VAST_ENDPOINT_URL"
    options = {"api_key": "vast_SECRET0123456789"}
    states = {
        "null": Means(InstanceState.PROVISIONING, Billing.NONE),
        "created": Means(InstanceState.PROVISIONING, Billing.NONE),
        "loading": Means(InstanceState.STARTING, Billing.NONE),
        "running": Means(InstanceState.RUNNING, Billing.FULL),
        "running, to be stopped": Means(InstanceState.STOPPING, Billing.FULL),
        "stopped": Means(InstanceState.STOPPED, Billing.STORAGE),
        "exited, stopped": Means(InstanceState.STOPPED, Billing.STORAGE),
        "stopped, waiting": Means(InstanceState.STARTING, Billing.STORAGE),
        "frozen": Means(InstanceState.STOPPED, Billing.FULL),
        "exited": Means(InstanceState.ERROR, Billing.UNKNOWN),
        "rebooting": Means(InstanceState.STARTING, Billing.FULL),
        "unknown": Means(InstanceState.UNREACHABLE, Billing.UNKNOWN),
        "offline": Means(InstanceState.UNREACHABLE, Billing.NONE),
    }
    price = Money(Decimal("0.81"), "USD")
    many = 51
    many_charges = 5
    measures = True
    answers_partially = True
    known_offer = KnownOffer(str(ASK), "RTX 4090", 2, Money(Decimal("0.81"), "USD"))

    def reset(self) -> None:
        super().reset()
        self.sold_out = self.partial = False

    def hurry(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(vast.PACE, "seconds", 0.0)
        patch.setattr(vast, "CHARGES_PAGE_SIZE", 2)

    def row(self, number: int) -> Row:
        row: Row = {
            "id": 300 + number,
            "label": f"train {number}",
            "image_uuid": "org/image:1",
            "extra_env": [["TOKEN", PLANTED]],
            "onstart": PLANTED,
            "jupyter_token": PLANTED,
            "status_msg": "success, running",
            "public_ipaddr": "192.0.2.5 ",
            "ssh_host": "ssh5.vast.ai",
            "ssh_port": 10312,
            "ports": {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": "20022"}]},
            "machine_id": 12,
            "host_id": 7,
            "gpu_name": "RTX 4090",
            "num_gpus": 2,
            "gpu_frac": 0.25,
            "gpu_ram": 24564,
            "gpu_util": 88.0,
            "mem_limit": 64.0,
            "mem_usage": 16.0,
            "cpu_cores": 64,
            "cpu_cores_effective": 16.0,
            "cpu_ram": 515000,
            "disk_space": 100.0,
            "is_bid": False,
            "min_bid": 0.4,
            "dph_base": 0.8,
            "dph_total": 0.81,
            "storage_cost": 0.073,
            "storage_total_cost": 0.01,
            "instance": {"gpuCostPerHour": 0.8, "diskHour": 0.01, "totalHour": 0.81},
            "verification": "verified",
            "reliability2": 0.998,
            "start_date": 1761008618.2,
            "end_date": 1770000000.0,
            "geolocation": "Sweden, SE",
        }
        self.put_state(row, "running")
        return row

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def put_state(self, row: Row, raw_state: str) -> None:
        shown = SHOWN.get(raw_state, (raw_state, "running", "running", "running"))
        row |= dict(zip(("actual_status", "intended_status", "cur_state", "next_state"), shown, strict=True))
        disk_alone = {"gpuCostPerHour": 0, "diskHour": 0.02, "totalHour": 0.02}
        if shown[0] in {"stopped", "exited"}:
            row["instance"] = disk_alone

    def leave_out(self, row: Row, what: str) -> None:
        names = {
            "address": ("public_ipaddr", "ssh_host", "ports"),
            "price": ("dph_total",),
            "gpu": ("gpu_name", "num_gpus"),
        }
        for name in names[what]:
            row.pop(name)

    def measure(self, ref: Ref, gpu_percent: float) -> None:
        self.machines[ref.external_id]["gpu_util"] = gpu_percent

    def problem(self, status: int, message: str) -> Answer:
        if status == 429:
            return told({"detail": message}, 429)
        return told({"success": False, "error": WORDS.get(status, "error"), "msg": message}, status)

    def order(self) -> CreateSpec:
        return CreateSpec(name="train", offer_id=str(ASK), gpu_count=2, image_id="org/image:1", disk_gb=40)

    def sell_out(self) -> None:
        self.sold_out = True

    def make_partially(self) -> None:
        self.partial = True

    @route("GET", "/api/v1/instances", "list")
    def listing(self, request: Request) -> Answer:
        wanted = json.loads(request.query.get("select_filters", "{}")).get("id", {}).get("eq")
        rows = [row for row in self.machines.values() if wanted in {None, row["id"]}]
        first, limit = int(request.query.get("after_token") or 0), min(int(request.query.get("limit", 25)), 25)
        page, more = rows[first : first + limit], first + limit < len(rows)
        return told(
            {
                "success": True,
                "instances_found": len(page),
                "total_instances": len(rows),
                "next_token": str(first + limit) if more else None,
                "instances": page,
            }
        )

    @route("GET", "/api/v0/charges", "charges")
    def charges(self, request: Request) -> Answer:
        """By contract; the items of a day of one contract stand under it."""
        asked = json.loads(request.query["select_filters"])["day"]
        contracts: dict[str, list[Billed]] = {}
        for one in self.bill:
            if asked["gte"] <= one.day.timestamp() <= asked["lte"]:
                contracts.setdefault(
                    f"volume-{one.resource}" if one.resource else f"instance-{one.machine}", []
                ).append(one)
        rows = [self.contract(source, ones) for source, ones in contracts.items()]
        first, limit = int(request.query.get("after_token") or 0), int(request.query["limit"])
        page, more = rows[first : first + limit], first + limit < len(rows)
        token = str(first + limit) if more else None
        return told({"success": True, "count": len(page), "total": len(rows), "next_token": token, "results": page})

    def contract(self, source: str, ones: list[Billed]) -> Row:
        stamps = {"start": int(ones[0].day.timestamp()), "end": int(ones[0].day.timestamp())}
        items: list[Row] = [
            {
                **stamps,
                "type": "disk" if one.word == "volume" else one.word,
                "source": None,
                "description": "24.000 hours at $0.100/hour",
                "amount": float(one.amount),
                "metadata": {},
                "items": [],
            }
            for one in ones
            if one.word != "surcharge"
        ]
        amount = round(float(sum(one.amount for one in ones)), 3)
        kind = source.split("-", 1)[0]
        return {
            **stamps,
            "type": kind,
            "source": source,
            "description": "Charges",
            "amount": amount,
            "metadata": {},
            "items": items,
        }

    @route("GET", "/api/v0/users/current", "balance")
    def user(self, request: Request) -> Answer:
        return told({"id": 9, "email": "a@example.com", "balance": float(self.purse), "ssh_key": PLANTED})

    @route("PUT", "/api/v0/instances/{}", lambda request: "stop" if request.json["state"] == "stopped" else "start")
    def manage(self, request: Request, machine_id: str) -> Answer:
        if machine_id not in self.machines:
            return self.problem(404, "Instance not found")
        self.put_state(self.machines[machine_id], request.json["state"])
        return told({"success": True})

    @route("PUT", "/api/v0/instances/reboot/{}", "reboot")
    def reboot(self, request: Request, machine_id: str) -> Answer:
        known = machine_id in self.machines
        return told({"success": True}) if known else told({"success": False, "error": "invalid_args", "msg": "id"}, 400)

    @route("DELETE", "/api/v0/instances/{}", "terminate")
    def destroy(self, request: Request, machine_id: str) -> Answer:
        if self.machines.pop(machine_id, None) is None:
            return told({"success": False, "error": "no_such_instance", "msg": "Instance not found"}, 404)
        return told({"success": True, "msg": "Instance destroyed successfully"})

    @route("PUT", "/api/v0/asks/{}", "create")
    def accept(self, request: Request, ask_id: str) -> Answer:
        order: dict[str, Any] = request.json
        if self.sold_out or ask_id != str(ASK):
            return told({"success": False, "error": "no_such_ask", "msg": "no longer available", "ask_id": 1}, 404)
        row = self.row(self.number()) | {"label": order["label"], "image_uuid": order["image"]}
        self.add(row | {"is_bid": "price" in order, "disk_space": order["disk"]})
        if self.partial:
            self.held_to_description = False
            return told({"success": False, "error": "invalid_price", "msg": "too low", "new_contract": row["id"]}, 400)
        return told({"success": True, "new_contract": row["id"]})

    @route("POST", "/api/v0/bundles", "offers")
    def search(self, request: Request) -> Answer:
        ask = {
            "id": ASK,
            "gpu_name": "RTX 4090",
            "num_gpus": 2,
            "gpu_frac": 0.25,
            "gpu_ram": 24564,
            "dph_total": 0.81 if request.json["type"] == "ondemand" else 0.42,
            "storage_cost": 0.15,
            "rentable": True,
            "geolocation": "Sweden, SE",
            "cpu_cores": 64,
            "cpu_cores_effective": 16.0,
            "cpu_ram": 515000,
            "disk_space": 800.0,
            "disk_name": "SAMSUNG NVMe",
            "bw_nvlink": 0,
            "inet_down": 900.5,
            "inet_up": 400.0,
            "reliability2": 0.998,
            "end_date": 1770000000.0,
            "verification": "verified",
        }
        whole = ask | {"id": ASK + 1, "gpu_name": "H100 SXM", "num_gpus": 8, "gpu_frac": 1.0, "gpu_ram": 81559}
        rows = [ask, whole | {"dph_total": 15.92, "bw_nvlink": 450.5}]
        counts = request.json.get("num_gpus", {}).get("in", [2, 8])
        return told({"offers": [row for row in rows if row["num_gpus"] in counts]})


FAKE = VastFake
