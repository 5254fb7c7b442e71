"""What every fake can be told to do, whatever the provider: the contract suite speaks only to this.

A fake keeps the truth of its machines in `machines`, in the provider's own rows, and answers by routes. Every answer, and every
request of the adapter, is held to the saved description; a difference is kept in `drifts` and fails the test that met it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from threading import Event, RLock
from typing import Any, ClassVar

import pytest

from fleet.providers import http
from fleet.providers.base import Billing, CreateSpec, InstanceState, Market, Money, Ref
from tests.fleet.providers.fakes.description import Drift, load
from tests.fleet.providers.fakes.routes import Route, routes_of
from tests.fleet.providers.fakes.server import Answer, Loopback, Request
from tests.fleet.providers.fakes.troubles import Trouble, cut, empty, halve

Row = dict[str, Any]
Arrival = Callable[[Answer], Answer | None]
# Stands in rows where a provider tells passwords and tokens: it must never cross the seam.
PLANTED = "SECRET-planted-by-the-provider-0123456789"
PATIENCE_SECONDS = 0.2


@dataclass(frozen=True)
class Means:
    """What a raw state must become."""

    state: InstanceState
    billing: Billing


@dataclass(frozen=True)
class Billed:
    """What the fake's provider charges on one day (an instant of it), for a machine or, without one, for a volume called `resource`.

    `word`: "gpu", "disk", "volume", or one that nobody has heard of.
    """

    day: datetime
    amount: Decimal
    machine: str = ""
    word: str = "gpu"
    resource: str = ""


@dataclass(frozen=True)
class KnownOffer:
    """One offer of the fake's catalogue, of several GPUs wherever the provider sells several: `price` is for all of them."""

    external_id: str
    gpu_model: str
    gpu_count: int
    price: Money | None
    market: Market = Market.ON_DEMAND


