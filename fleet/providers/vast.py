"""Vast.ai: a market of hosts. Offers are asks of single machines; an order takes one, at its price or by a bid for the whole machine.

The listing is version 1 of the API, 25 machines a page; the rest is version 0. Every path ends with a slash, as its own client sends it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import ClassVar

from fleet.providers.base import (
    AccountInfo,
    BilledCharge,
    Capability,
    CreateSpec,
    Ending,
    Field,
    Market,
    Money,
    Offer,
    OfferQuery,
    ProviderInstance,
    Ref,
    Scope,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.bills import DAY, LineIds, days_between
from fleet.providers.errors import (
    Invalid,
    NoCapacity,
    NotFound,
    ProviderError,
    QuotaOrFunds,
    ScopeMissing,
    Unavailable,
)
from fleet.providers.http import JSON, JsonApi, Problem, endpoint
from fleet.providers.pace import Pace
from fleet.providers.reading import complete, endless, header_secret
from fleet.providers.registry import register
from fleet.providers.rows import Row, number, promised, rows_of
from fleet.providers.vast_bills import lines_of
from fleet.providers.vast_endings import ENDINGS, SEMANTICS
from fleet.providers.vast_market import offer_of, order_of
from fleet.providers.vast_rows import LABEL, instance_of

PAGE_SIZE = 25
CHARGES_PAGE_SIZE = 500
MAX_PAGES = 1000
INSTANCES = "/api/v1/instances/"
MAX_OFFERS = 2000
# Calls of one path are refused when they come closer than some seconds; this is what pages of a listing get through with.
PACE = Pace(1.5)
# How the kinds of an offer are called in a search.
MARKETS: Mapping[Market, str] = {Market.ON_DEMAND: "ondemand", Market.SPOT: "bid"}
KINDS: Mapping[str, type[ProviderError]] = {
    "no_such_instance": NotFound,
    "no_such_ask": NoCapacity,
    "insufficient_credit": QuotaOrFunds,
}


@register
class Vast:
    kind: ClassVar[str] = "vast"
    label: ClassVar[str] = LABEL
    fields: ClassVar[tuple[Field, ...]] = (
        Field(
            name="api_key",
            label=gettext_noop("API key"),
            help_text=gettext_noop(
                "instance_read and user_read suffice to watch, bills need billing_read; renting and stopping need instance_write, offers need misc"
            ),
            secret=True,
        ),
    )
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.LIST,
            Capability.FIND,
            Capability.START,
            Capability.STOP,
            Capability.TERMINATE,
            Capability.REBOOT,
            Capability.CREATE,
            Capability.OFFERS,
            Capability.BALANCE,
            Capability.COSTS,
        }
    )
    create_is_idempotent: ClassVar[bool] = False
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        key = header_secret(options, "api_key")
        self._key = key
        self._api = JsonApi(
            label=LABEL,
            base_url=endpoint(self.kind, "https://console.vast.ai"),
            headers={"Authorization": f"Bearer {key}"},
            secrets=[key],
            problem=problem,
            kinds=KINDS,
            # Told of offers alone.
            statuses={410: NoCapacity},
            made=made,
        )

    def verify(self) -> AccountInfo:
        self._page(limit="1")
        try:
            user = self._user()
        except ScopeMissing:
            user = {}
        scopes = (
            Scope("instance_read", granted=True),
            Scope("user_read", bool(user), gettext_noop("the balance stays unknown")),
        )
        return AccountInfo(str(user.get("id") or ""), "USD", scopes)

    def instances(self) -> Iterator[ProviderInstance]:
        for row in self._pages(INSTANCES, "instances", "total_instances", PAGE_SIZE):
            with promised(LABEL):
                machine = instance_of(row)
            yield machine

    def instance(self, ref: Ref) -> ProviderInstance | None:
        """By the listing: the path of a single machine tells it in another form."""
        wanted = json.dumps({"id": {"eq": machine_id(ref)}})
        rows = rows_of(self._page(limit="1", select_filters=wanted), "instances", LABEL)
        if not rows:
            return None
        with promised(LABEL):
            machine = instance_of(rows[0])
        if machine.ref.external_id != ref.external_id:
            raise Unavailable(f"{LABEL} told of another machine than was asked for.")
        return machine

    def start(self, ref: Ref) -> None:
        self._send("PUT", f"/api/v0/instances/{machine_id(ref)}/", {"state": "running"})

    def stop(self, ref: Ref) -> None:
        self._send("PUT", f"/api/v0/instances/{machine_id(ref)}/", {"state": "stopped"})

    def reboot(self, ref: Ref) -> None:
        try:
            self._send("PUT", f"/api/v0/instances/reboot/{machine_id(ref)}/")
        except Invalid:
            # This path has no word of its own for a machine that does not exist.
            if self.instance(ref) is None:
                raise NotFound(f"{LABEL} knows no machine {ref.external_id}.") from None
            raise

    def terminate(self, ref: Ref) -> None:
        try:
            self._send("DELETE", f"/api/v0/instances/{machine_id(ref)}/")
        except NotFound:
            return

    def create(self, spec: CreateSpec, token: str) -> Ref:
        """The token stands in the machine's label. An error may come back although a machine was made: PartialCreate."""
        order = order_of(spec, token)
        if not spec.offer_id.isdecimal():
            raise Invalid(f"{spec.offer_id!r} is no offer of {LABEL}.")
        try:
            answer = self._send("PUT", f"/api/v0/asks/{spec.offer_id}/", order)
        except NotFound as gone:
            raise NoCapacity(gone.detail) from None
        if not isinstance(answer, dict) or not answer.get("new_contract"):
            raise Unavailable(f"{LABEL} took the order and named no machine.")
        return Ref(str(answer["new_contract"]))

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        for market, word in MARKETS.items():
            if query.market in {None, market}:
                yield from self._search(market, word, query)

    def balance(self) -> Money:
        with promised(LABEL):
            left = number(self._user()["balance"])
        if left is None:
            raise Unavailable(f"{LABEL} tells no balance.")
        return Money(left, "USD")

    def charges(self, start: datetime, end: datetime) -> Iterator[BilledCharge]:
        """Asked day by day: over several days, a contract's charges come as one sum."""
        for day in days_between(start, end):
            ids = LineIds()
            wanted = {"day": {"gte": int(day.timestamp()), "lte": int((day + DAY).timestamp()) - 1}}
            rows = list(
                self._pages(
                    "/api/v0/charges/", "results", "total", CHARGES_PAGE_SIZE, select_filters=json.dumps(wanted)
                )
            )
            with promised(LABEL):
                lines = [line for row in rows for line in lines_of(row, day, ids)]
            yield from lines

    def _search(self, market: Market, word: str, query: OfferQuery) -> Iterator[Offer]:
        wanted: Row = {"type": word, "limit": MAX_OFFERS, "rentable": {"eq": True}}
        if query.gpu_count:
            wanted["num_gpus"] = {"in": [query.gpu_count]}
        PACE.wait((self._key, "bundles"))
        rows = rows_of(self._api.send("POST", "/api/v0/bundles/", json=wanted), "offers", LABEL)
        with promised(LABEL):
            found = [offer_of(row, market) for row in rows]
        yield from found

    def _pages(self, path: str, key: str, total: str, size: int, **query: str) -> Iterator[Row]:
        """All rows of all pages. Raises Unavailable when the pages do not end, or hold fewer rows than they count."""
        token, seen, count = "", {""}, 0
        for _ in range(MAX_PAGES):
            page = self._page(path, limit=str(size), **query, **({"after_token": token} if token else {}))
            rows = rows_of(page, key, LABEL)
            count += len(rows)
            yield from rows
            token = page.get("next_token") or ""
            if not token:
                complete(count, page.get(total), LABEL)
                return
            if token in seen:
                break
            seen.add(token)
        raise endless(LABEL, key)

    def _page(self, path: str = INSTANCES, **query: str) -> JSON:
        PACE.wait((self._key, path))
        return self._api.get(path, **query)

    def _user(self) -> Row:
        user = self._api.get("/api/v0/users/current/")
        if not isinstance(user, dict):
            raise Unavailable(f"{LABEL}'s answer tells no account.")
        return user

    def _send(self, method: str, path: str, body: JSON = None) -> JSON:
        """A refusal may also come as 200 with "success": false."""
        answer = self._api.send(method, path, json=body)
        if isinstance(answer, dict) and answer.get("success") is False:
            raise self._api.refusal(answer)
        return answer


def machine_id(ref: Ref) -> int:
    try:
        return int(ref.external_id)
    except ValueError:
        raise NotFound(f"{ref.external_id!r} is no machine of {LABEL}.") from None


def problem(body: JSON) -> Problem:
    return str(body.get("error") or body.get("detail") or ""), str(body.get("msg") or "")


def made(body: JSON) -> Ref | None:
    """The machine that an error names."""
    contract = body.get("new_contract")
    return Ref(str(contract)) if contract else None
