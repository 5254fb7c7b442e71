"""Google Compute Engine v1, held to Google's discovery document; and Google's exchange of signed assertions for tokens."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fleet.providers import google_orders, reading
from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from tests.fleet.providers.fakes.base import PLANTED, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.discovery import discovered
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

PROJECT, ZONE, TYPE = "vision-lab", "us-central1-a", "a2-highgpu-2g"
HERE = f"/compute/v1/projects/{PROJECT}"
ADDRESS = f"https://www.googleapis.com{HERE}"
PRIVATE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
KEY = {
    "type": "service_account",
    "project_id": PROJECT,
    "client_email": f"rackrent@{PROJECT}.iam.gserviceaccount.com",
    "private_key": PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
    "token_uri": "http://169.254.169.254/never-asked",
}
REASONS = {
    401: "authError",
    403: "forbidden",
    404: "notFound",
    409: "resourceInUseByAnotherResource",
    429: "rateLimitExceeded",
}
PAGE = 2


class GoogleFake(Fake):
    described_by = None
    variable = "GOOGLE_ENDPOINT_URL"
    options = {
        "service_account": json.dumps(KEY),
        "prices": f"{TYPE} 7.35\nspot {TYPE} 3.67\nus-central1/a2-highgpu-4g 14.7",
        "currency": "USD",
    }
    states = {
        "PENDING": Means(InstanceState.PROVISIONING, Billing.STORAGE),
        "PROVISIONING": Means(InstanceState.PROVISIONING, Billing.STORAGE),
        "STAGING": Means(InstanceState.PROVISIONING, Billing.STORAGE),
        "RUNNING": Means(InstanceState.RUNNING, Billing.FULL),
        "PENDING_STOP": Means(InstanceState.STOPPING, Billing.FULL),
        "STOPPING": Means(InstanceState.STOPPING, Billing.FULL),
        "TERMINATED": Means(InstanceState.STOPPED, Billing.STORAGE),
        "STOPPED": Means(InstanceState.STOPPED, Billing.STORAGE),
        "SUSPENDING": Means(InstanceState.STOPPING, Billing.FULL),
        "SUSPENDED": Means(InstanceState.STOPPED, Billing.STORAGE),
        "REPAIRING": Means(InstanceState.UNREACHABLE, Billing.UNKNOWN),
        "DEPROVISIONING": Means(InstanceState.TERMINATING, Billing.UNKNOWN),
    }
    price = Money(Decimal("7.35"), "USD")
    many = 5
    # Nobody forges an assertion by a wrong text: what is no key file is refused before anybody is asked.
    checks_secrets = False
    known_offer = KnownOffer(f"{ZONE}/{TYPE}", "A100 SXM 40 GB", 2, Money(Decimal("7.35"), "USD"))

    def __init__(self) -> None:
        super().__init__()
        self.description = discovered("google_compute_v1_discovery_trimmed.json")

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        self.operations: dict[str, Row] = {}
        self.ordered: dict[str, Answer] = {}
        self.warnings: dict[str, Row] = {}
        self.tokens_asked = 0

    def hurry(self, patch: Any) -> None:
        super().hurry(patch)
        patch.setattr(google_orders, "ORDER_SECONDS", 0.0)
        patch.setattr(reading, "pause", lambda seconds: None)

    # -- rows ----------------------------------------------------------------------------------------------------------

    def row(self, number: int) -> Row:
        row: Row = {
            "kind": "compute#instance",
            "id": str(4_000_000_000_000_000_000 + number),
            "name": f"train-{number}",
            "zone": f"{ADDRESS}/zones/{ZONE}",
            "machineType": f"{ADDRESS}/zones/{ZONE}/machineTypes/{TYPE}",
            "guestAccelerators": [
                {"acceleratorType": f"{ADDRESS}/zones/{ZONE}/acceleratorTypes/nvidia-tesla-a100", "acceleratorCount": 2}
            ],
            "scheduling": {"provisioningModel": "STANDARD", "preemptible": False},
            "networkInterfaces": [{"networkIP": "10.0.0.4", "accessConfigs": [{"natIP": "203.0.113.8"}]}],
            "disks": [{"boot": True, "diskSizeGb": "100", "source": f"{ADDRESS}/zones/{ZONE}/disks/train-{number}"}],
            "creationTimestamp": "2026-11-01T03:00:00.000-07:00",
            "lastStartTimestamp": "2026-11-01T03:01:00.000-07:00",
            "labels": {"team": "ml"},
            "metadata": {"items": [{"key": "token", "value": PLANTED}]},
        }
        self.put_state(row, "RUNNING")
        return row

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def ref(self, row: Row) -> Ref:
        return Ref(self.id_of(row), ZONE)

    def put_state(self, row: Row, raw_state: str) -> None:
        row["status"] = raw_state

    def leave_out(self, row: Row, what: str) -> None:
        types = f"{ADDRESS}/zones/{ZONE}/machineTypes"
        if what == "address":
            row["networkInterfaces"] = []
        elif what == "price":
            row["machineType"] = f"{types}/a2-highgpu-8g"
        else:
            row |= {"machineType": f"{types}/n2-standard-8"}
            del row["guestAccelerators"]

    def image(self, number: int) -> Row:
        return {
            "kind": "compute#image",
            "id": str(number),
            "name": f"vision-{number}",
            "status": "READY",
            "diskSizeGb": "100",
        }

    def image_id_of(self, row: Row) -> str:
        return str(row["name"])

    def settle(self) -> None:
        for row in self.images.values():
            row["status"] = "READY"

    # -- the API's ways ------------------------------------------------------------------------------------------------

    def handle(self, request: Request) -> Answer | None:
        return self.exchange(request) if request.path == "/token" else super().handle(request)

    def exchange(self, request: Request) -> Answer:
        """A token for an assertion that the account's key has signed."""
        self.tokens_asked += 1
        (assertion,) = parse_qs(request.body.decode())["assertion"]
        signed, _, signature = assertion.rpartition(".")
        claims = json.loads(decoded(signed.split(".")[1]))
        try:
            PRIVATE.public_key().verify(decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return told({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}, 400)
        assert claims["iss"] == KEY["client_email"]
        return told({"access_token": "ya29.example", "expires_in": 3599, "token_type": "Bearer"})

    def authorized(self, request: Request) -> bool:
        return request.headers.get("Authorization") == "Bearer ya29.example"

    def problem(self, status: int, message: str) -> Answer:
        reason = REASONS.get(status, "backendError" if status >= 500 else "invalid")
        errors = [{"message": message, "domain": "global", "reason": reason}]
        return told({"error": {"code": status, "message": message, "errors": errors}}, status)

    def operation(self, kind: str, target: str, error: str = "") -> Answer:
        name = f"operation-{len(self.operations)}"
        row: Row = {
            "kind": "compute#operation",
            "name": name,
            "operationType": kind,
            "status": "RUNNING",
            "targetId": target,
        }
        done = {"status": "DONE"} | ({"error": {"errors": [{"code": error, "message": "No."}]}} if error else {})
        self.operations[name] = row | done
        return told(row)

    def everywhere(self, request: Request, things: str, rows: list[Row], kind: str) -> Answer:
        start = int(request.query.get("pageToken") or 0)
        page = rows[start : start + min(PAGE, int(request.query["maxResults"]))]
        empty = {
            "warning": {
                "code": "NO_RESULTS_ON_PAGE",
                "message": "There are no results for scope 'zones/x' on this page.",
            }
        }
        items: Row = {f"zones/{ZONE}": {things: page} if page else empty, "zones/x": empty, **self.warnings}
        more = {"nextPageToken": str(start + PAGE)} if start + PAGE < len(rows) else {}
        return told({"kind": f"compute#{kind}AggregatedList", "items": items, **more})

    # -- answers -------------------------------------------------------------------------------------------------------

    @route("GET", f"{HERE}/aggregated/instances", "list")
    def listing(self, request: Request) -> Answer:
        return self.everywhere(request, "instances", list(self.machines.values()), "instance")

    @route("GET", f"{HERE}/zones/{{}}/instances/{{}}", "find")
    def find(self, request: Request, zone: str, machine: str) -> Answer:
        return told(self.machines[machine]) if machine in self.machines else self.problem(404, "No such instance.")

    @route("GET", f"{HERE}/zones/{{}}/machineTypes/{{}}", "size")
    def size(self, request: Request, zone: str, kind: str) -> Answer:
        found = next((row for row in self.kinds() if row["name"] == kind), None)
        return told(found) if found else self.problem(404, "No such type.")

    @route("GET", f"{HERE}/aggregated/machineTypes", "offers")
    def sold(self, request: Request) -> Answer:
        assert "a2" in request.query["filter"]
        return self.everywhere(request, "machineTypes", self.kinds(), "machineType")

    def kinds(self) -> list[Row]:
        return [
            self.kind(TYPE, 2, 24, 170),
            self.kind("a2-highgpu-8g", 8, 96, 680),
            self.kind("g2-standard-24", 0, 24, 96),
        ]

    def kind(self, name: str, gpus: int, vcpus: int, memory_gib: int) -> Row:
        cards = [{"guestAcceleratorType": "nvidia-tesla-a100", "guestAcceleratorCount": gpus}] if gpus else []
        row = {
            "kind": "compute#machineType",
            "name": name,
            "zone": ZONE,
            "guestCpus": vcpus,
            "memoryMb": memory_gib * 1024,
        }
        return row | ({"accelerators": cards} if cards else {})

    @route("POST", f"{HERE}/zones/{{}}/instances/{{}}/start", "start")
    def starting(self, request: Request, zone: str, machine: str) -> Answer:
        return self.moved(machine, "start", "RUNNING")

    @route("POST", f"{HERE}/zones/{{}}/instances/{{}}/resume", "resume")
    def resuming(self, request: Request, zone: str, machine: str) -> Answer:
        return self.moved(machine, "resume", "RUNNING")

    @route("POST", f"{HERE}/zones/{{}}/instances/{{}}/stop", "stop")
    def stopping(self, request: Request, zone: str, machine: str) -> Answer:
        return self.moved(machine, "stop", "TERMINATED")

    @route("POST", f"{HERE}/zones/{{}}/instances/{{}}/reset", "reboot")
    def resetting(self, request: Request, zone: str, machine: str) -> Answer:
        return self.moved(machine, "reset", "RUNNING")

    @route("DELETE", f"{HERE}/zones/{{}}/instances/{{}}", "terminate")
    def deletion(self, request: Request, zone: str, machine: str) -> Answer:
        if self.machines.pop(machine, None) is None:
            return self.problem(404, "No such instance.")
        return self.operation("delete", machine)

    def moved(self, machine: str, kind: str, becomes: str) -> Answer:
        if machine not in self.machines:
            return self.problem(404, "No such instance.")
        self.put_state(self.machines[machine], becomes)
        return self.operation(kind, machine)

    def order(self) -> CreateSpec:
        return CreateSpec(name="Train 1", offer_id=f"{ZONE}/{TYPE}", gpu_count=2, image_id="vision-1", disk_gb=200)

    def sell_out(self) -> None:
        self.sold_out = True

    @route("POST", f"{HERE}/zones/{{}}/instances", "create")
    def create(self, request: Request, zone: str) -> Answer:
        order = request.json
        if made := self.ordered.get(request.query["requestId"]):
            return made
        if order["machineType"].rsplit("/", 1)[-1] not in {row["name"] for row in self.kinds()}:
            return self.problem(400, "Invalid value for field 'resource.machineType'.")
        row = self.row(self.number()) | {name: order[name] for name in ("name", "labels", "scheduling")}
        if self.sold_out:
            return self.operation("insert", row["id"], "ZONE_RESOURCE_POOL_EXHAUSTED")
        self.add(row)
        self.ordered[request.query["requestId"]] = made = self.operation("insert", row["id"])
        return made

    @route("GET", f"{HERE}/zones/{{}}/operations/{{}}", "operation")
    def progress(self, request: Request, zone: str, name: str) -> Answer:
        return told(self.operations[name])

    @route("GET", f"{HERE}/global/images", "images")
    def pictures(self, request: Request) -> Answer:
        rows, start = list(self.images.values()), int(request.query.get("pageToken") or 0)
        more = {"nextPageToken": str(start + PAGE)} if start + PAGE < len(rows) else {}
        return told({"kind": "compute#imageList", "items": rows[start : start + PAGE], **more})

    @route("POST", f"{HERE}/global/images", "save_image")
    def save(self, request: Request) -> Answer:
        row = self.image(self.number()) | {"name": request.json["name"], "status": "PENDING"}
        self.images[row["name"]] = row
        return self.operation("insert", row["id"])


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


FAKE = GoogleFake
