"""The sandbox itself, its real API in this process, with a line before it that can be disturbed and rows that can be redrawn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, MutableMapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from fleet.providers.base import Billing, CreateSpec, InstanceState, Money, Ref
from fleet.sandbox.cast import IMAGES
from fleet.sandbox.desk import Desk, SavedImage
from fleet.sandbox.http_api import SandboxAPI
from fleet.sandbox.rentals import CHARGED_FOR, Rental
from tests.fleet.providers.fakes.base import Fake, KnownOffer, Means, Row
from tests.fleet.providers.fakes.routes import route
from tests.fleet.providers.fakes.server import Answer, Request, told

OFFER, REGION = "sb.h100x8", "us-south-1"
BORN_AT, LONG_ENOUGH_SECONDS = 1_796_000_000.0, 300.0
CODES = {401: "bad_key", 403: "read_only", 404: "not_found", 409: "wrong_state", 422: "invalid", 429: "busy"}


def act_of(request: Request) -> str:
    word = request.path.rsplit("/", 1)[1]
    return "save_image" if word == "image" else word


class Counter(Desk):
    """A desk that nobody rents from at first, and that keeps nothing on disk."""

    def _begin(self) -> None:
        self.born_at = self.clock()

    def _save(self) -> None:
        pass


class SandboxFake(Fake):
    # It is the provider itself: there is nothing to drift from.
    described_by = None
    variable = ""
    options = {"key": "sbk_SECRET0123456789"}
    states = {
        "provisioning": Means(InstanceState.PROVISIONING, Billing.NONE),
        "starting": Means(InstanceState.STARTING, Billing.STORAGE),
        "running": Means(InstanceState.RUNNING, Billing.FULL),
        "stopping": Means(InstanceState.STOPPING, Billing.FULL),
        "stopped": Means(InstanceState.STOPPED, Billing.STORAGE),
        "reclaimed": Means(InstanceState.STOPPED, Billing.STORAGE),
        "terminating": Means(InstanceState.TERMINATING, Billing.STORAGE),
        "terminated": Means(InstanceState.TERMINATED, Billing.NONE),
    }
    price = Money(Decimal("23.92"), "USD")
    many = 101
    scoped = True
    known_offer = KnownOffer(OFFER, "H100 SXM", 8, Money(Decimal("23.92"), "USD"))

    def reset(self) -> None:
        super().reset()
        self.now = BORN_AT
        self.desk = Counter(Path("/nowhere/provider.json"), lambda: self.now)
        self.desk.full_key, self.desk.read_key = self.options["key"], "sbr_other"
        self.api = SandboxAPI(self.desk)
        self.redrawn: dict[str, tuple[str | None, set[str]]] = {}
        self.sold_out = False

    # The desk's own records; the suite asks only who is in it, and empties it.
    @property
    def machines(self) -> dict[str, Row]:
        kept: dict[str, Any] = self.desk.rentals
        return kept

    @machines.setter
    def machines(self, _: dict[str, Row]) -> None:
        """The base class begins with none, as each desk does."""

    def env(self) -> dict[str, str]:
        return {"SANDBOX_PORT": self.url.rsplit(":", 1)[1]}

    def authorized(self, request: Request) -> bool:
        return True

    def seed(self, count: int = 1) -> list[Ref]:
        ids = [f"sb-{self.number():06}" for _ in range(count)]
        self.desk.rentals |= {machine_id: rented(machine_id, self.now) for machine_id in ids}
        return [Ref(machine_id, REGION) for machine_id in ids]

    def row(self, number: int) -> Row:
        raise NotImplementedError("the desk keeps its machines in its own way: seed() makes them")

    def id_of(self, row: Row) -> str:
        return str(row["id"])

    def show(self, ref: Ref, *, raw_state: str | None = None, without: Iterable[str] = ()) -> None:
        self.redrawn[ref.external_id] = (raw_state, set(without))

    def put_state(self, row: Row, raw_state: str) -> None:
        row |= {"status": raw_state, "charged": CHARGED_FOR.get(raw_state, "nobody knows")}

    def leave_out(self, row: Row, what: str) -> None:
        changed: dict[str, Row] = {
            "address": {"ssh": None},
            "price": {"price_per_hour": None},
            "gpu": {"gpu": {"model": "", "count": 0}},
        }
        row |= changed[what]

    def problem(self, status: int, message: str) -> Answer:
        return told({"error": {"code": CODES.get(status, "error"), "message": message}}, status)

    def seed_images(self, count: int) -> list[str]:
        ids = [f"img-{self.number():08}" for _ in range(count)]
        made_at = self.now - LONG_ENOUGH_SECONDS
        self.desk.images |= {image_id: SavedImage(image_id, f"vision {image_id}", made_at) for image_id in ids}
        return ids

    def order(self) -> CreateSpec:
        return CreateSpec(name="train", offer_id=OFFER, region=REGION, gpu_count=8)

    def sell_out(self) -> None:
        self.sold_out = True

    def is_gone(self, ref: Ref) -> bool:
        return all(rental.id != ref.external_id or rental.status == "terminated" for rental in self.desk.all())

    def settle(self) -> None:
        self.now += LONG_ENOUGH_SECONDS

    @route("GET", "/v1/account", "verify")
    def account(self, request: Request) -> Answer:
        return self.asked_of_the_sandbox(request)

    @route("GET", "/v1/offers", "offers")
    def offers(self, request: Request) -> Answer:
        return self.asked_of_the_sandbox(request)

    @route("GET", "/v1/instances", "list")
    def listing(self, request: Request) -> Answer:
        return self.redraw(self.asked_of_the_sandbox(request))

    @route("GET", "/v1/instances/{}", "find")
    def find(self, request: Request, machine_id: str) -> Answer:
        return self.redraw(self.asked_of_the_sandbox(request))

    @route("GET", "/v1/images", "images")
    def own_images(self, request: Request) -> Answer:
        """Without those that every sandbox has from its birth."""
        answer = self.asked_of_the_sandbox(request)
        page = json.loads(answer.body)
        return told(page | {"images": [row for row in page["images"] if row["id"] not in IMAGES]}, answer.status)

    @route("POST", "/v1/instances", "create")
    def create(self, request: Request) -> Answer:
        if self.sold_out:
            return told({"error": {"code": "no_capacity", "message": "Nothing is free."}}, 409)
        return self.asked_of_the_sandbox(request)

    @route("POST", "/v1/instances/{}/{}", act_of)
    def act(self, request: Request, machine_id: str, word: str) -> Answer:
        return self.asked_of_the_sandbox(request)

    @route("DELETE", "/v1/instances/{}", "terminate")
    def terminate(self, request: Request, machine_id: str) -> Answer:
        return self.asked_of_the_sandbox(request)

    def redraw(self, answer: Answer) -> Answer:
        content = json.loads(answer.body)
        for row in content.get("instances", [content]):
            raw_state, without = self.redrawn.get(row.get("id"), (None, set[str]()))
            if raw_state is not None:
                self.put_state(row, raw_state)
            for what in without:
                self.leave_out(row, what)
        return told(content, answer.status)

    def asked_of_the_sandbox(self, request: Request) -> Answer:
        return asyncio.run(answer_of(self.api, request))


def rented(machine_id: str, now: float) -> Rental:
    plain = Rental(
        id=machine_id,
        name=f"train {machine_id}",
        offer=OFFER,
        region=REGION,
        market="on_demand",
        image=next(iter(IMAGES)),
        disk_gb=100,
        status="running",
        status_since=now,
        created_at=now,
    )
    return replace(plain, started_at=now)


async def answer_of(api: SandboxAPI, request: Request) -> Answer:
    """One request through the real application, without a second socket."""
    query = "&".join(f"{name}={value}" for name, value in request.query.items())
    scope = {
        "type": "http",
        "method": request.method,
        "path": request.path,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in request.headers.items()],
    }
    said: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(message)

    await api(scope, receive, send)
    return Answer(said[0]["status"], said[1]["body"], {"Content-Type": "application/json"})


FAKE = SandboxFake
