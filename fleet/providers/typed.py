"""What an admin types into the form of a cloud's account, understood or refused with the field's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from fleet.providers.base import Market, Money, gettext_noop
from fleet.providers.errors import Invalid, InvalidOption

PRICE_LINE = re.compile(r"\s*(spot\s+)?([a-z0-9-]+/)?([A-Za-z0-9._-]+)[\s:=,]+\$?(\d+(?:\.\d+)?)\s*")
REGION = re.compile(r"[a-z]{2,}(-[a-z0-9]+)+")


def region_names(text: str) -> tuple[str, ...]:
    """The regions of a comma list, in its order."""
    names = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not names:
        raise InvalidOption("regions", gettext_noop("Name at least one region."))
    for name in names:
        if not REGION.fullmatch(name):
            raise InvalidOption("regions", gettext_noop("“%(name)s” is not the name of a region."), name=name[:40])
    return names


def own_region(region: str, regions: tuple[str, ...]) -> str:
    """Raises Invalid for a region that the account does not name: nobody would see what was made there."""
    if region not in regions:
        raise Invalid(f"The region {region!r} is not among those of this account: {', '.join(regions)}.")
    return region


def networks(text: str, regions: tuple[str, ...] | None = None) -> Mapping[str, tuple[str, str]]:
    """What a region needs to rent there, two words by region, from one line each. `regions`: those that are allowed."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.replace(",", " ").split()
        if words and (len(words) != 3 or (regions is not None and words[0] not in regions)):
            message = gettext_noop(
                "Line %(line)s is not one of the account's regions and two words, as the hint shows."
            )
            raise InvalidOption("network", message, line=str(number))
        if words:
            found[words[0]] = (words[1], words[2])
    return found


def unique_id(field: str, text: str) -> str:
    """A UUID as clouds show it: it becomes a part of addresses."""
    try:
        return str(UUID(text))
    except ValueError:
        message = gettext_noop("An id looks like 00000000-0000-0000-0000-000000000000. Copy it again.")
        raise InvalidOption(field, message) from None


def currency(text: str) -> str:
    """An ISO code of three letters."""
    code = text.strip().upper()
    if not re.fullmatch(r"[A-Z]{3}", code):
        raise InvalidOption("currency", gettext_noop("Write a currency's three letters, as in USD."))
    return code


@dataclass(frozen=True, slots=True)
class PriceTable:
    """What an admin typed of prices that the API does not tell, by "type", "region/type", "spot type" or "spot region/type"."""

    prices: Mapping[str, Decimal]
    currency: str

    def of(self, kind: str, region: str, market: Market) -> Money | None:
        """An hour of the whole machine. None for what was not typed, and for what is not paid by the hour."""
        if market not in {Market.ON_DEMAND, Market.SPOT}:
            return None
        word = "spot " if market is Market.SPOT else ""
        amount = self.prices.get(f"{word}{region}/{kind}", self.prices.get(f"{word}{kind}"))
        return None if amount is None else Money(amount, self.currency)


def price_lines(text: str, currency: str) -> PriceTable:
    """Raises InvalidOption with the number of a line that is no type and price."""
    prices = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = PRICE_LINE.fullmatch(line)
        if match is None:
            message = gettext_noop("Line %(line)s is not a type and a price an hour.")
            raise InvalidOption("prices", message, line=str(number))
        word = "spot " if match[1] else ""
        prices[f"{word}{match[2] or ''}{match[3]}"] = Decimal(match[4])
    return PriceTable(prices, currency)
