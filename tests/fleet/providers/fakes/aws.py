"""Amazon EC2: a moto server keeps the machines, and a gate before it answers badly when a test says so.

The gate checks signatures, keeps client tokens (which moto does not), and shows states in which moto has no machine. What is asked, and
every answer about machines, is held to Amazon's own description.
"""

from __future__ import annotations

import http.client
from contextlib import ExitStack
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree as ET

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.retries.standard import ExponentialBackoff

from fleet.providers import aws, aws_reads
from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from tests.fleet.moto_peer import moto_server, reset
from tests.fleet.providers.fakes.aws_wire import XML, asked_of, edit, parsed, refusal
from tests.fleet.providers.fakes.base import PATIENCE_SECONDS, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.description import Drift
from tests.fleet.providers.fakes.routes import Route
from tests.fleet.providers.fakes.server import Answer, Request
from tests.fleet.providers.fakes.service2 import service2
from tests.fleet.providers.fakes.troubles import Trouble

REGION, TYPE, IMAGE = "us-east-1", "p4d.24xlarge", "ami-0abcdef1234567890"
KEY, SECRET = "AKIAEXAMPLE000000000", "example/secret+key/0123456789abcdefghijk"
UNPRICED, PLAIN = "p3.16xlarge", "m5.large"
PAGE = 5
# How EC2 says what HTTP means by a status: most refusals are a 400 with a code.
REFUSALS = {
    401: (401, "AuthFailure"),
    403: (403, "UnauthorizedOperation"),
    404: (400, "InvalidInstanceID.NotFound"),
    409: (400, "IncorrectInstanceState"),
    422: (400, "InvalidParameterValue"),
    429: (503, "RequestLimitExceeded"),
    503: (503, "Unavailable"),
}
# moto's own slip, of which the adapter reads nothing: a rootDeviceType "standard".
UNHELD = {"DescribeImages"}
HOP = {"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"}


