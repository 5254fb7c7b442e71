"""AutoDL's developer API, container instances Pro."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fleet.providers import autodl, reading
from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from tests.fleet.providers.fakes.base import PLANTED, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

NEVER = {"Time": "0001-01-01T00:00:00Z", "Valid": False}
ONCE = {"Time": "2026-11-01T10:00:05+08:00", "Valid": True}
CODES = {401: "AuthorizeFailed", 404: "RecordNotFoundError", 429: "TooManyRequests"}
PRO = "/api/v1/dev/instance/pro"


class AutoDLFake(Fake):
    described_by = "autodl_pro_handwritten_openapi.yaml"
    variable = "AUTODL_ENDPOINT_URL"
    options = {"token": "SECRET-developer-token-0123456789"}
    states = {
        "creating": Means(InstanceState.PROVISIONING, Billing.NONE),
        "created": Means(InstanceState.PROVISIONING, Billing.UNKNOWN),
        "starting": Means(InstanceState.STARTING, Billing.FULL),
        "running": Means(InstanceState.RUNNING, Billing.FULL),
        "shutting_down": Means(InstanceState.STOPPING, Billing.FULL),
        "shutdown": Means(InstanceState.STOPPED, Billing.STORAGE),
        "abnormal": Means(InstanceState.ERROR, Billing.UNKNOWN),
    }
    price = Money(Decimal("3.94"), "CNY")
    # A row always names what was rented.
    can_lack = frozenset({"address", "price"})
    many = 5
    known_offer = KnownOffer("h800", "H800 SXM", 2, None)

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        self.blocked = 0
        self.snapshots: dict[str, Row] = {}
        # Machines that stay on their way off, whatever they are asked.
        self.slow_to_stop = False

    def hurry(self, patch: pytest.MonkeyPatch) -> None:
        super().hurry(patch)
        patch.setattr(autodl, "PAGE_SIZE", 2)
        patch.setattr(reading, "pause", lambda seconds: None)

    def env(self) -> dict[str, str]:
        return {self.variable: f"{self.url}/api/v1/dev/"}

    def authorized(self, request: Request) -> bool:
        return request.headers.get("Authorization") == self.options["token"]

    def row(self, number: int) -> Row:
        return self.machine(number, f"train-{number}", "v-48g", 2, "NVIDIA GeForce RTX 4090")

    def machine(self, number: int, name: str, spec: str, count: int, card: str) -> Row:
        uuid = f"pro-{number:012}"
        self.snapshots[uuid] = {
            "region_sign": "bj-B1",
            "payg_price": 3940,
            "origin_pay_price": 6060,
            "snapshot_gpu_alias_name": card,
            "usage_info": {
                "cpu_usage_percent": 3.3,
                "mem_usage_percent": 1.2,
                "mem_usage": 270_528_512,
                "mem_limit": 21_474_836_480,
                "root_fs_total_size": 31_526_391_808,
                "data_disk_total_size": 53_687_091_200,
            },
            "ssh_command": "ssh -p 30022 root@connect.example.invalid",
            "proxy_host": "connect.example.invalid",
            "ssh_port": 30022,
            "root_password": PLANTED,
            "jupyter_token": PLANTED,
        }
        return {
            "uuid": uuid,
            "name": name,
            "machine_id": "m1",
            "region_sign": "bj-B1",
            "region_name": "Beijing B",
            "status": "running",
            "sub_status": "",
            "status_at": "2026-11-01T10:00:05+08:00",
            "created_at": "2026-11-01T10:00:00+08:00",
            "start_mode": "gpu",
            "charge_type": "payg",
            "req_gpu_amount": count,
            "gpu_spec_uuid": spec,
            "started_at": ONCE,
            "stopped_at": NEVER,
            "expired_at": NEVER,
            "timed_shutdown_at": NEVER,
        }

    def id_of(self, row: Row) -> str:
        return str(row["uuid"])

    def ref(self, row: Row) -> Ref:
        return Ref(str(row["uuid"]), str(row["region_sign"]))

    def put_state(self, row: Row, raw_state: str) -> None:
        row["status"] = raw_state

    def leave_out(self, row: Row, what: str) -> None:
        snapshot = self.snapshots[row["uuid"]]
        for name in {"address": ("proxy_host", "ssh_port"), "price": ("payg_price",)}[what]:
            snapshot.pop(name)

    def problem(self, status: int, message: str) -> Answer:
        """By HTTP as a gateway does it; AutoDL's own refusals are `refusal`s."""
        return told({"code": CODES.get(status, "Error"), "msg": message, "data": None, "request_id": "r"}, status)

    def refusal(self, code: str, message: str) -> Answer:
        return told({"code": code, "msg": message, "request_id": "r"})

    def good(self, data: Any) -> Answer:
        return told({"code": "Success", "msg": "", "data": data, "request_id": "r"})

    def missing(self) -> Answer:
        return self.refusal("RecordNotFoundError", "实例不存在")

    def image(self, number: int) -> Row:
        return {
            "id": number,
            "image_uuid": f"image-{number:010}",
            "name": f"vision {number}",
            "status": "finished",
            "image_size": 12_345_678_900,
        }

    def image_id_of(self, row: Row) -> str:
        return str(row["image_uuid"])

    def order(self) -> CreateSpec:
        return CreateSpec(
            name="Train", offer_id="h800", region="bj-B1", gpu_count=2, image_id="image-0000000001", disk_gb=50
        )

    def sell_out(self) -> None:
        self.sold_out = True

    def settle(self) -> None:
        for row in self.machines.values():
            row["status"] = {"shutting_down": "shutdown", "starting": "running"}.get(row["status"], row["status"])
        for row in self.images.values():
            row["status"] = "finished"

    def page(self, request: Request, rows: list[Row]) -> Answer:
        index, size = request.json["page_index"], request.json["page_size"]
        shown = rows[(index - 1) * size : index * size]
        pages = -(-len(rows) // size)
        return self.good(
            {"list": shown, "page_index": index, "page_size": size, "max_page": pages, "result_total": len(rows)}
        )

    @route("POST", "/api/v1/dev/wallet/balance", "balance")
    def balance(self, request: Request) -> Answer:
        return self.good(
            {
                "assets": int(self.purse * 1000),
                "blocked_asset": self.blocked,
                "accumulate": 98_000,
                "voucher_balance": 0,
            }
        )

    @route("POST", f"{PRO}/list", "list")
    def listing(self, request: Request) -> Answer:
        return self.page(request, list(self.machines.values()))

    @route("GET", f"{PRO}/snapshot", "snapshot")
    def snapshot(self, request: Request) -> Answer:
        uuid = request.json["instance_uuid"]
        return self.good(self.snapshots[uuid]) if uuid in self.machines else self.missing()

    @route("GET", f"{PRO}/status", "status")
    def status(self, request: Request) -> Answer:
        row = self.machines.get(request.json["instance_uuid"])
        if row is None:
            return self.missing()
        told_now = self.good(row["status"])
        if not self.slow_to_stop:
            self.settle()
        return told_now

    @route("POST", f"{PRO}/power_on", "start")
    def power_on(self, request: Request) -> Answer:
        return self.moved(request, "starting")

    @route("POST", f"{PRO}/power_off", "stop")
    def power_off(self, request: Request) -> Answer:
        return self.moved(request, "shutting_down")

    def moved(self, request: Request, status: str) -> Answer:
        row = self.machines.get(request.json["instance_uuid"])
        if row is None:
            return self.missing()
        row["status"] = status
        return self.good(None)

    @route("POST", f"{PRO}/release", "terminate")
    def release(self, request: Request) -> Answer:
        uuid = request.json["instance_uuid"]
        if uuid not in self.machines:
            return self.missing()
        if self.machines[uuid]["status"] != "shutdown":
            return self.refusal("Error", "请先关机再释放实例")
        del self.machines[uuid]
        return self.good(None)

    @route("POST", f"{PRO}/create", "create")
    def create(self, request: Request) -> Answer:
        order = request.json
        if self.sold_out:
            return self.refusal("Error", "GPU库存不足")
        if order["gpu_spec_uuid"] not in {"v-48g", "h800"}:
            return self.refusal("ParamError", "参数错误")
        row = self.machine(
            self.number(), order["instance_name"], order["gpu_spec_uuid"], order["req_gpu_amount"], "NVIDIA H800"
        )
        return self.good(self.id_of(self.add(row | {"status": "creating"})))

    @route("POST", f"{PRO}/image/save", "save_image")
    def save(self, request: Request) -> Answer:
        row = {**self.image(self.number()), "name": request.json["image_name"], "status": "creating"}
        self.images[row["image_uuid"]] = row
        return self.good({"image_uuid": row["image_uuid"]})

    @route("POST", f"{PRO}/image/private/list", "images")
    def list_images(self, request: Request) -> Answer:
        return self.page(request, list(self.images.values()))


FAKE = AutoDLFake
