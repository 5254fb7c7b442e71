"""Azure's Resource Manager, held to the models of Microsoft's SDK; and its exchange of a secret for tokens."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs

from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from tests.fleet.providers.fakes.azure_models import check
from tests.fleet.providers.fakes.base import PLANTED, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

TENANT, CLIENT = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
SUBSCRIPTION, LOCATION, GROUP = "33333333-3333-3333-3333-333333333333", "eastus", "gpu-lab"
SIZE = "Standard_NC48ads_A100_v4"
ROOT = f"/subscriptions/{SUBSCRIPTION}"
COMPUTE, NETWORK = f"{ROOT}/providers/Microsoft.Compute", f"{ROOT}/providers/Microsoft.Network"
GROUPED = f"{ROOT}/resourceGroups/{{}}/providers/Microsoft.Compute/virtualMachines/{{}}"
SUBNET = f"{ROOT}/resourceGroups/{GROUP}/providers/Microsoft.Network/virtualNetworks/lab/subnets/default"
CODES = {
    400: "InvalidParameter",
    401: "InvalidAuthenticationToken",
    403: "AuthorizationFailed",
    404: "ResourceNotFound",
    409: "Conflict",
    412: "PreconditionFailed",
    422: "UnprocessableEntity",
    429: "TooManyRequests",
}
PAGE = 2


def list_act(request: Request) -> str:
    return "states" if request.query.get("statusOnly") == "true" else "list"


class AzureFake(Fake):
    described_by = None
    variable = "AZURE_ENDPOINT_URL"
    options = {
        "tenant_id": TENANT,
        "client_id": CLIENT,
        "client_secret": "SECRET-azure-0123456789",
        "subscription_id": SUBSCRIPTION,
        "network": f"{LOCATION} {GROUP} {SUBNET}",
        "prices": f"{SIZE} 7.346\nspot {SIZE} 2.9",
        "currency": "USD",
    }
    states = {
        "PowerState/creating": Means(InstanceState.PROVISIONING, Billing.STORAGE),
        "PowerState/starting": Means(InstanceState.STARTING, Billing.FULL),
        "PowerState/running": Means(InstanceState.RUNNING, Billing.FULL),
        "PowerState/stopping": Means(InstanceState.STOPPING, Billing.FULL),
        "PowerState/stopped": Means(InstanceState.STOPPED, Billing.FULL),
        "PowerState/deallocating": Means(InstanceState.STOPPING, Billing.FULL),
        "PowerState/deallocated": Means(InstanceState.STOPPED, Billing.STORAGE),
        "PowerState/unknown": Means(InstanceState.UNKNOWN, Billing.UNKNOWN),
        "ProvisioningState/Creating": Means(InstanceState.PROVISIONING, Billing.STORAGE),
        "ProvisioningState/Failed": Means(InstanceState.ERROR, Billing.UNKNOWN),
        "ProvisioningState/Deleting": Means(InstanceState.TERMINATING, Billing.UNKNOWN),
    }
    price = Money(Decimal("7.346"), "USD")
    many = 5
    known_offer = KnownOffer(SIZE, "A100 PCIe 80 GB", 2, Money(Decimal("7.346"), "USD"))

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        self.restricted: set[str] = set()
        self.next_host = ""
        self.without_address: set[str] = set()

    # -- rows ----------------------------------------------------------------------------------------------------------

    def row(self, number: int) -> Row:
        return self.machine(f"train-{number}", SIZE)

    def machine(self, name: str, size: str) -> Row:
        row: Row = {
            # As Azure now and then writes it.
            "id": f"{ROOT}/resourceGroups/{GROUP.upper()}/providers/Microsoft.Compute/virtualMachines/{name}",
            "name": name,
            "type": "Microsoft.Compute/virtualMachines",
            "location": LOCATION,
            "tags": {"team": "ml"},
            "properties": {
                "vmId": "44444444-4444-4444-4444-444444444444",
                "provisioningState": "Succeeded",
                "timeCreated": "2026-11-01T10:00:00.1234567+00:00",
                "hardwareProfile": {"vmSize": size},
                "priority": "Regular",
                "osProfile": {"computerName": name, "adminUsername": "azureuser", "customData": PLANTED},
                "storageProfile": {"osDisk": {"createOption": "FromImage", "diskSizeGB": 128}, "dataDisks": []},
            },
        }
        self.put_state(row, "PowerState/running")
        return row

    def id_of(self, row: Row) -> str:
        return f"{GROUP}/{row['name']}"

    def ref(self, row: Row) -> Ref:
        return Ref(self.id_of(row), LOCATION)

    def put_state(self, row: Row, raw_state: str) -> None:
        kind, _, word = raw_state.partition("/")
        provisioning = word if kind == "ProvisioningState" else "Succeeded"
        statuses = [{"code": f"ProvisioningState/{provisioning.lower()}", "level": "Info"}]
        if kind != "ProvisioningState":
            statuses.append({"code": raw_state if kind == "PowerState" else f"PowerState/{raw_state}", "level": "Info"})
        row["properties"] |= {"provisioningState": provisioning, "instanceView": {"statuses": statuses}}

    def leave_out(self, row: Row, what: str) -> None:
        if what == "address":
            self.without_address.add(row["name"])
        else:
            row["properties"]["hardwareProfile"]["vmSize"] = {
                "price": "Standard_ND96isr_H100_v5",
                "gpu": "Standard_D8s_v5",
            }[what]

    def image(self, number: int) -> Row:
        return {
            "id": f"{ROOT}/resourceGroups/{GROUP}/providers/Microsoft.Compute/images/vision-{number}",
            "name": f"vision-{number}",
            "location": LOCATION,
            "properties": {
                "provisioningState": "Succeeded",
                "storageProfile": {"osDisk": {"osType": "Linux", "osState": "Generalized", "diskSizeGB": 128}},
            },
        }

    def image_id_of(self, row: Row) -> str:
        return str(row["id"])

    # -- the API's ways ------------------------------------------------------------------------------------------------

    def handle(self, request: Request) -> Answer | None:
        return self.login(request) if request.path.endswith("/oauth2/v2.0/token") else super().handle(request)

    def login(self, request: Request) -> Answer:
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        assert request.path == f"/{TENANT}/oauth2/v2.0/token"
        assert form["scope"] == f"{self.url}/.default"
        if (form["client_id"], form["client_secret"]) != (CLIENT, self.options["client_secret"]):
            text = "AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 5"
            return told({"error": "invalid_client", "error_description": text}, 401)
        return told({"token_type": "Bearer", "expires_in": 3599, "access_token": "eyJ.example"})

    def authorized(self, request: Request) -> bool:
        return request.headers.get("Authorization") == "Bearer eyJ.example" and "api-version" in request.query

    def problem(self, status: int, message: str) -> Answer:
        return told({"error": {"code": CODES.get(status, "InternalServerError"), "message": message}}, status)

    def page(self, request: Request, model: str, rows: list[Row]) -> Answer:
        for row in rows if self.held_to_description and model else ():
            check(model, row)
        start = int(request.query.get("$skiptoken") or 0)
        if start + PAGE >= len(rows):
            return told({"value": rows[start:]})
        more = "&".join(f"{key}={value}" for key, value in request.query.items() if key != "$skiptoken")
        link = f"{self.next_host or self.url}{request.path}?{more}&$skiptoken={start + PAGE}"
        return told({"value": rows[start : start + PAGE], "nextLink": link})

    # -- answers -------------------------------------------------------------------------------------------------------

    @route("GET", f"{COMPUTE}/virtualMachines", list_act)
    def listing(self, request: Request) -> Answer:
        """Either what machines are, or how they are; "$expand" is for sets of machines alone."""
        assert "$expand" not in request.query
        halves = [self.half(row, states="statusOnly" in request.query) for row in self.machines.values()]
        return self.page(request, "VirtualMachine", halves)

    def half(self, row: Row, *, states: bool) -> Row:
        told = {name: value for name, value in row["properties"].items() if (name == "instanceView") is states}
        return {**row, "properties": told}

    @route("GET", GROUPED, "find")
    def find(self, request: Request, group: str, name: str) -> Answer:
        row = self.machines.get(f"{group.lower()}/{name}")
        return told(row) if row else self.missing(name)

    def missing(self, name: str) -> Answer:
        return self.problem(404, f"The Resource 'Microsoft.Compute/virtualMachines/{name}' was not found.")

    @route("POST", f"{GROUPED}/start", "start")
    def starting(self, request: Request, group: str, name: str) -> Answer:
        return self.moved(group, name, "PowerState/running")

    @route("POST", f"{GROUPED}/deallocate", "stop")
    def deallocating(self, request: Request, group: str, name: str) -> Answer:
        return self.moved(group, name, "PowerState/deallocated")

    @route("POST", f"{GROUPED}/restart", "reboot")
    def restarting(self, request: Request, group: str, name: str) -> Answer:
        return self.moved(group, name, "PowerState/running")

    def moved(self, group: str, name: str, becomes: str) -> Answer:
        row = self.machines.get(f"{group.lower()}/{name}")
        if row is None:
            return self.missing(name)
        self.put_state(row, becomes)
        return told(None, 202)

    @route("DELETE", GROUPED, "terminate")
    def deletion(self, request: Request, group: str, name: str) -> Answer:
        """204 for what is not there, as Azure says it."""
        return told(None, 202 if self.machines.pop(f"{group.lower()}/{name}", None) else 204)

    def order(self) -> CreateSpec:
        image = "Canonical:ubuntu-24_04-lts:server:latest"
        key = "ssh-ed25519 AAAA alice"
        return CreateSpec(name="train", offer_id=SIZE, region=LOCATION, image_id=image, disk_gb=256, ssh_public_key=key)

    def sell_out(self) -> None:
        self.sold_out = True

    @route("PUT", GROUPED, "create")
    def create(self, request: Request, group: str, name: str) -> Answer:
        order = request.json
        check("VirtualMachine", order)
        assert request.headers["If-None-Match"] == "*"
        if any(row["name"] == name for row in self.machines.values()):
            return self.problem(412, "The resource exists already.")
        size = order["properties"]["hardwareProfile"]["vmSize"]
        if self.sold_out:
            error = {"code": "SkuNotAvailable", "message": f"The requested size {size} is not available."}
            return told({"error": error}, 409)
        if not size.startswith("Standard_"):
            return self.problem(400, f"The value {size} provided for the VM size is not valid.")
        row = self.machine(name, size) | {"tags": order["tags"]}
        row["properties"]["priority"] = order["properties"]["priority"]
        return told(self.add(row), 201)

    @route("GET", f"{COMPUTE}/locations/{{}}/vmSizes", "sizes")
    def sizes(self, request: Request, location: str) -> Answer:
        rows = [{"name": SIZE.upper(), "numberOfCores": 48, "memoryInMB": 450560}]
        return self.page(request, "VirtualMachineSize", rows)

    @route("GET", f"{COMPUTE}/skus", "offers")
    def skus(self, request: Request) -> Answer:
        assert request.query["$filter"] == f"location eq '{LOCATION}'"
        rows = [self.sku(SIZE, "2"), self.sku("Standard_NC999_B300_v9", "4"), self.sku("Standard_D8s_v5", "0")]
        return self.page(request, "ResourceSku", [*rows, {"resourceType": "disks", "name": "Premium_LRS"}])

    def sku(self, size: str, gpus: str) -> Row:
        told = {"vCPUs": "48", "MemoryGB": "440", "GPUs": gpus, "LowPriorityCapable": str(size == SIZE)}
        restrictions = (
            [{"type": "Location", "reasonCode": "NotAvailableForSubscription"}] if size in self.restricted else []
        )
        capabilities = [{"name": name, "value": value} for name, value in told.items()]
        row = {"resourceType": "virtualMachines", "name": size, "locations": [LOCATION]}
        return {**row, "capabilities": capabilities, "restrictions": restrictions}

    @route("GET", f"{COMPUTE}/images", "images")
    def pictures(self, request: Request) -> Answer:
        return self.page(request, "Image", list(self.images.values()))

    @route("GET", f"{NETWORK}/networkInterfaces", "interfaces")
    def interfaces(self, request: Request) -> Answer:
        rows = [self.interface(row) for row in self.machines.values() if row["name"] not in self.without_address]
        return self.page(request, "", rows)

    def interface(self, machine: Row) -> Row:
        public = {"id": f"{NETWORK}/publicIPAddresses/{machine['name']}".upper()}
        inner: dict[str, Any] = {"privateIPAddress": "10.0.0.4", "publicIPAddress": public}
        return {"properties": {"virtualMachine": {"id": machine["id"]}, "ipConfigurations": [{"properties": inner}]}}

    @route("GET", f"{NETWORK}/publicIPAddresses", "addresses")
    def addresses(self, request: Request) -> Answer:
        names = [row["name"] for row in self.machines.values()]
        rows = [
            {"id": f"{NETWORK}/publicIPAddresses/{name}", "properties": {"ipAddress": "203.0.113.9"}} for name in names
        ]
        return self.page(request, "", rows)


FAKE = AzureFake
