"""Offers as pages draw them: words for every figure, and the ways on from each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import NamedTuple

from fleet.inventory.offers.launch import launch_url
from fleet.inventory.offers.models import Offer, SourceKind
from fleet.inventory.offers.need import MIB_PER_GIB, Need, price_for
from fleet.inventory.offers.places import provider_label
from fleet.inventory.offers.search import Ranked
from fleet.inventory.offers.words import oversight_text, part_name, reason_of, score_sentence
from fleet.inventory.words import MARKETS, TENANCIES
from fleet.providers.base import Market, Tenancy

# A dated price looks old after three of these.
PRICE_PERIOD_SECONDS = 10 * 86_400
INTERCONNECT_NAMES = {"nvlink": "NVLink", "pcie": "PCIe"}


class Reason(NamedTuple):
    """One part of the score. `percent`: of its own weight; `known` False: nobody says, and it counts as the middle."""

    name: str
    weight: int
    percent: int
    known: bool
    text: str


class Check(NamedTuple):
    """Something that people overlook. `known` False: the offer does not say."""

    text: str
    known: bool


@dataclass(frozen=True, slots=True)
class Line:
    offer: Offer
    provider: str
    score: int
    sentence: str
    reasons: list[Reason]
    checks: list[Check]
    missing: tuple[str, ...]
    gpu_price: Decimal | None
    total_memory_gib: float | None
    launch_url: str | None
    health: int | None

    @property
    def too_little(self) -> int:
        return sum(check.known for check in self.checks)

    @property
    def untold(self) -> int:
        return len(self.checks) - self.too_little

    @property
    def name(self) -> str:
        return f"{self.provider} {self.offer.instance_type}".strip()

    @property
    def interconnect(self) -> str:
        return INTERCONNECT_NAMES.get(self.offer.gpu_interconnect, self.offer.gpu_interconnect)

    @property
    def internet(self) -> str:
        """Down and up; a direction that is not told is a question mark, "" where none is."""
        speeds = (self.offer.internet_down_mbps, self.offer.internet_up_mbps)
        if speeds == (None, None):
            return ""
        return " / ".join("?" if speed is None else f"{speed:,.0f}" for speed in speeds) + " Mbit/s"

    @property
    def market(self) -> str:
        return str(MARKETS[Market(self.offer.market)])

    @property
    def tenancy(self) -> str:
        return str(TENANCIES[Tenancy(self.offer.tenancy)])

    @property
    def is_live(self) -> bool:
        return self.offer.source.kind == SourceKind.LIVE

    @property
    def as_of(self) -> datetime:
        """When its price was true: read for live offers, the day in the list for others."""
        day = self.offer.priced_on
        return datetime.combine(day, time(), UTC) if day else self.offer.seen_at

    @property
    def period_seconds(self) -> int:
        return self.offer.source.interval_seconds if self.is_live else PRICE_PERIOD_SECONDS

    @property
    def gpu_memory_gib(self) -> float | None:
        memory = self.offer.gpu_memory_mib
        return None if memory is None else memory / MIB_PER_GIB

    @property
    def ram_gib(self) -> float | None:
        return None if self.offer.ram_mib is None else self.offer.ram_mib / MIB_PER_GIB


def line_of(ranked: Ranked) -> Line:
    offer, facts = ranked.offer, ranked.facts
    return Line(
        offer=offer,
        provider=provider_label(offer.provider),
        score=round(ranked.score.total),
        sentence=score_sentence(ranked.score.parts),
        reasons=[
            Reason(part_name(part), part.weight, round(100 * part.counted), part.value is not None, reason_of(part))
            for part in ranked.score.parts
        ],
        checks=[Check(oversight_text(found), found.known) for found in ranked.warnings],
        missing=ranked.missing,
        gpu_price=price_for(facts, Need()),
        total_memory_gib=facts.total_memory_gib,
        launch_url=launch_url(offer),
        health=ranked.health,
    )


def lines_of(ranked: Iterable[Ranked]) -> list[Line]:
    return [line_of(one) for one in ranked]
