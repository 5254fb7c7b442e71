"""What orders carry, in the ways that APIs have for it: tokens, labels, names, keys, and refusals in words."""

from __future__ import annotations

import pytest

from fleet.providers.errors import Invalid, NoCapacity, QuotaOrFunds, ScopeMissing, Unavailable, WrongState
from fleet.providers.orders import (
    client_token,
    known_key,
    labels_of,
    name_with_token,
    order_refusals,
    plain_name,
    tags_of,
)

TOKEN = "rr-0123456789abcdef"


@pytest.mark.parametrize("error", [Invalid, WrongState, QuotaOrFunds])
@pytest.mark.parametrize(
    "words",
    ["The flavor is out of stock.", "Not enough resources to deploy", "size is not available in nyc2", "GPU库存不足"],
)
def test_a_refusal_in_words_is_want_of_capacity(error, words):
    with pytest.raises(NoCapacity, match=words[:8]), order_refusals():
        raise error(words)


@pytest.mark.parametrize("words", ["Unknown image.", "", "capacity of the disk must be a number"])
def test_another_refusal_stays_what_it_is(words):
    with pytest.raises(Invalid), order_refusals():
        raise Invalid(words)


@pytest.mark.parametrize("error", [Unavailable, ScopeMissing])
def test_a_server_in_trouble_refuses_nothing(error):
    """It may have taken the order: called a refusal, its machine would run on unseen."""
    with pytest.raises(error), order_refusals():
        raise error("The service is currently unavailable.")


def test_labels_go_into_tags_and_come_back():
    tags = tags_of({"team": "ml", "gpu": "", "who?": "a b"}, TOKEN)
    assert tags == [f"rackrent:{TOKEN}", "gpu", "team:ml", "who-:a-b"]
    assert labels_of(tags) == {"rackrent": TOKEN, "gpu": "", "team": "ml", "who-": "a-b"}


@pytest.mark.parametrize(
    ("name", "limit", "whole"),
    [
        ("My Run #7", 63, f"my-run-7-{TOKEN}"),
        ("训练", 63, TOKEN),
        ("", 63, TOKEN),
        ("a" * 80, 50, f"{'a' * 30}-{TOKEN}"),
        ("a" * 29 + "-b", 50, f"{'a' * 29}-{TOKEN}"),
    ],
)
def test_a_name_that_ends_with_the_token_keeps_it_whole(name, limit, whole):
    made = name_with_token(name, TOKEN, limit=limit)
    assert made == whole
    assert len(made) <= limit
    assert client_token("", None, made) == {"client_token": TOKEN}


def test_a_name_is_a_host_name():
    assert plain_name("  Größe: 7B/Run_2 ") == "gr-e-7b-run-2"


def test_a_text_without_a_token_has_none():
    assert client_token("rr-0123", "rr-0123456789ABCDEF", None) == {}


def test_a_key_is_the_same_whatever_its_comment():
    rows: list[dict[str, object]] = [
        {"id": 1, "key": "ssh-rsa AAAA bob"},
        {"id": 2, "key": "ssh-ed25519 AAAA alice@old"},
        {"id": 3},
    ]
    assert known_key(rows, "key", "ssh-ed25519 AAAA alice@new") == rows[1]
    assert known_key(rows, "key", "ssh-ed25519 BBBB alice@old") is None
