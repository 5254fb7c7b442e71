"""What an admin types into the form of a cloud's account, understood or refused with the field's name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fleet.providers.base import gettext_noop
from fleet.providers.errors import InvalidOption

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


def networks(text: str, regions: tuple[str, ...]) -> Mapping[str, tuple[str, str]]:
    """Subnet and security group by region, from one line each."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.replace(",", " ").split()
        if words and (len(words) != 3 or words[0] not in regions):
            message = gettext_noop("Line %(line)s does not name one of the regions, a subnet and a security group.")
            raise InvalidOption("network", message, line=str(number))
        if words:
            found[words[0]] = (words[1], words[2])
    return found


def currency(text: str) -> str:
    """An ISO code of three letters."""
    code = text.strip().upper()
    if not re.fullmatch(r"[A-Z]{3}", code):
        raise InvalidOption("currency", gettext_noop("Write a currency's three letters, as in USD."))
    return code
