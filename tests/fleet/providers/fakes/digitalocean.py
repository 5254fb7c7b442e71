"""DigitalOcean's API v2, as far as Droplets need it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from fleet.providers import digitalocean, http
from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from fleet.providers.bills import DAY
from tests.fleet.providers.fakes.base import PLANTED, Billed, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

IDS = {401: "unauthorized", 403: "forbidden", 404: "not_found", 422: "unprocessable_entity", 429: "too_many_requests"}
REGION = {
    "name": "New York 2",
    "slug": "nyc2",
    "features": ["backups"],
    "available": True,
    "sizes": ["gpu-h100x8-640gb"],
}
WHEN = "2026-11-01T08:00:00Z"
PRODUCTS = {"gpu": "GPU Droplets", "disk": "Droplet Snapshots", "volume": "Volumes"}
CREATED = {"snapshot": "save_image", "power_on": "start", "reboot": "reboot"}


class DigitalOceanFake(Fake):
    described_by = "digitalocean_openapi_bundled.json"
    variable = "DIGITALOCEAN_ENDPOINT_URL"
    options = {"token": "dop_v1_SECRET0123456789"}
    states = {
        "new": Means(InstanceState.PROVISIONING, Billing.FULL),
        "active": Means(InstanceState.RUNNING, Billing.FULL),
        "off": Means(InstanceState.STOPPED, Billing.FULL),
        "archive": Means(InstanceState.STOPPED, Billing.UNKNOWN),
    }
    price = Money(Decimal("23.92"), "USD")
    always_told = frozenset({"price"})
    many = 5
    many_charges = 5
    known_offer = KnownOffer("gpu-h100x8-640gb", "H100 SXM", 8, Money(Decimal("23.92"), "USD"))

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        # Droplets whose end was asked for and takes its time, and what was done to each.
        self.slow_to_end = False
        self.actions: dict[str, list[Row]] = {}
        self.saving: list[Row] = []
        self.keys: list[Row] = []

    def hurry(self, patch: pytest.MonkeyPatch) -> None:
        # Its schemas of Droplets are deep: holding an answer to it takes a while.
        patch.setattr(http, "READ_SECONDS", 1.0)
        patch.setattr(digitalocean, "PAGE_SIZE", 2)

    def env(self) -> dict[str, str]:
        return {self.variable: f"{self.url}/v2/"}

    def authorized(self, request: Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self.options['token']}"

    def row(self, number: int) -> Row:
        return self.droplet(number, f"train-{number}", self.size("gpu-h100x8-640gb"), ["team:ml"])

    def droplet(self, number: int, name: str, size: Row, tags: list[str]) -> Row:
        return {
            "id": number,
            "name": name,
            "memory": size["memory"],
            "vcpus": size["vcpus"],
            "disk": size["disk"],
            "disk_info": size["disk_info"],
            "locked": False,
            "status": "active",
            "kernel": None,
            "created_at": WHEN,
            "features": ["monitoring"],
            "backup_ids": [],
            "next_backup_window": None,
            "snapshot_ids": [],
            "image": {"id": 7, "name": "NVIDIA AI/ML Ready", "type": "base", "distribution": "Ubuntu", "slug": None},
            "volume_ids": [],
            "size": size,
            "size_slug": size["slug"],
            "networks": {
                "v4": [
                    {"ip_address": "10.0.0.2", "netmask": "255.0.0.0", "gateway": "10.0.0.1", "type": "private"},
                    {
                        "ip_address": "203.0.113.6",
                        "netmask": "255.255.255.0",
                        "gateway": "203.0.113.1",
                        "type": "public",
                    },
                ],
                "v6": [],
            },
            "region": REGION,
            "tags": tags,
            **({"gpu_info": size["gpu_info"]} if "gpu_info" in size else {}),
        }

    def size(self, slug: str) -> Row:
        eight = slug == "gpu-h100x8-640gb"
        size: Row = {
            "slug": slug,
            "memory": 1_966_080 if eight else 8192,
            "vcpus": 160 if eight else 4,
            "disk": 2048 if eight else 160,
            "transfer": 60.0,
            "price_monthly": 16074.0 if eight else 48.0,
            "price_hourly": 23.92 if eight else 0.07143,
            "regions": ["nyc2", "tor1"] if eight else ["nyc3"],
            "available": True,
            "description": "H100 GPU - 8X" if eight else "Basic",
            "disk_info": [{"type": "local", "size": {"amount": 2048 if eight else 160, "unit": "gib"}}],
        }
        if eight:
            size["gpu_info"] = {"count": 8, "model": "nvidia_h100", "vram": {"amount": 640, "unit": "gib"}}
            size["disk_info"].append({"type": "scratch", "size": {"amount": 40960, "unit": "gib"}})
        return size

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def ref(self, row: Row) -> Ref:
        return Ref(str(row["id"]), row["region"]["slug"])

    def put_state(self, row: Row, raw_state: str) -> None:
        row["status"] = raw_state

    def leave_out(self, row: Row, what: str) -> None:
        if what == "address":
            row["networks"] = {"v4": [], "v6": []}
        elif what == "price":
            row["size"].pop("price_hourly")
        else:
            row.pop("gpu_info")
            row["size"].pop("gpu_info")

    def problem(self, status: int, message: str) -> Answer:
        return told({"id": IDS.get(status, "server_error"), "message": message, "request_id": PLANTED}, status)

    def image(self, number: int) -> Row:
        return {
            "id": str(9000 + number),
            "name": f"vision {number}",
            "created_at": WHEN,
            "regions": ["nyc2"],
            "min_disk_size": 720,
            "size_gigabytes": 31.5,
            "resource_id": "1",
            "resource_type": "droplet",
            "tags": [],
        }

    def order(self) -> CreateSpec:
        return CreateSpec(
            name="train", offer_id="gpu-h100x8-640gb", region="nyc2", gpu_count=8, image_id="gpu-h100x8-base"
        )

    def sell_out(self) -> None:
        self.sold_out = True

    def settle(self) -> None:
        self.images |= {row["id"]: row for row in self.saving}
        self.saving = []

    def page(self, request: Request, key: str, rows: list[Row]) -> Answer:
        page, size = int(request.query.get("page", "1")), int(request.query.get("per_page", "20"))
        more = page * size < len(rows)
        following = f"https://api.digitalocean.com{request.path}?page={page + 1}&per_page={size}"
        links = {"pages": {"next": following, "last": following}} if more else {}
        return told({key: rows[(page - 1) * size : page * size], "links": links, "meta": {"total": len(rows)}})

    @route("GET", "/v2/account", "verify")
    def account(self, request: Request) -> Answer:
        account = {
            "droplet_limit": 25,
            "floating_ip_limit": 5,
            "email": "ops@example.com",
            "uuid": "u-1",
            "email_verified": True,
            "status": "active",
            "status_message": "",
            "team": {"uuid": "t-1", "name": "Vision"},
        }
        return told({"account": account})

    @route("GET", "/v2/droplets", "list")
    def listing(self, request: Request) -> Answer:
        """Without a type, GPU Droplets are left out, as documented."""
        gpus = request.query.get("type", "droplets") == "gpus"
        return self.page(request, "droplets", [row for row in self.machines.values() if ("gpu_info" in row) == gpus])

    @route("POST", "/v2/droplets", "create")
    def create(self, request: Request) -> Answer:
        order: dict[str, Any] = request.json
        if self.sold_out:
            return self.problem(422, "The size is currently unavailable in this region.")
        if order["size"] != "gpu-h100x8-640gb":
            return self.problem(422, "You specified an invalid size for Droplet creation.")
        row = self.droplet(self.number(), order["name"], self.size(order["size"]), order["tags"])
        return told({"droplet": self.add(row), "links": {"actions": []}}, 202)

    @route("GET", "/v2/droplets/{}", "find")
    def find(self, request: Request, droplet_id: str) -> Answer:
        return told({"droplet": self.machines[droplet_id]}) if droplet_id in self.machines else self.missing()

    @route("DELETE", "/v2/droplets/{}", "terminate")
    def destroy(self, request: Request, droplet_id: str) -> Answer:
        if droplet_id not in self.machines:
            return self.missing()
        self.actions.setdefault(droplet_id, []).append(self.action(droplet_id, "destroy"))
        if not self.slow_to_end:
            del self.machines[droplet_id]
        return told(None, 204)

    @route("GET", "/v2/droplets/{}/actions", "actions")
    def history(self, request: Request, droplet_id: str) -> Answer:
        if droplet_id not in self.machines:
            return self.missing()
        return self.page(request, "actions", self.actions.get(droplet_id, []))

    @route("POST", "/v2/droplets/{}/actions", lambda request: CREATED.get(request.json["type"], "other"))
    def act(self, request: Request, droplet_id: str) -> Answer:
        if droplet_id not in self.machines:
            return self.missing()
        action = request.json["type"]
        if action == "power_on":
            self.machines[droplet_id]["status"] = "active"
        elif action == "snapshot":
            self.saving.append({**self.image(self.number()), "name": request.json["name"]})
        return told({"action": self.action(droplet_id, action)}, 201)

    def action(self, droplet_id: str, kind: str) -> Row:
        return {
            "id": self.number(),
            "status": "in-progress",
            "type": kind,
            "started_at": datetime.now(UTC).isoformat(),
            "completed_at": None,
            "resource_id": int(droplet_id),
            "resource_type": "droplet",
            "region": REGION,
            "region_slug": "nyc2",
        }

    @route("GET", "/v2/customers/my/invoices", "invoices")
    def invoices(self, request: Request) -> Answer:
        """The newest month is not invoiced yet, and only has a preview."""
        months = sorted({f"{one.day:%Y-%m}" for one in self.bill})
        rows = [
            {"invoice_uuid": f"uuid-{month}", "invoice_id": month, "amount": "1.00", "invoice_period": month}
            for month in months
        ]
        page, size = int(request.query.get("page", "1")), int(request.query.get("per_page", "20"))
        final = rows[:-1]
        following = f"https://api.digitalocean.com{request.path}?page={page + 1}&per_page={size}"
        links = {"pages": {"next": following, "last": following}} if page * size < len(final) else {}
        body: Row = {"invoices": final[(page - 1) * size : page * size], "links": links, "meta": {"total": len(final)}}
        return told(body | ({"invoice_preview": {**rows[-1], "updated_at": WHEN}} if rows else {}))

    @route("GET", "/v2/customers/my/invoices/{}", "charges")
    def invoice(self, request: Request, invoice_id: str) -> Answer:
        month = invoice_id.removeprefix("uuid-")
        return self.page(request, "invoice_items", [self.item(one) for one in self.bill if f"{one.day:%Y-%m}" == month])

    def item(self, one: Billed) -> Row:
        return {
            "product": PRODUCTS.get(one.word, one.word),
            "resource_id": one.machine or one.resource,
            "description": "gpu-h100x8-640gb",
            "amount": f"{one.amount:f}",
            "duration": "24",
            "duration_unit": "Hours",
            "start_time": f"{one.day:%Y-%m-%d}T00:00:00Z",
            "end_time": f"{one.day + DAY:%Y-%m-%d}T00:00:00Z",
        }

    @route("GET", "/v2/sizes", "offers")
    def sizes(self, request: Request) -> Answer:
        return self.page(request, "sizes", [self.size("gpu-h100x8-640gb"), self.size("s-4vcpu-8gb")])

    @route("GET", "/v2/snapshots", "images")
    def snapshots(self, request: Request) -> Answer:
        return self.page(request, "snapshots", list(self.images.values()))

    @route("GET", "/v2/account/keys", "keys")
    def list_keys(self, request: Request) -> Answer:
        return self.page(request, "ssh_keys", self.keys)

    @route("POST", "/v2/account/keys", "add_key")
    def add_key(self, request: Request) -> Answer:
        self.keys.append({"id": self.number(), "fingerprint": "3b:16", **request.json})
        return told({"ssh_key": self.keys[-1]}, 201)

    @route("GET", "/v2/monitoring/metrics/droplet/{}", "metrics")
    def metrics(self, request: Request, what: str) -> Answer:
        told_of = {
            "cpu": [("idle", "100", "150"), ("user", "40", "180"), ("system", "10", "20")],
            "memory_total": [("", "1000", "1000")],
            "memory_available": [("", "900", "250")],
            "bandwidth": [("", "0.5", "8.0" if request.query.get("direction") == "inbound" else "2.0")],
        }[what]
        result = [
            {
                "metric": {"host_id": request.query["host_id"], **({"mode": mode} if mode else {})},
                "values": [[1_793_000_000, before], [1_793_000_120, after]],
            }
            for mode, before, after in told_of
        ]
        return told({"status": "success", "data": {"resultType": "matrix", "result": result}})

    def missing(self) -> Answer:
        return self.problem(404, "The resource you were accessing could not be found.")


FAKE = DigitalOceanFake
