"""How EC2 is spoken to and answers: forms go in, XML comes out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from tests.fleet.providers.fakes.base import Row
from tests.fleet.providers.fakes.server import Answer, Request

SPACE = re.compile(r' xmlns="http://ec2\.amazonaws\.com/doc/2016-11-15/?"')
XML = {"Content-Type": "text/xml;charset=UTF-8"}
ACTS = {
    "GetCallerIdentity": "verify",
    "RunInstances": "create",
    "StartInstances": "start",
    "StopInstances": "stop",
    "TerminateInstances": "terminate",
    "RebootInstances": "reboot",
    "CreateImage": "save_image",
    "DescribeInstanceTypeOfferings": "offers",
    "ListMetrics": "metrics",
    "GetMetricData": "metrics",
}


@dataclass(frozen=True)
class Asked:
    """A request in Amazon's terms; `form` is empty where the service speaks another protocol."""

    action: str
    form: dict[str, str]

    @property
    def act(self) -> str:
        if self.action == "DescribeInstances":
            return "find" if "InstanceId.1" in self.form else "list"
        if self.action == "DescribeImages":
            return "images" if "Owner.1" in self.form else "image names"
        return ACTS.get(self.action, self.action)


def edit(item: ET.Element, row: Row) -> None:
    if "state" in row:
        put(item, "instanceState/name", row["state"])
    if "type" in row:
        put(item, "instanceType", row["type"])
    if "address" in row:
        for name in ("ipAddress", "privateIpAddress"):
            for found in item.findall(name):
                item.remove(found)


def put(item: ET.Element, path: str, text: str) -> None:
    found = item.find(path)
    assert found is not None
    found.text = text


def parsed(reply: Answer) -> ET.Element:
    return ET.fromstring(SPACE.sub("", reply.body.decode()))


def asked_of(request: Request) -> Asked:
    """EC2 and STS are asked by forms; CloudWatch names its operation at the end of the path."""
    if request.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
        form = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
        return Asked(form["Action"], form)
    return Asked(request.path.rsplit("/", 1)[-1], {})


def refusal(status: int, code: str, message: str) -> Answer:
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>{code}</Code>'
        f"<Message>{escape(message)}</Message></Error></Errors><RequestID>a1b2</RequestID></Response>"
    )
    return Answer(status, body.encode(), XML)
