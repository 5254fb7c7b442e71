"""How figures read: ages, durations, money, bytes, rates. Bytes and rates read the same in every language."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal

from django.utils.translation import gettext as _

UNKNOWN = "—"
# From then on hours say nothing more.
LONG_DAYS = 30
# Signs that read without doubt; other currencies show their ISO code.
SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "CNY": "¥"}
CENT = Decimal("0.01")
LEAST_WHOLE = 10
BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
DECIMAL_UNITS = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")


def age_text(seconds: float) -> str:
    """One number and one unit: "25 s", "14 min", "5 h", "3 d"."""
    whole = max(0, int(seconds))
    size, words = next(unit for unit in age_units() if whole >= unit[0] or unit[0] == 1)
    return words % {"n": whole // size}


def age_units() -> tuple[tuple[int, str], ...]:
    """The units of ages, largest first: their seconds and their words around %(n)d. The page's script keeps time by them."""
    return ((86_400, _("%(n)d d")), (3_600, _("%(n)d h")), (60, _("%(n)d min")), (1, _("%(n)d s")))


def duration_text(seconds: float) -> str:
    """Two units where the second still matters: "47 min", "6 h 12 min", "14 d 4 h"."""
    whole = max(0, int(seconds))
    days, hours, minutes = whole // 86_400, whole // 3_600 % 24, whole // 60 % 60
    if days:
        both = _("%(days)d d %(hours)d h") if hours and days < LONG_DAYS else _("%(days)d d")
        return both % {"days": days, "hours": hours}
    if hours and not minutes:
        return _("%(hours)d h") % {"hours": hours}
    if hours:
        return _("%(hours)d h %(minutes)02d min") % {"hours": hours, "minutes": minutes}
    return _("%(minutes)d min") % {"minutes": minutes} if minutes else _("%(seconds)d s") % {"seconds": whole}


def brief_duration_text(seconds: float) -> str:
    """For places without room: "47 min", "6 h 12", "14 d"."""
    whole = max(0, int(seconds))
    if whole >= 86_400:
        return _("%(days)d d") % {"days": whole // 86_400}
    if whole >= 3_600:
        return _("%(hours)d h %(minutes)02d") % {"hours": whole // 3_600, "minutes": whole // 60 % 60}
    return duration_text(whole)


def countdown_text(seconds: float) -> str:
    """What is left: "3:20" within the hour, "4 h 05" beyond."""
    whole = max(0, int(seconds))
    return brief_duration_text(whole) if whole >= 3_600 else f"{whole // 60}:{whole % 60:02d}"


def sign_of(currency: str) -> str:
    return SIGNS.get(currency, f"{currency} ")


def money_text(amount: Decimal, currency: str = "USD") -> str:
    """With cents: "$1,234.56". Under ten cents with four places, so that a cheap disk is not shown as free."""
    places = Decimal("0.0001") if 0 < abs(amount) < Decimal("0.01") else CENT
    rounded = abs(amount).quantize(places, ROUND_HALF_UP)
    return f"{'-' if amount < 0 else ''}{sign_of(currency)}{rounded:,}"


def whole_money_text(amount: Decimal, currency: str = "USD") -> str:
    """What a month or a budget comes to: "$33,918". Under ten with cents."""
    rounded = abs(amount).quantize(Decimal(1), ROUND_HALF_UP)
    if rounded < LEAST_WHOLE:
        return money_text(amount, currency)
    return f"{'-' if amount < 0 else ''}{sign_of(currency)}{rounded:,}"


def amounts_text(amounts: Mapping[str, Decimal]) -> str:
    """Every currency by itself, largest first: money is never added across currencies."""
    ordered = sorted(amounts.items(), key=lambda item: item[1], reverse=True)
    return " + ".join(money_text(amount, currency) for currency, amount in ordered)


def whole_amounts_text(amounts: Mapping[str, Decimal]) -> str:
    """The same of months: "$20,900 + ¥4,100"."""
    ordered = sorted(amounts.items(), key=lambda item: item[1], reverse=True)
    return " + ".join(whole_money_text(amount, currency) for currency, amount in ordered)


def scaled(value: float, base: int, units: tuple[str, ...]) -> tuple[float, str]:
    for unit in units[:-1]:
        if abs(value) < base:
            return value, unit
        value /= base
    return value, units[-1]


def number_text(value: float) -> str:
    """Three significant digits without an exponent: "0.31", "9.8", "62.4", "512"."""
    if value == 0:
        return "0"
    places = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{places}f}"


def milliseconds_text(seconds: float) -> str:
    """Latencies: "85 ms", "1,240 ms"."""
    return f"{number_text(1000 * seconds)} ms"


def bytes_text(count: float) -> str:
    """Memory and files, in powers of 1024: "62.4 GiB"."""
    value, unit = scaled(float(count), 1024, BINARY_UNITS)
    return f"{number_text(value)} {unit}"


def rate_unit(bytes_per_second: float) -> tuple[str, float]:
    """The unit in which a rate reads best, and what a rate is multiplied by to be in it."""
    _value, unit = scaled(float(bytes_per_second), 1000, DECIMAL_UNITS)
    return unit, 1000.0 ** -DECIMAL_UNITS.index(unit)


def rate_text(bytes_per_second: float) -> str:
    """Transfer rates, in powers of 1000: "1.9 GB/s"."""
    value, unit = scaled(float(bytes_per_second), 1000, DECIMAL_UNITS)
    return f"{number_text(value)} {unit}"
