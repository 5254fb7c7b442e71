"""How well an offer fits, from 0 to 100, and why. Pure: no Django, no clock.

Five parts in the order that renters are advised to look at: GPU, network, images and API, support, price; and how the team's own machines
fared there. Each has a value from 0 to 1;
the score is their mean by weight. What an offer does not say counts as the middle, so that silence neither wins nor loses.
What was not asked, and support that nobody rated, and a provider of whose machines too little is known, has no weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import log
from typing import NamedTuple

from fleet.inventory.offers.need import Facts, Need, price_for

UNKNOWN_COUNTS_AS = 0.5
MOST_WEIGHT = 10
# Up to the first nothing is earned, from the second on all; in between by the logarithm: ten times faster is one step, anywhere.
INTERNET_MBPS = (50.0, 10_000.0)
NODES_GBPS = (1.0, 400.0)
STARS = 5


@dataclass(frozen=True, slots=True)
class Weights:
    gpu: int = 5
    network: int = 4
    images: int = 3
    support: int = 2
    price: int = 1
    health: int = 1


class Place(NamedTuple):
    """What is known of who makes the offer. `support`: the team's rating, 1 to 5; `health`: the same for how its machines fared. `has_image`: None = none was asked for."""

    adapter: bool = False
    creates: bool = False
    saves_images: bool = False
    has_image: bool | None = None
    support: int | None = None
    health: int | None = None


class Part(NamedTuple):
    """`code` with `told` says why; the words are elsewhere. value None: nobody says."""

    name: str
    weight: int
    value: float | None
    code: str
    told: Mapping[str, object]

    @property
    def counted(self) -> float:
        return UNKNOWN_COUNTS_AS if self.value is None else self.value

    @property
    def points(self) -> float:
        return self.weight * self.counted


class Score(NamedTuple):
    total: float
    parts: tuple[Part, ...]


def score(facts: Facts, need: Need, place: Place, cheapest: Decimal | None, weights: Weights) -> Score:
    """`cheapest`: the lowest `price_for` among the offers compared, in the offer's own currency."""
    parts = (
        gpu_part(facts, need, weights.gpu),
        network_part(facts, need, weights.network),
        images_part(place, weights.images),
        support_part(place, weights.support),
        price_part(facts, need, cheapest, weights.price),
        health_part(place, weights.health),
    )
    whole = sum(part.weight for part in parts)
    return Score(100 * sum(part.points for part in parts) / whole if whole else 0.0, parts)


def gpu_part(facts: Facts, need: Need, weight: int) -> Part:
    """How much of the machine would be used: eight GPUs where four are asked for are half a fit."""
    have: float | None
    if need.gpus:
        have, asked, code = facts.gpu_count, float(need.gpus), "gpu_count"
    elif need.total_memory_gib:
        have, asked, code = facts.total_memory_gib, float(need.total_memory_gib), "gpu_memory"
    elif need.gpu:
        return Part("gpu", weight, 1.0, "gpu_model", {"model": facts.gpu_model}) if facts.gpu_model else _gpu(weight)
    else:
        return Part("gpu", 0, None, "not_asked", {})
    if have is None or (need.gpu and not facts.gpu_model):
        return _gpu(weight)
    fit = min(asked, have) / max(asked, have) if have else 0.0
    return Part("gpu", weight, fit, code, {"model": facts.gpu_model, "have": have, "asked": asked})


def _gpu(weight: int) -> Part:
    return Part("gpu", weight, None, "unknown", {})


def network_part(facts: Facts, need: Need, weight: int) -> Part:
    """Between the machines where several are asked for, to the internet where it is one."""
    if need.nodes > 1:
        return _network(facts.node_network_gbps, NODES_GBPS, "node_network", weight)
    return _network(facts.internet_mbps, INTERNET_MBPS, "internet", weight)


def _network(speed: float | None, scale: tuple[float, float], code: str, weight: int) -> Part:
    if speed is None:
        return Part("network", weight, None, "unknown", {})
    low, high = scale
    value = 0.0 if speed <= low else min(1.0, log(speed / low) / log(high / low))
    return Part("network", weight, value, code, {"speed": speed})


def images_part(place: Place, weight: int) -> Part:
    """Half for renting it from here, half for the image that is asked for, or for saving images at all."""
    if not place.adapter:
        return Part("images", weight, 0.0, "no_adapter", {})
    has = place.saves_images if place.has_image is None else place.has_image
    what = "bare" if not has else "images" if place.has_image is None else "image"
    code = f"{'creates' if place.creates else 'watches'}_{what}"
    return Part("images", weight, place.creates / 2 + has / 2, code, {})


def support_part(place: Place, weight: int) -> Part:
    if place.support is None:
        return Part("support", 0, None, "not_rated", {})
    return Part("support", weight, (place.support - 1) / (STARS - 1), "rated", {"stars": place.support})


def health_part(place: Place, weight: int) -> Part:
    if place.health is None:
        return Part("health", 0, None, "not_known", {})
    return Part("health", weight, (place.health - 1) / (STARS - 1), "fared", {"stars": place.health})


def price_part(facts: Facts, need: Need, cheapest: Decimal | None, weight: int) -> Part:
    """Twice the cheapest price is half a fit."""
    own = price_for(facts, need)
    if own is None or cheapest is None:
        return Part("price", weight, None, "unknown", {})
    value = float(cheapest / own) if own else 1.0
    return Part(
        "price", weight, min(1.0, value), "price", {"own": own, "cheapest": cheapest, "currency": facts.currency}
    )
