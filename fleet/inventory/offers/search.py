"""Finds offers and puts them in order. The number of queries does not depend on how many there are.

All that match are read as plain rows and scored by pure functions; only those of one page become models.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import QuerySet

from fleet.inventory.offers.filters import matching, offers_of
from fleet.inventory.offers.models import Offer
from fleet.inventory.offers.need import FACT_NAMES, Facts, Need, price_for
from fleet.inventory.offers.places import Places
from fleet.inventory.offers.score import Score, Weights, score
from fleet.inventory.offers.search_form import SearchForm
from fleet.inventory.offers.warnings import Oversight, warnings_of

Key = tuple[Any, ...]
LAST = float("inf")


class Match(NamedTuple):
    """One offer that fits, as plain values. `price`: an hour of one GPU that is asked for; `day`: of the price."""

    id: int
    team_id: int
    provider: str
    day: date
    facts: Facts
    price: Decimal | None


class Found(NamedTuple):
    """Where a match stands in the order: `place` ends with the id, so that no two are equal."""

    place: tuple[Any, ...]
    id: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """One offer with all that is said of it. `missing`: what was asked for and the offer does not say; `health`: of its provider, 1 to 5."""

    offer: Offer
    facts: Facts
    score: Score
    warnings: list[Oversight]
    missing: tuple[str, ...]
    health: int | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """`found`: every match, in order. `currencies` -> the cheapest price among the matches, of one GPU that is asked for."""

    found: list[Found]
    cheapest: Mapping[str, Decimal]
    models: list[str]


@dataclass(frozen=True, slots=True)
class Search:
    team_ids: tuple[int, ...]
    given: Mapping[str, Any]
    need: Need
    weights: Weights
    sort: str

    @classmethod
    def of(cls, form: SearchForm, team_ids: Collection[int], *, sort: str = "") -> Search:
        """Of a valid form."""
        chosen = sort or form.cleaned_data["sort"] or "score"
        return cls(tuple(team_ids), form.cleaned_data, form.need(), form.weights(), chosen)

    def run(self) -> Results:
        offers = offers_of(self.team_ids)
        models = sorted(set(offers.exclude(gpu_model="").values_list("gpu_model", flat=True).distinct()))
        matches = self.matches(matching(offers, self.given, known_models=models))
        cheapest = cheapest_of(matches)
        place_of = self.order(cheapest)
        return Results(sorted(Found((*place_of(match), match.id), match.id) for match in matches), cheapest, models)

    def matches(self, offers: QuerySet[Offer]) -> list[Match]:
        rows = offers.values_list("id", "source__team_id", "provider", "priced_on", "seen_at", *FACT_NAMES)
        read = ((row, Facts(*row[5:])) for row in rows)
        return [
            Match(row[0], row[1], row[2], row[3] or row[4].date(), facts, price_for(facts, self.need))
            for row, facts in read
        ]

    def order(self, cheapest: Mapping[str, Decimal]) -> Callable[[Match], Key]:
        if self.sort == "network" and self.need.nodes > 1:
            return by_node_network
        return self.by_score(cheapest) if self.sort == "score" else ORDERS[self.sort]

    def by_score(self, cheapest: Mapping[str, Decimal]) -> Callable[[Match], Key]:
        """The best fit first, and among equals the cheapest."""
        places = self.places()

        def key(match: Match) -> Key:
            place, currency = places.of(match.team_id, match.provider), match.facts.currency
            worth = score(match.facts, self.need, place, cheapest.get(currency), self.weights)
            return (-round(worth.total, 6), *by_gpu_price(match))

        return key

    def places(self) -> Places:
        return Places(self.team_ids, has_image=True if self.given["image"] else None)

    def ranked(self, ids: Sequence[int], results: Results) -> list[Ranked]:
        """The offers of one page, in the order of `ids`; those that went meanwhile are left out."""
        rows = Offer.objects.filter(pk__in=ids).select_related("source__team", "source__account")
        offers = {offer.pk: offer for offer in rows.defer("source__account__credentials")}
        places = self.places()
        return [self.rank(offers[pk], results.cheapest, places) for pk in ids if pk in offers]

    def rank(self, offer: Offer, cheapest: Mapping[str, Decimal], places: Places) -> Ranked:
        facts = facts_of(offer)
        place = places.of(offer.source.team_id, offer.provider)
        worth = score(facts, self.need, place, cheapest.get(facts.currency), self.weights)
        return Ranked(
            offer, facts, worth, warnings_of(facts, self.need), missing(offer, facts, self.given), place.health
        )


def facts_of(offer: Offer) -> Facts:
    return Facts(**{name: getattr(offer, name) for name in FACT_NAMES})


def cheapest_of(matches: Iterable[Match]) -> dict[str, Decimal]:
    """Per currency: two are never compared."""
    lowest: dict[str, Decimal] = {}
    for match in matches:
        currency = match.facts.currency
        if match.price is not None and (currency not in lowest or match.price < lowest[currency]):
            lowest[currency] = match.price
    return lowest


# One currency after the other, wherever prices decide.
def by_price(match: Match) -> Key:
    return (match.facts.currency, up(match.facts.price_per_hour))


def by_gpu_price(match: Match) -> Key:
    return (match.facts.currency, up(match.price))


def by_memory(match: Match) -> Key:
    return (down(match.facts.total_memory_gib), *by_price(match))


def by_internet(match: Match) -> Key:
    return (down(match.facts.internet_mbps), *by_price(match))


def by_node_network(match: Match) -> Key:
    return (down(match.facts.node_network_gbps), *by_price(match))


def by_age(match: Match) -> Key:
    return (-match.day.toordinal(), *by_price(match))


ORDERS: Mapping[str, Callable[[Match], Key]] = {
    "price": by_price,
    "gpu_price": by_gpu_price,
    "memory": by_memory,
    "network": by_internet,
    "age": by_age,
}


def up(value: Decimal | float | None) -> float:
    """Smallest first, what is not known last. Only for the order: money stays a Decimal."""
    return LAST if value is None else float(value)


def down(value: float | None) -> float:
    return LAST if value is None else -float(value)


def missing(offer: Offer, facts: Facts, given: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of what was asked for and is not told."""
    told: dict[str, Any] = {
        "gpu": facts.gpu_model,
        "gpus": facts.gpu_count,
        "gpu_memory_gib": facts.gpu_memory_mib,
        "total_memory_gib": facts.total_memory_gib,
        "max_price": facts.price_per_hour,
        "region": offer.region,
        "market": told_word(offer.market),
        "tenancy": told_word(facts.tenancy),
        "interconnect": offer.gpu_interconnect,
        "vcpus": facts.vcpus,
        "ram_gib": facts.ram_mib,
        "disk_gb": facts.disk_gb,
        "internet_mbps": facts.internet_mbps,
        "node_gbps": facts.node_network_gbps,
    }
    return tuple(name for name, value in told.items() if given[name] and value in {None, ""})


def told_word(word: str) -> str:
    return "" if word == "unknown" else word
