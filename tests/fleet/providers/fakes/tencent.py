"""Tencent Cloud CVM, API 2017-03-12: what Tencent's own client sends; the signature is worked out anew. Refusals come with status 200."""

from __future__ import annotations

import hashlib
import hmac
import re
from decimal import Decimal
from typing import Any

from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from tests.fleet.providers.fakes.base import PLANTED, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

REGION, ZONE, TYPE = "ap-guangzhou", "ap-guangzhou-6", "GN7.5XLARGE80"
SIGNED = re.compile(
    r"TC3-HMAC-SHA256 Credential=(\w+)/([\d-]+)/cvm/tc3_request, SignedHeaders=content-type;host, Signature=(\w+)"
)
CODES = {
    400: "InvalidParameterValue",
    401: "AuthFailure.SecretIdNotFound",
    403: "AuthFailure.UnauthorizedOperation",
    404: "InvalidInstanceId.NotFound",
    409: "InvalidInstanceState",
    422: "InvalidParameterValue",
    429: "RequestLimitExceeded",
}


def listing_act(request: Request) -> str:
    return "find" if "InstanceIds" in request.json else "list"


class TencentFake(Fake):
    described_by = None
    variable = "TENCENT_ENDPOINT_URL"
    options = {
        "secret_id": "AKIDexample",
        "secret_key": "SECRET-tencent-0123456789",
        "regions": REGION,
        "currency": "CNY",
    }
    states = {
        "PENDING": Means(InstanceState.PROVISIONING, Billing.FULL),
        "LAUNCH_FAILED": Means(InstanceState.ERROR, Billing.NONE),
        "RUNNING": Means(InstanceState.RUNNING, Billing.FULL),
        "STARTING": Means(InstanceState.STARTING, Billing.FULL),
        "STOPPING": Means(InstanceState.STOPPING, Billing.FULL),
        "REBOOTING": Means(InstanceState.STARTING, Billing.FULL),
        "STOPPED/STOP_CHARGING": Means(InstanceState.STOPPED, Billing.STORAGE),
        "STOPPED/KEEP_CHARGING": Means(InstanceState.STOPPED, Billing.FULL),
        "STOPPED/NOT_APPLICABLE": Means(InstanceState.STOPPED, Billing.FULL),
        "STOPPED/INVENTED": Means(InstanceState.STOPPED, Billing.UNKNOWN),
        "SHUTDOWN": Means(InstanceState.TERMINATING, Billing.UNKNOWN),
        "TERMINATING": Means(InstanceState.TERMINATING, Billing.UNKNOWN),
    }
    price = Money(Decimal("8.68"), "CNY")
    many = 250
    known_offer = KnownOffer(f"{ZONE}/{TYPE}", "T4", 1, Money(Decimal("8.68"), "CNY"))

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        self.priced = True
        self.keys: dict[str, str] = {}
        self.ordered: dict[str, str] = {}
        self.tasks: list[Row] = []
        self.bin: set[str] = set()

    # -- rows ----------------------------------------------------------------------------------------------------------

    def row(self, number: int) -> Row:
        row: Row = {
            "InstanceId": f"ins-{number:03}",
            "InstanceName": f"train {number}",
            "InstanceType": TYPE,
            "CPU": 20,
            "Memory": 80,
            "GPUInfo": {"GPUCount": 1, "GPUId": ["00000000:00:08.0"], "GPUType": "NVIDIA T4"},
            "InstanceChargeType": "POSTPAID_BY_HOUR",
            "RestrictState": "NORMAL",
            "IsolatedSource": "NOTISOLATED",
            "Placement": {"Zone": ZONE, "ProjectId": 0},
            "SystemDisk": {"DiskType": "CLOUD_BSSD", "DiskSize": 50},
            "DataDisks": [{"DiskSize": 200}],
            "PrivateIpAddresses": ["10.0.0.4"],
            "PublicIpAddresses": ["203.0.113.7"],
            "ImageId": "img-1",
            "CreatedTime": "2026-11-01T10:00:00Z",
            "ExpiredTime": None,
            "LatestOperationState": "SUCCESS",
            "DefaultLoginUser": "ubuntu",
            "DefaultLoginPort": 22,
            "Tags": [{"Key": "team", "Value": "ml"}],
            "LoginSettings": {"Password": PLANTED},
        }
        self.put_state(row, "RUNNING")
        return row

    def id_of(self, row: Row) -> str:
        return str(row["InstanceId"])

    def ref(self, row: Row) -> Ref:
        return Ref(self.id_of(row), REGION)

    def put_state(self, row: Row, raw_state: str) -> None:
        state, _, mode = raw_state.partition("/")
        row |= {"InstanceState": state, "StopChargingMode": mode or "NOT_APPLICABLE"}

    def leave_out(self, row: Row, what: str) -> None:
        if what == "address":
            row |= {"PublicIpAddresses": None, "PrivateIpAddresses": []}
        elif what == "price":
            self.priced = False
        else:
            row.pop("GPUInfo")

    def image(self, number: int) -> Row:
        name = {"ImageId": f"img-{number:03}", "ImageName": f"vision {number}", "ImageState": "NORMAL"}
        return {**name, "ImageSize": 50, "CreatedTime": "2026-11-01T10:00:00Z"}

    def image_id_of(self, row: Row) -> str:
        return str(row["ImageId"])

    def settle(self) -> None:
        """Hours pass: the recycle bin is emptied."""
        for row in self.images.values():
            row["ImageState"] = "NORMAL"
        for ref in self.bin:
            self.machines.pop(ref, None)

    # -- the API's ways ------------------------------------------------------------------------------------------------

    def target(self, request: Request) -> tuple[str, str]:
        return request.method, f"/{request.headers['X-TC-Action']}"

    def authorized(self, request: Request) -> bool:
        signed = SIGNED.fullmatch(request.headers.get("Authorization", ""))
        if signed is None or signed[1] != self.options["secret_id"] or request.headers["X-TC-Region"] != REGION:
            return False
        return signed[3] == self.signature(request, signed[2])

    def signature(self, request: Request, date: str) -> str:
        headers = "".join(f"{name}:{request.headers[name]}\n" for name in ("content-type", "host"))
        digest = hashlib.sha256(request.body).hexdigest()
        canonical = hashlib.sha256(f"POST\n/\n\n{headers}\ncontent-type;host\n{digest}".encode()).hexdigest()
        text = f"TC3-HMAC-SHA256\n{request.headers['X-TC-Timestamp']}\n{date}/cvm/tc3_request\n{canonical}"
        key = f"TC3{self.options['secret_key']}".encode()
        for word in (date, "cvm", "tc3_request"):
            key = hmac.new(key, word.encode(), hashlib.sha256).digest()
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def problem(self, status: int, message: str) -> Answer:
        return self.says(CODES.get(status, "InternalError"), message, 429 if status == 429 else 200)

    def says(self, code: str, message: str, status: int = 200) -> Answer:
        return told({"Response": {"Error": {"Code": code, "Message": message}, "RequestId": "0E4B"}}, status)

    def done(self, **body: Any) -> Answer:
        return told({"Response": {"RequestId": "0E4B", **body}})

    def paged(self, request: Request, rows: list[Row], name: str) -> Answer:
        start, limit = request.json.get("Offset", 0), request.json.get("Limit", 20)
        assert limit <= 100
        return self.done(**{name: rows[start : start + limit], "TotalCount": len(rows)})

    def found(self, request: Request) -> Row | None:
        return self.machines.get(request.json["InstanceIds"][0])

    def missing(self) -> Answer:
        return self.problem(404, "实例不存在。")

    # -- actions -------------------------------------------------------------------------------------------------------

    @route("POST", "/DescribeInstances", listing_act)
    def listing(self, request: Request) -> Answer:
        wanted = request.json.get("InstanceIds")
        rows = [row for row in self.machines.values() if wanted is None or row["InstanceId"] in wanted]
        return self.paged(request, rows, "InstanceSet")

    @route("POST", "/StartInstances", "start")
    def starting(self, request: Request) -> Answer:
        return self.moved(request, "STOPPED", "RUNNING")

    @route("POST", "/StopInstances", "stop")
    def stopping(self, request: Request) -> Answer:
        return self.moved(request, "RUNNING", f"STOPPED/{request.json.get('StoppedMode', 'KEEP_CHARGING')}")

    @route("POST", "/RebootInstances", "reboot")
    def rebooting(self, request: Request) -> Answer:
        return self.moved(request, "RUNNING", "RUNNING")

    def moved(self, request: Request, was: str, becomes: str) -> Answer:
        row = self.found(request)
        if row is None:
            return self.missing()
        if row["InstanceState"] != was:
            return self.says("UnsupportedOperation.InstanceStateStopped", f"The instance is {row['InstanceState']}.")
        self.put_state(row, becomes)
        return self.done()

    @route("POST", "/TerminateInstances", "terminate")
    def deletion(self, request: Request) -> Answer:
        row = self.found(request)
        if row is None:
            return self.missing()
        if row["InstanceState"] == "SHUTDOWN":
            del self.machines[row["InstanceId"]]
        else:
            self.put_state(row, "SHUTDOWN")
            row["IsolatedSource"] = "MANMADE"
            self.bin.add(row["InstanceId"])
        return self.done()

    def order(self) -> CreateSpec:
        offer = f"{ZONE}/{TYPE}"
        return CreateSpec(name="train", offer_id=offer, region=REGION, image_id="img-1", disk_gb=200)

    def sell_out(self) -> None:
        self.sold_out = True

    @route("POST", "/DescribeKeyPairs", "keys")
    def key_pairs(self, request: Request) -> Answer:
        (name,) = request.json["Filters"][0]["Values"]
        return self.done(KeyPairSet=[{"KeyId": f"skey-{name}"}] if name in self.keys else [], TotalCount=len(self.keys))

    @route("POST", "/ImportKeyPair", "key")
    def key(self, request: Request) -> Answer:
        name = request.json["KeyName"]
        assert len(name) <= 25
        self.keys[name] = request.json["PublicKey"]
        return self.done(KeyId=f"skey-{name}")

    @route("POST", "/RunInstances", "create")
    def create(self, request: Request) -> Answer:
        asked = request.json
        if made := self.ordered.get(asked["ClientToken"]):
            return self.done(InstanceIdSet=[made])
        if self.sold_out:
            return self.says("ResourcesSoldOut.SpecifiedInstanceType", "The specified instance type is sold out.")
        if asked["InstanceType"] != TYPE:
            return self.says("InvalidParameterValue.InstanceTypeNotFound", "No such type.")
        row = self.row(self.number()) | {"InstanceName": asked["InstanceName"], "Placement": asked["Placement"]}
        row |= {"Tags": asked["TagSpecification"][0]["Tags"], "InstanceChargeType": asked["InstanceChargeType"]}
        made = self.ordered[asked["ClientToken"]] = self.add(row)["InstanceId"]
        return self.done(InstanceIdSet=[made])

    @route("POST", "/DescribeZoneInstanceConfigInfos", "offers")
    def sold(self, request: Request) -> Answer:
        filters = {row["Name"]: row["Values"] for row in request.json["Filters"]}
        assert all(len(values) <= 100 for values in filters.values())
        (charge,) = filters["instance-charge-type"]
        rows = [self.sale(TYPE, charge, 1), self.sale("S6.LARGE8", charge, 0)]
        kinds = filters.get("instance-type", [TYPE, "S6.LARGE8"])
        return self.done(InstanceTypeQuotaSet=[row for row in rows if row["InstanceType"] in kinds])

    def sale(self, kind: str, charge: str, gpus: int) -> Row:
        cost = {
            "UnitPrice": 11.2,
            "UnitPriceDiscount": 8.68 if charge == "POSTPAID_BY_HOUR" else 1.74,
            "ChargeUnit": "HOUR",
        }
        return {
            "Zone": ZONE,
            "InstanceType": kind,
            "InstanceChargeType": charge,
            "GpuCount": gpus,
            "Gpu": gpus,
            "Externals": {"GPUDesc": "NVIDIA T4"},
            "TypeName": "GPU计算型GN7",
            "Cpu": 20,
            "Memory": 80,
            "InstanceBandwidth": 10.0,
            "Status": "SELL",
            "StatusCategory": "NormalStock",
            "Price": cost if self.priced else None,
        }

    @route("POST", "/DescribeImages", "images")
    def pictures(self, request: Request) -> Answer:
        assert request.json["Filters"] == [{"Name": "image-type", "Values": ["PRIVATE_IMAGE"]}]
        return self.paged(request, list(self.images.values()), "ImageSet")

    @route("POST", "/CreateImage", "save_image")
    def save(self, request: Request) -> Answer:
        if request.json["InstanceId"] not in self.machines:
            return self.missing()
        row = self.image(self.number()) | {"ImageName": request.json["ImageName"], "ImageState": "CREATING"}
        self.images[row["ImageId"]] = row
        return self.done(ImageId=row["ImageId"])

    @route("POST", "/DescribeTaskInfo", "notices")
    def repairs(self, request: Request) -> Answer:
        return self.paged(request, self.tasks, "RepairTaskInfoSet")


FAKE = TencentFake
