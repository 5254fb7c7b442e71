"""RunPod's REST API v2."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from fleet.providers.bills import DAY
from tests.fleet.providers.fakes.base import PLANTED, Billed, Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

H100 = "NVIDIA H100 80GB HBM3"
TITLES = {401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 409: "Conflict"}
ALLOWED = {
    "PROVISIONING": ["stop", "terminate"],
    "STARTING": ["stop", "terminate"],
    "RUNNING": ["stop", "restart", "terminate"],
    "EXITED": ["start", "terminate"],
    "ERROR": ["start", "terminate"],
}
AFTER = {"start": "RUNNING", "stop": "EXITED", "restart": "RUNNING"}
MEMORY_GB = {H100: 80, "NVIDIA GeForce RTX 4090": 24}


AGGREGATED = (
    "podGpuAmount",
    "podCpuAmount",
    "podDiskAmount",
    "serverlessGpuAmount",
    "serverlessCpuAmount",
    "serverlessDiskAmount",
    "serverlessFeeAmount",
    "storageStandardAmount",
    "storageHighPerformanceAmount",
    "endpointAmount",
    "clusterGpuAmount",
    "clusterDiskAmount",
    "clusterNetworkingAmount",
)


def of_whole(one: Billed) -> str:
    """The part of the account's record that holds what a pod's or a volume's own record tells."""
    return "podGpuAmount" if one.machine else "storageStandardAmount" if one.resource else f"{one.word}Amount"


def window(request: Request) -> Row:
    return {"startTime": request.query["startTime"], "endTime": request.query["endTime"]}


def within(bill: list[Billed], request: Request) -> list[Billed]:
    start, end = (datetime.fromisoformat(word) for word in window(request).values())
    return [one for one in bill if start <= one.day < end]


def bucket(one: Billed) -> Row:
    return {"startTime": f"{one.day:%Y-%m-%d}T00:00:00Z", "endTime": f"{one.day + DAY:%Y-%m-%d}T00:00:00Z"}


def parts(one: Billed, words: dict[str, str]) -> Row:
    """A word that the API has no part for is in the total alone."""
    amount = float(one.amount)
    return {
        **dict.fromkeys(words.values(), 0.0),
        "totalAmount": amount,
        **({words[one.word]: amount} if one.word in words else {}),
    }


def summed(records: list[Row], names: tuple[str, ...]) -> Row:
    return {name: sum(record[name] for record in records) for name in names}


def act_of(request: Request) -> str:
    word = str(request.json["action"])
    return "reboot" if word == "restart" else word


