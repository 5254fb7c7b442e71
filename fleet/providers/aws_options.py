"""What an admin types into the form of an AWS account, understood or refused with the field's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import cache

from fleet.providers.base import gettext_noop
from fleet.providers.errors import InvalidOption


def required(options: Mapping[str, str], name: str) -> str:
    if not options[name].strip():
        raise InvalidOption(name, gettext_noop("Fill this in."))
    return options[name].strip()


def regions(text: str) -> tuple[str, ...]:
    """The regions of a comma list, in its order. Only names that the installed botocore knows: a typo would be a silent gap."""
    names = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not names:
        raise InvalidOption("regions", gettext_noop("Name at least one region, for example us-east-1."))
    for name in names:
        if name not in known_regions():
            raise InvalidOption("regions", gettext_noop("AWS has no region “%(name)s”."), name=name[:40])
    return names


def price_table(text: str) -> dict[str, Decimal]:
    """{"p4d.24xlarge": 21.96, "eu-west-1/p4d.24xlarge": 23.90} from one "key price" a line."""
    table = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = re.fullmatch(r"\s*([a-z0-9-]+/)?([a-z0-9-]+\.[a-z0-9-]+)[\s:=,]+\$?(\S+)\s*", line)
        price = decimal("prices", match[3], line=number) if match else None
        if match is None or price is None:
            raise unreadable(number)
        table[(match[1] or "") + match[2]] = price
    return table


def unreadable(line: int) -> InvalidOption:
    message = gettext_noop("Line %(line)s is not a type and a price, as in “p4d.24xlarge 21.96”.")
    return InvalidOption("prices", message, line=str(line))


def decimal(field: str, text: str, *, line: int | None = None) -> Decimal | None:
    """None for an empty text."""
    if not text.strip():
        return None
    try:
        value = Decimal(text.strip().lstrip("$"))
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or not 0 <= value < 1_000_000:
        raise unreadable(line) if line else InvalidOption(field, gettext_noop("Write a price, as in 0.08."))
    return value


@cache
def known_regions() -> frozenset[str]:
    import botocore.session

    session = botocore.session.get_session()
    partitions = session.get_available_partitions()
    return frozenset(name for each in partitions for name in session.get_available_regions("ec2", each))