class Fake(ABC):
    # The saved description's file name; None where none exists and the provider's own client parses the answers.
    described_by: ClassVar[str | None]
    # Whether rows may hold only what the description names, for descriptions that require nothing.
    closed: ClassVar[bool] = False
    # A filled account form, secrets included.
    options: ClassVar[Mapping[str, str]]
    # The environment variable that leads the adapter here; a fake that needs more overrides env().
    variable: ClassVar[str]
    # Every raw state that the description or the provider's documentation names.
    states: ClassVar[Mapping[str, Means]]
    # What a seeded machine costs, for the whole of it; None where neither provider nor form tells.
    price: ClassVar[Money | None]
    # What the description always tells of a machine: a row without it is beyond the description.
    always_told: ClassVar[frozenset[str]] = frozenset()
    # What a row can lack at all: of "address", "price", "gpu".
    can_lack: ClassVar[frozenset[str]] = frozenset({"address", "price", "gpu"})
    # Enough machines for three pages.
    many: ClassVar[int] = 3
    # Whether the provider measures use: measure() sets it.
    measures: ClassVar[bool] = False
    answers_partially: ClassVar[bool] = False
    # Whether a wrong secret is refused; False where nobody but the provider can check a signature.
    checks_secrets: ClassVar[bool] = True
    # Whether there are keys that may list machines and not images.
    scoped: ClassVar[bool] = True
    # JSON that is an empty listing here though it is odd elsewhere, such as "[]".
    empty_bodies: ClassVar[frozenset[str]] = frozenset()
    # What the catalogue surely holds, and order() orders.
    known_offer: ClassVar[KnownOffer | None] = None
    # Charges for three pages of them; 1 where a bill has no pages.
    many_charges: ClassVar[int] = 1

    def __init__(self) -> None:
        self._lock = RLock()
        self._released = Event()
        self.reset()
        # Read now: no test should wait for it.
        self.description = load(self.described_by, closed=self.closed) if self.described_by else None
        self._server = Loopback(self.handle)
        self.url = self._server.url

    # -- what a fake tells of its provider ---------------------------------------------------------------------------

    @abstractmethod
    def row(self, number: int) -> Row:
        """A running machine, the `number`th made here, as a listing shows it."""

    @abstractmethod
    def id_of(self, row: Row) -> str: ...

    @abstractmethod
    def put_state(self, row: Row, raw_state: str) -> None:
        """The row as the provider shows it in a raw state; also in one that it never had."""

    @abstractmethod
    def leave_out(self, row: Row, what: str) -> None:
        """The row without its "address", "price" or "gpu"."""

    @abstractmethod
    def problem(self, status: int, message: str) -> Answer:
        """How the provider says what HTTP means by a status; by another one where it has its own ways."""

    def image(self, number: int) -> Row:
        raise NotImplementedError

    def image_id_of(self, row: Row) -> str:
        return self.id_of(row)

    def ref(self, row: Row) -> Ref:
        return Ref(self.id_of(row))

    def order(self) -> CreateSpec:
        """An order that is carried out, of `known_offer`."""
        raise NotImplementedError

    def sell_out(self) -> None:
        """Every order is answered as for want of machines."""
        raise NotImplementedError

    def make_partially(self) -> None:
        """The next order makes a machine and is answered by an error that names it; where `answers_partially`."""
        raise NotImplementedError

    def measure(self, ref: Ref, gpu_percent: float) -> None:
        raise NotImplementedError

    def is_gone(self, ref: Ref) -> bool:
        return ref.external_id not in self.machines

    def settle(self) -> None:  # noqa: B027 - most fakes do everything at once
        """Ends what is under way: transitions, images being made."""

    def env(self) -> dict[str, str]:
        return {self.variable: self.url}

    def authorized(self, request: Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self.options['api_key']}"

    def hurry(self, patch: pytest.MonkeyPatch) -> None:  # noqa: B027 - most adapters keep no pace
        """Takes away the pauses that the adapter makes between calls."""

    def lose_patience(self, patch: pytest.MonkeyPatch) -> None:
        """Shortens how long the adapter waits for an answer, for tests in which none comes."""
        patch.setattr(http, "READ_SECONDS", PATIENCE_SECONDS)

    def target(self, request: Request) -> tuple[str, str]:
        """The method and path to route by; APIs that name the action in a header turn it into a path."""
        return request.method, request.path

    # -- what the suite does -----------------------------------------------------------------------------------------

    def reset(self) -> None:
        self._released.set()
        self._released = Event()
        self._troubles: list[Trouble] = []
        self.machines: dict[str, Row] = {}
        self.images: dict[str, Row] = {}
        self.purse = Decimal(0)
        self.bill: list[Billed] = []
        self.requests: list[tuple[str, Request]] = []
        self.drifts: list[str] = []
        # Off once a test orders rows that the description does not allow.
        self.held_to_description = True
        self._made = 0

    def seed(self, count: int = 1) -> list[Ref]:
        return [self.ref(self.add(self.row(self.number()))) for _ in range(count)]

    def add(self, row: Row) -> Row:
        self.machines[self.id_of(row)] = row
        return row

    def number(self) -> int:
        """One that no machine or image made here had before."""
        self._made += 1
        return self._made

    def seed_images(self, count: int) -> list[str]:
        rows = [self.image(self.number()) for _ in range(count)]
        self.images |= {self.image_id_of(row): row for row in rows}
        return [self.image_id_of(row) for row in rows]

    def show(self, ref: Ref, *, raw_state: str | None = None, without: Iterable[str] = ()) -> None:
        row = self.machines[ref.external_id]
        if raw_state is not None:
            self.put_state(row, raw_state)
        for what in without:
            self.leave_out(row, what)
        if (raw_state is not None and raw_state not in self.states) or self.always_told & set(without):
            self.held_to_description = False

    def refuse(
        self,
        status: int,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        times: int | None = None,
        on: str | None = None,
        after: int = 0,
        following: str = "",
        message: str = "because",
    ) -> None:
        """Nothing is done; the answer is the provider's own refusal, or `body` as HTML."""
        own = self.problem(status, message)
        refusal = own if body is None else Answer(status, body, {"Content-Type": "text/html"})
        refusal = Answer(refusal.status, refusal.body, {**refusal.headers, **(headers or {})})
        self._troubles.append(
            Trouble(on, refusal=refusal, own=body is None, after=after, times=times, following=following)
        )

    def hang(self, on: str | None = None) -> None:
        """The answer never comes."""
        self._troubles.append(Trouble(on, happen=self._wait, acts=False))

    def lose_answer(self, on: str) -> None:
        """It is done, and the line breaks before the answer."""
        self._troubles.append(Trouble(on, happen=lambda _: None))

    def cut_listing(self, on: str = "list", *, after: int = 0, politely: bool = False) -> None:
        """Half of the answer comes. `politely`: with a length that fits."""
        self._troubles.append(Trouble(on, happen=halve if politely else cut, after=after))

    def empty_answer(self, on: str) -> None:
        """It is done, and what should be named in the answer's lists is not."""
        self._troubles.append(Trouble(on, happen=empty))

    def garble_answer(self, body: str, on: str) -> None:
        """It is done, and the answer is other JSON than the API's."""
        garbled = Answer(200, body.encode(), {"Content-Type": "application/json"})
        self._troubles.append(Trouble(on, happen=lambda _: garbled))

    def asked(self, act: str) -> list[Request]:
        return [request for name, request in self.requests if name == act]

    def close(self) -> None:
        self._released.set()
        self._server.close()

    # -- how requests are answered -----------------------------------------------------------------------------------

    def handle(self, request: Request) -> Answer | None:
        with self._lock:
            reply, arrival = self._answer(request)
        # Outside the lock: an answer that hangs must not hold up the others.
        return arrival(reply)

    def _answer(self, request: Request) -> tuple[Answer, Arrival]:
        found = self._route(request)
        if found is None:
            return self._drifted(f"the fake has no route for {request.method} {request.path}"), as_it_is
        matched, arguments = found
        act = matched.act_of(request)
        self.requests.append((act, request))
        if not self.authorized(request):
            return self.problem(401, "Who are you?"), as_it_is
        trouble = next((trouble for trouble in self._troubles if trouble.strikes(act)), None)
        if trouble is not None and trouble.refusal is not None:
            refusal = self._held(request, trouble.refusal, forced=True) if trouble.own else trouble.refusal
            return refusal, as_it_is
        acts = trouble is None or trouble.acts
        reply = self._carry_out(matched, request, arguments) if acts else Answer()
        return reply, (trouble and trouble.happen) or as_it_is

    def _carry_out(self, matched: Route, request: Request, arguments: tuple[str, ...]) -> Answer:
        if drift := self._drift_of_request(request):
            return self._drifted(drift)
        return self._held(request, getattr(self, matched.call)(request, *arguments), forced=False)

    def _route(self, request: Request) -> tuple[Route, tuple[str, ...]] | None:
        method, path = self.target(request)
        for candidate in routes_of(type(self)):
            arguments = candidate.match(method, path)
            if arguments is not None:
                return candidate, arguments
        return None

    def _drift_of_request(self, request: Request) -> str:
        if self.description is None:
            return ""
        try:
            self.description.check_request(request.method, request.path, request.query, request.json)
        except Drift as drift:
            return f"the adapter's request: {drift}"
        return ""

    def _held(self, request: Request, reply: Answer, *, forced: bool) -> Answer:
        if self.description is None or not self.held_to_description:
            return reply
        media = reply.headers.get("Content-Type", "").split(";")[0]
        body = json.loads(reply.body) if reply.body else None
        try:
            self.description.check_answer(request.method, request.path, reply.status, media, body, forced=forced)
        except Drift as drift:
            return self._drifted(f"the fake's answer: {drift}")
        return reply

    def _drifted(self, what: str) -> Answer:
        self.drifts.append(what)
        return Answer(599, what.encode(), {"Content-Type": "text/plain"})

    def _wait(self, _: Answer) -> None:
        self._released.wait(timeout=30)


def as_it_is(reply: Answer) -> Answer:
    return reply