class AwsFake(Fake):
    described_by = None
    variable = "AWS_ENDPOINT_URL"
    options = {
        "access_key_id": KEY,
        "secret_access_key": SECRET,
        "regions": REGION,
        "prices": f"{TYPE} 21.96",
        "storage_price": "0.08",
    }
    states = {
        "pending": Means(InstanceState.PROVISIONING, Billing.STORAGE),
        "running": Means(InstanceState.RUNNING, Billing.FULL),
        "stopping": Means(InstanceState.STOPPING, Billing.STORAGE),
        "stopped": Means(InstanceState.STOPPED, Billing.STORAGE),
        "shutting-down": Means(InstanceState.TERMINATING, Billing.NONE),
        "terminated": Means(InstanceState.TERMINATED, Billing.NONE),
    }
    price = Money(Decimal("21.96"), "USD")
    many = 2 * PAGE + 1
    measures = True
    known_offer = KnownOffer(TYPE, "A100 SXM 40 GB", 8, Money(Decimal("21.96"), "USD"))

    def __init__(self) -> None:
        self._running = ExitStack()
        self._moto = self._running.enter_context(moto_server())
        self.ec2, self.cloudwatch = (self.client(service) for service in ("ec2", "cloudwatch"))
        super().__init__()
        self.service2 = service2("aws_ec2_service2_trimmed.json")

    def client(self, service: str) -> Any:
        """For the fake's own hands: it speaks to moto past the gate."""
        # Its stubs name every service by a literal.
        make: Any = boto3.client
        return make(
            service,
            region_name=REGION,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            endpoint_url=self._moto,
        )

    def close(self) -> None:
        super().close()
        self._running.close()

    def reset(self) -> None:
        super().reset()
        reset(self._moto)
        self.alive: set[str] = set()
        self.orders: dict[str, Answer] = {}

    def env(self) -> dict[str, str]:
        return {self.variable: self.url, "AWS_EC2_METADATA_DISABLED": "true"}

    def hurry(self, patch: Any) -> None:
        patch.setattr(aws_reads, "PAGE_SIZE", PAGE)
        patch.setattr(ExponentialBackoff, "delay_amount", lambda _self, context: 0.0)

    def lose_patience(self, patch: Any) -> None:
        patch.setattr(aws, "READ_SECONDS", PATIENCE_SECONDS)

    # -- rows: moto keeps the machines; a row has its id, and what is shown otherwise than moto has it -----------------

    def row(self, number: int) -> Row:
        tags = [{"Key": "Name", "Value": f"train-{number}"}, {"Key": "team", "Value": "ml"}]
        answer = self.ec2.run_instances(
            ImageId=IMAGE,
            InstanceType=TYPE,
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        )
        return {"id": answer["Instances"][0]["InstanceId"]}

    def add(self, row: Row) -> Row:
        self.alive.add(self.id_of(row))
        return super().add(row)

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def ref(self, row: Row) -> Ref:
        return Ref(self.id_of(row), REGION)

    def put_state(self, row: Row, raw_state: str) -> None:
        row.pop("state", None)
        if raw_state == "stopped":
            self.ec2.stop_instances(InstanceIds=[row["id"]])
        elif raw_state == "terminated":
            self.ec2.terminate_instances(InstanceIds=[row["id"]])
        elif raw_state != "running":
            row["state"] = raw_state

    def leave_out(self, row: Row, what: str) -> None:
        shown: dict[str, Row] = {"address": {"address": None}, "price": {"type": UNPRICED}, "gpu": {"type": PLAIN}}
        row |= shown[what]

    def image(self, number: int) -> Row:
        return {"id": self.ec2.register_image(Name=f"vision-{number}", RootDeviceName="/dev/sda1")["ImageId"]}

    def measure(self, ref: Ref, gpu_percent: float) -> None:
        dimensions = [{"Name": "InstanceId", "Value": ref.external_id}, {"Name": "index", "Value": "0"}]
        self.cloudwatch.put_metric_data(
            Namespace="CWAgent",
            MetricData=[{"MetricName": "nvidia_smi_utilization_gpu", "Dimensions": dimensions, "Value": gpu_percent}],
        )

    def order(self) -> CreateSpec:
        return CreateSpec(name="train", offer_id=TYPE, gpu_count=8, region=REGION, image_id=IMAGE)

    def sell_out(self) -> None:
        self._troubles.append(Trouble("create", refusal=refusal(500, "InsufficientInstanceCapacity", "None is free.")))

    def problem(self, status: int, message: str) -> Answer:
        told, code = REFUSALS.get(status, (status, "InternalError"))
        return refusal(told, code, message)

    # -- the gate ------------------------------------------------------------------------------------------------------

    def authorized(self, request: Request) -> bool:
        """Whether the key's secret has signed the request: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html"""
        words = request.headers.get("Authorization", "").replace(",", " ").split()
        given = dict(word.split("=", 1) for word in words if "=" in word)
        _, _, region, service, _ = given["Credential"].split("/")
        signed = {name: request.headers[name] for name in given["SignedHeaders"].split(";")}
        again = AWSRequest("POST", self.url + request.path, signed, request.body)
        again.context["timestamp"] = request.headers["X-Amz-Date"]
        judge = SigV4Auth(Credentials(KEY, SECRET), service, region)
        return given["Signature"] == judge.signature(judge.string_to_sign(again, judge.canonical_request(again)), again)

    def _route(self, request: Request) -> tuple[Route, tuple[str, ...]]:
        return Route("POST", (), lambda asked: asked_of(asked).act, "pass_on"), ()

    def _drift_of_request(self, request: Request) -> str:
        asked = asked_of(request)
        if self.service2 is None or not self.service2.knows(asked.action):
            return ""
        try:
            self.service2.check_request(asked.action, asked.form)
        except Drift as drift:
            return f"the adapter's request: {drift}"
        return ""

    def _held(self, request: Request, reply: Answer, *, forced: bool) -> Answer:
        action = asked_of(request).action
        if self.service2 is None or not self.service2.knows(action) or action in UNHELD:
            return reply
        if reply.status != 200 or not self.held_to_description:
            return reply
        try:
            self.service2.check_answer(action, parsed(reply))
        except Drift as drift:
            return self._drifted(f"the fake's answer: {drift}")
        return reply

    def pass_on(self, request: Request) -> Answer:
        if self.alive and not self.machines:
            # A test has taken all machines away.
            reset(self._moto)
        asked = asked_of(request)
        if asked.action == "DescribeInstanceTypeOfferings":
            return self.sold_in_zones(asked.form)
        token = asked.form.get("ClientToken", "")
        if token in self.orders:
            return self.orders[token]
        reply = self.moto_says(request)
        if token and reply.status == 200:
            self.orders[token] = reply
        self.look_again()
        return self.shown(reply) if asked.action == "DescribeInstances" and reply.status == 200 else reply

    def moto_says(self, request: Request) -> Answer:
        line = http.client.HTTPConnection(urlsplit(self._moto).netloc, timeout=30)
        try:
            query = f"?{urlencode(request.query)}" if request.query else ""
            line.request(request.method, request.path + query, request.body, dict(request.headers.items()))
            answer = line.getresponse()
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in HOP}
            return Answer(answer.status, answer.read(), kept)
        finally:
            line.close()

    def sold_in_zones(self, form: dict[str, str]) -> Answer:
        """moto's catalogue, by the wildcards that EC2 has in a filter and moto has not here."""
        wanted = [value for name, value in form.items() if name.startswith("Filter.1.Value.")]
        rows = self.ec2.describe_instance_type_offerings(LocationType=form["LocationType"])["InstanceTypeOfferings"]
        items = [
            "".join(f"<{name[0].lower()}{name[1:]}>{text}</{name[0].lower()}{name[1:]}>" for name, text in row.items())
            for row in rows
            if any(fnmatchcase(row["InstanceType"], pattern) for pattern in wanted)
        ]
        told = "".join(f"<item>{item}</item>" for item in items)
        root = "DescribeInstanceTypeOfferingsResponse"
        body = f"<{root}><instanceTypeOfferingSet>{told}</instanceTypeOfferingSet></{root}>"
        return Answer(200, body.encode(), XML)

    def look_again(self) -> None:
        """`machines` has a row for each that moto has and has not ended."""
        groups = self.ec2.describe_instances()["Reservations"]
        rows = [row for group in groups for row in group["Instances"]]
        self.alive = {row["InstanceId"] for row in rows if row["State"]["Name"] != "terminated"}
        kept = {one: self.machines.get(one, {"id": one}) for one in self.alive}
        self.machines.clear()
        self.machines.update(kept)

    def shown(self, reply: Answer) -> Answer:
        """moto's answer, with the rows that a test had shown otherwise."""
        root = parsed(reply)
        for item in root.iterfind("reservationSet/item/instancesSet/item"):
            edit(item, self.machines.get(item.findtext("instanceId", ""), {}))
        return Answer(reply.status, ET.tostring(root), reply.headers)


FAKE = AwsFake
