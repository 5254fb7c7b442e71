"""Alibaba Cloud ECS, API 2014-05-26: what Alibaba's own client sends and understands; the signature is worked out anew."""

from __future__ import annotations

import hashlib
import hmac
import re
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from tests.fleet.providers.fakes.base import PLANTED, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

REGION, TYPE = "cn-hangzhou", "ecs.gn7i-c16g1.4xlarge"
SIGNED = re.compile(r"ACS3-HMAC-SHA256 Credential=(\w+),SignedHeaders=([\w;-]+),Signature=(\w+)")
CODES = {
    400: (400, "InvalidParameter"),
    401: (404, "InvalidAccessKeyId.NotFound"),
    403: (403, "Forbidden.RAM"),
    404: (404, "InvalidInstanceId.NotFound"),
    409: (403, "IncorrectInstanceStatus"),
    422: (400, "InvalidParameter"),
    429: (400, "Throttling.User"),
}
PAGE = 2


def act_of(request: Request) -> str:
    if "DryRun" in request.query:
        return "dry_run"
    return "find" if "InstanceIds" in request.query else "list"


class AlibabaFake(Fake):
    described_by = None
    variable = "ALIBABA_ENDPOINT_URL"
    options = {
        "access_key_id": "LTAI0example",
        "access_key_secret": "SECRET-alibaba-0123456789",
        "regions": REGION,
        "network": f"{REGION} vsw-bp1 sg-bp1",
    }
    states = {
        "Pending": Means(InstanceState.PROVISIONING, Billing.FULL),
        "Starting": Means(InstanceState.STARTING, Billing.FULL),
        "Running": Means(InstanceState.RUNNING, Billing.FULL),
        "Stopping": Means(InstanceState.STOPPING, Billing.FULL),
        "Stopped/StopCharging": Means(InstanceState.STOPPED, Billing.STORAGE),
        "Stopped/KeepCharging": Means(InstanceState.STOPPED, Billing.FULL),
        "Stopped/Not-applicable": Means(InstanceState.STOPPED, Billing.FULL),
        "Stopped/invented-tomorrow": Means(InstanceState.STOPPED, Billing.UNKNOWN),
    }
    price = Money(Decimal("22.5"), "CNY")
    many = 5
    known_offer = KnownOffer(TYPE, "A10", 2, Money(Decimal("22.5"), "CNY"))

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        self.priced = True
        self.sells = {TYPE: "Available", "ecs.gn6v-c8g1.2xlarge": "SoldOut"}
        self.events: list[Row] = []
        self.keys: dict[str, str] = {}
        self.ordered: dict[str, str] = {}
        self.may_list = True

    # -- rows ----------------------------------------------------------------------------------------------------------

    def row(self, number: int) -> Row:
        row: Row = {
            "InstanceId": f"i-bp{number:03}",
            "InstanceName": f"train {number}",
            "InstanceType": TYPE,
            "GPUAmount": 2,
            "GPUSpec": "NVIDIA A10",
            "Cpu": 16,
            "Memory": 61440,
            "InstanceChargeType": "PostPaid",
            "SpotStrategy": "NoSpot",
            "RegionId": REGION,
            "ZoneId": f"{REGION}-j",
            "PublicIpAddress": {"IpAddress": ["203.0.113.7"]},
            "EipAddress": {"IpAddress": ""},
            "ImageId": "ubuntu_22_04_x64",
            "CreationTime": "2026-11-01T10:00Z",
            "StartTime": "2026-11-01T10:01Z",
            "ExpiredTime": "2099-12-31T15:59Z",
            "AutoReleaseTime": "",
            "OperationLocks": {"LockReason": []},
            "Tags": {"Tag": [{"TagKey": "team", "TagValue": "ml"}]},
            "Description": PLANTED,
        }
        self.put_state(row, "Running")
        return row

    def id_of(self, row: Row) -> str:
        return str(row["InstanceId"])

    def ref(self, row: Row) -> Ref:
        return Ref(self.id_of(row), REGION)

    def put_state(self, row: Row, raw_state: str) -> None:
        status, _, mode = raw_state.partition("/")
        row |= {"Status": status, "StoppedMode": mode or "Not-applicable"}

    def leave_out(self, row: Row, what: str) -> None:
        if what == "address":
            row["PublicIpAddress"] = {"IpAddress": []}
        elif what == "price":
            self.priced = False
        else:
            row |= {"GPUAmount": 0, "GPUSpec": "", "InstanceType": "ecs.g7.large"}

    def image(self, number: int) -> Row:
        return {
            "ImageId": f"m-bp{number:03}",
            "ImageName": f"vision {number}",
            "Status": "Available",
            "Size": 40,
            "CreationTime": "2026-11-01T10:00:00Z",
        }

    def image_id_of(self, row: Row) -> str:
        return str(row["ImageId"])

    def settle(self) -> None:
        for row in self.images.values():
            row["Status"] = "Available"

    # -- the API's ways ------------------------------------------------------------------------------------------------

    def target(self, request: Request) -> tuple[str, str]:
        return request.method, f"/{request.headers['x-acs-action']}"

    def authorized(self, request: Request) -> bool:
        signed = SIGNED.fullmatch(request.headers.get("Authorization", ""))
        if signed is None or signed[1] != self.options["access_key_id"]:
            return False
        return signed[3] == self.signature(request, signed[2])

    def signature(self, request: Request, names: str) -> str:
        query = "&".join(f"{key}={quote(value, safe='~')}" for key, value in sorted(request.query.items()))
        headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in names.split(";"))
        digest = hashlib.sha256(request.body).hexdigest()
        canonical = f"{request.method}\n/\n{query}\n{headers}\n{names}\n{digest}"
        told = "ACS3-HMAC-SHA256\n" + hashlib.sha256(canonical.encode()).hexdigest()
        return hmac.new(self.options["access_key_secret"].encode(), told.encode(), hashlib.sha256).hexdigest()

    def problem(self, status: int, message: str) -> Answer:
        http, code = CODES.get(status, (status, "InternalError"))
        return self.says(http, code, message)

    def says(self, status: int, code: str, message: str) -> Answer:
        return told({"RequestId": "0E4B", "HostId": "ecs.aliyuncs.com", "Code": code, "Message": message}, status)

    def done(self, **body: Any) -> Answer:
        return told({"RequestId": "0E4B", **body})

    def paged(self, request: Request, rows: list[Row], outer: str, inner: str) -> Answer:
        start = int(request.query.get("NextToken") or 0)
        more = str(start + PAGE) if start + PAGE < len(rows) else ""
        return self.done(**{outer: {inner: rows[start : start + PAGE]}, "NextToken": more})

    def missing(self, request: Request) -> Answer | None:
        if request.query["InstanceId"] in self.machines:
            return None
        return self.problem(404, "The specified InstanceId does not exist.")

    # -- actions -------------------------------------------------------------------------------------------------------

    @route("POST", "/DescribeInstances", act_of)
    def listing(self, request: Request) -> Answer:
        if "DryRun" in request.query:
            dry = self.says(400, "DryRunOperation", "Request validation has been passed with DryRun flag set.")
            return (
                dry if self.may_list else self.problem(403, "User not authorized to operate on the specified resource.")
            )
        rows = list(self.machines.values()) if self.may_list else []
        if "InstanceIds" in request.query:
            rows = [row for row in rows if f'"{row["InstanceId"]}"' in request.query["InstanceIds"]]
        return self.paged(request, rows, "Instances", "Instance")

    @route("POST", "/StartInstance", "start")
    def starting(self, request: Request) -> Answer:
        return self.moved(request, "Stopped", "Running")

    @route("POST", "/StopInstance", "stop")
    def stopping(self, request: Request) -> Answer:
        return self.moved(request, "Running", f"Stopped/{request.query.get('StoppedMode', 'KeepCharging')}")

    @route("POST", "/RebootInstance", "reboot")
    def rebooting(self, request: Request) -> Answer:
        return self.moved(request, "Running", "Running")

    def moved(self, request: Request, was: str, becomes: str) -> Answer:
        if gone := self.missing(request):
            return gone
        row = self.machines[request.query["InstanceId"]]
        if row["Status"] != was:
            return self.problem(409, "The current status of the resource does not support this operation.")
        self.put_state(row, becomes)
        return self.done()

    @route("POST", "/DeleteInstance", "terminate")
    def deletion(self, request: Request) -> Answer:
        if gone := self.missing(request):
            return gone
        if (
            self.machines[request.query["InstanceId"]]["Status"] == "Running"
            and request.query.get("Force", "").lower() != "true"
        ):
            return self.problem(409, "The instance runs.")
        del self.machines[request.query["InstanceId"]]
        return self.done()

    def order(self) -> CreateSpec:
        return CreateSpec(name="train", offer_id=TYPE, region=REGION, gpu_count=2, image_id="m-bp1", disk_gb=200)

    def sell_out(self) -> None:
        self.sold_out = True

    @route("POST", "/ImportKeyPair", "key")
    def key(self, request: Request) -> Answer:
        if request.query["KeyPairName"] in self.keys:
            return self.says(400, "KeyPair.AlreadyExist", "The key pair already exist.")
        self.keys[request.query["KeyPairName"]] = request.query["PublicKeyBody"]
        return self.done(KeyPairName=request.query["KeyPairName"])

    @route("POST", "/RunInstances", "create")
    def create(self, request: Request) -> Answer:
        asked = request.query
        if made := self.ordered.get(asked["ClientToken"]):
            return self.done(InstanceIdSets={"InstanceIdSet": [made]})
        if self.sold_out:
            return self.says(
                403, "OperationDenied.NoStock", "The requested resource is sold out in the specified zone."
            )
        if asked["InstanceType"] not in self.sells:
            return self.says(404, "InvalidInstanceType.NotFound", "The specified InstanceType does not exist.")
        tags = [
            {"TagKey": asked[name], "TagValue": asked[name[:-3] + "Value"]} for name in asked if name.endswith(".Key")
        ]
        row = self.row(self.number()) | {"InstanceName": asked["InstanceName"], "Tags": {"Tag": tags}}
        row["SpotStrategy"] = asked["SpotStrategy"]
        self.ordered[asked["ClientToken"]] = self.add(row)["InstanceId"]
        return self.done(InstanceIdSets={"InstanceIdSet": [row["InstanceId"]]})

    @route("POST", "/DescribeInstanceTypes", "offers")
    def kinds(self, request: Request) -> Answer:
        size = {"GPUAmount": 2, "GPUSpec": "NVIDIA A10", "GPUMemorySize": 24.0, "CpuCoreCount": 16, "MemorySize": 60.0}
        return self.paged(
            request,
            [{**size, "InstanceTypeId": kind, "InstanceBandwidthRx": 16_000_000} for kind in self.sells],
            "InstanceTypes",
            "InstanceType",
        )

    @route("POST", "/DescribeAvailableResource", "stock")
    def stock(self, request: Request) -> Answer:
        kinds = [{"Value": kind, "Status": status} for kind, status in self.sells.items()]
        resources = [{"Type": "InstanceType", "SupportedResources": {"SupportedResource": kinds}}]
        zones = [{"ZoneId": f"{REGION}-j", "AvailableResources": {"AvailableResource": resources}}]
        return self.done(AvailableZones={"AvailableZone": zones})

    @route("POST", "/DescribePrice", "price")
    def cost(self, request: Request) -> Answer:
        if not self.priced or not request.query["InstanceType"].startswith("ecs.gn"):
            return self.says(400, "PricePlanResultNotFound", "No price plan.")
        factor = Decimal("0.2") if request.query["SpotStrategy"] == "SpotAsPriceGo" else 1
        parts = [
            {"Resource": "instanceType", "TradePrice": float(Decimal("22.5") * factor)},
            {"Resource": "systemDisk", "TradePrice": 0.05},
        ]
        return self.done(PriceInfo={"Price": {"Currency": "CNY", "DetailInfos": {"DetailInfo": parts}}})

    @route("POST", "/DescribeImages", "images")
    def pictures(self, request: Request) -> Answer:
        assert request.query["ImageOwnerAlias"] == "self"
        rows, page = list(self.images.values()), int(request.query["PageNumber"])
        return self.done(Images={"Image": rows[PAGE * (page - 1) : PAGE * page]}, TotalCount=len(rows))

    @route("POST", "/CreateImage", "save_image")
    def save(self, request: Request) -> Answer:
        if gone := self.missing(request):
            return gone
        row = self.image(self.number()) | {"ImageName": request.query["ImageName"], "Status": "Creating"}
        self.images[row["ImageId"]] = row
        return self.done(ImageId=row["ImageId"])

    @route("POST", "/DescribeInstanceHistoryEvents", "notices")
    def history(self, request: Request) -> Answer:
        return self.paged(request, self.events, "InstanceSystemEventSet", "InstanceSystemEventType")


FAKE = AlibabaFake