class RunPodFake(Fake):
    described_by = "runpod_v2_openapi.json"
    variable = "RUNPOD_ENDPOINT_URL"
    options = {"api_key": "rpa_SECRET0123456789"}
    states = {
        "PROVISIONING": Means(InstanceState.PROVISIONING, Billing.FULL),
        "STARTING": Means(InstanceState.STARTING, Billing.FULL),
        "RUNNING": Means(InstanceState.RUNNING, Billing.FULL),
        "EXITED": Means(InstanceState.STOPPED, Billing.STORAGE),
        "ERROR": Means(InstanceState.ERROR, Billing.STORAGE),
        "TERMINATED": Means(InstanceState.TERMINATED, Billing.NONE),
    }
    price = Money(Decimal("5.98"), "USD")
    always_told = frozenset({"price"})
    measures = True
    known_offer = KnownOffer(f"SECURE:2:{H100}", "H100 SXM", 2, Money(Decimal("5.98"), "USD"))

    def reset(self) -> None:
        super().reset()
        self.sold_out = False
        self.levels = {"EU-RO-1": "HIGH", "US-TX-3": "NONE"}

    def row(self, number: int) -> Row:
        return self.pod(f"pod{number:03}", f"train {number}", {"id": H100, "count": 2}, self.price.amount)

    def pod(self, pod_id: str, name: str, gpu: Row, cost: Decimal) -> Row:
        row: Row = {
            "id": pod_id,
            "name": name,
            "image": "org/image:1",
            "args": "",
            "disk": 50,
            "ports": ["22/tcp"],
            "env": {"JUPYTER_PASSWORD": PLANTED},
            "registry": None,
            "mounts": {"persistent": {"size": 20, "path": "/workspace"}},
            "gpu": gpu,
            "cloud": "SECURE",
            "dataCenterId": "EU-RO-1",
            "cudaVersion": "12.8",
            "template": None,
            "locked": False,
            "globalNetworking": {"enabled": False},
            "createdAt": "2026-11-01T00:00:00Z",
            "startedAt": "2026-11-01T00:02:00Z",
        }
        self.running_cost = {**getattr(self, "running_cost", {}), pod_id: float(cost)}
        self.put_state(row, "RUNNING")
        return row

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def put_state(self, row: Row, raw_state: str) -> None:
        running = raw_state == "RUNNING"
        direct = {"host": "203.0.113.9", "port": 30022, "username": "root", "command": "ssh root@203.0.113.9"}
        proxy = {"host": "ssh.runpod.io", "port": 22, "username": "pod-64411eb2", "command": "ssh …"}
        row |= {
            "status": raw_state,
            "actions": list(ALLOWED.get(raw_state, [])),
            "cost": 0.0 if raw_state in {"EXITED", "TERMINATED"} else self.running_cost[row["id"]],
            "ssh": {"direct": direct if running else None, "proxy": proxy},
            "runtime": self.runtime(row, 12) if running else None,
        }

    def runtime(self, row: Row, gpu_percent: int) -> Row:
        each = {"util": gpu_percent, "memoryUtil": 71}
        return {"uptime": 360, "gpus": [each] * row["gpu"]["count"], "cpu": {"util": 12}, "memory": {"util": 30}}

    def leave_out(self, row: Row, what: str) -> None:
        if what == "address":
            row["ssh"] = {"direct": None, "proxy": None}
        else:
            row.pop({"price": "cost", "gpu": "gpu"}[what])

    def measure(self, ref: Ref, gpu_percent: float) -> None:
        row = self.machines[ref.external_id]
        row["runtime"] = self.runtime(row, int(gpu_percent))

    def problem(self, status: int, message: str) -> Answer:
        body = {"title": TITLES.get(status, "Error"), "status": status, "detail": message}
        return told(body, status, media="application/problem+json")

    def image(self, number: int) -> Row:
        return {
            "id": f"template{number}",
            "name": f"vision {number}",
            "image": "org/image:1",
            "args": "",
            "disk": 50,
            "mounts": {},
            "ports": [],
            "env": {"TOKEN": PLANTED},
            "registry": None,
            "serverless": False,
            "public": False,
            "category": "NVIDIA",
            "startSsh": True,
            "startJupyter": False,
            "allowedCudaVersions": [],
        }

    def order(self) -> CreateSpec:
        return CreateSpec(name="train", offer_id=f"SECURE:2:{H100}", gpu_count=2, image_id="org/image:1", disk_gb=40)

    def sell_out(self) -> None:
        self.sold_out = True

    @route("GET", "/v2/pods", "list")
    def listing(self, request: Request) -> Answer:
        return told({"pods": list(self.machines.values())})

    @route("POST", "/v2/pods", "create")
    def create(self, request: Request) -> Answer:
        order: dict[str, Any] = request.json
        if self.sold_out:
            return self.problem(400, "There are no longer any instances available with the requested specifications.")
        pod = self.pod(f"pod{self.number():03}", order["name"], order["gpu"], Decimal("2.99") * order["gpu"]["count"])
        pod |= {name: order[name] for name in ("cloud", "disk", "image", "args") if name in order}
        return told(self.add(pod), 201)

    @route("GET", "/v2/pods/{}", "find")
    def find(self, request: Request, pod_id: str) -> Answer:
        return told(self.machines[pod_id]) if pod_id in self.machines else self.problem(404, "pod not found")

    @route("POST", "/v2/pods/{}/action", act_of)
    def act(self, request: Request, pod_id: str) -> Answer:
        row, action = self.machines.get(pod_id), request.json["action"]
        if row is None:
            return self.problem(404, "pod not found")
        if action not in row["actions"] or (row["locked"] and action in {"stop", "restart"}):
            return self.problem(409, f"{action} is not valid for a pod that is {row['status']}")
        if action == "terminate":
            del self.machines[pod_id]
            return told(None, 204)
        self.put_state(row, AFTER[action])
        return told(row)

    @route("GET", "/v2/templates", "images")
    def templates(self, request: Request) -> Answer:
        return told({"templates": list(self.images.values())})

    @route("GET", "/v2/billing/pods", "charges")
    def pod_history(self, request: Request) -> Answer:
        rows = [one for one in within(self.bill, request) if one.machine]
        records = [
            {
                **bucket(one),
                "podId": one.machine,
                **parts(one, {"gpu": "gpuAmount", "cpu": "cpuAmount", "disk": "diskAmount"}),
            }
            for one in rows
        ]
        totals = summed(records, ("totalAmount", "gpuAmount", "cpuAmount", "diskAmount"))
        query = {**window(request), "bucketSize": "day", "podId": None}
        return told(
            {
                "records": records,
                "metadata": {
                    "query": query,
                    "recordCount": len(records),
                    "uniquePodCount": len({one.machine for one in rows}),
                    "totals": totals,
                },
            }
        )

    @route("GET", "/v2/billing/network-volumes", "volume_charges")
    def volume_history(self, request: Request) -> Answer:
        rows = [one for one in within(self.bill, request) if one.resource]
        words = {"volume": "standardAmount", "fast": "highPerformanceAmount"}
        records = [{**bucket(one), "networkVolumeId": one.resource, **parts(one, words)} for one in rows]
        totals = summed(records, ("totalAmount", "standardAmount", "highPerformanceAmount"))
        query = {**window(request), "bucketSize": "day", "networkVolumeId": None}
        return told(
            {
                "records": records,
                "metadata": {
                    "query": query,
                    "recordCount": len(records),
                    "uniqueNetworkVolumeCount": len({one.resource for one in rows}),
                    "totals": totals,
                },
            }
        )

    @route("GET", "/v2/billing", "all_charges")
    def history(self, request: Request) -> Answer:
        rows = within(self.bill, request)
        records = [
            {
                **bucket(one),
                **dict.fromkeys(AGGREGATED, 0.0),
                "totalAmount": float(one.amount),
                of_whole(one): float(one.amount),
            }
            for one in rows
        ]
        totals = summed(records, ("totalAmount", *AGGREGATED))
        query = {**window(request), "bucketSize": "day"}
        return told({"records": records, "metadata": {"query": query, "recordCount": len(records), "totals": totals}})

    @route("GET", "/v2/catalog/datacenters", "datacenters")
    def datacenters(self, request: Request) -> Answer:
        return told({"dataCenters": []})

    @route("GET", "/v2/catalog/gpus", "offers")
    def catalogue(self, request: Request) -> Answer:
        if request.query.get("include") and "product" not in request.query:
            return self.problem(400, "include needs product")
        return told({"gpus": [self.gpu_type(name, request.query.get("cloud", "SECURE")) for name in MEMORY_GB]})

    def gpu_type(self, name: str, cloud: str) -> Row:
        places = [{"id": place, "name": place, "availability": level} for place, level in self.levels.items()]
        return {
            "id": name,
            "name": name.removeprefix("NVIDIA "),
            "pool": None,
            "manufacturer": "NVIDIA",
            "memory": MEMORY_GB[name],
            "secure": True,
            "community": name != H100,
            "price": {"secure": 2.99 if name == H100 else 0.69, "community": 0 if name == H100 else 0.34},
            "maxCount": {"secure": 8, "community": 0 if name == H100 else 4},
            "availability": "HIGH",
            "dataCenters": places if cloud == "SECURE" else [],
        }


FAKE = RunPodFake
