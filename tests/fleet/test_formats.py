from __future__ import annotations

from decimal import Decimal

import pytest

from fleet import formats


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (90_000, "1 d")],
)
def test_an_age_is_one_number_and_one_unit(seconds, text):
    assert formats.age_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12, "12 s"), (2_820, "47 min"), (22_320, "6 h 12 min"), (1_224_000, "14 d 4 h"), (86_400, "1 d")],
)
def test_a_duration_keeps_its_second_unit(seconds, text):
    assert formats.duration_text(seconds) == text


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("1234.555", "USD", "$1,234.56"),
        ("0.0042", "USD", "$0.0042"),
        ("0", "USD", "$0.00"),
        ("104.16", "CNY", "¥104.16"),
        ("-3", "EUR", "-€3.00"),
        ("7", "SEK", "SEK 7.00"),
    ],
)
def test_money_keeps_its_cents_and_a_cheap_thing_is_not_free(amount, currency, text):
    assert formats.money_text(Decimal(amount), currency) == text


def test_currencies_are_never_added_up():
    assert formats.amounts_text({"CNY": Decimal(7), "USD": Decimal(9)}) == "$9.00 + ¥7.00"


def test_memory_counts_in_1024_and_rates_in_1000():
    assert formats.bytes_text(67_000_000_000) == "62.4 GiB"
    assert formats.bytes_text(0) == "0 B"
    assert formats.rate_text(1_900_000_000) == "1.90 GB/s"
