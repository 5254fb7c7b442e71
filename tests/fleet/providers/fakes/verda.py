"""Verda's API v1. The saved description is thin and by a third party: where Verda's own package differs, it is put right here."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import yaml

from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from tests.fleet.providers.fakes.base import Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.description import SPECS, Description
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

BEARER = "SECRET-bearer-token-0123456789"
CODES = {
    400: "invalid_request",
    401: "unauthorized_request",
    402: "insufficient_funds",
    403: "forbidden_action",
    404: "not_found",
}
ACTS = {"start": "start", "restore": "start", "delete": "terminate", "shutdown": "stop"}
EIGHT, ONE = "8H100.80S.176V", "1A100.40S.22V"


@cache
def description() -> Description | None:
    path = SPECS / "verda_datacrunch_thirdparty_openapi.yml"
    if not path.exists():
        return None
    document: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    paths = document["paths"]
    # Named so by the package verda 1.25.
    market, *others = paths["/instance-availability"]["get"]["parameters"]
    paths["/instance-availability"]["get"]["parameters"] = [{**market, "name": "isSpot"}, *others]
    paths["/instance-types"]["get"]["parameters"] = [{"name": "currency", "in": "query", "schema": {"type": "string"}}]
    nullable = document["components"]["schemas"]["Instance"]["properties"]["ip"]
    nullable["nullable"] = True
    return Description(document)


class VerdaFake(Fake):
    described_by = None
    variable = "VERDA_ENDPOINT_URL"
    options = {"client_id": "client-1", "client_secret": "SECRET-of-the-client-0123456789"}
    states = {
        "ordered": Means(InstanceState.PROVISIONING, Billing.UNKNOWN),
        "provisioning": Means(InstanceState.PROVISIONING, Billing.FULL),
        "running": Means(InstanceState.RUNNING, Billing.FULL),
        "offline": Means(InstanceState.STOPPED, Billing.FULL),
        "starting_hibernation": Means(InstanceState.STOPPING, Billing.FULL),
        "hibernating": Means(InstanceState.STOPPED, Billing.STORAGE),
        "restoring": Means(InstanceState.STARTING, Billing.FULL),
        "error": Means(InstanceState.ERROR, Billing.UNKNOWN),
    }
    price = Money(Decimal("18.4"), "USD")
    # The listing is one page, and a bare list.
    empty_bodies = frozenset({"[]"})
    known_offer = KnownOffer(EIGHT, "H100 SXM", 8, Money(Decimal("18.4"), "USD"))

    def __init__(self) -> None:
        super().__init__()
        self.description = description()

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        self.tokens = 0
        self.free = {"false": {"FIN-01": [EIGHT], "FIN-02": []}, "true": {"FIN-02": [EIGHT, ONE]}}
        self.keys: list[Row] = []
        self.scripts: list[Row] = []
        self.deleted_volumes: list[str] = []

    def authorized(self, request: Request) -> bool:
        if request.path == "/oauth2/token":
            return bool(request.json["client_secret"] == self.options["client_secret"])
        return request.headers.get("Authorization") == f"Bearer {BEARER}"

    def row(self, number: int) -> Row:
        return self.machine(number, EIGHT, f"train-{number}", "vision team", spot=False)

    def machine(self, number: int, kind: str, hostname: str, description: str, *, spot: bool) -> Row:
        count = 8 if kind == EIGHT else 1
        return {
            "id": f"u-{number}",
            "instance_type": kind,
            "price_per_hour": 18.4 if kind == EIGHT else 1.29,
            "hostname": hostname,
            "description": description,
            "status": "running",
            "created_at": "2026-11-01T08:00:00.000Z",
            "ssh_key_ids": [],
            "cpu": {"description": "176 CPU", "number_of_cores": 176},
            "gpu": {
                "description": f"{count}x {'H100 SXM5 80GB' if kind == EIGHT else 'A100 SXM4 40GB'}",
                "number_of_gpus": count,
            },
            "memory": {"description": "1480GB RAM", "size_in_gigabytes": 1480},
            "storage": {"description": "dynamic"},
            "gpu_memory": {"description": "640GB GPU RAM", "size_in_gigabytes": 640},
            "ip": "203.0.113.20",
            "os_volume_id": f"v-{number}",
            "location": "FIN-01",
            "image": "ubuntu-24.04-cuda-12.8",
            "is_spot": spot,
            "contract": "SPOT" if spot else "PAY_AS_YOU_GO",
            "pricing": "FIXED_PRICE",
        }

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def ref(self, row: Row) -> Ref:
        return Ref(str(row["id"]), str(row["location"]))

    def put_state(self, row: Row, raw_state: str) -> None:
        row["status"] = raw_state

    def leave_out(self, row: Row, what: str) -> None:
        if what == "address":
            row["ip"] = None
        elif what == "price":
            row.pop("price_per_hour")
        else:
            row |= {"instance_type": "CPU.4V.16G", "gpu": {"description": "", "number_of_gpus": 0}}

    def problem(self, status: int, message: str) -> Answer:
        return told({"code": CODES.get(status, "server_error"), "message": message}, status)

    def image(self, number: int) -> Row:
        kind = f"ubuntu-24.04-cuda-12.{number}"
        return {"id": f"image-{number}", "name": f"Ubuntu 24.04 + CUDA 12.{number}", "image_type": kind, "details": []}

    def image_id_of(self, row: Row) -> str:
        return str(row["image_type"])

    def order(self) -> CreateSpec:
        return CreateSpec(name="Train", offer_id=EIGHT, region="FIN-01", gpu_count=8, image_id="ubuntu-24.04-cuda-12.8")

    def sell_out(self) -> None:
        self.sold_out = True

    @route("POST", "/oauth2/token", "token")
    def token(self, request: Request) -> Answer:
        self.tokens += 1
        return told({"access_token": BEARER, "token_type": "Bearer", "scope": "cloud-api-v1", "expires_in": 3600})

    @route("GET", "/balance", "balance")
    def balance(self, request: Request) -> Answer:
        return told({"amount": float(self.purse), "currency": "usd"})

    @route("GET", "/instances", "list")
    def listing(self, request: Request) -> Answer:
        return told(list(self.machines.values()))

    @route("GET", "/instances/{}", "find")
    def find(self, request: Request, machine_id: str) -> Answer:
        return (
            told(self.machines[machine_id]) if machine_id in self.machines else self.problem(404, "No such instance.")
        )

    @route("POST", "/instances", "create")
    def create(self, request: Request) -> Answer:
        order = request.json
        if self.sold_out:
            return self.problem(400, "Not enough resources to deploy the instance.")
        if order["instance_type"] not in {EIGHT, ONE}:
            return self.problem(400, "Unknown instance type.")
        row = self.machine(
            self.number(), order["instance_type"], order["hostname"], order["description"], spot=order["is_spot"]
        )
        row |= {"location": order["location_code"], "status": "provisioning"}
        return told(self.id_of(self.add(row)), 202)

    @route("PUT", "/instances", lambda request: ACTS[request.json["action"]])
    def act(self, request: Request) -> Answer:
        action = request.json["action"]
        for machine_id in request.json["id"]:
            row = self.machines.get(machine_id)
            if row is None:
                return self.problem(404, "No such instance.")
            if action == "delete":
                del self.machines[machine_id]
                self.deleted_volumes += request.json.get("volume_ids") or []
            elif (action, row["status"]) in {("start", "offline"), ("restore", "hibernating")}:
                row["status"] = "running"
            else:
                return self.problem(400, f"Cannot {action} an instance that is {row['status']}.")
        return told(None, 202)

    @route("GET", "/instance-types", "offers")
    def types(self, request: Request) -> Answer:
        return told([self.kind(EIGHT, 18.4, 6.44), self.kind(ONE, 1.29, 0.45), self.processors()])

    def kind(self, name: str, price: float, spot_price: float) -> Row:
        row = self.machine(0, name, "", "", spot=False)
        names = ("instance_type", "cpu", "gpu", "memory", "gpu_memory", "storage")
        return {
            **{each: row[each] for each in names},
            "id": f"type-{name}",
            "name": name,
            "price_per_hour": price,
            "spot_price": spot_price,
            "currency": "usd",
            "p2p": "900 GB/s NVLink" if name == EIGHT else "",
        }

    def processors(self) -> Row:
        return {
            **self.kind(ONE, 0.03, 0.01),
            "instance_type": "CPU.4V.16G",
            "gpu": {"description": "", "number_of_gpus": 0},
        }

    @route("GET", "/instance-availability", "availability")
    def availability(self, request: Request) -> Answer:
        places = self.free[request.query["isSpot"]]
        return told([{"location_code": place, "availabilities": kinds} for place, kinds in places.items()])

    @route("GET", "/images", "images")
    def list_images(self, request: Request) -> Answer:
        return told(list(self.images.values()))

    @route("GET", "/sshkeys", "keys")
    def list_keys(self, request: Request) -> Answer:
        return told(self.keys)

    @route("POST", "/sshkeys", "add_key")
    def add_key(self, request: Request) -> Answer:
        self.keys.append({"id": f"key-{self.number()}", **request.json})
        return told(self.keys[-1]["id"], 201)

    @route("POST", "/scripts", "add_script")
    def add_script(self, request: Request) -> Answer:
        self.scripts.append({"id": f"script-{self.number()}", **request.json})
        return told(self.scripts[-1]["id"], 201)


FAKE = VerdaFake
