"""What the places are called whose holidays are known, in the reader's language."""

from __future__ import annotations

from functools import lru_cache

from babel import Locale
from django.utils import translation

from fleet.idle.hours import regions_by_country


def country_words(code: str) -> str:
    """DE is Germany, DE-BY is Germany (BY): regions have no names in the data that languages come from."""
    country, _, region = code.partition("-")
    name = _names(translation.get_language() or "en").get(country, country)
    return f"{name} ({region})" if region else name


def countries() -> list[tuple[str, str]]:
    """Code and name, by name."""
    names = _names(translation.get_language() or "en")
    return sorted(((code, names.get(code, code)) for code in regions_by_country()), key=lambda pair: pair[1].casefold())


@lru_cache(maxsize=8)
def _names(language: str) -> dict[str, str]:
    return dict(Locale.parse(translation.to_locale(language)).territories)
