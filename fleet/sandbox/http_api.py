"""The sandbox provider's HTTP API, version 1: a small ASGI application (docs/sandbox.md lists the calls).

A full key may do everything, a read key may look; both come as `Authorization: Bearer …`.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs
from zlib import crc32

from fleet.sandbox.cast import HOURS_PER_MONTH, IMAGES, OFFERS, Offer, storage_price_per_hour
from fleet.sandbox.desk import Desk, RefusedError, SavedImage
from fleet.sandbox.lies import RETURNS_AFTER_SECONDS, Lies
from fleet.sandbox.rentals import Rental, WrongStateError

JSON = dict[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PAGE_SIZE, MAX_PAGE_SIZE = 10, 100
MAX_BODY_BYTES = 1 << 16
CURRENCY = "USD"
# Never lied to: whoever sets the lies must be able to take them back.
LIES = re.compile(r"/v1/lies")
ACTS = {"start": Rental.start, "stop": Rental.stop, "reboot": Rental.reboot}


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> JSON:
        try:
            content = json.loads(self.body or b"{}")
        except ValueError:
            raise RefusedError(400, "bad_json", "The body is not JSON.") from None
        if not isinstance(content, dict):
            raise RefusedError(400, "bad_json", "The body must be a JSON object.")
        return content


class SandboxAPI:
    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.lies = Lies(desk.clock)
        self.routes: Sequence[tuple[str, re.Pattern[str], int, Callable[..., JSON]]] = (
            ("GET", re.compile(r"/v1/account"), 200, self.account),
            ("GET", re.compile(r"/v1/offers"), 200, self.offers),
            ("GET", re.compile(r"/v1/images"), 200, self.images),
            ("GET", re.compile(r"/v1/instances"), 200, self.instances),
            ("POST", re.compile(r"/v1/instances"), 201, self.create),
            ("GET", re.compile(r"/v1/instances/([\w-]+)"), 200, self.instance),
            ("POST", re.compile(r"/v1/instances/([\w-]+)/(start|stop|reboot)"), 202, self.act),
            ("POST", re.compile(r"/v1/instances/([\w-]+)/image"), 202, self.save_image),
            ("DELETE", re.compile(r"/v1/instances/([\w-]+)"), 202, self.terminate),
            ("GET", LIES, 200, self.show_lies),
            ("PUT", LIES, 200, self.set_lies),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        wait: float | None = None
        try:
            request = await _read(scope, receive)
            self._authorize(request)
            if not LIES.fullmatch(request.path):
                self.lies.before(request.method)
            status, answer = self._answer(request)
        except RefusedError as refused:
            status, answer = refused.status, {"error": {"code": refused.code, "message": refused.message}}
            wait = refused.retry_after
        except WrongStateError as error:
            status, answer = 409, {"error": {"code": "wrong_state", "message": str(error)}}
        await _send(send, status, answer, retry_after=wait)

    def _authorize(self, request: Request) -> None:
        key = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
        if secrets.compare_digest(key, self.desk.full_key.encode()):
            return
        if not secrets.compare_digest(key, self.desk.read_key.encode()):
            raise RefusedError(401, "bad_key", "The key is unknown. Send it as Authorization: Bearer KEY.")
        if request.method != "GET":
            raise RefusedError(403, "read_only", "This key may only read.")

    def _answer(self, request: Request) -> tuple[int, JSON]:
        found = [
            (method, status, act, match.groups())
            for method, pattern, status, act in self.routes
            if (match := pattern.fullmatch(request.path))
        ]
        if not found:
            raise RefusedError(404, "not_found", f"There is no {request.path}.")
        for method, status, act, arguments in found:
            if method == request.method:
                return status, act(request, *arguments)
        raise RefusedError(405, "bad_method", f"{request.path} takes {', '.join(method for method, *_ in found)}.")

    def account(self, request: Request) -> JSON:
        return {"id": f"sandbox-{crc32(str(self.desk.born_at).encode()):08x}", "currency": CURRENCY}

    def offers(self, request: Request) -> JSON:
        return _page(request, [(offer.name, offer_json(offer)) for offer in OFFERS.values()], "offers")

    def images(self, request: Request) -> JSON:
        created_at = self.desk.born_at - 60 * 86400
        own = [
            (key, {"id": key, "name": name, "status": "ready", "created_at": _iso(created_at)})
            for key, name in IMAGES.items()
        ]
        saved = [(image.id, self._image_json(image)) for image in self.desk.images.values()]
        return _page(request, [*own, *saved], "images")

    def instances(self, request: Request) -> JSON:
        now = self.desk.clock()
        listed = [rental for rental in self.desk.all() if rental.is_listed(now)]
        return _page(request, [(rental.id, self._json(rental)) for rental in listed], "instances")

    def instance(self, request: Request, machine_id: str) -> JSON:
        rental = self.desk.get(machine_id)
        if not rental.is_listed(self.desk.clock()):
            raise RefusedError(404, "not_found", f"There is no machine {machine_id}.")
        return self._json(rental)

    def create(self, request: Request) -> JSON:
        rental = self.desk.create(request.json(), request.headers.get("idempotency-key", ""))
        rental.listed_from = self.lies.listed_from(rental.listed_from)
        self.lies.after_create()
        return self._json(rental)

    def act(self, request: Request, machine_id: str, word: str) -> JSON:
        if self.lies.takes("still_running"):
            return self._json(self.desk.get(machine_id))
        before = self.desk.get(machine_id).status
        rental = self.desk.change(machine_id, ACTS[word])
        if rental.status != before and self.lies.takes("forgets"):
            rental.instead = before
        if rental.status != before and word == "stop" and self.lies.takes("bills_on"):
            rental.bills_on = True
        return self._json(rental)

    def save_image(self, request: Request, machine_id: str) -> JSON:
        return self._image_json(self.desk.save_image(machine_id, request.json()))

    def terminate(self, request: Request, machine_id: str) -> JSON:
        if self.lies.takes("still_running"):
            return self._json(self.desk.get(machine_id))
        rental = self.desk.change(machine_id, Rental.terminate)
        if rental.comes_back_at is None and self.lies.takes("returns"):
            rental.comes_back_at = self.desk.clock() + RETURNS_AFTER_SECONDS
        return self._json(rental)

    def show_lies(self, request: Request) -> JSON:
        return self.lies.shown()

    def set_lies(self, request: Request) -> JSON:
        self.lies.set(request.json())
        return self.lies.shown()

    def _json(self, rental: Rental) -> JSON:
        return instance_json(rental, self.desk.image_names()[rental.image])

    def _image_json(self, image: SavedImage) -> JSON:
        status = image.status(self.desk.clock())
        return {"id": image.id, "name": image.name, "status": status, "created_at": _iso(image.created_at)}


def _page(request: Request, rows: list[tuple[str, JSON]], name: str) -> JSON:
    """The rows after `cursor` (a key), at most `limit` of them; `next` is the cursor of the following page or null."""
    rows = sorted(rows, key=lambda row: row[0])
    limit = _limit(request.query.get("limit", ""))
    after = request.query.get("cursor", "")
    left = [row for row in rows if row[0] > after]
    page = left[:limit]
    return {name: [row for _, row in page], "total": len(rows), "next": page[-1][0] if len(left) > limit else None}


def _limit(word: str) -> int:
    if not word:
        return PAGE_SIZE
    if not word.isdecimal() or not 1 <= int(word) <= MAX_PAGE_SIZE:
        raise RefusedError(422, "invalid", f"limit: must be a whole number from 1 to {MAX_PAGE_SIZE}.")
    return int(word)


def offer_json(offer: Offer) -> JSON:
    spot = offer.price_per_hour("spot")
    return {
        "name": offer.name,
        "gpu": {"model": offer.gpu.nvml_name, "count": offer.gpu_count, "memory_mib": offer.gpu.memory_mib},
        "vcpus": offer.vcpus,
        "ram_gib": offer.ram_gib,
        "tenancy": offer.tenancy,
        "regions": list(offer.regions),
        "price_per_hour": str(offer.price_per_hour("on_demand")),
        "spot_price_per_hour": str(spot) if spot is not None else None,
        "storage_price_per_gb_month": str(storage_price_per_hour(1000) * HOURS_PER_MONTH / 1000),
        "currency": CURRENCY,
    }


def instance_json(rental: Rental, image_name: str) -> JSON:
    offer = OFFERS[rental.offer]
    return {
        "id": rental.id,
        "name": rental.name,
        "status": rental.status,
        "status_reason": rental.reason,
        "charged": rental.charged,
        "type": offer.name,
        "region": rental.region,
        "market": rental.market,
        "tenancy": offer.tenancy,
        "host_share": str(offer.host_share) if offer.host_share is not None else None,
        "gpu": {"model": offer.gpu.nvml_name, "count": offer.gpu_count, "memory_mib": offer.gpu.memory_mib},
        "vcpus": offer.vcpus,
        "ram_gib": offer.ram_gib,
        "disk_gb": rental.disk_gb,
        "price_per_hour": str(offer.price_per_hour(rental.market)),
        "storage_price_per_hour": str(storage_price_per_hour(rental.disk_gb)),
        "currency": CURRENCY,
        "image": {"id": rental.image, "name": image_name},
        "ssh": _ssh(rental, offer),
        "created_at": _iso(rental.created_at),
        "started_at": _iso(rental.started_at),
        "stopped_at": _iso(rental.stopped_at),
        "lease_ends_at": _iso(rental.lease_ends_at),
        "labels": rental.labels,
    }


def _ssh(rental: Rental, offer: Offer) -> JSON | None:
    """Addresses of RFC 5737, which lead nowhere; community hosts share one address and differ by port."""
    if not rental.is_up:
        return None
    number = crc32(rental.id.encode())
    if offer.tenancy == "community_host":
        return {"host": "198.51.100.7", "port": 20_000 + number % 20_000, "user": "root"}
    return {"host": f"203.0.113.{1 + number % 254}", "port": 22, "user": "ubuntu"}


def _iso(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


async def _read(scope: Scope, receive: Receive) -> Request:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            raise RefusedError(413, "too_large", f"The body is larger than {MAX_BODY_BYTES} bytes.")
        if not message.get("more_body"):
            break
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
    return Request(scope["method"], scope["path"], query, headers, body)


async def _send(send: Send, status: int, answer: JSON, *, retry_after: float | None = None) -> None:
    body = json.dumps(answer).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if retry_after is not None:
        headers.append((b"retry-after", str(int(retry_after)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
