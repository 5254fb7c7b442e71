"""What an admin types into the form of an AWS account, understood or refused with the field's name."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from functools import cache

from fleet.providers.base import gettext_noop
from fleet.providers.errors import InvalidOption


def regions(text: str) -> tuple[str, ...]:
    """The regions of a comma list, in its order. Only names that the installed botocore knows: a typo would be a silent gap."""
    names = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not names:
        raise InvalidOption("regions", gettext_noop("Name at least one region, for example us-east-1."))
    for name in names:
        if name not in known_regions():
            raise InvalidOption("regions", gettext_noop("AWS has no region “%(name)s”."), name=name[:40])
    return names


def price_per_gb_month(field: str, text: str) -> Decimal | None:
    """None for an empty text."""
    if not text.strip():
        return None
    try:
        value = Decimal(text.strip().lstrip("$"))
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or not 0 <= value < 1_000_000:
        raise InvalidOption(field, gettext_noop("Write a price, as in 0.08."))
    return value


@cache
def known_regions() -> frozenset[str]:
    import botocore.session

    session = botocore.session.get_session()
    partitions = session.get_available_partitions()
    return frozenset(name for each in partitions for name in session.get_available_regions("ec2", each))
