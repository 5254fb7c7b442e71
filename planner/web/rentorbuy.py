"""Rent or buy for the chosen GPUs: what somebody typed, and for the rest the table of purchase prices and usual shares."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from planner.catalogue.gpus import Gpu
from planner.catalogue.prices import purchase_prices
from planner.choice.serving import ServingOption
from planner.choice.training import TrainingOption
from planner.owning import Band, Colocation, Comparison, OwnRoom, Purchase, compare
from planner.web.options import Row, money
from planner.web.words import sentence
from planner.web.words.terms import BANDS, OWNING_COSTS

# A server around its cards: a node with eight cards of 700 W draws 7.5 to 10.2 kW.
SERVER_WATTS_SHARE = Decimal("1.4")
# One administrator of some 15,000 a year for eight GPUs.
STAFF_PER_GPU = Decimal(1875)
TABLE_CURRENCY = "USD"
_SHARE = Decimal("0.001")


def owning_row(option: TrainingOption | ServingOption, given: Mapping[str, Any]) -> Row:
    """Null where a purchase price or a rent is not known: none is made up."""
    listed = purchase_prices().get(option.gpu.id)
    in_table = listed if listed and given["currency"] == TABLE_CURRENCY else None
    price = given["purchase_price"] if given["purchase_price"] is not None else in_table.price if in_table else None
    watts = given["watts_per_gpu"] if given["watts_per_gpu"] is not None else usual_watts(option.gpu)
    rent = option.price.per_gpu_hour if option.price else None
    inputs = {"purchase_price": price, "watts_per_gpu": watts, "rent_per_gpu_hour": rent}
    typed = given["purchase_price"] is not None
    source = None if typed or not in_table else {"name": in_table.source, "observed_on": in_table.observed_on}
    if price is None or watts is None or rent is None:
        return {**inputs, "purchase_source": source, "gpus": option.gpus, "comparison": None}
    found = compare(
        purchase_of(option.gpus, price, watts, given), rent_per_gpu_hour=rent, utilization=given["utilization"]
    )
    return {**inputs, "purchase_source": source, "gpus": option.gpus, "comparison": _comparison(found)}


def usual_watts(gpu: Gpu) -> Decimal | None:
    return None if gpu.board_watts is None else Decimal(str(gpu.board_watts)) * SERVER_WATTS_SHARE


def purchase_of(gpus: int, price: Decimal, watts: Decimal, given: Mapping[str, Any]) -> Purchase:
    """`price` and `watts` of one GPU; `given`: validated input of a plan."""
    place = Colocation(given["colocation_price"])
    room = OwnRoom(given["electricity_price"], given["pue"])
    staff = given["staff_per_year"] if given["staff_per_year"] is not None else STAFF_PER_GPU * gpus
    return Purchase(
        gpus=gpus,
        price=price * gpus,
        years=given["years"],
        kilowatts=watts * gpus / 1000,
        power=place if given["power"] == "colocation" else room,
        residual_share=given["residual_share"],
        financed_share=given["financed_share"],
        interest_per_year=given["interest"],
        maintenance_share_per_year=given["maintenance_share"],
        spares_share=given["spares_share"],
        network_share=given["network_share"],
        staff_per_year=staff,
    )


def _comparison(found: Comparison) -> Row:
    return {
        "costs": [
            {"key": key, "name": str(OWNING_COSTS[key]), "amount": money(amount)} for key, amount in found.costs.items()
        ],
        "own_per_gpu_hour": money(found.own_per_gpu_hour),
        "own_per_useful_gpu_hour": money(found.own_per_useful_gpu_hour),
        "rent_per_gpu_hour": money(found.rent_per_gpu_hour),
        "utilization": found.utilization,
        "break_even_utilization": _share(found.break_even),
        "owning_is_cheaper": found.owning_is_cheaper,
        "sensitivity": [_band(band) for band in found.sensitivity],
        "advice": [sentence(each) for each in found.advice],
    }


def _band(band: Band) -> Row:
    return {
        "key": band.key,
        "name": str(BANDS[band.key]),
        "low_input": money(band.low_input),
        "high_input": money(band.high_input),
        "at_low": _share(band.at_low),
        "at_high": _share(band.at_high),
    }


def _share(share: Decimal | None) -> Decimal | None:
    return None if share is None else share.quantize(_SHARE)
